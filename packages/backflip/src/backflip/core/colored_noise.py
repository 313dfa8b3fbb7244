"""Noise whose power falls with the frequency, as f^-β: neighbouring env steps have similar draws.

A robot's joint moves little in one env step of 8 ms, and independent draws cancel each other before
it has moved far. Correlated draws move it.

K white noises are added. Noise k keeps each of its draws for 2^k env steps, so it adds power up to
the frequency 2^-k / 2 only. With weights w_k² in proportion to 2^((β - 1) k), the power at low
frequencies f is about in proportion to f^-β. Each single draw is from N(0, 1), because Σ w_k² = 1.

Sources: the construction is that of R. F. Voss (Gardner 1978, "White and brown music, fractal
curves and one-over-f fluctuations", Scientific American 238). Such noise for exploration: Eberhard
et al. 2023, "Pink noise is all you need" (ICLR), off-policy; Hollenstein et al. 2024,
arXiv:2312.11091, PPO.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

OFFSET = 0x0FF5E7


def octaves_of(env_steps: int) -> int:
    """Return K, so that the slowest noise keeps its draws for at most half of the env steps."""
    return max(1, env_steps.bit_length() - 1)


def keys_of_octaves(key: PRNGKeyArray, env_steps: int, octaves: int) -> Key[Array, "T K"]:
    """Return keys (T, K) of T env steps: key k of env step t is that of ⌊(t + o_k) / 2^k⌋.

    The offsets o_k are drawn, so that the noises do not all change at the first env step.
    """
    bases = jax.random.split(key, octaves)
    longest = 2**octaves
    drawn = jax.random.randint(jax.random.fold_in(key, OFFSET), (octaves,), 0, longest)
    octave = jnp.arange(octaves)

    def at(env_step: Array) -> Key[Array, " K"]:
        return jax.vmap(jax.random.fold_in)(bases, (env_step + drawn) >> octave)

    return jax.vmap(at)(jnp.arange(env_steps))


def weights_of(octaves: int, color: float) -> Float[np.ndarray, " K"]:
    """Return w_k = 2^((β - 1) k / 2) / sqrt(Σ_j 2^((β - 1) j)), with β = `color`."""
    power = 2.0 ** ((color - 1.0) * np.arange(octaves))
    return np.sqrt(power / power.sum()).astype(np.float32)


def colored_normal(
    keys: Key[Array, " K"], shape: tuple[int, ...], color: float
) -> Float[Array, "*shape"]:
    """Return Σ_k w_k ε_k with ε_k ~ N(0, 1) from key k: the noise of one env step.

    Args:
        keys: K keys of an env step, from `keys_of_octaves`.
        shape: of the noise; its elements are independent.
        color: β; 1 is pink noise.
    """

    def draw(key: PRNGKeyArray) -> Array:
        return jax.random.normal(key, shape)

    weights = weights_of(keys.shape[0], color)
    return jnp.tensordot(jnp.asarray(weights), jax.vmap(draw)(keys), 1)
