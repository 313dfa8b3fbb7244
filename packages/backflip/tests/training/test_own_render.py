"""Pictures of environments that draw themselves, from the driver to the teacher and the films."""

import io
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from packages.backflip.tests.envs import drawn_envs
from packages.backflip.tests.envs.drawn_envs import BACK, SQUARE
from PIL import Image

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.drivers.driver import Driver
from backflip.envs.pictures import encoded, unpacked
from backflip.preferences.clips import (
    Clip,
    Window,
    cut,
    episode_start,
    from_arrays,
    to_arrays,
    windows,
    with_pictures,
)
from backflip.preferences.drawer import Drawer
from backflip.preferences.exchange import export_labels, import_labels, read_labels
from backflip.preferences.films import FILMS, read_film
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import teach
from backflip.training.build import build, spec_of
from backflip.training.progress import Progress, Report

OWN = "packages.backflip.tests.envs.drawn_envs:"
TINY: dict[str, Any] = {
    "num_envs": 4,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 2,
    "hidden": (8,),
    "phases": 2,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 6,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
}


def driver_of(name: str) -> Driver:
    settings = {key: TINY[key] for key in list(TINY)[:5]}
    return build("ppo", f"{OWN}{name}", env_args={}, settings=settings).driver


def drawn(record: Transition) -> np.ndarray:
    """Which env steps of a record have a picture."""
    assert not isinstance(record.scene, tuple)
    return np.vectorize(bool)(record.scene)


def place(frame: np.ndarray) -> int:
    """The place of the square in a frame, which shows nothing else."""
    assert {tuple(pixel) for pixel in frame.reshape(-1, 3).tolist()} == {BACK, SQUARE}
    return round(np.flatnonzero((frame[0] == SQUARE).all(-1))[0] * 8 / frame.shape[1])


def check_pictures(record: Transition) -> None:
    """Every picture shows the observation of its env step."""
    assert not isinstance(record.scene, tuple)
    for at in zip(*np.nonzero(drawn(record)), strict=True):
        frame = unpacked(np.frombuffer(record.scene[at], np.uint8)[None])[0]
        assert place(frame) == record.obs[at][0]


@pytest.mark.medium
def test_a_record_has_pictures_of_whole_environments() -> None:
    there = driver_of("Square")
    record = there.random_record([3, 4], envs=5, env_steps=20, repeat=0.5, pictures=50)
    shown = drawn(record)
    assert shown[:, :, :2].all()
    assert not shown[:, :, 2:].any()
    check_pictures(record)
    there.close()


def test_with_few_pictures_the_end_of_one_environment_is_drawn() -> None:
    there = driver_of("Square")
    record = there.random_record([3], envs=5, env_steps=20, repeat=0.5, pictures=8)
    expected = np.zeros((1, 20, 5), bool)
    expected[:, 12:, 0] = True
    np.testing.assert_array_equal(drawn(record), expected)
    there.close()


@pytest.mark.slow
def test_a_phase_learns_the_same_bits_with_and_without_pictures() -> None:
    found: list[Any] = []
    for pictures in (0, 40):
        there = driver_of("Square")
        run = there.phase(3, record_rollouts=2, record_envs=3, pictures=pictures)
        learners, phase = run(there.start([5, 6]), None)
        record = phase.record
        assert record is not None
        found.append((learners, record._replace(scene=())))
        there.close()
    assert not isinstance(record.scene, tuple)
    shown = drawn(record)
    assert shown.shape == (2, 32, 3)
    assert shown[:, :, 0].all()
    assert not shown[:, :, 1:].any()
    check_pictures(record)
    jax.tree.map(np.testing.assert_array_equal, *found)


def test_without_pictures_nothing_is_drawn() -> None:
    there = driver_of("Square")
    assert there.random_record([3], envs=2, env_steps=9, repeat=0.5).scene == ()
    assert there.drawing_problem == ""
    there.close()


def test_the_driver_says_why_nothing_is_drawn() -> None:
    there = driver_of("Fails")
    record = there.random_record([3], envs=2, env_steps=9, repeat=0.5, pictures=99)
    assert record.scene == ()
    assert "no graphics library" in there.drawing_problem
    there.close()


# Clips


def pictured(kinds: str, seen: str) -> Transition:
    """Return a record of one environment: `-` or `e`nd or `r`eset; `p`icture or none at each."""
    count = len(kinds)
    ticks = np.arange(count, dtype=np.float32)[:, None]
    kind = np.array(list(kinds))[:, None]
    scene = np.array([encoded(frame(t)) if one == "p" else b"" for t, one in enumerate(seen)])
    return Transition(
        ticks[..., None],
        ticks,
        ticks,
        kind == "e",
        np.zeros((count, 1), bool),
        ticks[..., None] + 1,
        kind != "r",
        (),
        scene.astype(object)[:, None],
    )


def frame(shade: float) -> np.ndarray:
    return np.full((6, 8, 3), 10 * shade, np.uint8)


