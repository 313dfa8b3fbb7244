"""Tests of the features of the linear model."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.preferences.clips import Window, cut, observed
from backflip.rewards import inputs
from backflip.rewards.inputs import apply_to_steps, observation_size, observation_vectors
from backflip.rewards.interface import LabelledComparison, ObservedClip
from backflip.rewards.linear.model import (
    AdditiveRewardModel,
    IntervalRewardModel,
    LinearRewardModel,
)
from backflip.rewards.linear.parameters import LinearParameters
from backflip.rewards.representations import additive
from backflip.rewards.representations import slow as module
from backflip.rewards.representations.additive import AdditiveFeatures
from backflip.rewards.representations.interface import Inputs
from backflip.rewards.representations.intervals import IntervalFeatures, between
from backflip.rewards.representations.numbers import NumberFeatures
from backflip.rewards.representations.slow import (
    Encoder,
    SlowFeatures,
    encoded_size,
    features,
    fit_encoder,
    part_sizes,
)


def box(*shape, low=-1.0, high=1.0):
    return Box(np.full(shape, low, np.float32), np.full(shape, high, np.float32), np.dtype("f4"))


def vector(size=3, action=None):
    return EnvSpec("vector", box(size), action or Discrete(4), 100)


def pixels(channels=1, stack=4, side=42):
    shape = (side, side, channels * stack)
    frame = Box(np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8), np.dtype("u1"))
    return EnvSpec("pixels", frame, Discrete(5), 100, frame_stack=stack)


TORQUE = Box(np.array([-2, -np.inf], np.float32), np.array([4, np.inf], np.float32), np.dtype("f4"))
SPECS = {
    "discrete": vector(3),
    "continuous": vector(3, TORQUE),
    "long": vector(40),
    "pixels": pixels(),
    "colours": pixels(channels=3, stack=2),
}


def batch_of(spec, *shape, seed=0):
    """Return a random batch."""
    rng = np.random.default_rng(seed)
    seen = (*shape, *spec.observation.shape)
    if spec.is_image:
        obs, after = (rng.integers(0, 256, seen, dtype=np.uint8) for _ in range(2))
    else:
        obs = rng.normal(size=seen).astype(np.float32)
        after = obs + rng.normal(scale=0.3, size=seen).astype(np.float32)
    if isinstance(spec.action, Discrete):
        action = rng.integers(0, spec.action.n, shape).astype(np.int32)
    else:
        action = rng.normal(scale=3, size=(*shape, *spec.action.shape)).astype(np.float32)
    flags = np.zeros(shape, bool)
    reward = rng.normal(size=shape).astype(np.float32)
    return Transition(obs, action, reward, flags, flags, after, ~flags, ())


def newest(spec, obs):
    return obs[..., -(obs.shape[-1] // spec.frame_stack) :] if spec.is_image else obs


def seen_of(spec, batch):
    """Return observation vectors before and after, and an encoder fitted to them."""
    before, after = (
        observation_vectors(spec, newest(spec, x)) for x in (batch.obs, batch.next_obs)
    )
    return before, after, fit_encoder(np.asarray(before), np.asarray(after))


def slow_features(spec, encoder, x, action, x2):
    """Return one transition's features, computed from the module's docstring."""
    limit = 5.0 if len(x) <= 32 else 2.0
    mean, projection, scale = (np.asarray(part, np.float64) for part in encoder)
    k = projection.shape[1]

    def clip(value, low=-limit, high=limit):
        return min(max(value, low), high)

    def along(i, v):
        return sum(projection[d, i] * v[d] for d in range(len(v)))

    z = [clip(along(i, x - mean)) for i in range(k)]
    z2 = [clip(along(i, x2 - mean)) for i in range(k)]
    middle = [(z[i] + z2[i]) / 2 for i in range(k)]
    delta = [clip(along(i, x2 - x) / scale[i]) for i in range(k)]
    out = [1.0, *z, *(z[i] * z[j] for i in range(k) for j in range(i, k))]
    out += [*delta, *(middle[i] * delta[j] for i in range(k) for j in range(k))]
    if isinstance(spec.action, Discrete):
        return [*out, *(float(action == n) for n in range(spec.action.n))]
    a = []
    for number, low, high in zip(action, spec.action.low, spec.action.high, strict=True):
        bounded = np.isfinite(low) and np.isfinite(high)
        a.append(2 * (clip(number, low, high) - low) / (high - low) - 1 if bounded else number)
    n = len(a)
    out += [*a, *(a[i] * a[j] for i in range(n) for j in range(i, n))]
    return out + [z[i] * a[j] for i in range(k) for j in range(n)]


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        "discrete",
        "continuous",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("long", "pixels")),
    ],
)
def test_features_equal_the_docstring(name):
    spec = SPECS[name]
    batch = batch_of(spec, 600)
    before, after, encoder = seen_of(spec, batch)
    fast = np.asarray(features(spec, encoder, before[:4], batch.action[:4], after[:4]))
    slow = [slow_features(spec, encoder, before[i], batch.action[i], after[i]) for i in range(4)]
    np.testing.assert_allclose(fast, slow, rtol=2e-3, atol=2e-3)


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        "discrete",
        "continuous",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("long", "pixels")),
    ],
)
def test_part_sizes_match_the_features(name):
    spec = SPECS[name]
    batch = batch_of(spec, 50)
    before, after, encoder = seen_of(spec, batch)
    sizes = part_sizes(spec)
    assert before.shape == (50, observation_size(spec))
    assert encoder.projection.shape == (observation_size(spec), encoded_size(spec))
    found = np.asarray(features(spec, encoder, before, batch.action, after))
    assert found.shape == (50, sum(sizes))
    still = np.asarray(features(spec, encoder, before, batch.action, before))
    change = slice(sum(sizes[:3]), sum(sizes[:5]))
    np.testing.assert_array_equal(still[:, : sizes.constant], 1.0)
    np.testing.assert_array_equal(still[:, change], 0.0)
    np.testing.assert_array_equal(still[:, : change.start], found[:, : change.start])
    np.testing.assert_array_equal(still[:, change.stop :], found[:, change.stop :])


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        "discrete",
        "continuous",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("long", "pixels")),
    ],
)
def test_numbers_and_their_products_are_groups_of_their_own(name):
    """Doubling z doubles the numbers and quadruples the products, of state and change alike."""
    spec = SPECS[name]
    batch = batch_of(spec, 50)
    before, after, encoder = seen_of(spec, batch)
    encoder = encoder._replace(projection=encoder.projection * 0.01)  # none is clipped
    once = features(spec, encoder, before, batch.action, after)
    twice = encoder._replace(projection=2 * encoder.projection)
    doubled = features(spec, twice, before, batch.action, after)
    groups = np.cumsum(part_sizes(spec))[:-1]
    times = (1.0, 2.0, 4.0, 2.0, 4.0)
    both = zip(np.split(once, groups, 1), np.split(doubled, groups, 1), times, strict=False)
    for one, other, factor in both:
        np.testing.assert_allclose(factor * np.asarray(one), other, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize(("name", "groups"), [("discrete", 6), ("long", 4), ("pixels", 4)])
def test_only_observed_numbers_are_groups_apart_from_their_products(name, groups):
    sizes, parts = module.SlowFeatures(SPECS[name]).sizes, part_sizes(SPECS[name])
    assert len(sizes) == groups
    assert sum(sizes) == sum(parts)
    if groups == 4:
        assert sizes[1:3] == (parts.state + parts.state_products, sum(parts[3:5]))


@pytest.mark.medium
def test_moving_there_and_back_sums_to_zero():
    spec = vector(3)
    batch = batch_of(spec, 50)
    before, after, encoder = seen_of(spec, batch)
    there = np.asarray(features(spec, encoder, before, batch.action, after))
    back = np.asarray(features(spec, encoder, after, batch.action, before))
    sizes = part_sizes(spec)
    change = slice(sum(sizes[:3]), sum(sizes[:5]))
    np.testing.assert_allclose(there[:, change], -back[:, change], atol=1e-5)
    assert np.abs(there[:, change]).max() > 0.5


def far_from_zero(rows: int = 30_000) -> np.ndarray:
    """Observations of a pressure in pascals, and of a constant that rounding changes."""
    rng = np.random.default_rng(8)
    numbers = [101_325 + 5 * rng.normal(size=rows), 1 + 1e-7 * rng.normal(size=rows)]
    return np.stack([*numbers, rng.normal(size=rows)], 1).astype(np.float32)


@pytest.mark.parametrize("representation", [SlowFeatures, NumberFeatures])
def test_numbers_far_from_zero_are_standardised_and_rounding_is_no_change(representation):
    seen = far_from_zero()
    inputs = representation(vector(3)).fit(seen[:-1], seen[1:])
    if isinstance(inputs.encoder, Encoder):
        mean, projection, change = map(np.asarray, inputs.encoder)
        z, moved = (x @ projection for x in (seen - mean, np.diff(seen, axis=0)))
    else:
        mean, deviation, change = map(np.asarray, inputs.encoder)
        z, moved = (seen - mean) / deviation, np.diff(seen, axis=0)
    np.testing.assert_allclose(z.std(0)[[0, 2]], 1.0, rtol=0.01)
    np.testing.assert_allclose(z.mean(0)[[0, 2]], 0.0, atol=0.01)
    assert (moved / change).std(0)[1] < 0.5  # of a number that changes it is 1


@pytest.mark.medium
def test_a_vector_is_standardised():
    batch = batch_of(vector(3), 500)
    before, after, encoder = seen_of(vector(3), batch)
    scaled = batch.obs * np.array([1, 100, 0.01], np.float32) + np.array([5, 0, -7], np.float32)
    moved = batch.next_obs * np.array([1, 100, 0.01], np.float32) + np.array([5, 0, -7], np.float32)
    one = module.encode(encoder, before)
    other = module.encode(fit_encoder(scaled, moved), jnp.asarray(scaled))
    np.testing.assert_allclose(one, other, atol=2e-3)
    delta = np.asarray(after - before) @ np.asarray(encoder.projection) / encoder.change[None]
    np.testing.assert_allclose(delta.std(0), 1.0, rtol=1e-4)


def hidden_pendulums(count=4000, noise=40, seed=0):
    """Return 44 numbers for each step: slow waves in a random basis, and fast noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(count + 1)[:, None]
    waves = np.sqrt(2) * np.sin(time * np.array([[0.05, 0.15, 0.4, 0.8]]))
    signals = np.concatenate([waves, rng.normal(size=(count + 1, noise))], axis=1)
    basis, _ = np.linalg.qr(rng.normal(size=(4 + noise, 4 + noise)))
    seen = (signals * rng.uniform(0.5, 2.0, 4 + noise)) @ basis
    return seen[:-1], seen[1:], waves[:-1]


