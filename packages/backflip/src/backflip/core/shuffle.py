"""Fast random permutations for minibatches."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

ROUNDS = 3


def shuffle(key: PRNGKeyArray, count: int) -> Int[Array, " count"]:
    """Return the numbers 0 .. count-1 in a random order.

    For a power of two, rounds of x ← (x · odd + offset) mod 2^b, x ← x xor (x >> b/2), each a
    bijection: sorting random numbers takes longer than a gradient. Not every order is possible,
    which is enough for minibatches. Other counts are sorted.
    """
    if count & (count - 1):
        return jax.random.permutation(key, count)
    bits = count.bit_length() - 1
    draws = jax.random.bits(key, (ROUNDS, 2), jnp.uint32)
    x = jnp.arange(count, dtype=jnp.uint32)
    for odd, offset in draws:
        x = (x * (odd | 1) + offset) & jnp.uint32(count - 1)
        x = x ^ (x >> max(bits // 2, 1))
    return x.astype(jnp.int32)
