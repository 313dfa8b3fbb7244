"""The recorded clips that a run asks about, in place of clips of random actions.

`teach --clips` draws them from a file or a data set before the run exists, and keeps them in the
run's folder. So the file may change or be deleted: the run, its resumption and its children do not
need it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backflip.core.checkpoint import load_arrays, save_arrays
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.preferences.clips import Clip, from_arrays, to_arrays
from backflip.preferences.minari_data import PREFIX, read_minari
from backflip.preferences.schedule import label_schedule
from backflip.preferences.trajectories import Trajectories, clip_at, windows
from backflip.preferences.trajectory_file import read_trajectories
from backflip.training.queries.candidate_clips import CANDIDATE_CLIPS
from backflip.training.teaching.config import TeachConfig
from runshelf.errors import DamagedFile, UsageError
from runshelf.store.run import Run

RECORDED = "recorded_clips.safetensors"
CONFIG = "clips"  # the entry of a run's configuration
SIMULATED = ("oracle", "noisy")  # teachers that compare true rewards
_FIELDS = ("obs", "action", "next_obs", "reward", "lived")


class Recorded(NamedTuple):
    """Clips for a new run.

    Attributes:
        clips: the clips, in random order.
        about: where they come from, for the configuration.
    """

    clips: Sequence[Clip]
    about: Mapping[str, Any]


def draw_recorded(
    source: str, spec: EnvSpec, config: TeachConfig, *, labels: int, teacher: str, seed: int
) -> Recorded:
    """Return clips of a file or a data set, drawn uniformly.

    Args:
        source: a `.npz` file, or `minari:` and an id.
        spec: the environment's spec.
        config: the settings of teaching.
        labels: the number of labels that each seed asks for.
        teacher: who answers.
        seed: the first seed, which decides what is drawn.

    Raises:
        UsageError: the source cannot be used; the message says why.
    """
    found = read_recorded(source, spec, "--clips")
    if found.reward is None and teacher.partition(":")[0] in SIMULATED:
        raise UsageError(
            f"`{source}` has no `rewards`, which the teacher `{teacher}` compares: add them, or "
            "answer yourself with --teacher human"
        )
    clips = _drawn(source, found, config, labels, np.random.default_rng([seed, 2]))
    return Recorded(clips, about_source(source, found) | {"drawn": len(clips)})


def read_recorded(source: str, spec: EnvSpec, option: str) -> Trajectories:
    """Return the trajectories of a file or a data set.

    Args:
        source: a `.npz` file, or `minari:` and an id.
        spec: the environment's spec.
        option: the option that names it, for messages.

    Raises:
        UsageError: the source cannot be used; the message says why.
    """
    if source.startswith(PREFIX):
        return read_minari(source.removeprefix(PREFIX), spec)
    return read_trajectories(Path(source), spec, option)


def about_source(source: str, found: Trajectories) -> dict[str, Any]:
    """Return what a run's configuration says about a source: where it is, and what it has."""
    return {
        "source": source if source.startswith(PREFIX) else str(Path(source).resolve()),
        "sha256": found.sha256(),
        "trajectories": found.episodes,
        "env_steps": len(found.last),
    }


def keep_clips(recorded: Recorded | None, path: Path) -> None:
    """Save the clips of a new run in a file of its folder."""
    if recorded is not None:
        arrays = [to_arrays(clip) for clip in recorded.clips]
        stacked = {name: np.stack([one[name] for one in arrays]) for name in _FIELDS}
        save_arrays(path, stacked, {})


def inherit_clips(parent: Run, child: Run, entry: str, file: str) -> None:
    """Copy a file of clips of a parent into the folder of its child, if it has the entry."""
    if parent.config.get(entry):
        save_arrays(child.folder / file, load_arrays(parent.folder / file).arrays, {})


def recorded_clips(run: Run, spec: EnvSpec, length: int) -> list[Clip]:
    """Return the recorded clips of a run; empty if it has none.

    Raises:
        DamagedFile: they are lost or damaged.
    """
    return kept_clips(run.folder / RECORDED, spec, length) if run.config.get(CONFIG) else []


def kept_clips(path: Path, spec: EnvSpec, length: int) -> list[Clip]:
    """Return the clips in a file of a run's folder.

    Raises:
        DamagedFile: they are lost or damaged.
    """
    arrays = load_arrays(path).arrays
    kinds = {name: (array.shape[1:], array.dtype) for name, array in arrays.items()}
    if kinds != _kinds(spec, length):
        raise DamagedFile(f"`{path}` does not hold the clips of this run: restore it from a copy")
    count = len(arrays["lived"])
    return [from_arrays({name: x[row] for name, x in arrays.items()}) for row in range(count)]


def said_of(run: Run) -> str:
    """Return in words which recorded clips a run asks about; empty if none."""
    about = run.config.get(CONFIG)
    if not about:
        return ""
    return (
        f"first queries show {about['drawn']} clips of `{about['source']}`, drawn from "
        "observations where it has no pictures"
    )


def _drawn(
    source: str, found: Trajectories, config: TeachConfig, labels: int, rng: np.random.Generator
) -> list[Clip]:
    length = config.clip_length
    places = windows(found, length)
    count = min(len(places), CANDIDATE_CLIPS)
    first = label_schedule(labels, config.phases)[0]
    if count * (count - 1) // 2 < first:
        longest = int(np.diff(np.flatnonzero(np.diff(found.last, prepend=-1, append=-1))).max())
        shorter = max(2, min(length // 2, longest))
        raise UsageError(
            f"`{source}` has {len(places)} clips of {length} env steps, too few for {first} first "
            f"queries: its longest trajectory has {longest}; try --set clip_length={shorter}, or "
            "record more"
        )
    chosen = rng.choice(places, count, replace=False)
    return [clip_at(found, int(start), length) for start in chosen]


def _kinds(spec: EnvSpec, length: int) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return shape, without the number of clips, and dtype of each saved array."""
    box, action = spec.observation, spec.action
    frame = (length, *box.shape[:-1], box.shape[-1] // spec.frame_stack)
    discrete = isinstance(action, Discrete)
    done = ((length,), np.dtype(np.int32)) if discrete else ((length, *action.shape), action.dtype)
    return {
        "obs": (frame, box.dtype),
        "action": done,
        "next_obs": (frame, box.dtype),
        "reward": ((length,), np.dtype(np.float32)),
        "lived": ((length,), np.dtype(bool)),
    }
