"""Whether actions have an effect: in real environments, in which they are replaced or not."""

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy import stats

from backflip.doctor import action_effect as module
from backflip.doctor.action_effect import action_effect

ENVS = ["CartPole-v1", "MountainCar-v0", "Pendulum-v1", "FrozenLake-v1", "Ant-v5"]


def rows_of(name: str, count: int, *, replaced: bool) -> tuple[list[np.ndarray], int]:
    """Return rows of random actions, which reach the environment or are replaced by one."""
    env: Any = gymnasium.make(name)
    env.action_space.seed(3)
    fixed, rows, obs = env.action_space.sample(), list[Any](), env.reset(seed=3)[0]
    while len(rows) < count:
        action = env.action_space.sample()
        after, reward, terminated, truncated, _ = env.step(fixed if replaced else action)
        rows.append((np.ravel(obs), action, np.ravel(after), reward, terminated or truncated))
        obs = env.reset()[0] if terminated or truncated else after
    return [np.asarray(column) for column in zip(*rows, strict=True)], int(
        getattr(env.action_space, "n", 0)
    )


@pytest.mark.medium
@pytest.mark.parametrize("name", ENVS)
@pytest.mark.filterwarnings("ignore")  # of Gymnasium and MuJoCo
def test_actions_that_are_replaced_have_no_effect(name: str) -> None:
    sound, choices = rows_of(name, 700, replaced=False)
    stuck, _ = rows_of(name, 700, replaced=True)
    assert action_effect(*sound, choices=choices) < 1e-6
    assert action_effect(*stuck, choices=choices) > 1e-3


@pytest.mark.medium
@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1"])
def test_actions_of_other_rows_have_no_effect_on_one_hot_observations(name: str) -> None:
    """Each cell changes in a few rows, and some states are noisier than others."""
    (obs, actions, after, *rest), choices = rows_of(name, 1_000, replaced=False)
    cells = int(max(obs.max(), after.max())) + 1
    obs, after = (np.eye(cells)[cell.ravel()] for cell in (obs, after))
    assert action_effect(obs, actions, after, *rest, choices=choices) < 1e-6
    rng = np.random.default_rng(0)
    others = [
        action_effect(obs, rng.permutation(actions), after, *rest, choices=choices)
        for _ in range(5)
    ]
    assert min(others) > 1e-3, "a likelihood ratio has 1e-18 and less"


@pytest.mark.medium
def test_without_an_effect_the_probability_is_that_of_chance() -> None:
    rng = np.random.default_rng(0)
    found = list[float]()
    for _ in range(400):
        obs, noise = rng.normal(size=(600, 2)), rng.normal(size=(600, 2))
        reward = obs[:, 0] ** 2 + rng.normal(size=600)
        action = rng.integers(3, size=600)
        ended = np.zeros(600)
        found.append(action_effect(obs, action, 0.9 * obs + noise, reward, ended, choices=3))
    # Bonferroni over three columns: P(p < x) is at most x, and near it where x is small.
    assert 0.02 < np.mean(np.asarray(found) < 0.05) < 0.09
    assert np.mean(np.asarray(found) < 0.5) < 0.55


@pytest.mark.parametrize("choices", [0, 3])
def test_an_effect_that_depends_on_the_state_is_seen(choices: int) -> None:
    """As in a market: a position earns what the price does, whose mean is 0."""
    rng = np.random.default_rng(1)
    obs, noise = rng.normal(size=(1_000, 4)), rng.normal(size=(1_000, 4))
    action = rng.integers(3, size=1_000) if choices else rng.normal(size=1_000)
    ended, earned = np.zeros(1_000), (action - action.mean()) * obs[:, 0]
    assert action_effect(obs, action, 0.9 * obs + noise, earned, ended, choices=choices) < 1e-6
    nothing = rng.permutation(action) * obs[:, 0] ** 3
    assert action_effect(obs, action, 0.9 * obs + noise, nothing, ended, choices=choices) > 1e-3


def test_an_effect_on_the_reward_alone_is_seen() -> None:
    rng = np.random.default_rng(1)
    obs, action = rng.normal(size=(600, 2)), rng.normal(size=(600, 1))
    after, ended = obs + rng.normal(size=obs.shape), np.zeros(600)
    assert action_effect(obs, action, after, action[:, 0] + 0.1 * obs[:, 0], ended) < 1e-6
    assert action_effect(obs, action, after, 0.1 * obs[:, 0], ended) > 1e-3


@pytest.mark.medium
def test_an_effect_on_one_quiet_column_of_many_is_seen() -> None:
    rng = np.random.default_rng(4)
    obs, action, zeros = rng.normal(size=(600, 300)), rng.integers(2, size=600), np.zeros(600)
    after = obs + rng.normal(size=obs.shape)
    assert action_effect(obs, action, after, zeros, zeros, choices=2) > 1e-3
    after[:, 170] = obs[:, 170] + 0.01 * action + 0.01 * rng.normal(size=600)
    assert action_effect(obs, action, after, zeros, zeros, choices=2) < 1e-6


def test_rows_at_ends_do_not_count_and_few_rows_say_nothing() -> None:
    rng = np.random.default_rng(2)
    obs, action, reward = rng.normal(size=(900, 2)), rng.normal(size=900), np.zeros(900)
    after = np.where(np.arange(900)[:, None] < 300, obs + action[:, None], obs + 1.0)
    ended = np.arange(900) < 300
    noisy = after + rng.normal(size=after.shape)
    assert action_effect(obs, action, noisy, reward, ended) > 1e-3
    assert math.isnan(action_effect(obs, action, noisy, reward, ~ended))
    assert math.isnan(action_effect(obs[..., None], action, noisy[..., None], reward, ended))


@pytest.mark.parametrize("choices", [0, 3])
def test_rows_without_a_number_as_action_are_left_out(choices: int) -> None:
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(600, 2)), rng.integers(3, size=600).astype(float)
    rows = obs + action[:, None], rng.normal(size=600), np.zeros(600)
    expected = action_effect(obs[1:], action[1:], *(x[1:] for x in rows), choices=choices)
    action[0] = np.nan
    assert action_effect(obs, action, *rows, choices=choices) == pytest.approx(expected)


def test_actions_that_the_observation_determines_say_nothing() -> None:
    rng = np.random.default_rng(3)
    obs = rng.normal(size=(600, 3))
    after, zeros = obs + rng.normal(size=obs.shape), np.zeros(600)
    assert math.isnan(action_effect(obs, np.ones(600), after, zeros, zeros))
    assert math.isnan(action_effect(obs, 2.0 * obs[:, 0] - 1.0, after, zeros, zeros))


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("value", [0.0, 0.5, 3.0, 20.0, 100.0])
def test_the_tail_of_chi_square_equals_scipys(value: float, degrees: int) -> None:
    assert module._beyond(value, degrees) == pytest.approx(stats.chi2.sf(value, degrees), rel=1e-9)
