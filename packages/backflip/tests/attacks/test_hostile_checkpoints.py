"""Hostile checkpoints and policies of a run: refused in one line, and the run stays as it was."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.runshelf.tests.attacks.commands import no_hang, said_by
from tests.attack_figures import Tried

from backflip.cli.main import main
from backflip.core import checkpoint
from backflip.core.checkpoint import CHECKPOINT, load_arrays, save_arrays
from backflip.teaching_api import teach
from backflip.training.policy import POLICY, load_policy
from backflip.training.saved_state import load_checkpoint
from backflip.training.train import train
from runshelf.errors import DamagedFile, UserFacingError
from runshelf.store.finding import find_run

pytestmark = [pytest.mark.attack, pytest.mark.medium]

SETTINGS: dict[str, Any] = {
    "num_envs": 2,
    "rollout_length": 8,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (4,),
}
TEACHING: dict[str, Any] = {"clip_length": 4, "reward_model": "linear"}
ENV = ("CartPole-v1", {"max_episode_steps": 8})
Arrays = dict[str, np.ndarray]
Texts = dict[str, str]


def interrupt(progress: Any) -> None:
    if progress.phases:
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def home_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns a home with a stopped run of a command, made once."""

    @cache
    def made(command: str) -> Path:
        home = tmp_path_factory.mktemp(command)
        common: dict[str, Any] = {"env_args": ENV[1], "report": interrupt, "home": home}
        runs = {
            "train": lambda: train("ppo", ENV[0], env_steps=640, settings=SETTINGS, **common),
            "teach": lambda: teach(
                ENV[0], labels=4, env_steps=640, settings=SETTINGS | TEACHING, **common
            ),
        }
        with pytest.raises(UserFacingError):
            runs[command]()
        folder = find_run(home, "latest").folder
        (folder / "checkpoint.previous.safetensors").unlink(missing_ok=True)
        assert (folder / POLICY).exists()
        return home

    return made


def first(arrays: Arrays) -> str:
    """Return the first name, in order, of an array of floats with a shape: files have no order."""
    return min(
        name for name, x in arrays.items() if x.dtype == np.float32 and x.ndim > 1 < x.shape[-1]
    )


def changed(change: Callable[[Arrays, str], Any]) -> Callable[[Path], None]:
    """Return what changes arrays and writes a file with the right checksum."""

    def write(path: Path) -> None:
        loaded = load_arrays(path)
        arrays = {name: np.array(x) for name, x in loaded.arrays.items()}
        change(arrays, first(arrays))
        save_again(path, arrays, dict(loaded.metadata))

    return write


def told(change: Callable[[dict[str, Any]], str]) -> Callable[[Path], None]:
    """Return what changes the metadata and writes a file with the right checksum."""

    def write(path: Path) -> None:
        loaded = load_arrays(path)
        about = change(json.loads(loaded.metadata["about"]))
        save_again(path, dict(loaded.arrays), loaded.metadata | {"about": about})

    return write


def save_again(path: Path, arrays: Arrays, metadata: Texts) -> None:
    path.unlink()
    save_arrays(path, arrays, {k: v for k, v in metadata.items() if not k.startswith("backflip.")})


def claiming(path: Path) -> None:
    """Claim 10^12 numbers in the header, with the right checksum."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = next(name for name in header if name != "__metadata__")
    header[name] |= {"shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]}
    header["__metadata__"]["backflip.sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(checkpoint._seal(len(text).to_bytes(8, "little") + text + data[8 + length :]))


def without(*names: str) -> Callable[[dict[str, Any]], str]:
    return lambda about: json.dumps({k: v for k, v in about.items() if k not in names})


HOSTILE: dict[str, Callable[[Path], None]] = {
    "metadata nested 500 deep": told(lambda _: "[" * 500 + "]" * 500),
    "facts nested 500 deep": told(
        lambda about: f'{{"x": {"[" * 500 + "]" * 500}, {json.dumps(about)[1:]}'
    ),
    "metadata without end": told(lambda _: "{" * 100_000),
    "metadata of numbers": told(lambda _: "9" * 5_000),
    "metadata of null": told(lambda about: json.dumps(dict.fromkeys(about))),
    "metadata of lists": told(lambda about: json.dumps({key: [] for key in about})),
    "phases without end": told(lambda about: json.dumps(about | {"phases": 10**400})),
    "seconds of text": told(lambda about: json.dumps(about | {"seconds": {"total": "x"}})),
    "a list as extra": told(lambda about: json.dumps(about | {"extra": [1]})),
    "no metadata": told(without("phases", "spec")),
    "another shape": changed(lambda arrays, name: arrays.update({name: arrays[name][..., :1]})),
    "no numbers": changed(lambda arrays, name: arrays.update({name: arrays[name][:0]})),
    "another dtype": changed(lambda arrays, name: arrays.update({name: arrays[name].astype("f8")})),
    "whole numbers": changed(lambda arrays, name: arrays.update({name: arrays[name].astype("i4")})),
    "a missing array": changed(lambda arrays, name: arrays.pop(name)),
    "no arrays": changed(lambda arrays, _: arrays.clear()),
    "arrays of another algorithm": changed(
        lambda arrays, name: arrays.update({"algorithm.target_q": arrays.pop(name)})
    ),
    "a claim of 10^12 numbers": claiming,
    "no content": lambda path: path.write_bytes(b"") and None,
    "only a length": lambda path: path.write_bytes((10**12).to_bytes(8, "little")) and None,
}


def seen(folder: Path) -> dict[str, bytes]:
    """Return the files of a run, but not what says that a command looked at it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    kept = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {k: v for k, v in kept.items() if k not in ("heartbeat.json", "lock", "output.log")}


