"""Tests of `backflip.rewards.exploring`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.envs.native.dot import Dot
from backflip.rewards.exploring import NEIGHBOUR, PARTICLES, exploring_reward, neighbour_distances
from backflip.rewards.inputs import observation_vectors

explore = jax.jit(exploring_reward, static_argnums=0)


def spec_of(size: int) -> EnvSpec:
    high = np.full(size, 1000, np.float32)
    return EnvSpec("numbers", Box(-high, high, np.dtype(np.float32)), Discrete(2), None)


def batch_of(next_obs: np.ndarray, valid: np.ndarray | None = None) -> Transition:
    shape = next_obs.shape[:2]
    no, yes = np.zeros(shape, bool), np.ones(shape, bool)
    reward = np.full(shape, np.nan, np.float32)  # the true reward must not be read
    action = np.zeros(shape, np.int32)
    valid = yes if valid is None else valid
    return Transition(np.zeros_like(next_obs), action, reward, no, no, next_obs, valid, ())


def by_definition(next_obs: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """The equation of the module, with loops, for batches of at most `PARTICLES` rows."""
    shape, rows = next_obs.shape[:2], next_obs.reshape(-1, next_obs.shape[-1]).astype(np.float64)
    used = valid.reshape(-1)
    z = (rows - rows[used].mean(0)) / rows[used].std(0) / np.sqrt(rows.shape[1])
    found = np.zeros(len(rows))
    for i in np.flatnonzero(used):
        apart = sorted(np.linalg.norm(z[i] - z[j]) for j in np.flatnonzero(used) if j != i)
        found[i] = np.log(1 + apart[NEIGHBOUR - 1])
    found[used] = 0.1 * (found[used] - found[used].mean()) / found[used].std()
    return found.reshape(shape)


@pytest.mark.medium
@pytest.mark.parametrize("size", [1, 3])
def test_the_reward_is_the_distance_to_the_kth_nearest_state(size):
    rng = np.random.default_rng(size)
    scales = [1.0, 100.0, 0.01][:size]
    next_obs = (rng.normal(size=(6, 7, size)) * scales).astype(np.float32)
    valid = rng.random((6, 7)) < 0.8
    next_obs[~valid] = 999.0  # of a reset row: must not count
    reward = explore(spec_of(size), batch_of(next_obs, valid))
    np.testing.assert_allclose(reward, by_definition(next_obs, valid), rtol=2e-3, atol=2e-3)


@pytest.mark.medium
def test_the_distance_by_hand():
    states = jnp.arange(8, dtype=jnp.float32)[:, None]  # 0 ... 7; the fifth nearest of 0 is 5
    found = neighbour_distances(states, jnp.ones(8, bool))
    np.testing.assert_allclose(found, [5, 4, 3, 3, 3, 3, 4, 5], atol=1e-3)


@pytest.mark.medium
def test_rare_states_are_worth_more_than_common_ones():
    rng = np.random.default_rng(0)
    next_obs = rng.normal(scale=0.1, size=(10, 10, 2)).astype(np.float32)
    next_obs[0, :6] = rng.normal(loc=3.0, scale=0.5, size=(6, 2))
    reward = np.asarray(explore(spec_of(2), batch_of(next_obs)))
    rare = np.zeros((10, 10), bool)
    rare[0, :6] = True
    assert reward[rare].min() > reward[~rare].max()
    assert np.sqrt(np.square(reward).mean()) == pytest.approx(0.1, rel=1e-4)
    assert reward.mean() == pytest.approx(0.0, abs=1e-5)


@pytest.mark.medium
def test_what_is_nearly_the_same_everywhere_is_not_blown_up():
    """States on a ring are equally far from their neighbours, up to rounding."""
    angle = 2 * np.pi * np.arange(60) / 60
    ring = np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32).reshape(6, 10, 2)
    assert np.abs(explore(spec_of(2), batch_of(ring))).max() < 0.005


@pytest.mark.medium
def test_in_a_large_batch_the_particles_are_rows_equally_far_apart():
    rng = np.random.default_rng(0)
    rows = 4 * PARTICLES + 3
    states = rng.normal(size=(rows, 2)).astype(np.float32)
    places = np.arange(PARTICLES) * rows // PARTICLES
    found = np.asarray(neighbour_distances(jnp.asarray(states), jnp.ones(rows, bool)))
    for row in (0, 1, int(places[7]), rows - 1):
        others = [p for p in places if p != row]
        apart = np.sort(np.linalg.norm(states[row] - states[others], axis=1))
        assert found[row] == pytest.approx(apart[NEIGHBOUR - 1], abs=1e-3)


@pytest.mark.medium
def test_alike_states_and_few_rows_give_finite_rewards():
    same = np.full((4, 5, 2), 3.0, np.float32)
    np.testing.assert_array_equal(explore(spec_of(2), batch_of(same)), 0.0)
    nothing = batch_of(same, np.zeros((4, 5), bool))
    np.testing.assert_array_equal(explore(spec_of(2), nothing), 0.0)
    few = np.random.default_rng(0).normal(size=(1, 3, 2)).astype(np.float32)
    np.testing.assert_array_equal(explore(spec_of(2), batch_of(few)), 0.0)


@pytest.mark.medium
def test_pictures_have_one_unit_for_all_pixels():
    """Of stacked pictures the newest frame counts, resized as reward models see it."""
    spec = Dot().spec
    rng = np.random.default_rng(0)
    shape = spec.observation.shape
    next_obs = rng.integers(0, 256, (3, 4, *shape), dtype=np.uint8)
    newest = next_obs[..., -(shape[-1] // spec.frame_stack) :].reshape(12, *shape[:-1], -1)
    z = np.asarray(observation_vectors(spec, jnp.asarray(newest)), np.float64)
    z = (z - z.mean(0)) / np.sqrt(z.var(0).mean()) / np.sqrt(z.shape[1])
    apart = np.linalg.norm(z[:, None] - z[None], axis=-1)
    kth = np.log1p(np.sort(apart, axis=1)[:, NEIGHBOUR])  # place 0 is the row itself
    reward = explore(spec, batch_of(next_obs)).reshape(-1)
    expected = 0.1 * (kth - kth.mean()) / max(kth.std(), 0.01 * kth.mean())
    np.testing.assert_allclose(reward, expected, rtol=2e-3, atol=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 7])
def test_the_order_of_rows_does_not_matter_in_a_small_batch(chunk):
    rng = np.random.default_rng(chunk)
    next_obs = rng.normal(size=(5, 8, 3)).astype(np.float32)
    order = rng.permutation(40)
    shuffled = next_obs.reshape(40, 3)[order].reshape(5, 8, 3)
    one = np.asarray(explore(spec_of(3), batch_of(next_obs))).reshape(-1)
    other = np.asarray(explore(spec_of(3), batch_of(shuffled))).reshape(-1)
    np.testing.assert_allclose(other, one[order], rtol=1e-3, atol=1e-3)
