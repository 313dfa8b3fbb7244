"""Tests of `backflip.rewards.distances`: by definition, by hand, and what they do not change."""

import numpy as np
import pytest

from backflip.rewards.distances import (
    Transitions,
    dard_canonical,
    epic_canonical,
    pearson_distance,
)

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
