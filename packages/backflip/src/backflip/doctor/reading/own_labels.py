"""Reads what the label file of a run says about its answers."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from backflip.doctor.log import Signal
from backflip.preferences.label_file import LABELS, LabelFile
from backflip.preferences.label_schema import SCHEMA
from runshelf.errors import UserFacingError

# Answers to pairs of the run's own clips: no sets, and no pairs of other runs or of files.
_ANSWERS = (
    "SELECT q.seed, c.env_steps, e.answer FROM effective e JOIN queries q ON q.id = e.query"
    " JOIN clips c ON c.id = q.left_clip WHERE q.origin IS NULL AND q.clip_set IS NULL"
    " AND e.answer <> 'skip' ORDER BY q.id"
)
_SIDES = {"left": 1.0, "right": 0.0}


def signals_of_labels(folder: Path) -> Mapping[int, Mapping[str, Signal]]:
    """Return the signal `label_left` of each seed, over the env steps of the queries.

    It is 1 for an answer `left`, 0 for `right`, and NaN for a tie. There is nothing without a
    readable label file.
    """
    if not (folder / LABELS).is_file():
        return {}
    try:
        with LabelFile.open_to_read(folder / LABELS) as file:
            rows = file.rows(_ANSWERS) if file.version() == SCHEMA else []
    except UserFacingError:
        return {}
    found: dict[int, Mapping[str, Signal]] = {}
    for seed in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == seed]
        x = np.maximum.accumulate([float(env_steps) for _, env_steps, _ in own])
        y = np.asarray([_SIDES.get(answer, np.nan) for _, _, answer in own])
        found[seed] = {"label_left": Signal(x, y, "answers in labels.sqlite")}
    return found
