"""The JSON that the labelling page receives: pairs, opinions, the state of the run."""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from backflip.labelling.label_queue import LabelQueue, ListedAnswer
from backflip.labelling.prompts import Prompt, newest_kind
from backflip.labelling.status import Status, films_of, read_status
from backflip.labelling.tally import Tally
from backflip.preferences.films import Film
from backflip.preferences.label_records import StoredClip

_DIGITS = 4  # of a predicted reward; finer than the plot


def film_fields(film: Film) -> dict[str, Any]:
    """Return the URL of a film's strip and its layout."""
    fields = film._asdict()
    return {"url": f"/films/{fields.pop('file')}"} | fields


def pair_fields(pair: Prompt) -> dict[str, Any]:
    """Return a pair or a set: the films of each clip, by view."""
    clips = [{view: film_fields(film) for view, film in clip.items()} for clip in pair.clips]
    return pair._asdict() | {"clips": clips}


def listed_fields(listed: ListedAnswer) -> dict[str, Any]:
    """Return an answer of a person, with the films of its pair."""
    return listed.given._asdict() | {"pair": pair_fields(listed.prompt)}


def opinion_fields(opinion: StoredClip | None) -> dict[str, Any] | None:
    """Return the predicted reward of each side: mean and standard deviation per env step.

    None if there is no opinion, or it is not finite.
    """
    if opinion is None or not all(_is_prediction(opinion.get(side)) for side in ("left", "right")):
        return None
    return {side: np.round(opinion[side], _DIGITS).tolist() for side in ("left", "right")}


def _is_prediction(values: np.ndarray | None) -> bool:
    if values is None or values.dtype.kind != "f":
        return False
    return values.ndim == 2 and len(values) == 2 and bool(np.isfinite(values).all())


def state_fields(queue: LabelQueue, folder: Path, who: str, ending: bool) -> dict[str, Any]:
    """Return the state of labelling and training as `who` sees it.

    Args:
        queue: the run's label queue.
        folder: the run's folder.
        who: a labeller's name.
        ending: the trainer has ended, even if its last status says otherwise.
    """
    status, tally = read_status(folder), queue.tally(who)
    if ending and status.doing != "finished":
        status = status._replace(doing="stopped")
    films = {name: film and film_fields(film) for name, film in films_of(status).items()}
    status_fields = status._asdict() | films
    del status_fields["pid"]
    return {
        "now": time.time(),
        "status": status_fields,
        "tally": tally._asdict(),
        "people": queue.active_people(),
        "goal": queue.goal(),
        "kind": newest_kind(queue.store),
        "enough": queue.labelling_finished(),
        "seconds_left": seconds_left(status, tally),
    }


def seconds_left(status: Status, tally: Tally) -> float | None:
    """Return the time to reach the budget at the present rate; None if unknown."""
    if status.budget <= 0 or tally.per_minute is None:
        return None
    seconds = 60.0 * max(0, status.budget - tally.labels) / tally.per_minute
    return seconds if math.isfinite(seconds) else None
