"""A received run of `train` or `teach`: nothing that carries it on writes outside of its folder."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.runshelf.tests.store.hostile_folders import (
    TRAPS,
    must_end,
    plant_dangling_link,
    plant_hard_link,
    plant_link,
    plant_link_to_a_folder,
    plant_pipe,
    seen,
)
from tests.attack_figures import Tried

from backflip.core.checkpoint import CHECKPOINT, has_checkpoint, load_arrays, save_arrays
from backflip.inspect.watch import watch
from backflip.labelling.inherited_labels import inherit_labels
from backflip.labelling.leases import Leases
from backflip.labelling.processes import PageProcess
from backflip.labelling.status import Status, read_status, write_status
from backflip.preferences.films import FILMS, Film, has_film, read_film, write_film
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.training.train import resume_train, train, train_more
from runshelf.errors import UserFacingError
from runshelf.store.finding import find_run
from runshelf.store.run import open_run

pytestmark = pytest.mark.attack

Trap = Callable[[Path, Path], None]
FRAMES = np.zeros((2, 4, 4, 3), np.uint8)
SETTINGS: dict[str, Any] = {
    "num_envs": 2,
    "rollout_length": 8,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (4,),
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that belongs to the user."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "ada").write_text("kept")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run, or of something like it."""
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def present(folder: Path) -> None:
    leases = Leases(folder)
    leases.renew("ada", "page")
    leases.present()
    leases.renew("ada", "page")
    leases.end("ada", "page")


def write_films(folder: Path) -> None:
    film = write_film(folder / FILMS, FRAMES, fps=1.0)
    has_film(folder / FILMS, film)
    read_film(folder / FILMS, film.file)


def save_twice(folder: Path) -> None:
    for version in "12":
        save_arrays(folder / CHECKPOINT, {"x": np.zeros(2)}, {"version": version})
    load_arrays(folder / CHECKPOINT)


def write_log(folder: Path) -> None:
    with PageProcess(["-c", 'print(\'{"address": "x"}\')'], folder / "page.log"):
        pass


LEASE = "present/d0fc8cf5d4d8d0e2a9dd4a9c0a50f4a7.lease"
FILM = f"{FILMS}/{'0' * 64}.webp"
ACTS: list[tuple[Callable[[Path], object], list[str]]] = [
    (present, ["present", LEASE, f"{LEASE}.partial"]),
    (write_films, [FILMS, FILM, f"{FILM}.partial"]),
    (
        lambda folder: write_status(folder, Status("setting up", 0.0)),
        ["status.json", "status.json.partial", ".status.json.part"],
    ),
    (read_status, ["status.json"]),
    (
        save_twice,
        [CHECKPOINT, f"{CHECKPOINT}.partial", "checkpoint.previous.safetensors"],
    ),
    (write_log, ["page.log"]),
]


@pytest.mark.medium
@pytest.mark.parametrize("trap", TRAPS)
def test_no_writer_follows_what_was_planted(tmp_path: Path, trap: Trap, tried: Tried) -> None:
    attacks = 0
    film = write_film(tmp_path / "real", FRAMES, fps=1.0).file
    lease = _name_of_lease(tmp_path)
    for act, names in ACTS:
        for name in names:
            name = name.replace(f"{'0' * 64}.webp", film).replace(LEASE, lease)
            place = tmp_path / str(attacks)
            (place / "run").mkdir(parents=True)
            (place / "outside").mkdir()
            trap(place / "run" / name, place / "outside")
            before = seen(place / "outside")
            with must_end(), suppress(UserFacingError):
                act(place / "run")
            assert seen(place / "outside") == before, (name, act)
            attacks += 1
    tried(attacks, "files of a taught run with a link, pipe or folder in their place")


def _name_of_lease(tmp_path: Path) -> str:
    (tmp_path / "lease").mkdir()
    Leases(tmp_path / "lease").renew("ada", "page")
    (path,) = (tmp_path / "lease" / "present").iterdir()
    return f"present/{path.name}"