@pytest.mark.medium
def test_slow_directions_solve_their_generalised_eigenproblem():
    before, after, _ = hidden_pendulums()
    size = before.shape[1]
    projection = np.asarray(fit_encoder(before, after).projection, np.float64)
    covariance = np.cov(before.T, bias=True)
    noise = module.FLICKER * np.trace(covariance) / size * np.eye(size)
    moved = (after - before).T @ (after - before) / len(before) + 2 * noise
    covariance += noise
    assert projection.shape == (size, 16)
    np.testing.assert_allclose(projection.T @ covariance @ projection, np.eye(16), atol=1e-4)
    slowness = np.diagonal(projection.T @ moved @ projection)
    assert (np.diff(slowness) >= 0).all()
    # The least, by another route: the eigenvalues of Cov⁻¹ E[Δx Δxᵀ].
    every = np.sort(np.linalg.eigvals(np.linalg.solve(covariance, moved)).real)
    np.testing.assert_allclose(slowness, every[:16], rtol=1e-3)
    np.testing.assert_allclose(
        projection.T @ moved @ projection, np.diag(slowness), atol=1e-4 * slowness.max()
    )


@pytest.mark.medium
def test_slow_directions_recover_slow_waves_in_order():
    before, after, waves = hidden_pendulums()
    encoder = fit_encoder(before, after)
    z = (before - before.mean(0)) @ np.asarray(encoder.projection)
    for wave in range(4):
        assert abs(np.corrcoef(z[:, wave], waves[:, wave])[0, 1]) > 0.98


