"""What a page is told: pairs, films and the state of labelling and training, ready for JSON."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backflip.labelling.label_queue import LabelQueue, Pair, Tally
from backflip.labelling.status import Status, read_status
from backflip.preferences.films import Film
from backflip.preferences.labels import StoredClip

_DIGITS = 4  # of a predicted reward: more than can be drawn


def film_fields(film: Film) -> dict[str, Any]:
    """Return where a film's strip is and how it is laid out."""
    return {"url": f"/films/{film.file}"} | {
        key: value for key, value in film._asdict().items() if key != "file"
    }


def pair_fields(pair: Pair) -> dict[str, Any]:
    """Return a pair: each side's films by the view they show."""
    return {
        "query": pair.query,
        "left": {view: film_fields(film) for view, film in pair.left.items()},
        "right": {view: film_fields(film) for view, film in pair.right.items()},
    }


def opinion_fields(opinion: StoredClip | None) -> dict[str, Any] | None:
    """Return what the reward model thought: of each side, the mean and the deviation by env step.

    None where it had no say, or said what is no number.
    """
    if opinion is None or not all(np.isfinite(opinion[side]).all() for side in ("left", "right")):
        return None
    return {side: np.round(opinion[side], _DIGITS).tolist() for side in ("left", "right")}


def state_fields(queue: LabelQueue, folder: Path, who: str, ending: bool) -> dict[str, Any]:
    """Return how labelling and training stand, seen by `who`.

    Args:
        queue: the run's.
        folder: the run's.
        who: a labeller's name.
        ending: the trainer has gone, whatever its last status says.
    """
    status, tally = read_status(folder), queue.tally(who)
    if ending and status.doing != "finished":
        status = status._replace(doing="stopped")
    return {
        "now": time.time(),
        "status": _status_fields(status),
        "tally": tally._asdict(),
        "goal": queue.goal(),
        "enough": queue.said_enough(),
        "seconds_left": seconds_left(status, tally),
    }


def seconds_left(status: Status, tally: Tally) -> float | None:
    """Return how long it takes to give the rest of the budget at the present rate, if known."""
    if status.budget <= 0 or tally.per_minute is None:
        return None
    seconds = 60.0 * max(0, status.budget - tally.labels) / tally.per_minute
    return seconds if math.isfinite(seconds) else None


def _status_fields(status: Status) -> Mapping[str, Any]:
    episode = film_fields(status.episode) if status.episode else None
    fields = status._asdict() | {"episode": episode}
    del fields["pid"]
    return fields
