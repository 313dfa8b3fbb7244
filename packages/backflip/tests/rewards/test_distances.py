"""Tests of `backflip.rewards.distances`: by definition, by hand, and what they do not change."""

import jax
import numpy as np
import pytest

from backflip.envs.native.frozen_lake import FrozenLake
from backflip.rewards.distances import (
    Transitions,
    dard_canonical,
    epic_canonical,
    pearson_distance,
)
from backflip.training.reward_learning.reward_distances import stepper

STATES, ACTIONS, DISCOUNT = 6, 3, 0.9
GRID = np.array([(s, a, t) for s in range(STATES) for a in range(ACTIONS) for t in range(STATES)]).T
COVERED = Transitions(*GRID)
# Every state with every action: the samples are the whole uniform distribution.
S, A = (x.ravel() for x in np.meshgrid(np.arange(STATES), np.arange(ACTIONS)))


def table(seed):
    return np.random.default_rng(seed).normal(size=(STATES, ACTIONS, STATES))


def of(values):
    return lambda s, a, t: values[s, a, t]


def shaped(values, seed=9):
    """Add γ Φ(s') - Φ(s)."""
    potential = np.random.default_rng(seed).normal(size=STATES)
    return values + DISCOUNT * potential[None, None, :] - potential[:, None, None]


def step(state, action):
    """Deterministic dynamics."""
    return (2 * state + action) % STATES


def epic(one, other):
    canonical = [epic_canonical(of(x), COVERED, S, A, DISCOUNT) for x in (one, other)]
    return pearson_distance(*canonical)


FEASIBLE = Transitions(S, A, step(S, A))


def dard(one, other):
    canonical = [dard_canonical(of(x), FEASIBLE, step, A[::STATES], DISCOUNT) for x in (one, other)]
    return pearson_distance(*canonical)


def test_epic_equals_its_definition():
    """Definition 4.1 as loops over the states and actions; its constant term is left out."""
    values = table(0)
    expected = []
    for s, a, t in GRID.T:
        total = values[s, a, t]
        for action in range(ACTIONS):
            for other in range(STATES):
                chance = 1 / (ACTIONS * STATES)
                total += chance * DISCOUNT * values[t, action, other]
                total -= chance * values[s, action, other]
        expected.append(total)
    actual = epic_canonical(of(values), COVERED, S, A, DISCOUNT)
    np.testing.assert_allclose(actual, expected)


def test_dard_equals_its_definition():
    """Equation 3 as a loop over actions."""
    values = table(0)
    expected = []
    for s, a, t in np.array(FEASIBLE).T:
        total = values[s, a, t]
        for action in range(ACTIONS):
            after, beyond = step(s, action), step(t, action)
            total += DISCOUNT * values[t, action, beyond] / ACTIONS
            total -= values[s, action, after] / ACTIONS
            total -= DISCOUNT * values[after, action, beyond] / ACTIONS
        expected.append(total)
    actual = dard_canonical(of(values), FEASIBLE, step, np.arange(ACTIONS), DISCOUNT)
    np.testing.assert_allclose(actual, expected)


def test_epic_of_other_distributions_by_enumeration():
    """Definition 4.1 with its constant term, for D_S and D_A that are not uniform."""
    values, gamma = table(6), 0.7
    d_s, d_a = np.array([3, 1, 1, 2, 1, 0]) / 8, np.array([0.5, 0.25, 0.25])
    expected = np.empty(len(GRID.T))
    mean_from = np.einsum("sat,a,t->s", values, d_a, d_s)
    for place, (s, a, t) in enumerate(GRID.T):
        expected[place] = values[s, a, t] + gamma * mean_from[t] - mean_from[s]
    expected -= gamma * d_s @ mean_from
    drawn = [(t, a) for t in range(STATES) for a in range(ACTIONS)]
    counts = [round(32 * d_s[t] * d_a[a]) for t, a in drawn]
    states, actions = np.repeat(drawn, counts, axis=0).T
    actual = epic_canonical(of(values), COVERED, states, actions, gamma)
    constant = actual - expected
    np.testing.assert_allclose(constant, constant[0])
    np.testing.assert_allclose(constant[0], gamma * d_s @ mean_from)
    one, other = (
        epic_canonical(of(x), COVERED, states, actions, gamma) for x in (values, table(7))
    )
    assert pearson_distance(one, other) == pytest.approx(
        np.sqrt((1 - np.corrcoef(one, other)[0, 1]) / 2)
    )


