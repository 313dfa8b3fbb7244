"""Tests of the spread of the linear models' members, against its definition."""

import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import (
    LABELS,
    LENGTH,
    fitted,
    labelled,
    ready,
    some_batch,
    some_clip,
)
from packages.backflip.tests.rewards.test_conformance import VECTOR

from backflip.core.trees import row_of
from backflip.rewards.linear.model import LinearRewardModel


@pytest.mark.medium
def test_steps_after_the_end_of_an_episode_change_no_opinion() -> None:
    model = ready(lambda labels: LinearRewardModel(VECTOR, labels, LENGTH), VECTOR, LABELS, 1)
    parameters = row_of(fitted(model, [labelled(VECTOR)]), 0)
    clip = some_clip(VECTOR, np.random.default_rng(0))
    ended = clip._replace(alive=np.arange(LENGTH) < LENGTH // 2)
    later = np.where(ended.alive[:, None], clip.obs, clip.obs + 3.0)
    one, other = (model.opinions(parameters, [x]) for x in (ended, ended._replace(obs=later)))
    np.testing.assert_allclose(one.spread, other.spread, rtol=1e-5)


@pytest.mark.medium
@pytest.mark.parametrize("size", [1.0, 2.0, -3.0])
def test_the_spread_is_that_of_members_scaled_to_the_reward(size: float) -> None:
    """Two members, 1.5 and 0.5 times the mean: they are half of the raw reward away from it."""
    model = ready(lambda labels: LinearRewardModel(VECTOR, labels, LENGTH), VECTOR, LABELS, 1)
    parameters, batch = row_of(fitted(model, [labelled(VECTOR)]), 0), some_batch(VECTOR)
    shares = np.resize(np.float32([1.5, 0.5]), len(parameters.members))
    assert shares.mean() == 1.0
    two = parameters._replace(members=size * shares[:, None] * np.asarray(parameters.weights)[None])
    found = model.predict_spread(two, batch)
    raw = np.asarray(found.reward) * float(two.scale) + float(two.offset)
    assert np.abs(found.reward).max() < 3.0, "the reward is not clipped"
    np.testing.assert_allclose(found.spread, 0.5 * np.abs(raw / two.scale), rtol=1e-3, atol=1e-4)
