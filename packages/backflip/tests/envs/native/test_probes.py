"""Observations and rewards of the probes are as documented."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from backflip.envs.native import probes

KEY = jax.random.key(0)
ZERO = jnp.zeros((), jnp.int32)


def episode(env: Any, actions: list[Any], key: Any = KEY) -> list[tuple[float, float, bool, bool]]:
    """Return observations, rewards and flags of each step."""
    state, rows = env.reset(key), []
    for action in actions:
        step = env.step(state, jnp.asarray(action), key)
        seen = float(env.observe(state)[0])
        rows.append((seen, float(step.reward), bool(step.terminated), bool(step.truncated)))
        state = step.state
    return rows


def test_constant_reward() -> None:
    assert episode(probes.ConstantReward(), [0]) == [(0, 1, True, False)]


def test_observed_reward_has_both_signs() -> None:
    env = probes.ObservedReward()
    found = {episode(env, [0], jax.random.key(seed))[0] for seed in range(16)}
    assert found == {(1, 1, True, False), (-1, -1, True, False)}


def test_delayed_reward() -> None:
    steps = episode(probes.DelayedReward(), [0, 0])
    assert steps == [(0, 0, False, False), (1, 1, True, False)]


@pytest.mark.parametrize(("action", "reward"), [(0, -1), (1, 1)])
def test_chosen_reward(action: int, reward: int) -> None:
    assert episode(probes.ChosenReward(), [action]) == [(0, reward, True, False)]


def test_matched_reward() -> None:
    env = probes.MatchedReward()
    keys = [jax.random.key(seed) for seed in range(16)]
    found = {(a, *episode(env, [a], key)[0]) for a in (0, 1) for key in keys}
    expected = {(0, -1, 1), (0, 1, -1), (1, 1, 1), (1, -1, -1)}
    assert found == {(*case, True, False) for case in expected}


def test_endless_reward_is_truncated_after_ten_steps() -> None:
    steps = episode(probes.EndlessReward(), [0] * 10)
    assert steps == [(0, 1, False, False)] * 9 + [(0, 1, False, True)]


@pytest.mark.parametrize(("action", "reward"), [(0.5, 0), (0, -0.25), (-1, -2.25), (7, -0.25)])
def test_quadratic_reward_of_the_clipped_action(action: float, reward: float) -> None:
    steps = episode(probes.QuadraticReward(), [[float(action)]])
    assert steps == [(0, reward, True, False)]
