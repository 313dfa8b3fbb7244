"""Distributions of actions against closed forms, integrals and samples."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from backflip.core.distributions import Categorical, DiagonalNormal, TanhNormal

KEY = jax.random.key(0)
# Compiled programs take numbers below the smallest normal one for 0.
LOGITS = hnp.arrays(np.float32, 4, elements=st.floats(-20, 20, width=32, allow_subnormal=False))


def probabilities(logits: np.ndarray) -> list[float]:
    total = sum(math.exp(x) for x in logits)
    return [math.exp(x) / total for x in logits]


def normal_density(x: float, mean: float, std: float) -> float:
    return math.exp(-0.5 * ((x - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi))


@pytest.fixture
def normal() -> DiagonalNormal:
    return DiagonalNormal(jnp.array([0.5, -1.0]), jnp.log(jnp.array([0.5, 2.0])))


@pytest.fixture
def bounded() -> TanhNormal:
    return TanhNormal(jnp.array([0.5]), jnp.log(jnp.array([0.7])))


# Categorical


@pytest.mark.medium
@given(logits=LOGITS)
def test_categorical_equals_the_definition(logits: np.ndarray) -> None:
    policy, p = Categorical(jnp.asarray(logits)), probabilities(logits)
    log_probs = [float(policy.log_prob(jnp.asarray(i))) for i in range(4)]
    np.testing.assert_allclose(log_probs, np.log(p), rtol=1e-4, atol=1e-4)
    entropy = -sum(q * math.log(q) for q in p)
    np.testing.assert_allclose(policy.entropy(), entropy, rtol=1e-4, atol=1e-5)
    assert logits[int(policy.mode())] == logits.max()


@pytest.mark.medium
def test_categorical_by_hand() -> None:
    policy = Categorical(jnp.log(jnp.array([1.0, 2.0, 1.0])))
    np.testing.assert_allclose(policy.log_prob(jnp.asarray(1)), math.log(0.5), rtol=1e-6)
    np.testing.assert_allclose(policy.entropy(), 1.5 * math.log(2), rtol=1e-6)


@pytest.mark.medium
def test_categorical_entropy_is_largest_when_all_are_equal_and_0_when_one_is_certain() -> None:
    np.testing.assert_allclose(Categorical(jnp.full(5, 3.0)).entropy(), math.log(5), rtol=1e-6)
    assert float(Categorical(jnp.array([0.0, 1e6, 0.0])).entropy()) == 0


def test_categorical_does_not_depend_on_a_shift_of_the_logits() -> None:
    logits = jnp.array([0.3, -1.0, 2.0])
    one, other = Categorical(logits), Categorical(logits + 100)
    np.testing.assert_allclose(one.entropy(), other.entropy(), rtol=1e-4)
    np.testing.assert_allclose(
        one.log_prob(jnp.asarray(2)), other.log_prob(jnp.asarray(2)), rtol=1e-4
    )


@pytest.mark.medium
def test_categorical_permutes_with_its_choices() -> None:
    logits, order = jnp.array([0.3, -1.0, 2.0]), jnp.array([2, 0, 1])
    permuted = Categorical(logits[order])
    for i in range(3):
        choice = permuted.log_prob(jnp.asarray(i))
        np.testing.assert_allclose(choice, Categorical(logits).log_prob(order[i]), rtol=1e-6)


@pytest.mark.medium
def test_categorical_samples_have_the_right_frequencies() -> None:
    p = np.array([0.1, 0.2, 0.7])
    logits = jnp.broadcast_to(jnp.log(jnp.asarray(p, jnp.float32)), (20_000, 3))
    counts = np.bincount(np.asarray(Categorical(logits).sample(KEY)), minlength=3)
    deviation = np.sqrt(p * (1 - p) / 20_000)
    assert (np.abs(counts / 20_000 - p) < 4 * deviation).all()


@pytest.mark.medium
def test_categorical_gradient_is_one_hot_minus_probabilities() -> None:
    logits = jnp.array([0.3, -1.0, 2.0])
    gradient = jax.grad(lambda x: Categorical(x).log_prob(jnp.asarray(1)))(logits)
    expected = np.array([0, 1, 0]) - probabilities(np.asarray(logits))
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.medium
def test_categorical_entropy_gradient_is_that_of_the_definition() -> None:
    """dH/dl_i = -p_i (log p_i + H)."""
    logits = jnp.array([0.3, -1.0, 2.0])
    gradient = jax.grad(lambda x: Categorical(x).entropy())(logits)
    p = np.array(probabilities(np.asarray(logits)))
    np.testing.assert_allclose(gradient, -p * (np.log(p) - (p * np.log(p)).sum()), atol=1e-6)


# DiagonalNormal


@pytest.mark.medium
def test_normal_equals_the_definition(normal: DiagonalNormal) -> None:
    x = jnp.array([0.7, 1.5])
    expected = math.log(normal_density(0.7, 0.5, 0.5) * normal_density(1.5, -1.0, 2.0))
    np.testing.assert_allclose(normal.log_prob(x), expected, rtol=1e-6)
    entropy = sum(0.5 * math.log(2 * math.pi * math.e * std**2) for std in (0.5, 2.0))
    np.testing.assert_allclose(normal.entropy(), entropy, rtol=1e-6)
    np.testing.assert_array_equal(normal.mode(), normal.mean)


@pytest.mark.medium
def test_normal_by_hand() -> None:
    """At its mean the standard normal has density 1/√2π."""
    standard = DiagonalNormal(jnp.zeros(1), jnp.zeros(1))
    np.testing.assert_allclose(standard.log_prob(jnp.zeros(1)), -0.9189385, rtol=1e-6)
    np.testing.assert_allclose(standard.entropy(), 1.4189385, rtol=1e-6)


@pytest.mark.medium
def test_normal_log_prob_averages_to_minus_the_entropy(normal: DiagonalNormal) -> None:
    drawn = jax.vmap(normal.sample)(jax.random.split(KEY, 20_000))
    found = -jax.vmap(normal.log_prob)(drawn)
    tolerance = 4 * float(found.std()) / math.sqrt(20_000)
    np.testing.assert_allclose(found.mean(), normal.entropy(), atol=tolerance)
    np.testing.assert_allclose(drawn.mean(0), normal.mean, atol=4 * 2 / math.sqrt(20_000))
    np.testing.assert_allclose(drawn.std(0), jnp.exp(normal.log_std), rtol=0.03)


@pytest.mark.medium
def test_normal_gradients_are_those_of_the_closed_form(normal: DiagonalNormal) -> None:
    x = jnp.array([0.7, 1.5])
    gradient = jax.grad(lambda d: d.log_prob(x))(normal)
    z = (x - normal.mean) / jnp.exp(normal.log_std)
    np.testing.assert_allclose(gradient.mean, z / jnp.exp(normal.log_std), rtol=1e-5)
    np.testing.assert_allclose(gradient.log_std, jnp.square(z) - 1, rtol=1e-5)
    entropy = jax.grad(lambda d: d.entropy())(normal)
    np.testing.assert_array_equal(entropy.mean, [0, 0])
    np.testing.assert_array_equal(entropy.log_std, [1, 1])


@pytest.mark.medium
def test_gradient_of_a_normal_sample_reaches_mean_and_deviation(normal: DiagonalNormal) -> None:
    gradient = jax.grad(lambda d: d.sample(KEY).sum())(normal)
    np.testing.assert_array_equal(gradient.mean, [1, 1])
    np.testing.assert_allclose(gradient.log_std, normal.sample(KEY) - normal.mean, rtol=1e-5)


@pytest.mark.medium
def test_one_log_std_broadcasts_over_a_batch_of_means() -> None:
    mean, log_std = jnp.arange(6.0).reshape(3, 2), jnp.array([[0.1, 0.2]])
    shared = DiagonalNormal(mean, log_std)
    for i in range(3):
        alone = DiagonalNormal(mean[i], log_std[0])
        np.testing.assert_allclose(shared.entropy()[i], alone.entropy(), rtol=1e-6)
        x = jnp.ones(2)
        together = shared.log_prob(jnp.ones((3, 2)))[i]
        np.testing.assert_allclose(together, alone.log_prob(x), rtol=1e-6)


# TanhNormal


@pytest.mark.medium
def test_tanh_normal_equals_the_change_of_variables(bounded: TanhNormal) -> None:
    for y in (-0.99, -0.3, 0.0, 0.6, 0.95):
        density = normal_density(math.atanh(y), 0.5, 0.7) / (1 - y**2)
        found = bounded.log_prob(jnp.array([y]))
        np.testing.assert_allclose(found, math.log(density), rtol=1e-4, atol=1e-4)


@pytest.mark.medium
def test_tanh_normal_density_integrates_to_1(bounded: TanhNormal) -> None:
    cells = 20_000
    y = (jnp.arange(cells, dtype=jnp.float32) + 0.5) / cells * 2 - 1
    density = jnp.exp(jax.vmap(bounded.log_prob)(y[:, None]))
    np.testing.assert_allclose(density.mean() * 2, 1.0, rtol=1e-3)


@pytest.mark.medium
def test_both_routes_to_the_probability_of_a_tanh_sample_agree(bounded: TanhNormal) -> None:
    keys = jax.random.split(KEY, 100)
    noise = jax.vmap(lambda key: jax.random.normal(key, bounded.mean.shape))(keys)
    y, log_prob = jax.vmap(bounded.transform)(noise)
    np.testing.assert_allclose(jax.vmap(bounded.log_prob)(y), log_prob, rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(jax.vmap(bounded.sample)(keys), y)


@pytest.mark.medium
def test_tanh_probability_stays_finite_and_exact_at_the_bounds() -> None:
    far = TanhNormal(jnp.array([20.0]), jnp.array([0.0]))
    y, log_prob = far.transform(jax.random.normal(KEY, (1,)))
    assert float(y[0]) == 1.0
    x = float(DiagonalNormal(far.mean, far.log_std).sample(KEY)[0])
    exact = math.log(normal_density(x, 20, 1)) - 2 * (math.log(2) - x)  # 1 - tanh²x → 4 exp(-2x)
    np.testing.assert_allclose(log_prob, exact, rtol=1e-6)
    for bound in (-1.0, 1.0):
        gradient = jax.grad(lambda d, y=bound: d.log_prob(jnp.array([y])))(far)
        assert all(np.isfinite(x).all() for x in gradient)


@pytest.mark.medium
def test_tanh_normal_acts_greedily_with_its_median(bounded: TanhNormal) -> None:
    drawn = jax.vmap(bounded.sample)(jax.random.split(KEY, 20_000))
    np.testing.assert_allclose(np.median(drawn), bounded.mode()[0], atol=0.02)


@pytest.mark.medium
def test_gradient_of_a_tanh_sample_is_damped_near_the_bounds(bounded: TanhNormal) -> None:
    """dy/dμ = 1 - y²."""
    gradient = jax.grad(lambda d: d.sample(KEY).sum())(bounded)
    np.testing.assert_allclose(gradient.mean, 1 - jnp.square(bounded.sample(KEY)), rtol=1e-4)


# All of them

POLICIES = [
    Categorical(jnp.arange(12.0).reshape(4, 3) % 5),
    DiagonalNormal(jnp.arange(8.0).reshape(4, 2) / 8, jnp.full((4, 2), -0.5)),
    TanhNormal(jnp.arange(8.0).reshape(4, 2) / 8, jnp.full((4, 2), -0.5)),
]


@pytest.mark.medium
@pytest.mark.parametrize(
    "policy",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in POLICIES[:-1]), POLICIES[-1]],
    ids=lambda policy: type(policy).__name__,
)
def test_jit_changes_nothing_and_leading_axes_are_a_loop(policy: Any) -> None:
    action = policy.sample(KEY)
    together = policy.log_prob(action)
    np.testing.assert_allclose(jax.jit(lambda p: p.sample(KEY))(policy), action, rtol=1e-5)
    np.testing.assert_allclose(
        jax.jit(lambda p, a: p.log_prob(a))(policy, action), together, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        jax.vmap(lambda p, a: p.log_prob(a))(policy, action), together, rtol=1e-5, atol=1e-5
    )
    for i in range(4):
        alone = jax.tree.map(lambda x, i=i: x[i], policy)
        np.testing.assert_allclose(alone.log_prob(action[i]), together[i], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(alone.mode(), policy.mode()[i], rtol=1e-6)


@pytest.mark.medium
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_same_key_same_action_another_key_another(policy: Any) -> None:
    first, again = policy.sample(KEY), policy.sample(KEY)
    np.testing.assert_array_equal(first, again)
    others = [policy.sample(jax.random.key(i)) for i in range(1, 5)]
    assert any((other != first).any() for other in others)
