"""Values of successor states, for bootstrapping."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from backflip.algorithms.parts.invalid_rows import blank
from backflip.core.types import Transition


def next_values(
    value_of: Callable[[Any], Float[Array, " N"]], values: Float[Array, "T N"], batch: Transition
) -> Float[Array, "T N"]:
    """Return V of the true successors; 0 in invalid rows.

    If no episode ended at a step, the successors are the next row's observations, whose values are
    known. The network runs only at steps where an episode ended, and at the last step.

    Args:
        value_of: (observations of N environments) -> their values.
        values: V of the observations of the batch.
        batch: axes (T, N).
    """
    following = jnp.concatenate([values[1:], values[-1:]])
    ended = batch.terminated | batch.truncated
    last = jnp.arange(ended.shape[0]) == ended.shape[0] - 1
    unknown = last | ended.any(1)

    def value_at(row: tuple[Array, Array, Any]) -> Float[Array, " N"]:
        unknown, following, next_obs = row
        return jax.lax.cond(unknown, lambda: value_of(next_obs), lambda: following)

    return blank(jax.lax.map(value_at, (unknown, following, batch.next_obs)), batch.valid)
