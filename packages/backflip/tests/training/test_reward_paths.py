"""The learned reward is the same for fits, queries and the agent."""

from types import SimpleNamespace

import numpy as np
import pytest

from backflip.core.types import Transition
from backflip.doctor.identities import reward_path_error
from backflip.rewards.interface import Opinions
from backflip.training.reward_learning.reward_paths import RewardPaths

LENGTH = 4


def record(seeds=2, steps=9, envs=3):
    obs = np.random.default_rng(0).normal(size=(seeds, steps, envs, 1)).astype(np.float32)
    none = np.zeros((seeds, steps, envs), np.float32)
    return Transition(obs, obs, none, none > 0, none > 0, obs + 1.0, none == 0, extra=())


def model(of_agent, has_labels=True):
    """A reward model that rates observations by their square, and the agent's by a function."""

    def opinions(weight, clips):
        reward = np.stack([weight * clip.obs[:, 0] ** 2 for clip in clips])
        return Opinions(reward, reward, reward) if has_labels else None

    return SimpleNamespace(
        opinions=opinions, predict=lambda weight, batch: weight * of_agent(batch.obs[..., 0])
    )


@pytest.mark.parametrize(
    ("of_agent", "is_same"),
    [
        (lambda x: x**2, True),
        (lambda x: 3.0 * x**2 - 5.0, True),
        (lambda x: (x / 10.0 - 0.1) ** 2, False),  # inputs that are normalised on one path only
        (lambda x: -(x**2), False),
    ],
)
def test_only_a_scale_and_a_shift_may_differ(of_agent, is_same):
    paths = RewardPaths(model(of_agent), LENGTH)
    found = paths.metrics(np.ones(2, np.float32), record())["reward_model_path_error"]
    assert (found < 1e-5) == is_same
    assert (found > 0.05) != is_same


def test_the_error_is_that_of_the_worst_seed_as_the_doctor_defines_it():
    def of_agent(x):
        return x**3

    seen = record()
    found = RewardPaths(model(of_agent), LENGTH).metrics(np.asarray([1.0, 2.0]), seen)
    each = []
    for row in range(2):  # the first and the last window of the record
        clips = seen.obs[row, :LENGTH, 0, 0], seen.obs[row, -LENGTH:, -1, 0]
        steps = np.concatenate(clips).astype(np.float64)
        each.append(reward_path_error(steps**2, steps**3))
    assert found["reward_model_path_error"] == pytest.approx(max(each), rel=1e-4)


@pytest.mark.parametrize(
    ("of", "length", "is_cut", "is_known"),
    [
        (model(lambda x: x**2), LENGTH, False, True),
        (model(lambda x: x**2), 50, False, True),  # a phase is shorter than a clip
        (model(lambda x: x**2, has_labels=False), LENGTH, False, False),
        (model(lambda x: 0.0 * x), LENGTH, False, False),
        (model(lambda x: -1.0 + 1e-5 * x), LENGTH, False, False),  # rounding says which is larger
        (model(lambda x: x**2), LENGTH, True, False),  # no clip fits
    ],
)
def test_the_error_is_unknown_without_labels_clips_or_differences(of, length, is_cut, is_known):
    seen = record()
    seen = seen._replace(truncated=np.full(seen.truncated.shape, is_cut))
    found = RewardPaths(of, length).metrics(np.ones(2, np.float32), seen)
    assert np.isfinite(found["reward_model_path_error"]) == is_known
