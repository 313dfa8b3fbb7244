"""Tests of the type checks: on at the first calls of a function in each test, then off."""

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError
from tests.type_checks import CHECKED_CALLS, checked

from backflip.core.losses import squared_error


@pytest.mark.medium
@pytest.mark.parametrize("again", [False, True])
def test_the_first_calls_of_each_test_are_checked(again: bool) -> None:
    with pytest.raises(TypeCheckError):
        squared_error("no array", "no array")  # type: ignore[arg-type]
    for _ in range(CHECKED_CALLS):
        squared_error(jnp.zeros(2), jnp.zeros(2))
    with pytest.raises(TypeError):  # of Python: the call is not checked
        squared_error("no array", "no array")  # type: ignore[arg-type]


@pytest.mark.medium
def test_a_nested_function_is_counted_over_all_its_copies() -> None:
    def made() -> object:
        @jaxtyping.jaxtyped(typechecker=checked)
        def same(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
            return x

        return same

    for _ in range(CHECKED_CALLS - 1):
        made()(np.zeros(2))
    with pytest.raises(TypeCheckError):
        made()(np.zeros((2, 2)))
    assert made()("no array") == "no array"
