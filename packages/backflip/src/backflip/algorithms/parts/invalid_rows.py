"""Zeros in invalid rows, whose contents must not reach a loss."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from backflip.core.types import Transition


def blank(x: Array, valid: Bool[Array, "*rows"]) -> Array:
    """Return x with zeros in invalid rows."""
    rows = valid.reshape(*valid.shape, *(1,) * (x.ndim - valid.ndim))
    return jnp.where(rows, x, jnp.zeros((), x.dtype))


def blank_vectors(obs: Array, valid: Bool[Array, "*rows"]) -> Array:
    """Return observations with zeros in invalid rows; images, which are never NaN, unchanged."""
    return obs if obs.dtype == jnp.uint8 else blank(obs, valid)


def blank_invalid(batch: Transition) -> Transition:
    """Return the batch with zeros in invalid rows, except in observations.

    Weight 0 in a loss is not enough: 0 · NaN is NaN in the gradient. Observations are blanked when
    they are preprocessed, which is cheaper.
    """
    blanked = jax.tree.map(partial(blank, valid=batch.valid), batch._replace(obs=(), next_obs=()))
    return blanked._replace(obs=batch.obs, next_obs=batch.next_obs)
