"""Possible returns against the real environments, and the checks that use them."""

import itertools
import math
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from packages.backflip.tests.doctor.check_samples import log

from backflip.doctor.catalogue import BY_ID
from backflip.doctor.log import Log
from backflip.doctor.possible_returns import KNOWN, PossibleReturns, possible_returns

REAL = (
    *("CartPole-v0", "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0"),
    *("Pendulum-v1", "FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v4", "Blackjack-v1"),
    *("InvertedPendulum-v5", "Reacher-v5", "Pusher-v5"),
)


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore:.*(out of date|deprecated):DeprecationWarning")
@pytest.mark.parametrize("name", REAL)
def test_rewards_of_random_policies_are_possible(name: str) -> None:
    known = KNOWN[name]
    env = gymnasium.make(name)
    assert env.spec is not None
    assert env.spec.max_episode_steps in (known.steps, None)
    env.action_space.seed(0)
    rewards, returns = _episodes(env, 20)
    assert known.low <= min(rewards)
    assert max(rewards) <= known.high
    low, high = known.range(0.0)
    assert low <= min(returns)
    assert max(returns) <= high
    if known.each is not None:
        assert np.mean(np.asarray(rewards) == known.each) > 0.98


def _episodes(env: gymnasium.Env, number: int) -> tuple[list[float], list[float]]:
    rewards, returns = [], []
    for seed in range(number):
        env.reset(seed=seed)
        first = len(rewards)
        for _ in itertools.count():
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            rewards.append(float(reward))
            if terminated or truncated:
                break
        returns.append(sum(rewards[first:]))
    return rewards, returns


def test_worst_reward_of_pendulum_is_reached_upside_down() -> None:
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    env.state = np.asarray([math.pi, 8.0])  # type: ignore[attr-defined]
    worst = float(env.step(np.asarray([2.0], np.float32))[1])
    assert worst == pytest.approx(KNOWN["Pendulum-v1"].low)


def test_longer_episodes_allow_larger_returns() -> None:
    assert KNOWN["CartPole-v1"].range(2000.0) == (0.0, 2000.0)
    assert KNOWN["Pendulum-v1"].range(0.0) == (200 * KNOWN["Pendulum-v1"].low, 0.0)
    assert PossibleReturns(0.0, math.inf, math.inf).range(0.0) == (0.0, math.inf)


def test_arguments_and_unknown_environments_have_no_bounds() -> None:
    assert possible_returns(_of("CartPole-v1")) is KNOWN["CartPole-v1"]
    assert possible_returns(_of("gymnasium:CartPole-v1")) is KNOWN["CartPole-v1"]
    assert possible_returns(replace(_of("CartPole-v1"), env_args={"sutton_barto": True})) is None
    assert possible_returns(_of("Own-v0")) is None
    assert possible_returns(_of("dm_control:lqr-lqr_2_1")) is None
    assert possible_returns(_of("dm_control:walker-walk")) == PossibleReturns(0.0, 1.0, 1000)


def _of(env: str) -> Log:
    return replace(log("ppo", episode_return_mean=1.0), env=env)


@pytest.mark.parametrize("env", ["Acrobot-v1", "MountainCar-v0"])
def test_negated_costs_are_found_and_rewards_of_a_wrapper_only_warn(env: str) -> None:
    lengths = np.linspace(200.0, 90.0, 100)
    found = {}
    for name, returns in (("own", -lengths), ("negated", lengths), ("shaped", 20 - lengths / 9)):
        one = replace(log("ppo", episode_return_mean=returns, episode_length_mean=lengths), env=env)
        found[name] = [check for check in ("ENV-NEGATED", "ENV-RANGE") if _is_beyond(check, one)]
    assert found == {"own": [], "negated": ["ENV-NEGATED", "ENV-RANGE"], "shaped": ["ENV-RANGE"]}


def _is_beyond(name: str, log: Log) -> bool:
    check = BY_ID[name]
    measured = check.measure(log)
    assert measured is not None
    assert check.limit is not None
    last = measured.value[-1]
    return bool(last > check.limit if check.bad_side == "above" else last < check.limit)
