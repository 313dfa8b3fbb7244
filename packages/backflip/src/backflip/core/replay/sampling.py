"""Drawing minibatches from a replay, uniformly or by priority, in JAX and in NumPy."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from backflip.core.replay import sum_tree
from backflip.core.replay.layout import Layout, Replay, ages, time_of
from backflip.core.replay.rows import read
from backflip.core.types import Transition


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
    if layout.prioritized:
        uniform = jax.random.uniform(time_key, shape)
        return drawn, read(layout, replay, *_by_priority(layout, replay, 0, uniform, correction))
    age = jax.random.randint(time_key, shape, first, last)
    column = jax.random.randint(column_key, shape, 0, layout.columns)
    return drawn, read(layout, replay, time_of(layout, replay, age), column)


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
    weight = np.ones(shape, np.float32)
    return time_of(layout, replay, age), seed * layout.columns_of_seed + column, weight


def _by_priority_on_host(
    layout: Layout,
    replay: Replay,
    seed: int,
    rng: np.random.Generator,
    shape: tuple[int, int],
    correction: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _by_priority(layout, replay, seed, rng.random(shape, np.float32), correction)


def _by_priority(
    layout: Layout, replay: Replay, seed: int, uniform: Float[Any, "U B"], correction: Any
) -> tuple[Any, Any, Any]:
    """Return time, column and weight of rows of one seed."""
    index, chance = sum_tree.find(replay.tree[seed], uniform)
    held = layout.columns_of_seed * replay.filled.astype(np.float32)
    # `held`, n of the formula, cancels except for rounding; without it old runs' bits would change.
    weight = (chance * held) ** -correction
    time, column = index // layout.columns_of_seed, index % layout.columns_of_seed
    return time, seed * layout.columns_of_seed + column, weight / weight.max()
