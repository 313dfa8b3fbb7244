"""Identities of updates: 0 for what is right, by hand, and large for every known mistake."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core import identities
from backflip.core.returns import gae
from backflip.core.targets import bellman_target, value_of_choice
from backflip.doctor.identities import advantage_error, bellman_error, target_error

T, F = True, False
SETTINGS = {"discount": 0.9, "gae_lambda": 0.8}
ENDS = np.asarray([[F, T, F, F, F, F], [F, F, F, F, F, T]]).T
CUTS = np.asarray([[F, F, F, T, F, F], [F, F, T, F, F, F]]).T


def stream() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    names = ("rewards", "values", "next_values")
    numbers = {name: rng.normal(1, 1, (6, 2)).astype(np.float32) for name in names}
    inside = ~(ENDS | CUTS)[:-1]
    numbers["next_values"][:-1][inside] = numbers["values"][1:][inside]
    return {**numbers, "terminated": ENDS, "truncated": CUTS}


def learned_from(
    given: dict[str, Any], discount: float = 0.9, gae_lambda: float = 0.8
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and targets of both streams, by the code of the algorithms."""
    columns = [jnp.asarray(x) for x in given.values()]

    def of_one(*stream: Any) -> Any:
        return gae(*stream, discount=discount, gae_lambda=gae_lambda)

    advantages = np.asarray(jax.vmap(of_one, in_axes=1, out_axes=1)(*columns))
    return advantages, advantages + given["values"]


def errors(advantages: np.ndarray, targets: np.ndarray) -> tuple[float, float]:
    given = stream()
    return (
        advantage_error(**given, advantages=advantages, **SETTINGS),
        target_error(**given, targets=targets, **SETTINGS),
    )


@pytest.mark.medium
def test_right_advantages_and_targets_have_no_error() -> None:
    assert max(errors(*learned_from(stream()))) < 1e-6


@pytest.mark.parametrize(
    "mistake",
    [
        {"terminated": np.zeros_like(ENDS)},
        {"truncated": np.zeros_like(CUTS)},
        {"terminated": ENDS | CUTS},
        {"terminated": np.zeros_like(ENDS), "truncated": ENDS | CUTS},
        {"rewards": np.roll(stream()["rewards"], 1, 0)},
    ],
    ids=["no-terminal", "through-limits", "no-bootstrap", "bootstrap-at-ends", "late-reward"],
)
def test_a_wrong_stream_shows_in_both(mistake: dict[str, Any]) -> None:
    assert min(errors(*learned_from(stream() | mistake))) > 0.02


def test_another_discount_or_lambda_shows_in_both() -> None:
    for other in ({"discount": 0.91}, {"gae_lambda": 0.82}):
        assert min(errors(*learned_from(stream(), **other))) > 1e-3


def test_a_mistake_in_one_shows_in_this_one_alone() -> None:
    advantages, targets = learned_from(stream())
    wrong = [np.roll(advantages.ravel(), 3).reshape(6, 2), 0 * advantages]
    assert all(
        errors(other, targets)[0] > 0.02 > 1e-6 > errors(other, targets)[1] for other in wrong
    )
    wrong = [stream()["values"], stream()["rewards"], targets[::-1]]
    assert all(
        errors(advantages, other)[1] > 0.02 > 1e-6 > errors(advantages, other)[0] for other in wrong
    )


def test_errors_by_hand() -> None:
    """One step that terminates, V = 3, r = 1: A = -2, G = 1; sizes 1 + 3 + 0 + |A| or |G|."""
    end = {"rewards": [1.0], "values": [3.0], "next_values": [np.nan]}
    end |= {"terminated": [True], "truncated": [False]}
    assert advantage_error(**end, advantages=[-2.0], **SETTINGS) == 0
    assert advantage_error(**end, advantages=[-1.0], **SETTINGS) == pytest.approx(1 / 5)
    assert target_error(**end, targets=[5.0], **SETTINGS) == pytest.approx(4 / 9)
    unknown = end | {"terminated": [False]}
    assert np.isnan(advantage_error(**unknown, advantages=[-1.0], **SETTINGS)), "V(s') is not known"
    minibatch = {"rewards": [1.0], "next_values": [10.0], "discount": 0.5}
    assert bellman_error(**minibatch, terminated=[False], targets=[6.0]) == 0
    assert bellman_error(**minibatch, terminated=[True], targets=[6.0]) == pytest.approx(5 / 7)


@pytest.mark.medium
def test_compiled_code_and_numpy_agree() -> None:
    given, rng = stream(), np.random.default_rng(1)
    other = rng.normal(size=(6, 2)).astype(np.float32)
    for compiled, plain, name in (
        (identities.advantage_errors, advantage_error, "advantages"),
        (identities.target_errors, target_error, "targets"),
    ):
        every = jax.jit(compiled, static_argnames=tuple(SETTINGS))(
            *map(jnp.asarray, (*given.values(), other)), **SETTINGS
        )
        assert float(every.max()) == pytest.approx(
            plain(**given, **{name: other}, **SETTINGS), 1e-5
        )
    advantages, targets = map(jnp.asarray, learned_from(given))
    right = [jnp.asarray(x) for x in given.values()]
    assert float(identities.advantage_errors(*right, advantages, **SETTINGS).max()) < 1e-6
    assert float(identities.target_errors(*right, targets, **SETTINGS).max()) < 1e-6
    rewards, after, goals = (jnp.asarray(x) for x in rng.normal(size=(3, 8)).astype(np.float32))
    ended = jnp.arange(8) % 3 == 0
    every = identities.bellman_errors(rewards, jnp.full(8, 0.9), ended, after, goals)
    found = bellman_error(
        rewards=rewards, terminated=ended, next_values=after, targets=goals, discount=0.9
    )
    assert float(every.max()) == pytest.approx(found, 1e-5)


@pytest.mark.medium
def test_targets_of_q_learning() -> None:
    rng = np.random.default_rng(2)
    after, chooser = (jnp.asarray(x, jnp.float32) for x in rng.normal(size=(2, 8, 3)))
    rewards, discounts = jnp.ones(8), jnp.full(8, 0.9)
    ended = jnp.arange(8) % 3 == 0

    def error(mask: Any, chosen_by: Any, discount: Any = discounts) -> float:
        goals = bellman_target(rewards, discount, mask, value_of_choice(after, chosen_by))
        given = (rewards, discounts, ended, after, chooser, goals)
        return float(identities.greedy_errors(*given).max())

    assert error(ended, chooser) < 1e-6
    assert error(ended, -chooser) > 0.1, "the worst action"
    assert error(ended, after) > 0.1, "not double"
    assert error(jnp.zeros_like(ended), chooser) > 0.1
    assert error(jnp.ones_like(ended), chooser) > 0.1
    assert error(ended, chooser, discounts + 0.1) > 0.02


@pytest.mark.medium
def test_actions_that_are_equally_good_may_both_be_chosen() -> None:
    chooser = jnp.asarray([[1.0, 1.0 + 1e-7, 0.0]])
    after = jnp.asarray([[5.0, 7.0, 9.0]])
    zero, one, ended = jnp.zeros(1), jnp.ones(1), jnp.zeros(1, bool)

    def error(goal: float) -> float:
        found = identities.greedy_errors(zero, one, ended, after, chooser, jnp.full(1, goal))
        return float(found.max())

    assert error(5.0) == error(7.0) == 0
    assert error(9.0) == pytest.approx(2 / 18)