@pytest.mark.parametrize("name", ["../ada", "/etc/passwd", "..", "a/../../ada", ""])
def test_a_film_has_no_path(folder: Path, outside: Path, name: str) -> None:
    """Names of films come from labels and from the status."""
    film = Film(name, 1, 1, 1, 1, 1.0, 1.0, pixelated=False)
    (folder / FILMS).mkdir()
    assert not has_film(folder / FILMS, film)
    with pytest.raises(UserFacingError):
        read_film(folder / FILMS, name)


@pytest.mark.medium
def test_a_child_inherits_no_target_of_a_link(
    tmp_path: Path, folder: Path, outside: Path, tried: Tried
) -> None:
    child = tmp_path / "child"
    child.mkdir()
    LabelStore.open(folder / LABELS).close()
    kept = write_film(folder / FILMS, FRAMES, fps=1.0).file
    for number, trap in enumerate(TRAPS):
        if trap is not plant_hard_link:  # its content is a copy already
            trap(folder / FILMS / f"{number}.webp", outside)
    before = seen(outside)
    with must_end():
        inherit_labels(folder, child)
    assert [path.name for path in (child / FILMS).iterdir()] == [kept]
    assert seen(outside) == before
    tried(len(TRAPS) - 1, "files of a taught run with a link, pipe or folder in their place")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run that was stopped after its first phase."""
    home = tmp_path_factory.mktemp("stopped")

    def stop(progress: Any) -> None:
        if progress.phases:
            raise KeyboardInterrupt

    with pytest.raises(UserFacingError):
        train(
            "ppo",
            "Pendulum-v1",
            seeds=1,
            env_steps=16 * 40,
            env_args={"max_episode_steps": 8},
            settings=SETTINGS,
            home=home,
            report=stop,
        )
    assert has_checkpoint(find_run(home, "latest").folder / CHECKPOINT)
    return home


IN_PLACE = ["lock", "events.jsonl", "output.log", "metrics-train.jsonl"]
REPLACED = ["heartbeat.json", "summary.json", "curve.svg", "curve.csv", CHECKPOINT]
PARTIAL = [f"{name}.partial" for name in (*REPLACED, "policy.safetensors", "run.json")]


def resumed(stopped: Path, place: Path, trap: Trap, names: list[str]) -> None:
    """Resume a copy of the run with traps; fail if that changes anything outside."""
    home, outside = place / "home", place / "outside"
    shutil.copytree(stopped, home)
    outside.mkdir()
    folder = find_run(home, "latest").folder
    for name in names:
        trap(folder / name, outside)
    before = seen(outside)
    with must_end(), suppress(UserFacingError):
        resume_train(find_run(home, "latest"))
    assert seen(outside) == before, names


@pytest.mark.slow
@pytest.mark.parametrize("trap", [plant_link, plant_hard_link, plant_dangling_link, plant_pipe])
def test_resume_writes_nothing_outside(
    stopped: Path, tmp_path: Path, trap: Trap, tried: Tried
) -> None:
    places = [*([name] for name in IN_PLACE), PARTIAL, ["curve.svg", "summary.json"], [CHECKPOINT]]
    for number, names in enumerate(places):
        resumed(stopped, tmp_path / str(number), trap, names)
    tried(len(places), "resumed runs with a link or a pipe in a file's place")


@pytest.mark.slow
def test_more_and_watch_write_nothing_outside(
    stopped: Path, tmp_path: Path, outside: Path, tried: Tried
) -> None:
    home = tmp_path / "home"
    shutil.copytree(stopped, home)
    folder = find_run(home, "latest").folder
    for name in ("watch", "policy.safetensors.partial"):
        plant_link_to_a_folder(folder / name, outside)
    plant_link(folder / "code.patch", outside)
    before = seen(outside)
    with pytest.raises(UserFacingError, match="watch` is not a folder: remove it"):
        watch(
            open_run(folder),
            seed=None,
            episodes=1,
            out=None,
            on_progress=lambda what, share: None,
            warn=print,
        )
    with suppress(UserFacingError):
        train_more(folder, env_steps=64, home=home)
    assert seen(outside) == before
    tried(2, "resumed runs with a link or a pipe in a file's place")
