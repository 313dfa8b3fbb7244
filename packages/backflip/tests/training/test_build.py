"""From names to a driver."""

import pytest

from backflip.training.build import build


@pytest.mark.parametrize("learned_reward", [False, True])
def test_only_a_learned_reward_needs_the_successors_of_images(learned_reward: bool) -> None:
    built = build(
        "dqn", "MinAtar/Breakout-v1", env_args={}, settings={}, learned_reward=learned_reward
    )
    plan = built.driver.algorithm.replay
    assert plan is not None
    assert plan.keeps_successors == learned_reward
