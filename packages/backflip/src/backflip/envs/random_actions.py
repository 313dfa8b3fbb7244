"""Random actions: uniform over a space."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from backflip.core.spaces import Box, Discrete


def random_actions(action: Box | Discrete, key: PRNGKeyArray, count: int) -> Array:
    """Return `count` actions, uniform over the space.

    In dimensions without two bounds they are standard normal, clipped to the one bound.
    """
    if isinstance(action, Discrete):
        return jax.random.randint(key, (count,), 0, action.n)
    low, high, bounded = action.low, action.high, action.bounded
    shape = (count, *action.shape)
    share = jax.random.uniform(key, shape)
    normal = jax.random.normal(key, shape)  # rl: ignore[L19] each dimension uses one of the two
    normal = jnp.clip(normal, low[None], high[None])
    low = np.where(bounded, low, 0.0).astype(np.float32)[None]
    high = np.where(bounded, high, 0.0).astype(np.float32)[None]
    return jnp.where(bounded[None], low + (high - low) * share, normal)


def random_actions_on_host(
    action: Box | Discrete, rng: np.random.Generator, count: int
) -> np.ndarray:
    """Return the same as `random_actions`, in NumPy."""
    if isinstance(action, Discrete):
        return rng.integers(action.n, size=count, dtype=np.int32)
    low, high, bounded = action.low, action.high, action.bounded
    share, normal = rng.random((count, *low.shape)), rng.standard_normal((count, *low.shape))
    normal = np.clip(normal, low, high)
    low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)
    return np.where(bounded, low + (high - low) * share, normal).astype(np.float32)
