"""A sum tree: numbers that can be changed, and drawn in proportion to, in O(log n) each.

Node 1 is the root; node i is the sum of nodes 2i and 2i + 1; the second half are the leaves. Node 0
is in no sum: it holds the largest priority so far, which new rows get.

Source: Schaul et al. 2016, arXiv:1511.05952, appendix B.2.1.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from backflip.core.namespace import namespace_of

SMALLEST = 1e-6  # ε, added to errors, so that every row can be drawn again


def leaves_for(count: int) -> int:
    """Return the power of two that holds `count` leaves."""
    return 1 << max(count - 1, 1).bit_length()


def empty(count: int) -> np.ndarray:
    """Return a tree for `count` numbers, all 0; the first new rows will get priority 1."""
    tree = np.zeros(2 * leaves_for(count), np.float32)
    tree[0] = 1.0
    return tree


def put(
    tree: Float[Any, " nodes"], index: Int[Any, " k"], priority: Float[Any, " k"]
) -> Float[Any, " nodes"]:
    """Return the tree with new priorities; if `index` has duplicates, any one of them is kept.

    A NumPy tree is written in place.
    """
    node = index + tree.shape[0] // 2
    tree = _set(tree, node, priority)
    for _ in range(_levels(tree)):
        node = node // 2
        tree = _set(tree, node, tree[2 * node] + tree[2 * node + 1])
    return _set(tree, 0, namespace_of(tree).maximum(tree[0], priority.max(initial=0.0)))


def find(
    tree: Float[Any, " nodes"], uniform: Float[Any, "U B"]
) -> tuple[Int[Any, "U B"], Float[Any, "U B"]]:
    """Return leaves drawn in proportion to their priority, and the probability of each.

    Stratified: [0, 1) is cut into B equal parts, and `uniform` in [0, 1) is the position of each
    draw in its part.
    """
    xp, total = namespace_of(tree), tree[1]
    parts = xp.arange(uniform.shape[-1], dtype=np.float32)[None]
    left = (parts + uniform) / np.float32(uniform.shape[-1]) * total
    node = xp.ones(uniform.shape, np.int32)
    for _ in range(_levels(tree)):
        below = tree[2 * node]
        right = (left >= below) & (tree[2 * node + 1] > 0)
        left = xp.where(right, left - below, left)
        node = 2 * node + right.astype(np.int32)
    return node - tree.shape[0] // 2, tree[node] / xp.maximum(total, np.float32(SMALLEST))


def chance_of(tree: Float[Any, " nodes"], index: Int[Any, "*n"]) -> Float[Any, "*n"]:
    """Return the probability of leaves: their priority divided by the sum of all."""
    return tree[index + tree.shape[0] // 2] / namespace_of(tree).maximum(
        tree[1], np.float32(SMALLEST)
    )


def _levels(tree: Any) -> int:
    return (tree.shape[0] // 2).bit_length() - 1


def _set(tree: Any, at: Any, value: Any) -> Any:
    if isinstance(tree, np.ndarray):
        tree[at] = value
        return tree
    return tree.at[at].set(value)
