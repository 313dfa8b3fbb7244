"""Spaces and made-up batches that on-policy algorithms are tested with."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition

KEY = jax.random.key(0)


def box(shape: tuple[int, ...], dtype: Any = np.float32) -> Box:
    high = 255 if dtype == np.uint8 else 1
    return Box(np.zeros(shape, dtype), np.full(shape, high, dtype), np.dtype(dtype))


DISCRETE = EnvSpec("discrete", box((5,)), Discrete(3), None)
CONTINUOUS = EnvSpec("continuous", box((5,)), box((2,)), None)
PIXELS = EnvSpec("pixels", box((12, 12, 2), np.uint8), Discrete(3), None)


def start(algorithm: Algorithm, seed: int = 0) -> Any:
    """The state before the first update."""
    return jax.tree.map(jnp.asarray, algorithm.init(seed))


def make_batch(algorithm: Algorithm, spec: EnvSpec, state: Any, seed: int = 0) -> Transition:
    """Random observations, actions of the policy, and ends, each followed by a reset row.

    At least 8 rows of 4 environments.
    """
    rng = np.random.default_rng(seed)
    rows = (algorithm.rollout_length, algorithm.num_envs)

    def observations() -> Any:
        if spec.is_image:
            return jnp.asarray(rng.integers(0, 256, (*rows, *spec.observation.shape), np.uint8))
        return jnp.asarray(rng.normal(2, 3, (*rows, *spec.observation.shape)), jnp.float32)

    obs = observations()
    keys = jax.random.split(jax.random.key(seed), rows[0])
    action, extra = jax.jit(jax.vmap(partial(algorithm.act, state)))(obs, keys)
    terminated, truncated, valid = np.zeros(rows, bool), np.zeros(rows, bool), np.ones(rows, bool)
    terminated[2, 1] = truncated[4, 2] = truncated[-1, 3] = True
    valid[3, 1] = valid[5, 2] = valid[0, 3] = False  # the end before [0, 3] is in the last batch
    reward = jnp.asarray(np.where(valid, rng.normal(1, 2, rows), 0), jnp.float32)
    flags = jnp.asarray(terminated), jnp.asarray(truncated)
    unseen = (flags[0] | flags[1]).at[-1].set(True)
    unseen = unseen.reshape(rows + (1,) * (obs.ndim - 2))
    next_obs = jnp.where(unseen, observations(), jnp.roll(obs, -1, axis=0))
    return Transition(obs, action, reward, *flags, next_obs, jnp.asarray(valid), extra)


def spoil(batch: Transition, number: float) -> Transition:
    """Garbage in every field of every invalid row."""

    def change(x: Any) -> Any:
        invalid = ~np.asarray(batch.valid).reshape(batch.valid.shape + (1,) * (x.ndim - 2))
        garbage = {"f": number, "u": 77, "i": 1, "b": True}[x.dtype.kind]
        return jnp.asarray(np.where(invalid, np.asarray(garbage, x.dtype), np.asarray(x)))

    return jax.tree.map(change, batch)._replace(valid=batch.valid)


def assert_same_bits(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