@pytest.mark.medium
def test_a_position_that_one_walk_never_left_is_not_a_slow_feature():
    """One of 200 walks stays at a position that no other visits; without noise it is slowest."""
    rng = np.random.default_rng(0)
    steps = rng.integers(-1, 2, size=(100, 200))
    start = rng.integers(40, size=200)
    place = np.clip(np.cumsum(np.concatenate([start[None], steps]), axis=0), 0, 39)
    place[:, 0] = 44
    seen = np.maximum(1 - np.abs(place[..., None] - np.arange(48)) / 2, 0)
    before, after = seen[:-1].reshape(-1, 48), seen[1:].reshape(-1, 48)
    encoder = fit_encoder(before, after)
    z = (before - before.mean(0)) @ np.asarray(encoder.projection)
    visited = before[:, 44] == 0
    waves = np.sqrt(2) * np.cos(
        np.pi * place[:-1].reshape(-1)[visited, None] / 39 * np.arange(1, 3)
    )
    for wave in range(2):
        assert abs(np.corrcoef(z[visited, wave], waves[:, wave])[0, 1]) > 0.9


@pytest.mark.medium
def test_pixels_that_never_change_do_not_matter():
    spec = pixels()
    batch = batch_of(spec, 100)
    batch.obs[:, :20] = batch.next_obs[:, :20] = 7
    before, _after, encoder = seen_of(spec, batch)
    for part in encoder:
        assert np.isfinite(part).all()
    z = module.encode(encoder, before)
    moved = before.at[:, : 21 * 8].add(1 / 255)  # one grey level
    assert np.abs(np.asarray(module.encode(encoder, moved) - z)).max() < 0.5