def refused(home: Path, *argv: str) -> None:
    status, printed, said = said_by(main, *argv, f"--home={home}")
    assert status in (1, 2), (argv, status, printed, said)
    last = said.splitlines()[-1]
    assert last.startswith("backflip: error: "), said
    assert "Traceback" not in said
    assert "unexpected" not in last, said
    assert len(last) < 2_100


@pytest.mark.parametrize("command", ["train", pytest.param("teach", marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_checkpoint_is_refused(
    home_of: Callable[[str], Path], tmp_path: Path, command: str, what: str, tried: Tried
) -> None:
    home = Path(shutil.copytree(home_of(command), tmp_path / "home"))
    folder = find_run(home, "latest").folder
    HOSTILE[what](folder / CHECKPOINT)
    before = {name: x for name, x in seen(folder).items() if name != "events.jsonl"}
    refused(home, command, "--more", folder.name, "--env-steps=64")
    refused(home, "resume", folder.name)
    after = seen(folder)
    assert {name: after.get(name) for name in before} == before
    assert [path.name for path in home.glob("runs/0*")] == [folder.name]
    tried(2, "hostile checkpoints and policies of a run")


ONLY_OF_CHECKPOINTS = ("phases without end", "seconds of text", "a list as extra")


@pytest.mark.parametrize("what", [what for what in HOSTILE if what not in ONLY_OF_CHECKPOINTS])
def test_a_hostile_policy_is_refused(
    home_of: Callable[[str], Path], tmp_path: Path, what: str, tried: Tried
) -> None:
    home = Path(shutil.copytree(home_of("train"), tmp_path / "home"))
    folder = find_run(home, "latest").folder
    HOSTILE[what](folder / POLICY)
    before = seen(folder)
    refused(home, "watch", folder.name, "--episodes=1")
    with no_hang(), pytest.raises(UserFacingError):
        load_policy(folder)
    assert seen(folder) == before
    tried(2, "hostile checkpoints and policies of a run")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_checkpoint_of_no_numbers_ends_in_a_line(
    home_of: Callable[[str], Path], tmp_path: Path, value: float, tried: Tried
) -> None:
    home = Path(shutil.copytree(home_of("train"), tmp_path / "home"))
    folder = find_run(home, "latest").folder
    changed(lambda arrays, name: arrays[name].fill(value))(folder / CHECKPOINT)
    refused(home, "resume", folder.name)
    tried(1, "hostile checkpoints and policies of a run")


@pytest.mark.parametrize("command", ["train", pytest.param("teach", marks=pytest.mark.slow)])
def test_every_array_that_was_finite_when_saved_is_checked(
    home_of: Callable[[str], Path], tmp_path: Path, command: str, tried: Tried
) -> None:
    home = Path(shutil.copytree(home_of(command), tmp_path / "home"))
    run = find_run(home, "latest")
    saved = load_arrays(run.folder / CHECKPOINT)
    floats = [name for name, x in saved.arrays.items() if x.dtype.kind == "f" and x.size]
    checked = [name for name in floats if name.startswith("learners.") and ".env." not in name]
    assert "learners.episode_return" in checked
    for name in checked:
        arrays = {key: np.array(x) for key, x in saved.arrays.items()}
        arrays[name].flat[-1] = np.inf
        save_again(run.folder / CHECKPOINT, arrays, dict(saved.metadata))
        with pytest.raises(DamagedFile, match="is not finite"):
            load_checkpoint(run)
    tried(len(checked), "hostile checkpoints and policies of a run")
