"""What the states that followed are worth."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from backflip.algorithms.parts.masking import blank
from backflip.core.types import Transition


def next_values(
    value_of: Callable[[Any], Float[Array, " N"]], values: Float[Array, "T N"], batch: Transition
) -> Float[Array, "T N"]:
    """Return V of the true successors; 0 in invalid rows.

    Where no episode ended, the successor is the next row's observation, whose value is known;
    the network runs only for steps at which some episode ended, and for the last.

    Args:
        value_of: (observations of N environments) -> their values.
        values: V of the observations of the batch.
        batch: axes (T, N).
    """
    following = jnp.concatenate([values[1:], values[-1:]])
    ended = batch.terminated | batch.truncated
    last = jnp.arange(ended.shape[0]) == ended.shape[0] - 1
    unknown = last | ended.any(1)

    def look(row: tuple[Array, Array, Any]) -> Float[Array, " N"]:
        unknown, following, next_obs = row
        return jax.lax.cond(unknown, lambda: value_of(next_obs), lambda: following)

    return blank(jax.lax.map(look, (unknown, following, batch.next_obs)), batch.valid)
