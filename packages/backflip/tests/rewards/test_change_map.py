"""Tests of the change map, and of the scale of a sparse reward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.rewards.linear.model import ChangeMapRewardModel
from backflip.rewards.measures import Labels, sparse_scale
from backflip.rewards.registry import make_reward_model
from backflip.rewards.representations.change_map import ChangeMap, change_maps, map_size
from backflip.rewards.representations.interface import Seen
from runshelf.errors import UsageError


def pixels(height, width, channels=1, stack=1, high=255, action=None):
    shape = (height, width, channels * stack)
    largest = np.full(shape, high, np.uint8)
    box = Box(np.zeros(shape, np.uint8), largest, np.dtype("u1"))
    return EnvSpec("pixels", box, action or Discrete(3), 100, frame_stack=stack)


def frames(spec, count, seed=0):
    height, width, channels = spec.observation.shape
    shape = (count, height, width, channels // spec.frame_stack)
    high = int(spec.observation.high.max())
    return np.random.default_rng(seed).integers(0, high + 1, shape).astype(np.uint8)


def slow_map(spec, before, after):
    """Return one map, computed from the module's docstring, cell by cell."""
    height, width, channels = before.shape
    high = float(spec.observation.high.max())
    rows, columns = min(height, 21), min(width, 21)
    out = np.zeros((rows, columns, channels))

    def weights(cell, side, cells):
        size = side / cells
        places = (np.arange(side) + 0.5 - (cell + 0.5) * size) / (0.5 * size)
        found = np.exp(-(places**2) / 2)
        return found / found.sum()

    change = np.minimum(np.abs(after.astype(float) - before) / (0.15 * high), 1)
    for r in range(rows):
        for c in range(columns):
            window = np.outer(weights(r, height, rows), weights(c, width, columns))
            out[r, c] = (window[..., None] * change).sum((0, 1))
    return out.reshape(-1) * 255


@pytest.mark.medium
@pytest.mark.parametrize(
    "spec",
    [pixels(42, 30), pixels(84, 84, stack=4), pixels(10, 10, channels=4, high=1), pixels(24, 9, 3)],
    ids=["oblong", "pong", "grid", "colours"],
)
def test_a_map_equals_the_definition(spec):
    before, after = frames(spec, 2), frames(spec, 2, seed=1)
    after[1] = before[1]  # nothing changes
    after[1, 3, 4] = int(spec.observation.high.max()) * (before[1, 3, 4] == 0)
    found = np.asarray(change_maps(spec, before, after))
    assert found.dtype == np.uint8
    assert found.shape == (2, map_size(spec))
    slow = [slow_map(spec, x, y) for x, y in zip(before, after, strict=True)]
    np.testing.assert_allclose(found, slow, atol=0.51)
    assert found[1].max() > 0


@pytest.mark.medium
def test_a_map_by_hand():
    """A grid is not pooled: weights 1 and exp(-2) of a cell and its neighbour in a row of three."""
    spec = pixels(1, 3, high=10)
    before, after = np.zeros((1, 1, 3, 1), np.uint8), np.zeros((1, 1, 3, 1), np.uint8)
    after[0, 0, 1, 0] = 1  # two thirds of 0.15 times 10
    found = np.asarray(change_maps(spec, before, after))[0]
    side, middle = np.exp(-2) / (1 + np.exp(-2) + np.exp(-8)), 1 / (1 + 2 * np.exp(-2))
    np.testing.assert_array_equal(found, np.rint(255 * 2 / 3 * np.array([side, middle, side])))


@pytest.mark.medium
def test_brightening_and_darkening_count_alike_and_large_changes_count_once():
    spec = pixels(21, 21)
    dark, bright = np.zeros((1, 21, 21, 1), np.uint8), np.zeros((1, 21, 21, 1), np.uint8)
    bright[0, 5, 5] = 200
    one, other = change_maps(spec, dark, bright), change_maps(spec, bright, dark)
    np.testing.assert_array_equal(one, other)
    bright[0, 5, 5] = 39  # above 0.15 * 255
    np.testing.assert_array_equal(one, change_maps(spec, dark, bright))


@pytest.mark.medium
def test_many_channels_are_merged_by_their_largest_change():
    spec = pixels(84, 84, channels=16)
    before, after = frames(spec, 1), frames(spec, 1, seed=1)
    assert map_size(spec) == 441
    flat = np.abs(after.astype(int) - before).max(-1, keepdims=True).astype(np.uint8)
    one = change_maps(pixels(84, 84), np.zeros_like(flat), flat)
    np.testing.assert_allclose(change_maps(spec, before, after), one, atol=1)


@pytest.mark.medium
def test_numbers_are_divided_by_their_deviation_plus_a_share_of_the_largest():
    spec = pixels(10, 10)
    representation = ChangeMap(spec)
    maps = np.random.default_rng(0).integers(0, 200, (9000, 100)).astype(np.uint8)
    maps[:, 50:] //= 100
    maps[:, 7] = 3  # never changes
    fitted = representation.fit(np.zeros((9000, 0)), maps)
    deviation = maps.astype(float).std(0)
    expected = deviation + max(0.02 * deviation.max(), 1)
    np.testing.assert_allclose(fitted.encoder.divisor, expected, rtol=1e-5)
    action = jnp.array([2, 0])
    found = representation.features(fitted, np.zeros((2, 0)), action, jnp.asarray(maps[:2]))
    assert found.shape == (2, sum(representation.sizes))
    slow = [[1, *(maps[i] / expected), *np.eye(3)[action[i]]] for i in range(2)]
    np.testing.assert_allclose(found, slow, rtol=1e-5)


