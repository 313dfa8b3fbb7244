"""Losses against their definitions; where gradients flow and where they must not."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.core.losses import (
    NO_TIES,
    answer_probabilities,
    approximate_kl,
    clipped_squared_error,
    clipped_surrogate,
    huber_error,
    policy_gradient,
    preference_loss,
    squared_error,
)

SMALL = st.floats(-5, 5, width=32)
WIDE = st.floats(-200, 200, width=32)
NOISE = st.sampled_from([0.0, 0.1, 0.5])


def surrogate_by_definition(
    log_prob: float, old: float, advantage: float, clip_range: float
) -> float:
    ratio = math.exp(log_prob - old)
    clipped = min(max(ratio, 1 - clip_range), 1 + clip_range)
    return -min(ratio * advantage, clipped * advantage)


def probability_by_definition(left: float, right: float, noise: float) -> float:
    """Eq. 1 of 1706.03741 as printed, with the 10 % of uniform answers around it."""
    largest = max(left, right)
    e_left, e_right = math.exp(left - largest), math.exp(right - largest)
    return (1 - noise) * e_left / (e_left + e_right) + noise / 2


def scalar(x: float) -> Any:
    return jnp.asarray(x, jnp.float32)


# Clipped surrogate


@pytest.mark.medium
@given(log_prob=SMALL, old=SMALL, advantage=SMALL, clip_range=st.sampled_from([0.0, 0.1, 0.3]))
def test_surrogate_equals_the_definition(
    log_prob: float, old: float, advantage: float, clip_range: float
) -> None:
    found = clipped_surrogate(scalar(log_prob), scalar(old), scalar(advantage), clip_range)
    expected = surrogate_by_definition(log_prob, old, advantage, clip_range)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [(1.0, 2.0, -2.0), (1.5, 2.0, -2.4), (0.5, 2.0, -1.0), (1.5, -2.0, 3.0), (0.5, -2.0, 1.6)],
)
def test_surrogate_by_hand(ratio: float, advantage: float, expected: float) -> None:
    found = clipped_surrogate(jnp.log(scalar(ratio)), scalar(0), scalar(advantage), 0.2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("ratio", "advantage", "moves"),
    [(1.5, 1.0, False), (0.5, -1.0, False), (0.5, 1.0, True), (1.5, -1.0, True), (1.1, 1.0, True)],
)
def test_surrogate_has_a_gradient_unless_clipping_binds(
    ratio: float, advantage: float, moves: bool
) -> None:
    log_prob = jnp.log(scalar(ratio))
    gradient = jax.grad(clipped_surrogate)(log_prob, scalar(0), scalar(advantage), 0.2)
    np.testing.assert_allclose(gradient, -ratio * advantage if moves else 0.0, rtol=1e-6)


@pytest.mark.medium
def test_surrogate_gradient_at_the_old_policy_is_the_policy_gradient() -> None:
    advantage, log_prob = jnp.array([0.5, -2.0, 3.0]), jnp.array([-0.1, -1.0, -2.0])
    gradient = jax.grad(lambda x: clipped_surrogate(x, log_prob, advantage, 0.2).sum())(log_prob)
    np.testing.assert_allclose(gradient, -advantage, rtol=1e-6)


def test_surrogate_gradient_reaches_neither_the_old_policy_nor_the_advantage() -> None:
    arguments = scalar(0.1), scalar(0.0), scalar(2.0), 0.2
    assert float(jax.grad(clipped_surrogate, argnums=1)(*arguments)) == 0
    assert float(jax.grad(clipped_surrogate, argnums=2)(*arguments)) == 0


# Squared error and KL


def test_squared_error_by_hand_and_its_gradients() -> None:
    value, target = scalar(3.0), scalar(1.0)
    assert float(squared_error(value, target)) == 2.0
    assert float(jax.grad(squared_error)(value, target)) == 2.0
    assert float(jax.grad(squared_error, argnums=1)(value, target)) == 0.0


def test_clipped_squared_error_by_hand_and_its_gradients() -> None:
    """Towards 10 from 4, by at most 1: to 4.5 it counts whole, at 7 as if it were 5, without pull.

    Away from it, to 2, it counts whole again.
    """
    old, target = scalar(4.0), scalar(10.0)
    for value, error, pull in ((4.5, 5.5, -5.5), (7.0, 5.0, 0.0), (2.0, 8.0, -8.0)):
        found, gradients = jax.value_and_grad(clipped_squared_error, argnums=(0, 1, 2))(
            scalar(value), old, target, 1.0
        )
        assert float(found) == 0.5 * error**2
        assert [float(x) for x in gradients] == [pull, 0.0, 0.0]


@pytest.mark.medium
def test_huber_error_by_hand_and_its_gradients() -> None:
    error = jnp.array([-3.0, -0.5, 0.0, 1.0, 2.0])
    zero = jnp.zeros(5)
    assert huber_error(error, zero).tolist() == [2.5, 0.125, 0, 0.5, 1.5]
    assert huber_error(zero, error).tolist() == [2.5, 0.125, 0, 0.5, 1.5]
    slope, of_target = jax.vmap(jax.grad(huber_error, argnums=(0, 1)))(error, zero)
    assert slope.tolist() == [-1, -0.5, 0, 1, 1]
    assert of_target.tolist() == [0] * 5


@pytest.mark.medium
@given(log_prob=SMALL, old=SMALL)
def test_approximate_kl_equals_the_definition_and_is_never_negative(
    log_prob: float, old: float
) -> None:
    found = float(approximate_kl(scalar(log_prob), scalar(old)))
    exact = math.expm1(log_prob - old) - (log_prob - old)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-6)
    assert found >= 0
    assert float(approximate_kl(scalar(log_prob), scalar(log_prob))) == 0


def test_approximate_kl_averages_to_the_kl_under_the_old_policy() -> None:
    old, new = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.4, 0.2])
    estimates = approximate_kl(jnp.log(jnp.asarray(new)), jnp.log(jnp.asarray(old)))
    exact = (old * np.log(old / new)).sum()
    np.testing.assert_allclose((old * np.asarray(estimates)).sum(), exact, rtol=1e-5)


# Preferences


def preference_probability(left: Any, right: Any, noise: float) -> Any:
    """Return P[left ≻ right] of a teacher who never answers with a tie."""
    return answer_probabilities(jnp.asarray(left - right), NO_TIES, noise)[..., 2]


@pytest.mark.medium
@given(left=WIDE, right=WIDE, noise=NOISE)
def test_probability_equals_the_definition(left: float, right: float, noise: float) -> None:
    found = preference_probability(scalar(left), scalar(right), noise)
    expected = probability_by_definition(left, right, noise)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-7)
    assert noise / 2 - 1e-6 <= float(found) <= 1 - noise / 2 + 1e-6


@pytest.mark.medium
@given(left=WIDE, right=WIDE, noise=NOISE)
def test_probabilities_of_both_answers_add_up_to_1(left: float, right: float, noise: float) -> None:
    one = preference_probability(scalar(left), scalar(right), noise)
    other = preference_probability(scalar(right), scalar(left), noise)
    np.testing.assert_allclose(one + other, 1.0, rtol=0, atol=1.2e-7)  # one unit in the last place


def test_probability_by_hand() -> None:
    """Odds of 3 to 1, and a tenth of random answers: .9 · .75 + .05."""
    left, right = jnp.log(scalar(3.0)), scalar(0.0)
    np.testing.assert_allclose(preference_probability(left, right, 0.0), 0.75, rtol=1e-6)
    np.testing.assert_allclose(preference_probability(left, right, 0.1), 0.725, rtol=1e-6)
    assert float(preference_probability(scalar(7.0), scalar(7.0), 0.1)) == 0.5


@pytest.mark.medium
@given(left=WIDE, right=WIDE, noise=NOISE, label=st.sampled_from([0.0, 0.5, 1.0]))
def test_preference_loss_equals_the_definition(
    left: float, right: float, noise: float, label: float
) -> None:
    found = preference_loss(scalar(left), scalar(right), scalar(label), noise)
    p = probability_by_definition(left, right, noise)
    q = probability_by_definition(right, left, noise)
    exact = -sum(weight * math.log(x) for weight, x in ((label, p), (1 - label, q)) if weight and x)
    if min(p, q) > 0:
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)
    assert math.isfinite(float(found))


@pytest.mark.medium
def test_both_routes_to_the_preference_loss_agree() -> None:
    left, right = jnp.linspace(-5, 5, 11), jnp.linspace(2, -3, 11)
    p = preference_probability(left, right, 0.1)
    found = preference_loss(left, right, jnp.ones(11), 0.1)
    np.testing.assert_allclose(found, -jnp.log(p), rtol=1e-5)


@pytest.mark.medium
@given(left=WIDE, right=WIDE, noise=NOISE, label=st.sampled_from([0.0, 0.5, 1.0]))
def test_swapping_the_clips_and_the_answer_changes_no_loss(
    left: float, right: float, noise: float, label: float
) -> None:
    one = preference_loss(scalar(left), scalar(right), scalar(label), noise)
    other = preference_loss(scalar(right), scalar(left), scalar(1 - label), noise)
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.medium
@given(left=SMALL, right=SMALL, shift=SMALL)
def test_a_constant_added_to_both_clips_changes_nothing(
    left: float, right: float, shift: float
) -> None:
    one = preference_probability(scalar(left), scalar(right), 0.1)
    other = preference_probability(scalar(left + shift), scalar(right + shift), 0.1)
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("label", [0.0, 0.5, 1.0])
def test_preference_gradient_is_probability_minus_label(label: float) -> None:
    left, right = scalar(1.0), scalar(0.3)
    gradient = jax.grad(preference_loss, argnums=(0, 1))(left, right, scalar(label), 0.0)
    expected = probability_by_definition(1.0, 0.3, 0.0) - label
    np.testing.assert_allclose(gradient, [expected, -expected], rtol=1e-5)


def test_noise_bounds_the_gradient_of_a_wrong_label() -> None:
    """With noise the gradient of a wildly wrong label vanishes; without, it stays 1."""
    arguments = scalar(-50.0), scalar(0.0), scalar(1.0)
    assert abs(float(jax.grad(preference_loss)(*arguments, 0.1))) < 1e-6
    np.testing.assert_allclose(jax.grad(preference_loss)(*arguments, 0.0), -1.0, rtol=1e-6)


@pytest.mark.medium
def test_jit_changes_nothing_and_vmap_is_a_loop() -> None:
    rng = np.random.default_rng(0)
    columns = [jnp.asarray(rng.normal(size=5), jnp.float32) for _ in range(3)]
    for function in (
        lambda a, b, c: clipped_surrogate(a, b, c, 0.2),
        lambda a, b, c: preference_loss(a, b, jax.nn.sigmoid(c), 0.1),
    ):
        together = function(*columns)
        loop = [function(*(x[i] for x in columns)) for i in range(5)]
        np.testing.assert_allclose(together, jnp.stack(loop), rtol=1e-5)
        np.testing.assert_allclose(jax.vmap(function)(*columns), together, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(function)(*columns), together, rtol=1e-5)


def test_the_policy_gradient_by_hand_and_where_it_flows() -> None:
    """-log π A; the gradient is -A where π is, and nothing reaches A."""
    log_prob, advantage = jnp.array([-1.0, -2.0]), jnp.array([3.0, -5.0])
    np.testing.assert_allclose(policy_gradient(log_prob, advantage), [3.0, -10.0])

    def total(log_prob: Any, advantage: Any) -> Any:
        return policy_gradient(log_prob, advantage).sum()

    of_policy, of_advantage = jax.grad(total, argnums=(0, 1))(log_prob, advantage)
    np.testing.assert_allclose(of_policy, -advantage)
    assert not np.any(of_advantage)


@pytest.mark.medium
def test_answer_probabilities_by_hand():
    # σ(1) = .7311, σ(-3) = .0474: a logit of 2, and ties within ±1.
    found = answer_probabilities(scalar(2.0), 1.0, 0.0)
    np.testing.assert_allclose(found, [0.0474, 0.2215, 0.7311], atol=1e-4)
    noisy = answer_probabilities(scalar(2.0), 1.0, 0.3)
    np.testing.assert_allclose(noisy, 0.7 * np.asarray(found) + 0.1, rtol=1e-5)


@pytest.mark.medium
@pytest.mark.parametrize("width", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_answer_probabilities_sum_to_one_and_swap_with_the_clips(width, noise):
    difference = jnp.linspace(-60, 60, 31)
    found = answer_probabilities(difference, width, noise)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-5)
    swapped = answer_probabilities(-difference, width, noise)[:, ::-1]
    np.testing.assert_allclose(found, swapped, atol=1e-6)
    assert float(found.min()) >= 0


@pytest.mark.medium
def test_without_a_tie_width_no_answer_is_a_tie():
    found = answer_probabilities(jnp.linspace(-9, 9, 7), NO_TIES, 0.1)
    np.testing.assert_array_equal(found[:, 1], 0.0)
    np.testing.assert_allclose(found[:, 0] + found[:, 2], 1.0, rtol=1e-6)
