"""Random episodes are measured correctly and follow from the seed."""

import numpy as np
import pytest
from packages.backflip.tests.inspect.faulty_envs import Line, maker_of

from backflip.envs.native.probes import EndlessReward
from backflip.inspect.open_env import SteppedEnv, open_env
from backflip.inspect.random_episodes import play_randomly


def silent(what: str, share: float) -> None:
    assert 0 <= share <= 1


@pytest.mark.medium
def test_measurements_of_a_probe_are_as_known() -> None:
    env = SteppedEnv(EndlessReward(), 4)
    play = play_randomly(env, 6, 0, silent)  # two rounds, of 4 and of 2
    assert play.returns.tolist() == [10.0] * 6
    assert play.lengths.tolist() == [10] * 6
    assert play.truncated.all()
    assert not play.terminated.any()
    assert len(play.rewards) == 60
    assert len(play.recording.reward) == 10


def test_returns_sum_the_rewards_and_the_first_episode_is_recorded() -> None:
    env = maker_of(Line)(3)
    play = play_randomly(env, 3, 5, silent)
    env.close()
    assert np.isclose(play.rewards.sum(), play.returns.sum(), rtol=1e-5)
    assert np.isclose(play.recording.reward.sum(), play.returns[0], rtol=1e-5)
    np.testing.assert_array_equal(play.recording.obs[1:], play.recording.next_obs[:-1])


@pytest.mark.medium
def test_same_seed_gives_the_same_episodes() -> None:
    returns = [
        play_randomly(open_env("CartPole-v1", {}, 4), 5, seed, silent).returns.tolist()
        for seed in (1, 1, 2)
    ]
    assert returns[0] == returns[1] != returns[2]