@pytest.mark.medium
@given(side=st.integers(21, 300))
def test_resize_weights_cover_each_pixel_and_sum_to_one(side):
    weights = inputs.resize_matrix(side)
    assert weights.shape == (21, side)
    np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-5)
    assert (weights >= 0).all()
    assert (weights.sum(0) > 0).all()
    np.testing.assert_allclose(weights, weights[::-1, ::-1], atol=1e-6)


@pytest.mark.medium
def test_resizing_keeps_grey_levels_and_positions():
    spec = pixels(stack=1, side=84)
    grey = np.full((1, 84, 84, 1), 51, np.uint8)
    np.testing.assert_allclose(observation_vectors(spec, grey), 0.2, rtol=1e-5)
    frame = np.zeros((1, 84, 84, 1), np.uint8)
    frame[0, 40:44, 8:12] = 255  # rows 40-43 are row 10 of 21, columns 8-11 are column 2
    small = np.asarray(observation_vectors(spec, frame)).reshape(21, 21)
    assert np.unravel_index(small.argmax(), small.shape) == (10, 2)


def grid(channels=4):
    """Return the spec of a grid, such as MinAtar's, and images of objects that walk on it."""
    box = Box(
        np.zeros((10, 8, channels), np.uint8), np.ones((10, 8, channels), np.uint8), np.dtype("u1")
    )
    rng = np.random.default_rng(3)
    places = (rng.integers(0, 8, channels) + rng.integers(-1, 2, (900, channels)).cumsum(0)) % 8
    frames = np.zeros((900, 10, 8, channels), np.uint8)
    for channel, column in enumerate(places.T):
        frames[np.arange(900), 2 * channel % 10, column, channel] = 1
    return EnvSpec("grid", box, Discrete(3), 100), frames


@pytest.mark.slow
def test_the_encoder_of_small_images_is_that_of_the_enlarged_ones():
    """Two routes to one encoder: directions of 320 pixels, and of 1,764 enlarged numbers."""
    spec, frames = grid()
    representation = module.SlowFeatures(spec)
    kept = representation.see(frames[:-1], frames[1:])
    assert kept.before.dtype == np.uint8
    assert kept.before.shape == (899, 320)
    fitted = representation.fit(*map(np.asarray, kept))
    large = [np.asarray(observation_vectors(spec, x)) for x in (frames[:-1], frames[1:])]
    slow = fit_encoder(*large)
    np.testing.assert_allclose(fitted.encoder.mean, slow.mean, atol=1e-5)
    np.testing.assert_allclose(fitted.encoder.change, slow.change, rtol=1e-3)
    z, slow_z = (np.asarray(module.encode(e, jnp.asarray(large[0]))) for e in (fitted[0], slow))
    for one, other in zip(z.T, slow_z.T, strict=True):  # up to the sign of each direction
        assert abs(np.corrcoef(one, other)[0, 1]) > 0.999
    action = jnp.zeros(899, int)
    before, after = map(jnp.asarray, kept)
    found = representation.features(fitted, before, action, after)
    enlarged = features(spec, fitted.encoder, *map(jnp.asarray, (large[0], action, large[1])))
    np.testing.assert_allclose(found, enlarged, atol=2e-3)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["discrete", "continuous", "long", "pixels"])
