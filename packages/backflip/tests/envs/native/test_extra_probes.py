"""Observations and rewards of the extra probes are as documented."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.envs.native import extra_probes as probes
from backflip.envs.native.probes import OtherBounds
from backflip.envs.registry import make_native
from runshelf.errors import UsageError

KEYS = [jax.random.key(seed) for seed in range(24)]


def episode(env: Any, actions: list[Any], key: Any) -> list[tuple[Any, float, bool, bool]]:
    """Return observations, rewards and flags of each step."""
    state, rows = env.reset(key), []
    for action in actions:
        step = env.step(state, jnp.asarray(action), key)
        seen = tuple(np.asarray(env.observe(state)).tolist())
        rows.append((seen, float(step.reward), bool(step.terminated), bool(step.truncated)))
        state = step.state
    return rows


@pytest.mark.medium
def test_each_kind_of_row_has_its_reward_in_its_own_step() -> None:
    kinds = set()
    for key in KEYS:
        rows = episode(probes.OneRowReward(), [0] * 4, key)
        kind = rows[0][0][:4].index(1)
        kinds.add(kind)
        for t, (seen, reward, terminated, truncated) in enumerate(rows):
            assert seen == tuple(float(i in (kind, 4 + t)) for i in range(8))
            assert reward == (t == kind)
            assert (terminated, truncated) == (t == 3, False)
    assert kinds == {0, 1, 2, 3}


@pytest.mark.medium
@pytest.mark.parametrize("action", [0, 1])
def test_far_from_zero_rewards_the_match(action: int) -> None:
    found = {episode(probes.FarFromZero(), [action], key)[0] for key in KEYS}
    up, down = (float(np.float32(1000) + np.float32(s * 1e-3)) for s in (1, -1))
    right = 2 * action - 1
    assert found == {((up,), right, True, False), ((down,), -right, True, False)}
    assert up - down == pytest.approx(2e-3, rel=0.05)


@pytest.mark.parametrize(("action", "reward"), [(-1, -1), (0.25, 0.25), (1, 1), (3, 1)])
def test_best_at_the_bound(action: float, reward: float) -> None:
    rows = episode(probes.BestAtBound(), [[float(action)]], KEYS[0])
    assert rows == [((0,), reward, True, False)]


@pytest.mark.parametrize(("action", "reward"), [(-1, -1), (0.5, -0.25), (0, 0), (3, -1)])
def test_best_at_zero(action: float, reward: float) -> None:
    rows = episode(probes.BestAtZero(), [[float(action)]], KEYS[0])
    assert rows == [((0,), reward, True, False)]


@pytest.mark.parametrize("action", [0, 1])
def test_an_idle_choice_has_no_effect(action: int) -> None:
    rows = episode(probes.IdleChoice(), [action], KEYS[0])
    assert rows == [((0,), 1.0, True, False)]
    assert probes.IdleChoice().spec.action.n == 2


@pytest.mark.parametrize(("action", "reward"), [(-1, -1), (1, 0), (3, 1), (2, 0.5), (9, 1)])
def test_other_bounds_are_those_of_the_number(action: float, reward: float) -> None:
    env = OtherBounds(probes.BestAtBound(), -1.0, 3.0)
    space: Any = env.spec.action
    assert (space.low.tolist(), space.high.tolist()) == ([-1], [3])
    ((seen, found, terminated, _),) = episode(env, [[float(action)]], KEYS[0])
    assert (seen, found, terminated) == ((0,), reward, True)


@pytest.mark.medium
@pytest.mark.parametrize("last", [0, 1])
def test_memory_rewards_the_coin_shown_two_steps_before(last: int) -> None:
    third = pytest.approx(1 / 3)
    coins = set()
    for key in KEYS:
        rows = episode(probes.RememberedReward(), [1, 0, last], key)
        coin = rows[0][0][0]
        coins.add(coin)
        assert [row[0] for row in rows] == [(coin, 0), (0, third), (0, pytest.approx(2 / 3))]
        assert [row[1] for row in rows] == [0, 0, (2 * last - 1) * coin]
        assert [row[2:] for row in rows] == [(False, False), (False, False), (True, False)]
    assert coins == {-1, 1}


@pytest.mark.medium
def test_stack_of_three_shows_the_coin_in_the_third_step() -> None:
    env: Any = make_native("probe:memory", {"stack": 3})
    rows = episode(env, [0, 0, 0], KEYS[0])
    coin = rows[0][0][4]
    assert coin in (-1, 1)
    assert rows[0][0] == (0, 0, 0, 0, coin, 0)
    assert rows[1][0][2:] == (coin, 0, 0, pytest.approx(1 / 3))
    assert rows[2][0] == (coin, 0, 0, pytest.approx(1 / 3), 0, pytest.approx(2 / 3))
    assert env.spec.observation.shape == (6,)
    with pytest.raises(UsageError, match="at least 1, got 0"):
        make_native("probe:memory", {"stack": 0})


@pytest.mark.medium
def test_only_the_first_number_matters_among_distractors() -> None:
    cases = set()
    noise = []
    for key in KEYS:
        for action in (0, 1):
            ((seen, reward, terminated, truncated),) = episode(probes.Distracted(), [action], key)
            assert seen[5:] == (1, 1)
            assert (terminated, truncated) == (True, False)
            cases.add((action, seen[0], reward))
            noise.append(seen[1:5])
    assert cases == {(0, -1, 1), (0, 1, -1), (1, 1, 1), (1, -1, -1)}
    assert (np.abs(noise) <= 1).all()
    assert (np.std(noise, axis=0) > 0.3).all()


def test_the_action_is_the_reward() -> None:
    actions = [0, 1, 1, 0] * 5
    rows = episode(probes.ActionReward(), actions, KEYS[0])
    assert rows == [((0,), a, False, t == 19) for t, a in enumerate(actions)]


@pytest.mark.parametrize("env_id", ["probe:action", "probe:truncation", "Pendulum-v1"])
def test_spec_says_that_only_the_time_limit_ends(env_id: str) -> None:
    endless, other = make_native(env_id), make_native("probe:row")
    assert endless is not None
    assert other is not None
    assert not endless.spec.terminates
    assert other.spec.terminates