@pytest.mark.parametrize("transition", [(2, 1, 3), (3, 0, 2), (5, 2, 5)])
def test_dard_of_a_random_environment_by_enumeration(transition):
    """Equation 3: S' ~ T(s, A) and S'' ~ T(s', A) are independent given A, which they share."""
    rng = np.random.default_rng(8)
    values, chances = table(8), rng.dirichlet(np.full(STATES, 0.3), (STATES, ACTIONS))
    s, a, t = transition
    expected = values[s, a, t]
    for action in range(ACTIONS):
        for after in range(STATES):
            for beyond in range(STATES):
                chance = chances[s, action, after] * chances[t, action, beyond] / ACTIONS
                expected += chance * DISCOUNT * values[t, action, beyond]
                expected -= chance * values[s, action, after]
                expected -= chance * DISCOUNT * values[after, action, beyond]

    def step(state, action):
        below = chances.cumsum(-1)[state, action] < rng.random(len(state))[:, None]
        return np.minimum(below.sum(1), STATES - 1)

    covered = Transitions(*(np.array([x]) for x in (s, a, t)))
    many = np.tile(np.arange(ACTIONS), 100_000)
    actual = dard_canonical(of(values), covered, step, many, DISCOUNT)
    assert actual[0] == pytest.approx(expected, abs=0.02)


@pytest.mark.medium
def test_the_environment_is_stepped_with_new_draws_in_each_call():
    env = FrozenLake()
    many = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 64))
    right = np.full(64, 2, np.int32)
    once, again = (stepper(env, jax.random.key(1)) for _ in range(2))

    def seen(step):
        return np.asarray(jax.vmap(env.observe)(step(many, right).state))

    first, second = seen(once), seen(once)
    assert (first != second).any()
    np.testing.assert_array_equal(first, seen(again))


@pytest.mark.parametrize("distance", [epic, dard])
def test_shaping_scale_and_constants_do_not_count(distance):
    values = table(1)
    assert distance(values, 3.0 * shaped(values) + 7.0) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("distance", [epic, dard])
def test_a_reward_and_its_negative_are_farthest_apart(distance):
    values = table(2)
    assert distance(values, shaped(-values)) == pytest.approx(1.0)


@pytest.mark.parametrize("distance", [epic, dard])
def test_the_distance_is_a_pseudometric(distance):
    one, other, third = table(3), table(4), table(5)
    assert distance(one, other) == pytest.approx(distance(other, one))
    assert distance(one, third) <= distance(one, other) + distance(other, third) + 1e-12


def test_independent_rewards_are_at_the_distance_of_no_correlation():
    assert pearson_distance(np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])) == pytest.approx(
        np.sqrt(0.5)
    )


def test_pearson_distance_by_hand():
    # ρ of (0, 1, 2) and (0, 0, 1) is .5 √3 = .866.
    expected = np.sqrt((1 - np.sqrt(3) / 2) / 2)
    assert pearson_distance(np.arange(3), np.array([0, 0, 1])) == pytest.approx(expected)


def test_a_reward_that_is_not_finite_has_no_distance():
    assert pearson_distance(np.array([1.0, np.nan]), np.arange(2)) is None


def test_a_constant_reward_has_no_distance():
    assert pearson_distance(np.full(4, 0.1), np.arange(4)) is None
    assert epic(np.zeros_like(table(0)), table(0)) is None
