"""Fresh pairs: queries that check the reward model on the newest behaviour. Needs no JAX.

A fresh pair is drawn uniformly, not chosen by disagreement: two clips of the newest behaviour, or
one of them and an older clip, of the random policy or of an earlier fresh pair. The forecast of the
answer is stored in the same record as the query, before the answer exists, so agreement with it is
out of sample.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from backflip.preferences.label_records import Answer
from backflip.preferences.labels import LabelStore
from backflip.preferences.packed_clips import BadClipError, unpack

FRESH = "fresh"  # the name of the forecast among the arrays of a query's opinion
BOTH, LEFT, RIGHT = 0.0, 1.0, 2.0  # sides with the newest behaviour


class Forecast(NamedTuple):
    """What the reward model says about a fresh pair before it is answered.

    Attributes:
        newest: the sides that show the newest behaviour: `BOTH`, `LEFT` or `RIGHT`.
        left: the predicted probability of the answer `left`, mean over members.
        margin: learned return of the left clip against the right one, as a rank: the share of
            pairs at hand that differ less, negative if the right clip has more.
        risen: the probability that a clip of the newest behaviour has a larger learned return
            than a clip of the random policy.
        against_random: 1 if the other clip is of the random policy, else 0.
    """

    newest: float
    left: float
    margin: float
    risen: float
    against_random: float


class FreshAnswer(NamedTuple):
    """A fresh pair and its answer.

    Attributes:
        query: the query's id.
        env_steps: env steps of the seed when the newest clips were recorded.
        forecast: the forecast.
        answer: the answer in force; None if there is none.
    """

    query: int
    env_steps: int
    forecast: Forecast
    answer: Answer | None


def fresh_answers(store: LabelStore, seed: int) -> list[FreshAnswer]:
    """Return the fresh pairs of a seed in the order of asking; imported ones are left out."""
    rows = store.file.rows(
        "SELECT q.id, c.env_steps, q.opinion, e.answer FROM queries q"
        " JOIN clips c ON c.id = q.left_clip LEFT JOIN effective e ON e.query = q.id"
        " WHERE q.seed = ? AND q.opinion IS NOT NULL AND q.repeats IS NULL AND q.origin IS NULL"
        " ORDER BY q.id",
        (seed,),
    )
    found = ((row, forecast_of(row[2])) for row in rows)
    return [FreshAnswer(row[0], row[1], one, row[3]) for row, one in found if one is not None]


def forecast_of(opinion: bytes) -> Forecast | None:
    """Return the forecast in an opinion; None if it has none, or it cannot be read."""
    try:
        values = unpack(opinion).arrays.get(FRESH)
    except BadClipError:
        return None
    if values is None or values.shape != (len(Forecast._fields),) or values.dtype.kind != "f":
        return None
    return Forecast(*values.tolist()) if np.isfinite(values).all() else None


def forecast_array(forecast: Forecast) -> Float[np.ndarray, " 5"]:
    """Return the array of a forecast for a query's opinion."""
    return np.array(forecast, np.float32)
