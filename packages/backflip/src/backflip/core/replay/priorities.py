"""Priorities of rows: the largest for new rows, then their errors."""

from typing import Any

import numpy as np
from jaxtyping import Float

from backflip.core.namespace import namespace_of
from backflip.core.replay import sum_tree
from backflip.core.replay.layout import Layout, Replay, ages, time_of
from backflip.core.types import Transition


def reprioritize(
    layout: Layout,
    replay: Replay,
    drawn: Transition,
    errors: Float[Any, "*batch"],
    exponent: float,
) -> Replay:
    """Return the replay with the priorities (|error| + ε)^α of the rows that were drawn.

    Source: Schaul et al. 2016, arXiv:1511.05952, eq. 1. Invalid rows get priority 0.
    """
    xp = namespace_of(replay.reward)
    priority = (xp.abs(errors) + np.float32(sum_tree.SMALLEST)) ** np.float32(exponent)
    priority = xp.where(drawn.valid, priority, np.float32(0.0))
    return _put(layout, replay, drawn.extra.place, priority)


def prioritize_newest(layout: Layout, replay: Replay, rows: int) -> Replay:
    """Return the replay with the largest priority for rows that became ready with the last `rows`.

    Rows that cannot be drawn get 0: the newest until their successors are stored, the oldest whose
    frames are overwritten, and invalid ones.
    """
    xp = namespace_of(replay.reward)
    first, last = ages(layout, replay)
    start = max(-layout.lead, rows - layout.length)
    end = min(rows + layout.first_age, layout.length + start)
    # Begins with the rows that were waiting for their successors. Ends with the oldest rows of a
    # full ring, whose older frames are overwritten: their ages are beyond the newest row's.
    age = replay.filled - rows + xp.arange(start, end)
    time = time_of(layout, replay, age)[:, None]
    column = xp.arange(layout.columns)[None]
    ready = ((age >= first) & (age < last))[:, None] & replay.valid[time, column]
    priority = xp.where(ready, replay.tree[column // layout.columns_of_seed, 0], np.float32(0.0))
    return _put(layout, replay, time * layout.columns + column, priority)


def _put(layout: Layout, replay: Replay, place: Any, priority: Any) -> Replay:
    """Return the replay with new priorities, each in the tree of its seed."""
    time, column = place // layout.columns, place % layout.columns
    leaf = time * layout.columns_of_seed + column % layout.columns_of_seed
    if layout.seeds == 1:
        tree = sum_tree.put(replay.tree[0], leaf.reshape(-1), priority.reshape(-1))
        return replay._replace(tree=tree[None])
    for seed, tree in enumerate(replay.tree):  # NumPy, written in place
        of_seed = column // layout.columns_of_seed == seed
        sum_tree.put(tree, leaf[of_seed], priority[of_seed])
    return replay