def test_clips_and_training_have_equal_features(name):
    """Rahtz's bug 1: one path normalised observations, another did not."""
    spec = SPECS[name]
    batch = batch_of(spec, 12, 3)
    _, _, encoder = seen_of(spec, batch_of(spec, 600, seed=1))
    model = LinearRewardModel(spec, 4, 7)
    rng = np.random.default_rng(2)
    members = rng.normal(scale=0.02, size=(8, sum(part_sizes(spec)))).astype(np.float32)
    weights = rng.normal(scale=0.02, size=members.shape[1]).astype(np.float32)
    numbers = (jnp.asarray(x, jnp.float32) for x in (weights, 0.1, 2.0, members))
    parameters = LinearParameters(Encoder(*encoder), *numbers)

    trained_on = np.asarray(jax.jit(model.predict)(parameters, batch))
    # A record keeps the newest frames alone.
    record = batch._replace(obs=newest(spec, batch.obs), next_obs=newest(spec, batch.next_obs))
    for env in range(3):
        clip = observed(cut(record, Window(2, env), 7))
        seen = model._clips.encode(clip)
        found = apply_to_steps(jax.jit(lambda *step: features(spec, encoder, *step)), [seen])[0]
        worth = np.clip((found @ weights - 0.1) / 2.0, -3, 3)
        np.testing.assert_allclose(trained_on[2:9, env], worth, rtol=1e-3, atol=1e-4)
        opinions = model.opinions(parameters, [clip])
        np.testing.assert_allclose(opinions.reward[0], worth, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(
            opinions.clip_returns[0], (found @ members.T).sum(0), rtol=1e-3, atol=1e-3
        )
    assert trained_on.std() > 0.01


@pytest.mark.slow
def test_only_the_newest_frame_of_a_stack_is_used():
    spec = pixels()
    batch = batch_of(spec, 2, 2)
    older = batch.obs.copy()
    older[..., :-1] = 0
    parameters = LinearParameters(
        seen_of(spec, batch_of(spec, 100, seed=1))[2],
        jnp.ones(sum(part_sizes(spec))) * 1e-3,
        jnp.float32(0),
        jnp.float32(1),
        jnp.zeros((8, sum(part_sizes(spec)))),
    )
    predict = LinearRewardModel(spec, 4, 7).predict
    one = predict(parameters, batch)
    np.testing.assert_array_equal(one, predict(parameters, batch._replace(obs=older)))


@pytest.mark.medium
def test_directions_without_change_are_not_scaled_to_rounding_noise():
    """Images with three directions: the order of a sum must not matter for any feature."""
    rng = np.random.default_rng(0)
    patterns, walk = rng.random((3, 441)), rng.standard_normal((201, 3)).cumsum(0) / 20
    seen = (walk @ patterns).astype(np.float32)
    before, after = seen[:-1], seen[1:]
    encoder = fit_encoder(before, after)
    projection, change = np.asarray(encoder.projection), np.asarray(encoder.change)
    moved = after - before
    forwards, backwards = moved @ projection, moved[:, ::-1] @ projection[::-1]
    np.testing.assert_allclose(forwards / change, backwards / change, atol=0.05)
    assert (np.abs(forwards / change).std(0) > 0.1).sum() >= 3


@pytest.mark.medium
@pytest.mark.parametrize("knots", [additive.FEW_KNOTS, additive.KNOTS])
def test_thresholds_are_spread_over_data_and_range_and_tell_how_far_a_number_is_above(knots):
    rng = np.random.default_rng(0)
    before = (rng.normal(size=(4000, 3)) * [1, 5, 0]).astype(np.float32)
    after = before + np.float32(0.1)
    encoder = fit_encoder(before, after)
    thresholds = additive.fit_thresholds(encoder, after, knots)
    z = (after - np.asarray(encoder.mean)) @ np.asarray(encoder.projection)
    places = np.asarray(thresholds.knots)[:2]
    below = (z[:, :2, None] < places[None]).mean(0)
    along = ((places.T - z[:, :2].min(0)) / np.ptp(z[:, :2], axis=0)).T
    expected = [(np.arange(knots) + 0.5) / knots] * 2
    np.testing.assert_allclose((below + along) / 2, expected, atol=2e-3)
    assert (np.asarray(thresholds.widths) >= additive.NARROWEST).all()
    spec = vector(3)
    step = jnp.asarray(before), np.zeros(4000, int), jnp.asarray(after)
    representation = AdditiveFeatures(spec, knots)
    found = np.asarray(representation.features(Inputs(encoder, thresholds), *step))
    sizes = representation.sizes
    assert found.shape == (4000, sum(sizes))
    assert sizes[-1] == 3 * knots
    passed = found[:, -3 * knots :].reshape(4000, 3, knots)
    q, w = (np.asarray(x) for x in thresholds)
    slow = (1 + np.tanh((z[:, :, None] - q) / w)) / 2
    np.testing.assert_allclose(passed[:, :2], slow[:, :2], atol=1e-4)
    plain = np.asarray(features(spec, encoder, *step))
    np.testing.assert_array_equal(found[:, : -3 * knots], plain)


def test_knots_are_left_for_what_is_rare():
    """A fallen pendulum: 99 of 100 angles are within .1 of ±1.5, the others anywhere between."""
    rng = np.random.default_rng(4)
    fallen = 1.5 * rng.choice([-1, 1], 9_900) + rng.uniform(-0.1, 0.1, 9_900)
    angles = rng.permutation(np.concatenate([fallen, rng.uniform(-1.5, 1.5, 100)]))
    knots = additive.spread_knots(angles, 31)
    assert (np.abs(knots) < 1.4).sum() >= 12
    assert (np.abs(knots) > 1.4).sum() >= 12
    assert (np.diff(knots) > 0).all()
    np.testing.assert_array_equal(additive.spread_knots(np.full(5, 2.0), 3), [2.0] * 3)


@pytest.mark.slow
def test_a_rule_with_a_threshold_is_learned_by_the_additive_model_only():
    """The reward is 1 above a height: labels of the sum over clips of 10 steps."""
    spec = vector(3)
    rng = np.random.default_rng(1)
    walks = np.cumsum(rng.normal(scale=0.4, size=(160, 11, 3)), axis=1).astype(np.float32)
    walks += rng.normal(scale=1.5, size=(160, 1, 3))
    flags = np.zeros((160, 10), bool)

    def reward(obs):
        return (obs[..., 0] > 0.5).astype(np.float32)

    record = Transition(
        walks[:, :-1], flags.astype(np.int32), flags, flags, flags, walks[:, 1:], ~flags, ()
    )
    clips = [
        ObservedClip(walk[:-1], np.zeros(10, np.int32), walk[1:], np.ones(10, bool))
        for walk in walks
    ]
    totals = [reward(clip.next_obs).sum() for clip in clips]
    labels = [
        LabelledComparison(
            i,
            partial(lambda i: (clips[2 * i], clips[2 * i + 1]), i),
            0.5 + 0.5 * np.sign(totals[2 * i] - totals[2 * i + 1]),
            0,
        )
        for i in range(60)
    ]
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), 1)))
    close = {}
    for kind in (LinearRewardModel, AdditiveRewardModel):
        model = kind(spec, 60, 10)
        model.observe(record)
        fitted = model.fit(model.initial(1), [labels], keys)
        parameters = jax.tree.map(lambda x: x[0], fitted.parameters)
        found = model.opinions(parameters, clips[120:])
        assert found is not None
        truth = np.stack([reward(clip.next_obs) for clip in clips[120:]])
        close[kind.__name__] = np.corrcoef(found.reward.ravel(), truth.ravel())[0, 1]
    assert close["AdditiveRewardModel"] > max(0.85, close["LinearRewardModel"] + 0.03), close


