"""Identities of a reward learned from comparisons: Rahtz's two bugs, each against a sound model."""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.losses import answer_probabilities
from backflip.doctor.identities import preference_error, reward_path_error

RNG = np.random.default_rng(0)
LEFT, RIGHT = RNG.normal(3.0, 2.0, (2, 8, 5, 4))  # pairs, env steps, numbers
HIDDEN, OUT = RNG.normal(size=(4, 16)), RNG.normal(size=16) / 4.0
Reward = Callable[[np.ndarray], np.ndarray]


def reward(obs: np.ndarray, mask: np.ndarray | float = 1.0) -> np.ndarray:
    return np.tanh(obs @ HIDDEN) * mask @ OUT


def probability(left: Reward, right: Reward) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(right(b).sum(-1) - left(a).sum(-1)))

    return of


def dropped(obs: np.ndarray) -> np.ndarray:
    return reward(obs, 2.0 * (RNG.random(16) < 0.5))


def batch_normalised(obs: np.ndarray) -> np.ndarray:
    return reward((obs - obs.mean((0, 1))) / obs.std((0, 1)))


def test_one_function_in_both_branches_has_no_error() -> None:
    assert preference_error(probability(reward, reward), LEFT, RIGHT) < 1e-12
    mask = 2.0 * (RNG.random(16) < 0.5)

    def shared(obs: np.ndarray) -> np.ndarray:
        return reward(obs, mask)

    assert preference_error(probability(shared, shared), LEFT, RIGHT) < 1e-12


@pytest.mark.parametrize(
    ("left", "right"),
    [(dropped, dropped), (batch_normalised, reward), (reward, lambda obs: reward(obs) + 0.5)],
    ids=["own dropout masks", "statistics of one branch", "a bias for one side"],
)
def test_different_branches_have_an_error(left: Reward, right: Reward) -> None:
    assert preference_error(probability(left, right), LEFT, RIGHT) > 0.05


def test_the_error_by_hand() -> None:
    def of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.where(left > right, 0.9, np.where(left < right, 0.2, 0.53))

    assert preference_error(of, np.ones(1), np.zeros(1)) == pytest.approx(0.1)
    assert preference_error(lambda a, b: np.full(1, 0.53), LEFT[:1], LEFT[:1]) == pytest.approx(
        0.06
    )
    assert math.isnan(preference_error(lambda a, b: np.full(1, np.nan), LEFT[:1], RIGHT[:1]))


@pytest.mark.medium
def test_our_own_model_of_ties_is_symmetric() -> None:
    def of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        margins = reward(left).sum(-1) - reward(right).sum(-1)
        _, ties, wins = np.asarray(answer_probabilities(jnp.float32(margins), 0.7, 0.1)).T
        return wins + 0.5 * ties

    assert preference_error(of, LEFT, RIGHT) < 1e-6


def test_a_scale_and_a_shift_are_no_other_reward() -> None:
    fitted = reward(LEFT)
    assert reward_path_error(fitted, 0.3 * fitted - 4.0) < 1e-12
    assert reward_path_error(fitted, -fitted) == pytest.approx(2.0)
    assert math.isnan(reward_path_error(fitted, np.zeros_like(fitted)))
    assert reward_path_error([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]) == pytest.approx(1.5)


def test_observations_normalised_on_one_path_only_have_an_error() -> None:
    normalised = (LEFT - LEFT.mean((0, 1))) / LEFT.std((0, 1))
    assert reward_path_error(reward(LEFT), reward(normalised)) > 0.05
    shifted = np.roll(LEFT, 1, axis=1)  # the reward of the step before
    assert reward_path_error(reward(LEFT), reward(shifted)) > 0.05


def test_rewards_of_other_steps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one reward per step, got shapes \(8, 5\) and \(8, 4\)"):
        reward_path_error(reward(LEFT), reward(LEFT)[:, 1:])
