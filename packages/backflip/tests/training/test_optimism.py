"""Tests of `queries.optimism`: what the bonus is, when it ends, and who may have one."""

from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.training.test_teach_algorithms import saved, tiny

from backflip.rewards.interface import Spread
from backflip.training.queries.optimism import Optimism, shares_to_come
from backflip.training.teaching.setup import resolve_teaching
from runshelf.errors import UsageError

BATCH: Any = "a batch"
REWARD: Any = np.ones(3)


class _TwoMembers:
    """A reward model that only predicts."""

    def predict(self, parameters: Any, batch: Any) -> Any:
        assert batch is BATCH
        return np.float32([[1.0, -2.0]]) * parameters

    def predict_spread(self, parameters: Any, batch: Any) -> Spread:
        return Spread(self.predict(parameters, batch), np.float32([[0.5, 4.0]]))


def optimism(weight: float) -> Optimism:
    model: Any = _TwoMembers()
    return Optimism(model, weight, [25, 50, 25, 0], 3)


def test_the_share_to_come_falls_to_zero_with_the_last_queries() -> None:
    assert shares_to_come([25, 50, 25, 0]) == [0.75, 0.25, 0.0, 0.0]
    assert shares_to_come([0, 4]) == [1.0, 0.0]
    assert shares_to_come([0, 0]) == [0.0, 0.0]
    assert shares_to_come([]) == []


def test_the_bonus_follows_queries_that_come_sooner() -> None:
    found = optimism(2.0)
    found.follow([25, 75, 0, 0])
    weights = [found.parameters(REWARD, phase).weight.tolist() for phase in range(3)]
    assert weights == [[1.5] * 3, [0.0] * 3, [0.0] * 3]
    without = optimism(0.0)
    without.follow([25, 75, 0, 0])
    assert without.parameters(REWARD, 0) is REWARD, "there is no bonus to follow"


def test_the_bonus_is_the_weighted_spread() -> None:
    found = optimism(2.0)
    weights = [found.parameters(3.0, phase).weight.tolist() for phase in range(5)]
    assert weights == [[1.5] * 3, [0.5] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]
    parameters = found.parameters(3.0, 0)._replace(weight=1.5)  # of one seed
    np.testing.assert_allclose(found.reward(parameters, BATCH), [[3.75, 0.0]])
    last = found.parameters(3.0, 2)._replace(weight=0.0)
    np.testing.assert_allclose(found.reward(last, BATCH), [[3.0, -6.0]])


def test_without_a_weight_or_later_queries_the_reward_is_the_learned_one() -> None:
    model: Any = _TwoMembers()
    for found in (optimism(0.0), Optimism(model, 2.0, [100, 0], 3), Optimism(model, 2.0, [0], 3)):
        assert found.parameters(3.0, 0) == 3.0
        np.testing.assert_allclose(found.reward(3.0, BATCH), [[3.0, -6.0]])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["a2c", "sac"])
def test_a_bonus_changes_what_the_agent_learns_and_not_what_is_saved(
    algorithm: str, tmp_path: Any
) -> None:
    env = "CartPole-v1" if algorithm == "a2c" else "Pendulum-v1"
    without, bonus = (
        saved(tiny(tmp_path, algorithm, env, settings={"optimism": weight}).folder)
        for weight in (0.0, 1.0)
    )
    assert without.keys() == bonus.keys()
    policies = [name for name in without if "learners" in name]
    assert any(not np.array_equal(without[name], bonus[name]) for name in policies)


def resolved(algorithm: str, env: str, **settings: Any) -> float:
    config, built = resolve_teaching(algorithm, env, {}, settings, 20_000, 100)
    built.driver.close()
    return config.optimism


def test_a_bonus_is_the_default_where_it_was_shown_to_help() -> None:
    own = "docs.examples.reward_model:MyRewardModel"
    assert resolved("sac", "Reacher-v5") == resolved("td3", "Reacher-v5") == 1.0
    assert resolved("ppo", "Reacher-v5") == resolved("sac", "Pendulum-v1") == 0.0
    assert resolved("a2c", "Reacher-v5") == 0.0
    assert resolved("sac", "Reacher-v5", optimism=0.0) == 0.0
    assert resolved("sac", "Reacher-v5", reward_model=own) == 0.0
    assert resolved("dqn", "CartPole-v1") == 0.0


def test_a_model_of_ones_own_has_no_bonus(tmp_path: Any) -> None:
    own = {"reward_model": "docs.examples.reward_model:MyRewardModel", "optimism": 1.0}
    with pytest.raises(UsageError, match="optimism=0"):
        tiny(tmp_path, "a2c", "CartPole-v1", settings=own)
    assert not list(tmp_path.glob("runs/*"))