@pytest.mark.medium
def test_intervals_are_differences_of_neighbouring_thresholds():
    rng = np.random.default_rng(6)
    before = rng.normal(size=(500, 3)).astype(np.float32)
    after = before + np.float32(0.1)
    spec = vector(3)
    inputs_of = IntervalFeatures(spec).fit(before, after)
    step = jnp.asarray(before), np.zeros(500, int), jnp.asarray(after)
    plain = np.asarray(AdditiveFeatures(spec).features(inputs_of, *step))
    found = np.asarray(IntervalFeatures(spec).features(inputs_of, *step))
    size = 3 * additive.KNOTS
    assert IntervalFeatures(spec).sizes == (*AdditiveFeatures(spec).sizes, size)
    np.testing.assert_array_equal(found[:, :-size], plain)
    passed, intervals = (x[:, -size:].reshape(500, 3, -1) for x in (plain, found))
    np.testing.assert_allclose(intervals[..., :-1], -np.diff(passed, axis=2), atol=1e-6)
    np.testing.assert_allclose(np.cumsum(intervals[..., ::-1], 2)[..., ::-1], passed, atol=1e-5)
    one_of_two = between(jnp.asarray([[1.0, 0.4, 1.0, 0.9]]), 2)
    np.testing.assert_allclose(one_of_two, [[0.6, 0.4, 0.1, 0.9]], atol=1e-6)


