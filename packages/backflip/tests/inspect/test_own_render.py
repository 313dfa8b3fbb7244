"""`look`, `play` and `watch` show an environment's own `render()`, or say why not."""

import io
from pathlib import Path

import numpy as np
import pytest
from packages.backflip.tests.envs.drawn_envs import BACK, SQUARE
from packages.backflip.tests.inspect.test_look import looked_at
from PIL import Image

from backflip.envs.views.canvas import BACKGROUND
from backflip.inspect.game import Game
from backflip.inspect.watch import watch
from backflip.training.train import train
from runshelf.store.run import open_run

OWN = "packages.backflip.tests.envs.drawn_envs:"


def colours(picture: Image.Image | bytes | Path) -> set[tuple[int, ...]]:
    if not isinstance(picture, Image.Image):
        picture = Image.open(io.BytesIO(picture) if isinstance(picture, bytes) else picture)
    found = picture.convert("RGB").getcolors(1 << 24)
    assert found is not None
    return {colour for _, colour in found}  # type: ignore[misc]


@pytest.mark.medium
def test_look_shows_it_and_says_what_it_costs(tmp_path: Path) -> None:
    seen = looked_at(f"{OWN}Square", tmp_path / "clip.png")
    assert {BACK, SQUARE} <= colours(seen.clip)
    assert seen.note == ""
    facts = dict(seen.report.facts)
    assert facts["drawn by"] == "its own render(), 160 x 40"
    assert "ms, as long as" in facts["one picture"]
    assert seen.report.step_seconds == pytest.approx(0.1)  # of its `render_fps`


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Fails", "its `render()` raised RuntimeError: no graphics library"),
        ("Nothing", "its `render()` returned None"),
        ("FailsLater", "its `render()` raised RuntimeError: lost the graphics library"),
        ("WindowOnly", ""),
    ],
)
def test_look_shows_numbers_and_says_why(name: str, why: str, tmp_path: Path) -> None:
    seen = looked_at(f"{OWN}{name}", tmp_path / "clip.png")
    found = colours(seen.clip)
    assert SQUARE not in found
    assert BACKGROUND in found
    assert why in seen.note
    assert seen.note.startswith(f"`{OWN}{name}` is shown as it is observed: ") == bool(why)
    assert "drawn by" not in dict(seen.report.facts)


@pytest.mark.medium
def test_look_at_a_toy_text_environment_draws_it_or_names_the_missing_package(
    tmp_path: Path,
) -> None:
    seen = looked_at("Taxi-v4", tmp_path / "clip.png")
    try:
        __import__("pygame")
    except ImportError:
        assert "pygame" in seen.note
        assert "pip install" in seen.note
    else:
        assert dict(seen.report.facts)["drawn by"].startswith("its own render()")


@pytest.mark.slow
def test_play_shows_it_and_the_end_of_the_episode() -> None:
    game = Game(f"{OWN}Square", {}, 1)
    assert game.describe()["views"] == ["both", "agent", "person"]
    told = game.begin()
    for _ in range(13):
        picture = game.picture("person")
        assert colours(picture) == {BACK, SQUARE}
        row = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))[0]
        left = int(np.flatnonzero((row == SQUARE).all(-1))[0])
        assert [round(left * 8 / len(row))] == told["numbers"]
        if told["ended"]:
            break
        told = game.act(1)
    assert told["ended"]
    game.close()


@pytest.mark.medium
def test_play_says_why_it_shows_numbers() -> None:
    game = Game(f"{OWN}Fails", {}, 1)
    told = game.describe()
    assert "no graphics library" in told["note"]
    assert told["views"] == ["agent"]
    game.begin()
    assert BACKGROUND in colours(game.picture("person"))
    game.close()


@pytest.mark.slow
def test_watch_shows_it(tmp_path: Path) -> None:
    settings = {"num_envs": 2, "rollout_length": 8, "epochs": 1, "minibatches": 1, "hidden": (4,)}
    result = train("ppo", f"{OWN}Square", env_steps=32, settings=settings, home=tmp_path)
    seen = watch(
        open_run(result.folder),
        seed=None,
        episodes=2,
        out=None,
        on_progress=lambda what, share: None,
        warn=pytest.fail,
    )
    band = np.asarray(Image.open(seen.checkpoints[-1].clip).convert("RGB"))[100].astype(int)
    for colour in (BACK, SQUARE):
        assert np.abs(band - colour).sum(-1).min() < 40
