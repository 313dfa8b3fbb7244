"""Tests of the place map: its definition, and a reward that only it can say."""

import jax
import numpy as np
import pytest
from packages.backflip.tests.rewards.test_change_map import frames, pixels
from packages.backflip.tests.rewards.test_conformance import VECTOR

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.rewards.interface import LabelledComparison, ObservedClip
from backflip.rewards.linear.model import (
    ChangeMapRewardModel,
    LinearRewardModel,
    PlaceMapRewardModel,
)
from backflip.rewards.registry import make_reward_model
from backflip.rewards.representations.change_map import change_maps, map_size
from backflip.rewards.representations.place_map import PlaceMap, place_maps
from runshelf.errors import UsageError

GAME = pixels(12, 12)
LENGTH = 4
KEYS = np.zeros((1, 2), np.uint32)


def slow_place(spec, frame):
    """Return one map, computed from the module's docstring, cell by cell."""
    height, width, channels = frame.shape
    rows, columns = min(height, 21), min(width, 21)
    bright = frame / float(spec.observation.high.max())
    out = np.zeros((rows, columns, channels))
    for r in range(rows):
        for c in range(columns):
            windows = []
            for cell, side, cells in ((r, height, rows), (c, width, columns)):
                size = side / cells
                away = (np.arange(side) + 0.5 - (cell + 0.5) * size) / (0.5 * size)
                weights = np.exp(-(away**2) / 2)
                windows.append(weights / weights.sum())
            out[r, c] = (np.outer(*windows)[..., None] * bright).sum((0, 1))
    return out.reshape(-1) * 255


@pytest.mark.medium
@pytest.mark.parametrize("spec", [pixels(42, 30), pixels(24, 9, 3), pixels(10, 10, 4, high=1)])
def test_a_map_equals_the_definition(spec):
    before, after = frames(spec, 2), frames(spec, 2, seed=1)
    found = np.asarray(place_maps(spec, after))
    np.testing.assert_allclose(found, [slow_place(spec, one) for one in after], atol=0.51)
    kept = np.asarray(PlaceMap(spec).see(before, after).after)
    np.testing.assert_array_equal(kept[:, : map_size(spec)], change_maps(spec, before, after))
    np.testing.assert_array_equal(kept[:, map_size(spec) :], found)


@pytest.mark.medium
def test_many_channels_count_by_their_mean():
    spec = pixels(24, 24, channels=6)
    frame = np.zeros((1, 24, 24, 6), np.uint8)
    frame[..., 0] = 255
    assert map_size(spec) == 21 * 21
    np.testing.assert_allclose(place_maps(spec, frame), 255 / 6, atol=1)


def test_each_map_has_divisors_of_its_own():
    """Few pixels change, so a common floor would hide where."""
    spec = pixels(2, 2)
    kept = np.zeros((4, 8), np.uint8)
    kept[::2, 0], kept[::2, 4] = 10, 200
    divisor = np.asarray(PlaceMap(spec).fit(kept, kept).encoder.divisor)
    np.testing.assert_allclose(divisor, [6, 1, 1, 1, 102, 2, 2, 2], rtol=1e-6)


def still(rng, column):
    """Return a clip in which a bright square stands still, in two of its columns."""
    frame = np.zeros((12, 12, 1), np.uint8)
    row = rng.integers(3)
    frame[row : row + 2, column : column + 2] = 255
    obs = np.stack([frame] * LENGTH)
    return ObservedClip(obs, np.zeros(LENGTH, np.int32), obs, np.ones(LENGTH, bool))


def labels(rng, count):
    """Return labels that prefer a square further to the left."""
    columns = [rng.choice(11, 2, replace=False) for _ in range(count)]
    pairs = [[still(rng, column) for column in two] for two in columns]
    return [
        LabelledComparison(i, lambda p=pair: tuple(p), float(two[0] < two[1]), 0)
        for i, (two, pair) in enumerate(zip(columns, pairs, strict=True))
    ]


def accuracy(kind: type[LinearRewardModel]) -> float:
    """Return the share of new labels that a model orders rightly after 60 labels."""
    rng = np.random.default_rng(0)
    model = kind(GAME, 60, LENGTH)
    seen, flags = frames(GAME, 40).reshape(8, 5, 12, 12, 1), np.zeros((8, 5), bool)
    nothing = np.zeros((8, 5), np.int32)
    model.observe(Transition(seen, nothing, 0.0 * nothing, flags, flags, seen, ~flags, ()))
    fitted = model.fit(model.initial(1), [labels(rng, 60)], KEYS)
    new = labels(rng, 100)
    clips = [clip for label in new for clip in label.clips()]
    found = model.opinions(row_of(jax.tree.map(np.asarray, fitted.parameters), 0), clips)
    if found is None:
        return 0.5
    left, right = found.reward.sum(1).reshape(-1, 2).T
    return float(np.mean((left > right) == [label.left_preferred > 0.5 for label in new]))


@pytest.mark.slow
def test_what_stands_still_is_seen_where_it_is():
    """Nothing changes in these clips, so the change map knows nothing."""
    assert accuracy(PlaceMapRewardModel) >= 0.9
    assert accuracy(ChangeMapRewardModel) <= 0.6


@pytest.mark.medium
def test_observations_that_are_no_images_are_refused():
    with pytest.raises(UsageError, match="reward_model=intervals"):
        make_reward_model("place_map", VECTOR, 4, 5)
