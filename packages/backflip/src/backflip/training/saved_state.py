"""What the checkpoint of a run holds besides its arrays, and how it is read and refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.preferences.kept_labels import KeptLabels
from backflip.training.fingerprint import differences, fingerprint, resolved
from runshelf.errors import DamagedFile, UsageError
from runshelf.received_json import parse_record
from runshelf.store.records import from_json, to_json
from runshelf.store.run import Run

FINITE_WHEN_SAVED = ("learners.algorithm.", "learners.episode_")
LENGTH = "learners.episode_length"  # NaN in episodes that do not count, see `training_episodes`


class Checkpoint(NamedTuple):
    """The content of a run's newest readable checkpoint.

    Attributes:
        arrays: the state as named arrays, without the empty rows of replays.
        phases: finished phases.
        seconds: seconds of each part of the run.
        extra: the JSON values saved with the state.
        note: one line for the user if the newest file is not usable, else None.
    """

    arrays: Mapping[str, np.ndarray]
    phases: int
    seconds: Mapping[str, float]
    extra: Mapping[str, Any]
    note: str | None


def load_checkpoint(run: Run) -> Checkpoint:
    """Return a run's newest readable checkpoint.

    Raises:
        UsageError: the configuration differs from that of the checkpoint.
        DamagedFile: no checkpoint of this run can be read.
    """
    path = run.folder / CHECKPOINT
    loaded = load_arrays(path)
    try:
        about = from_json(parse_record(loaded.metadata["about"]))
        _refuse_odd(about)
        saved = Checkpoint(
            loaded.arrays, about["phases"], about["seconds"], about["extra"], loaded.note
        )
        config, written = about["config"], loaded.metadata["fingerprint"]
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(
            f"`{path}` was not written by this version of backflip; open it with the one that did"
        ) from error
    if written != fingerprint(run):
        raise UsageError(
            f"run `{run.short}` cannot be resumed with a changed configuration: "
            f"{'; '.join(differences(config, resolved(run)))}; start a new run instead"
        )
    _refuse_nonfinite_arrays(path, saved.arrays)
    return saved


def _refuse_odd(about: Mapping[str, Any]) -> None:
    """Check the types of what `checkpoint_metadata` wrote.

    Raises:
        TypeError: a value has another type.
    """
    phases, seconds = about["phases"], about["seconds"]
    if type(phases) is not int or phases < 0:
        raise TypeError("`phases` is not a number of phases")
    if not all(isinstance(about[key], dict) for key in ("seconds", "extra", "config")):
        raise TypeError("`seconds`, `extra` or `config` is not an object")
    if not all(type(value) in (int, float) for value in seconds.values()):
        raise TypeError("`seconds` has a value that is not a number")


def _refuse_nonfinite_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Check the arrays that were finite when `Session.save` wrote them.

    States of environments may hold infinities of their own, and a replay is too large to read.

    Raises:
        DamagedFile: an array holds a number that is not finite.
    """
    for name, array in arrays.items():
        if not name.startswith(FINITE_WHEN_SAVED) or array.dtype.kind != "f":
            continue
        sound = ~np.isinf(array) if name == LENGTH else np.isfinite(array)
        if not sound.all():
            raise DamagedFile(f"`{path}` is damaged: `{name}` is not finite; start a new run")


def checkpoint_metadata(
    run: Run,
    *,
    phases: int,
    seconds: Mapping[str, float],
    extra: Mapping[str, Any],
    labels: KeptLabels | None,
) -> dict[str, str]:
    """Return the metadata of a checkpoint, from which `load_checkpoint` reads everything else."""
    about = {"config": resolved(run), "phases": phases, "seconds": seconds, "extra": extra}
    kept = {} if labels is None else labels.metadata()
    return {"fingerprint": fingerprint(run), "about": json.dumps(to_json(about)), **kept}
