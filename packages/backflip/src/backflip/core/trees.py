"""Pytrees of arrays: as named arrays, the form of checkpoints, and row by row."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from runshelf.errors import DamagedFile


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a pytree under names such as `algorithm.params.body.0.w`.

    Raises:
        ValueError: two arrays would have the same name, because a dictionary key contains a dot.
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    named = {_name(path): np.asarray(leaf) for path, leaf in leaves}
    if len(named) < len(leaves):
        raise ValueError(f"names of a tree are not unique: {sorted(_name(p) for p, _ in leaves)}")
    return named


def unflatten(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the pytree with the structure of `like` and the arrays that `flatten` named.

    Raises:
        DamagedFile: arrays are missing, unknown, or of another shape or dtype; all are named.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    expected = {_name(path): leaf for path, leaf in leaves}
    missing = [f"`{name}` is missing" for name in expected if name not in arrays]
    extra = [f"`{name}` is unknown" for name in arrays if name not in expected]
    wrong = [
        f"`{name}` is {_kind(arrays[name])}, expected {_kind(leaf)}"
        for name, leaf in expected.items()
        if name in arrays and _kind(arrays[name]) != _kind(leaf)
    ]
    problems = [*missing, *extra, *wrong]
    if problems:
        raise DamagedFile(f"checkpoint does not fit: {'; '.join(problems)}")
    return jax.tree_util.tree_unflatten(structure, [arrays[name] for name in expected])


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _kind(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}"


def row_of(tree: Any, row: int) -> Any:
    """Return the given row of every array of a tree, such as one seed of stacked learners."""

    def pick(array: Any) -> Any:
        return array[row]

    return jax.tree.map(pick, tree)


def stack_rows(trees: Sequence[Any]) -> Any:
    """Return trees of one structure as one tree of NumPy arrays with a new leading axis."""

    def stack(*arrays: Any) -> np.ndarray:
        return np.stack([np.asarray(array) for array in arrays])

    return jax.tree.map(stack, *trees)


def copies(tree: Any, count: int) -> Any:
    """Return a tree with a new leading axis of `count` equal rows, which share their memory."""

    def repeated(array: Any) -> np.ndarray:
        return np.broadcast_to(array, (count, *np.shape(array)))

    return jax.tree.map(repeated, tree)


def where_rows(condition: Bool[Array, " N"], yes: Any, no: Any) -> Any:
    """Return, row by row of two pytrees, `yes` where the condition holds, else `no`."""

    def choose(one: Array, other: Array) -> Array:
        return jnp.where(condition.reshape(-1, *(1,) * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, yes, no)
