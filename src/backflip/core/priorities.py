"""A sum tree: numbers that can be changed, and drawn in proportion to, in O(log n) each.

Node 1 is the root; node i is the sum of nodes 2i and 2i + 1; the leaves are the last half. Node 0,
of which no sum is made, holds the largest priority there ever was: what new rows get.

Source: Schaul et al. 2016, arXiv:1511.05952, appendix B.2.1.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

SMALLEST = 1e-6  # ε, added to errors, so that every row can come again


def leaves_for(count: int) -> int:
    """Return the power of two that holds `count` leaves."""
    return 1 << max(count - 1, 1).bit_length()


def empty(count: int) -> np.ndarray:
    """Return a tree for `count` numbers, all 0; new ones will get 1."""
    tree = np.zeros(2 * leaves_for(count), np.float32)
    tree[0] = 1.0
    return tree


def put(
    tree: Float[Array, " nodes"], index: Int[Array, " k"], priority: Float[Array, " k"]
) -> Float[Array, " nodes"]:
    """Return the tree with new priorities of some leaves; of a leaf named twice, any one holds."""
    tree = jnp.asarray(tree)
    node = index + tree.shape[0] // 2
    tree = tree.at[node].set(priority)
    for _ in range((tree.shape[0] // 2).bit_length() - 1):
        node = node // 2
        tree = tree.at[node].set(tree[2 * node] + tree[2 * node + 1])
    return tree.at[0].max(priority.max())


def find(
    tree: Float[Array, " nodes"], uniform: Float[Array, "U B"]
) -> tuple[Int[Array, "U B"], Float[Array, "U B"]]:
    """Return leaves drawn in proportion to their priority, and the chance of each.

    The unit interval is cut into as many equal parts as there are rows in a minibatch; `uniform`
    in [0, 1) says where in its part each draw falls.
    """
    total = tree[1]
    parts = jnp.arange(uniform.shape[-1], dtype=jnp.float32)[None]
    left = (parts + uniform) / uniform.shape[-1] * total
    node = jnp.ones(uniform.shape, jnp.int32)
    for _ in range((tree.shape[0] // 2).bit_length() - 1):
        below = tree[2 * node]
        right = (left >= below) & (tree[2 * node + 1] > 0)
        left = jnp.where(right, left - below, left)
        node = 2 * node + right.astype(jnp.int32)
    return node - tree.shape[0] // 2, tree[node] / jnp.maximum(total, SMALLEST)
