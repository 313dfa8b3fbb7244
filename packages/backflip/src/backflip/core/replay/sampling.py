"""Drawing minibatches from a replay, uniformly or by priority, in JAX and in NumPy.

With a `recent_share` s each row is, with probability s, one of the newest rows, drawn uniformly,
and otherwise one of all rows, uniformly or by priority. So a row i is drawn with probability

    q(i) = s [i is recent] / n_recent + (1 - s) P(i)

Importance weights undo only the priorities: (q(i) / q₀(i))^-β, where q₀ has 1/n for P(i).

Source: Hu et al. 2024 (QPA, hybrid experience replay), arXiv:2305.17400, section 4.2, with s = ½.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.namespace import namespace_of
from backflip.core.replay import sum_tree
from backflip.core.replay.layout import Layout, Replay, ages, recent_ages, time_of
from backflip.core.replay.rows import read
from backflip.core.types import Transition

RECENT = 0x4EC0  # folded into the key of a draw


class Recent(NamedTuple):
    """Which drawn rows are recent ones, and the age and the column of such rows."""

    chosen: Any
    age: Any
    column: Any


def sample(
    layout: Layout, replay: Replay, key: Array, shape: tuple[int, int], correction: Any = 0.0
) -> tuple[Replay, Transition]:
    """Draw (U, B) rows of a replay in JAX arrays, with replacement.

    Uniformly, or by priority with importance weights (n P(i))^-β, divided by the largest weight.

    Args:
        layout: of the replay.
        replay: of one seed.
        key: of this draw.
        shape: (U, B).
        correction: β.
    """
    time_key, column_key = jax.random.split(key)
    first, last = ages(layout, replay)
    drawn = replay._replace(draws=replay.draws + 1)
    recent = _recent(layout, replay, key, shape) if layout.recent_share else None
    if layout.prioritized:
        uniform = jax.random.uniform(time_key, shape)
        rows = _by_priority(layout, replay, 0, uniform, recent, correction)
        return drawn, read(layout, replay, *rows)
    age = jax.random.randint(time_key, shape, first, last)
    column = jax.random.randint(column_key, shape, 0, layout.columns)
    if recent is not None:
        age = jnp.where(recent.chosen, recent.age, age)
    return drawn, read(layout, replay, time_of(layout, replay, age), column)


def _recent(layout: Layout, replay: Replay, key: Array, shape: tuple[int, int]) -> Recent:
    which, age, column = jax.random.split(jax.random.fold_in(key, RECENT), 3)
    return Recent(
        jax.random.uniform(which, shape) < layout.recent_share,
        jax.random.randint(age, shape, *recent_ages(layout, replay)),
        jax.random.randint(column, shape, 0, layout.columns),
    )


def sample_on_host(
    layout: Layout,
    replay: Replay,
    rngs: Sequence[np.random.Generator],
    shape: tuple[int, int],
    correction: float = 0.0,
) -> Transition:
    """Draw (S, U, B) rows of a replay in NumPy arrays, each seed with its own generator.

    Like `sample`, and counts the draw in place.
    """
    draw = (
        partial(_by_priority_on_host, correction=correction) if layout.prioritized else _uniformly
    )
    drawn = [draw(layout, replay, seed, rng, shape) for seed, rng in enumerate(rngs)]
    time, column, weight = (np.stack(parts) for parts in zip(*drawn, strict=True))
    replay.draws[...] += 1
    return read(layout, replay, time, column, weight)


def _uniformly(
    layout: Layout, replay: Replay, seed: int, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time, column and weight of rows of one seed."""
    first, last = ages(layout, replay)
    age = rng.integers(first, int(last), shape, dtype=np.int32)
    column = rng.integers(0, layout.columns_of_seed, shape, dtype=np.int32)
    if layout.recent_share:
        recent = _recent_on_host(layout, replay, rng, shape)
        age = np.where(recent.chosen, recent.age, age)
    weight = np.ones(shape, np.float32)
    return time_of(layout, replay, age), seed * layout.columns_of_seed + column, weight


def _recent_on_host(
    layout: Layout, replay: Replay, rng: np.random.Generator, shape: tuple[int, int]
) -> Recent:
    first, last = (int(age) for age in recent_ages(layout, replay))
    return Recent(
        rng.random(shape, np.float32) < layout.recent_share,
        rng.integers(first, last, shape, dtype=np.int32),
        rng.integers(0, layout.columns_of_seed, shape, dtype=np.int32),
    )


def _by_priority_on_host(
    layout: Layout,
    replay: Replay,
    seed: int,
    rng: np.random.Generator,
    shape: tuple[int, int],
    correction: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    uniform = rng.random(shape, np.float32)
    recent = _recent_on_host(layout, replay, rng, shape) if layout.recent_share else None
    return _by_priority(layout, replay, seed, uniform, recent, correction)


def _by_priority(
    layout: Layout,
    replay: Replay,
    seed: int,
    uniform: Float[Any, "U B"],
    recent: Recent | None,
    correction: Any,
) -> tuple[Any, Any, Any]:
    """Return time, column and weight of rows of one seed."""
    index, chance = sum_tree.find(replay.tree[seed], uniform)
    if recent is not None:
        return _mixed(layout, replay, seed, index, recent, correction)
    held = layout.columns_of_seed * replay.filled.astype(np.float32)
    # `held`, n of the formula, cancels except for rounding; without it old runs' bits would change.
    weight = (chance * held) ** -correction
    time, column = index // layout.columns_of_seed, index % layout.columns_of_seed
    return time, seed * layout.columns_of_seed + column, weight / weight.max()


def _mixed(
    layout: Layout, replay: Replay, seed: int, index: Any, recent: Recent, correction: Any
) -> tuple[Any, Any, Any]:
    """Return time, column and weight of rows of one seed: recent ones, the others by `index`."""
    xp, columns = namespace_of(replay.reward), layout.columns_of_seed
    newer = time_of(layout, replay, recent.age) * columns + recent.column
    leaf = xp.where(recent.chosen, newer, index)
    time, column = leaf // columns, leaf % columns
    (first, last), (newest, _) = ages(layout, replay), recent_ages(layout, replay)
    age = (time - (replay.position - replay.filled)) % layout.length
    share, one = np.float32(layout.recent_share), np.float32(1)
    of_recent = share / ((last - newest) * columns).astype(np.float32)
    of_recent = xp.where(age >= newest, of_recent, np.float32(0))
    by_priority = (one - share) * sum_tree.chance_of(replay.tree[seed], leaf)
    evenly = (one - share) / ((last - first) * columns).astype(np.float32)
    weight = ((of_recent + by_priority) / (of_recent + evenly)) ** -correction
    return time, seed * columns + column, weight / weight.max()
