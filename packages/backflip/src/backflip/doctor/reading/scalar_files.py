"""Reads what TorchRL's CSVLogger writes: a file of steps and values for each name, without names.

The files are in a folder `scalars`: `scalars/train/reward.csv` has the values of `train/reward`.
"""

from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from backflip.doctor.reading.naming import Logged
from runshelf.store.files import disk_errors

FOLDER = "scalars"


@final
class Scalars(NamedTuple):
    """One logged name.

    Attributes:
        folder: the folder `scalars`.
        name: the logged name.
        logged: its steps and values.
    """

    folder: Path
    name: str
    logged: Logged


def scalars_in(path: Path) -> Scalars | None:
    """Return the steps and values of a file; None if it is another CSV file."""
    folder = next((one for one in path.parents if one.name == FOLDER), None)
    if folder is None:
        return None
    with disk_errors(path):
        text = path.read_text(encoding="utf-8", errors="replace")
    pairs = [_pair(line) for line in text.split("\n")[:-1]]  # the last line may be incomplete
    if not pairs or pairs[0] is None:
        return None
    x, y = np.asarray([pair for pair in pairs if pair is not None], np.float64).T
    name = path.relative_to(folder).with_suffix("").as_posix()
    return Scalars(folder, name, Logged(x, y))


def _pair(line: str) -> tuple[float, float] | None:
    """Return the step and the value of a line; None if it holds something else."""
    try:
        step, value = map(float, line.split(","))
    except ValueError:
        return None
    return step, value