def shades(clip: Clip) -> list[int]:
    return (unpacked(clip.scene)[:, 0, 0, 0] // 10).tolist()


def test_a_clip_has_the_pictures_of_its_steps_and_of_how_the_episode_ended() -> None:
    record = pictured("---er---", "pppppppp")
    assert shades(cut(record, Window(0, 0), 3)) == [0, 1, 2]
    clip = cut(record, Window(2, 0), 4)
    assert clip.alive.tolist() == [True, True, False, False]
    assert shades(clip) == [2, 3, 4, 4]


def test_a_clip_with_a_missing_picture_has_none() -> None:
    record = pictured("--------", "pp-ppppp")
    assert cut(record, Window(1, 0), 3).scene.shape == (0,)
    assert shades(cut(record, Window(3, 0), 3)) == [3, 4, 5]


def test_clips_are_chosen_where_there_are_pictures() -> None:
    record = pictured("--------", "pppp-ppp")
    assert [at.time for at in with_pictures(record, windows(record, 3), 3)] == [0, 1, 5]
    none = pictured("--------", "--------")
    assert len(with_pictures(none, windows(none, 3), 3)) == 6
    late = pictured("-er-----", "----pppp")
    clip = episode_start(late, 2)
    assert clip is not None
    assert clip.scene.size


@pytest.fixture
def labelled(tmp_path: Path) -> LabelStore:
    """A store with one answered query: one clip with pictures, one without."""
    store = LabelStore.open(tmp_path / "labels.sqlite")
    left = cut(pictured("-----", "ppppp"), Window(0, 0), 4)
    right = cut(pictured("-----", "-----"), Window(0, 0), 4)
    (query,) = store.add_queries([NewQuery(0, to_arrays(left), to_arrays(right), 10)])
    store.add_label(query, "left", "me", 1.0)
    return store


def test_labels_keep_pictures_through_export_and_import(
    labelled: LabelStore, tmp_path: Path
) -> None:
    export_labels(labelled, tmp_path / "labels.jsonl")
    with LabelStore.open(tmp_path / "other.sqlite") as other:
        assert import_labels(other, read_labels(tmp_path / "labels.jsonl"), [0], "file") == 1
        (pair,) = other.labelled(0)
    labelled.close()
    assert shades(from_arrays(pair.left)) == [0, 1, 2, 3]
    assert from_arrays(pair.right).scene.size == 0


# Films


@pytest.mark.medium
def test_films_show_the_pictures_and_the_agents_numbers(tmp_path: Path) -> None:
    env = f"{OWN}Square"
    there = driver_of("Square")
    record = there.random_record([3], envs=2, env_steps=40, repeat=0.5, pictures=99)
    there.close()
    spec = spec_of(env, {})
    drawer = Drawer(tmp_path, env, {}, spec)
    record = row_of(record, 0)
    window = windows(record, 5)[0]
    clip = cut(record, window, 5)
    movie = drawer.movie(clip)
    assert movie.frames.shape[1:] == (80, 320, 3)  # 40 x 160, enlarged by a whole factor
    per_step = (len(movie.frames) - 1) // 5
    alive = int(clip.alive.sum())
    places = [place(one) for one in movie.frames[: per_step * alive : per_step]]
    assert places == clip.obs[:alive, 0].tolist()
    film = drawer.films(clip)["agent"]
    strip = Image.open(io.BytesIO(read_film(tmp_path / FILMS, film.file)))
    assert SQUARE not in {colour for _, colour in strip.convert("RGB").getcolors(1 << 20)}
    latest = drawer.latest(record)
    assert latest is not None
    assert (latest.width, latest.height) == (320, 80)


# Teaching

FUNCTION = """
import numpy as np
seen = []

def prefer(left, right):
    for clip in (left, right):
        frames = clip.frames()
        seen.append((frames[:, 0], clip.observations[:, 0], clip.alive))
    return "left"
"""


def tiny(home: Path, env: str, teacher: str, report: Report | None = None) -> Path:
    result = teach(
        f"{OWN}{env}",
        teacher=teacher,
        labels=6,
        env_steps=4 * 16 * 2,
        settings=TINY,
        home=home,
        argv=["backflip"],
        report=report,
    )
    return result.folder


@pytest.mark.slow
def test_a_function_that_teaches_and_the_picture_of_teaching_show_the_environments_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"looking_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    folder = tiny(tmp_path / "home", "Square", f"{name}:prefer")
    seen = __import__(name).seen
    assert len(seen) == 12
    for tops, obs, alive in seen:
        for top, one in zip(tops[alive], obs[alive], strict=True):
            assert place(top[None]) == one
    check_the_picture_shows_the_environments_own(folder)


def check_the_picture_shows_the_environments_own(folder: Path) -> None:
    with Image.open(folder / "teaching.webp") as picture:
        colours = picture.convert("RGB")
    panels = colours.width // 240
    assert panels >= 2
    for panel in range(panels):
        band = np.asarray(colours)[20, 240 * panel + 4 : 240 * panel + 236].astype(int)
        near = [np.abs(band - one).sum(-1).min() for one in (BACK, SQUARE)]
        assert max(near) < 40


@pytest.mark.slow
def test_teaching_says_that_a_render_fails_and_shows_numbers(tmp_path: Path) -> None:
    notes: list[str | None] = []
    folder = tiny(tmp_path, "Fails", "oracle", lambda progress: notes.append(progress.note))
    why = "its `render()` raised RuntimeError: no graphics library"
    assert f"`{OWN}Fails` is shown as it is observed: {why}" in notes
    assert (folder / "teaching.webp").exists()


@pytest.mark.slow
def test_teaching_says_once_that_a_render_fails_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    def lost(env: Any) -> Any:
        raise RuntimeError("lost the screen")

    def report(progress: Progress) -> None:
        notes.append(progress.note or "")
        if progress.phase == 1:
            monkeypatch.setattr(drawn_envs.Square, "render", lost)

    tiny(tmp_path, "Square", "oracle", report)
    said = [note for note in notes if "is shown as it is observed" in note]
    why = "its `render()` raised RuntimeError: lost the screen"
    assert said == [f"`{OWN}Square` is shown as it is observed: {why}"]