@pytest.mark.slow
def test_a_rare_and_narrow_reward_is_learned_with_intervals():
    """A pole lies on the left or right, and is rewarded while it stands: ties are frequent."""
    spec, rng = vector(2), np.random.default_rng(0)
    labelled, steps = 250, np.arange(21)
    side = 1.5 * rng.choice([-1, 1], size=(2 * labelled + 80, 1)) * np.ones(21)
    for clip in range(0, len(side), 3):  # a third of the clips cross the middle, or fall from it
        way = rng.choice([-1, 1])
        falls = way * 1.5 * np.exp((steps - rng.integers(5, 20)) * rng.uniform(0.2, 0.6))
        crosses = way * rng.uniform(0.02, 0.3) * (steps - rng.integers(2, 18))
        side[clip] = np.clip(falls if rng.random() < 0.5 else crosses, -1.5, 1.5)
    angle = side + rng.normal(scale=0.02, size=side.shape)
    place = np.cumsum(rng.normal(scale=0.3, size=side.shape), axis=1)
    walks = np.stack([angle, place], -1).astype(np.float32)
    flags = np.zeros((len(walks), 20), bool)

    def reward(obs):
        return (np.abs(obs[..., 0]) < 0.2).astype(np.float32)

    record = Transition(
        walks[:, :-1], flags.astype(np.int32), flags, flags, flags, walks[:, 1:], ~flags, ()
    )
    clips = [
        ObservedClip(walk[:-1], np.zeros(20, np.int32), walk[1:], np.ones(20, bool))
        for walk in walks
    ]
    totals = [reward(clip.next_obs).sum() for clip in clips]
    pairs = rng.permutation(2 * labelled).reshape(labelled, 2)
    labels = [
        LabelledComparison(
            i,
            partial(lambda one, other: (clips[one], clips[other]), *pair),
            0.5 + 0.5 * np.sign(totals[pair[0]] - totals[pair[1]]),
            0,
        )
        for i, pair in enumerate(pairs)
    ]
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), 1)))
    close = {}
    for kind in (AdditiveRewardModel, IntervalRewardModel):
        model = kind(spec, labelled, 20)
        model.observe(record)
        fitted = model.fit(model.initial(1), [labels], keys)
        found = model.opinions(
            jax.tree.map(lambda x: x[0], fitted.parameters), clips[2 * labelled :]
        )
        assert found is not None
        truth = np.stack([reward(clip.next_obs) for clip in clips[2 * labelled :]])
        close[kind.__name__] = np.corrcoef(found.reward.ravel(), truth.ravel())[0, 1]
    assert close["IntervalRewardModel"] > max(0.82, close["AdditiveRewardModel"] + 0.05), close
