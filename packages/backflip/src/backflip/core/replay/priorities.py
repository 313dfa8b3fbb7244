"""Priorities of rows: the largest for the newest, then what their errors say."""

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

    Source: Schaul et al. 2016, arXiv:1511.05952, eq. 1. Rows that could not be used get none.
    """
    xp = namespace_of(replay.reward)
    priority = (xp.abs(errors) + np.float32(sum_tree.SMALLEST)) ** np.float32(exponent)
    priority = xp.where(drawn.valid, priority, np.float32(0.0))
    return _put(layout, replay, drawn.extra.place, priority)


def prioritize_newest(layout: Layout, replay: Replay, rows: int) -> Replay:
    """Return the replay with the largest priority for what can be drawn since `rows` were added.

    And with none for what cannot: the newest rows until what follows them is there, the oldest
    whose frames are gone, and those that are not transitions.
    """
    xp = namespace_of(replay.reward)
    first, last = ages(layout, replay)
    start = max(-layout.lead, rows - layout.length)
    end = min(rows + layout.first_age, layout.length + start)
    age = replay.filled - rows + xp.arange(start, end)
    time = time_of(layout, replay, age)[:, None]
    column = xp.arange(layout.columns)[None]
    # Rows after the newest are the oldest of a full ring, whose ages go on from 0.
    ready = ((age >= first) & (age < last))[:, None] & replay.valid[time, column]
    priority = xp.where(ready, replay.tree[column // layout.columns_of_seed, 0], np.float32(0.0))
    return _put(layout, replay, time * layout.columns + column, priority)


def _put(layout: Layout, replay: Replay, place: Any, priority: Any) -> Replay:
    """Return the replay with new priorities of rows, each in the tree of its seed."""
    time, column = place // layout.columns, place % layout.columns
    leaf = time * layout.columns_of_seed + column % layout.columns_of_seed
    if layout.seeds == 1:
        tree = sum_tree.put(replay.tree[0], leaf.reshape(-1), priority.reshape(-1))
        return replay._replace(tree=tree[None])
    for seed, tree in enumerate(replay.tree):  # NumPy's, written in place
        mine = column // layout.columns_of_seed == seed
        sum_tree.put(tree, leaf[mine], priority[mine])
    return replay
