"""Tests of `backflip.core.taps`."""

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import backflip
from backflip.core.taps import tap, taps
from runshelf.errors import UsageError


def halved(x):
    return tap("halved", x / 2).sum()


@pytest.mark.medium
def test_without_taps_nothing_is_left_in_the_program():
    x = jnp.arange(4.0)
    plain = jax.make_jaxpr(lambda x: (x / 2).sum())(x)
    assert str(jax.make_jaxpr(halved)(x)) == str(plain)
    with taps():
        assert "callback" in str(jax.make_jaxpr(halved)(x))
    assert str(jax.make_jaxpr(halved)(x)) == str(plain)


@pytest.mark.medium
def test_numbers_by_hand():
    program = jax.jit(halved)
    program(jnp.array([9.0, 9.0]))  # nobody looks
    with taps() as seen:
        program(jnp.array([2.0, -4.0, jnp.nan]))
        program(jnp.array([6.0, 8.0, 0.0]))
        tap("plain", 3)
    assert dict(seen) == {
        "halved": (2, -2.0, 4.0, pytest.approx((1 - 2 + 3 + 4 + 0) / 5), 1, 1),
        "plain": (1, 3.0, 3.0, 3.0, 0, None),
    }
    assert program(jnp.array([2.0])) == 1.0
    assert seen["halved"].calls == 2, "closed"


def test_the_call_of_the_first_nan_in_a_loop():
    def body(x, k):
        return tap("x", jnp.where(k == 3, jnp.nan, x + 1)), None

    with taps() as seen:
        jax.jit(lambda x: jax.lax.scan(body, x, jnp.arange(6))[0])(jnp.zeros(2))
    assert seen["x"].calls == 6
    assert seen["x"].first_nan == 4
    assert seen["x"].nans == 2 * 3
    assert (seen["x"].low, seen["x"].high) == (1.0, 3.0)
    assert "call 4" in str(seen)


@pytest.mark.medium
def test_batches_gradients_integers_and_nothing():
    with taps() as seen:
        jax.vmap(halved)(jnp.ones((5, 3)))
        gradient = jax.grad(lambda x: tap("square", x**2).sum())(jnp.array([1.0, 2.0]))
        tap("whole", np.array([True, False]))
        tap("empty", jnp.zeros(0))
        tap("nan", jnp.nan)
    assert seen["halved"].calls == 5
    np.testing.assert_array_equal(gradient, [2.0, 4.0])
    assert seen["square"][:4] == (1, 1.0, 4.0, 2.5)
    assert seen["whole"][:4] == (1, 0.0, 1.0, 0.5)
    assert "empty" not in seen
    assert math.isnan(seen["nan"].mean)
    assert seen["nan"].low == math.inf


def test_an_error_inside_closes_the_taps():
    with pytest.raises(ValueError, match="mine"), taps():
        raise ValueError("mine")
    assert "callback" not in str(jax.make_jaxpr(halved)(jnp.ones(2)))


def test_what_is_no_array_is_refused_in_one_line():
    with pytest.raises(UsageError, match="tap `d` takes one array of numbers, got dict"), taps():
        tap("d", {"a": jnp.ones(2)})
    assert tap("d", {"a": 1}) == {"a": 1}


TAPPED = """
import backflip
from environment import Line as Plain

class Line(Plain):
    def observe(self, state):
        return backflip.tap("position", super().observe(state))
"""


@pytest.mark.slow
def test_a_tap_in_ones_own_environment_sees_training_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tapped_env.py").write_text(TAPPED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parents[4] / "docs" / "examples")
    settings = {"num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 1, "hidden": (4,)}

    def returns() -> list[float]:
        what: dict[str, Any] = {
            "env_steps": 256,
            "seeds": 2,
            "home": tmp_path,
            "settings": settings,
        }
        return backflip.train("ppo", "tapped_env:Line", **what).returns

    plain = returns()
    with backflip.taps() as seen:
        assert returns() == plain
    assert seen["position"].calls > 256
    assert -1 <= seen["position"].low < -0.5 < 0.5 < seen["position"].high <= 1
    assert seen["position"].first_nan is None