def test_vectors_are_refused_in_one_line():
    box = Box(np.zeros(3, np.float32), np.ones(3, np.float32), np.dtype("f4"))
    with pytest.raises(UsageError, match="is for images, and `v` has none; try --set reward_mod"):
        make_reward_model("change_map", EnvSpec("v", box, Discrete(2), 10), 4, 5)


@pytest.mark.medium
def test_the_reward_of_kept_maps_is_that_of_the_frames():
    """A replay may keep the maps: the whole of it is labelled again by one matrix product."""
    spec = pixels(30, 30, stack=2)
    model = ChangeMapRewardModel(spec, 4, 5)
    obs, after = (frames(spec, 12, seed).reshape(4, 3, 30, 30, 1) for seed in (0, 1))
    stacked, stacked_after = (np.concatenate([x * 0, x], -1) for x in (obs, after))
    action, flags = np.arange(12, dtype=np.int32).reshape(4, 3) % 3, np.zeros((4, 3), bool)
    reward = np.zeros((4, 3), np.float32)
    batch = Transition(stacked, action, reward, flags, flags, stacked_after, ~flags, ())
    blank = jax.tree.map(lambda x: x[0], model.initial(1))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=blank.weights.shape), jnp.float32)
    parameters = blank._replace(weights=weights / 1000, scale=jnp.float32(2))
    found = np.asarray(jax.jit(model.predict)(parameters, batch))
    kept = model.representation.see(obs.reshape(12, 30, 30, 1), after.reshape(12, 30, 30, 1))
    assert kept.after.dtype == np.uint8
    again = model.predict_seen(parameters, Seen(*kept), action.reshape(-1))
    np.testing.assert_allclose(found.reshape(-1), again, rtol=1e-4, atol=1e-5)
    assert found.std() > 0.01


# The scale of a sparse reward


def scored(labels=40, steps=10, noise=0.1, seed=0):
    """Return rewards of steps: noise, and 1 or -1 in one step of most clips."""
    rng = np.random.default_rng(seed)
    values = rng.normal(scale=noise, size=(2 * labels, steps))
    score = rng.integers(-1, 2, 2 * labels)
    values[np.arange(2 * labels), rng.integers(steps, size=2 * labels)] += score
    preferred = 0.5 + 0.5 * np.sign(score[0::2] - score[1::2])
    clip = np.repeat(np.arange(2 * labels), steps)
    return values + 7, score, Labels(clip, preferred)


def scaled(values, scale):
    away = values - scale.centre
    return (away - np.clip(away, -scale.dead_zone, scale.dead_zone)) / scale.unit


def test_noise_of_a_sparse_reward_counts_as_nothing_and_a_score_as_one():
    values, score, labels = scored()
    flat = values.reshape(-1)
    scale = sparse_scale(flat, flat[:, None], np.ones((40, 1), bool), labels)
    assert scale.centre == np.median(flat)
    assert scale.dead_zone == pytest.approx(2 * flat.std())
    rewards = scaled(values, scale)
    assert (rewards == 0).mean() > 0.9
    assert (np.sign(rewards.sum(1)) == score).mean() > 0.95
    margins = rewards.sum(1)[0::2] - rewards.sum(1)[1::2]
    assert np.median(np.abs(margins[labels.left_preferred != 0.5])) == pytest.approx(1)


def test_a_dense_reward_has_no_dead_zone():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(80, 10)) + rng.normal(scale=0.3, size=(80, 1))
    total = values.sum(1)
    preferred = (total[0::2] > total[1::2]).astype(float)
    flat, clip = values.reshape(-1), np.repeat(np.arange(80), 10)
    labels = Labels(clip, preferred)
    scale = sparse_scale(flat, flat[:, None], np.ones((40, 1), bool), labels)
    assert scale.dead_zone == 0.0


def test_members_that_order_labels_by_chance_give_no_dead_zone():
    values, _, labels = scored()
    flat = values.reshape(-1)
    guesses = np.random.default_rng(5).normal(size=(len(flat), 3))
    assert sparse_scale(flat, guesses, np.ones((40, 3), bool), labels).dead_zone == 0.0
    assert sparse_scale(flat, flat[:, None], np.zeros((40, 1), bool), labels).dead_zone == 0.0


def test_a_step_in_which_nothing_happens_is_worth_nothing():
    """Else an agent would rather prolong a game than score."""
    values, _, labels = scored()
    scale = sparse_scale(
        values.reshape(-1), values.reshape(-1)[:, None], np.ones((40, 1), bool), labels
    )
    assert np.median(scaled(values, scale)) == 0.0


@pytest.mark.medium
@pytest.mark.parametrize("count", [0, 3])
def test_labels_that_decide_nothing_leave_a_finite_scale(count):
    clip, flat = np.repeat(np.arange(max(2 * count, 1)), 4), np.zeros(4 * max(2 * count, 1))
    labels = Labels(clip, np.full(count, 0.5))
    scale = sparse_scale(flat, flat[:, None], np.ones((count, 1), bool), labels)
    assert np.isfinite(scale).all()
    assert scale.unit > 0
