"""Trees become named arrays and come back, or the names that do not fit are listed."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from backflip.core.trees import flatten, unflatten
from runshelf.errors import DamagedFile


class Pair(NamedTuple):
    """A pair of values."""

    first: Any
    second: Any


TREE = Pair({"body": [{"w": np.ones((2, 3), np.float32)}]}, (np.int32(4), ()))


def test_names_are_the_path() -> None:
    assert set(flatten(TREE)) == {"first.body.0.w", "second.0"}


def test_unflatten_inverts_flatten() -> None:
    back = unflatten(TREE, flatten(TREE))
    assert jax.tree.structure(back) == jax.tree.structure(TREE)
    jax.tree.map(np.testing.assert_array_equal, back, TREE)


def test_all_mismatches_are_in_one_message() -> None:
    arrays = flatten(TREE)
    arrays["second.0"] = np.zeros(2, np.float32)
    arrays["third"] = arrays.pop("first.body.0.w")
    expected = (
        "`first.body.0.w` is missing; `third` is unknown; "
        r"`second.0` is float32\[2\], expected int32\[\]"
    )
    with pytest.raises(DamagedFile, match=expected):
        unflatten(TREE, arrays)


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(ValueError, match="not unique"):
        flatten({"a": {"b": np.zeros(1)}, "a.b": np.ones(1)})
