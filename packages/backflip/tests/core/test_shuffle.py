"""Shuffles are permutations, different for every key, and favour no position."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.core.shuffle import shuffle

POWERS = [2**bits for bits in range(15)]
OTHERS = [3, 5, 6, 7, 12, 100, 1000, 4095, 4097]


def orders(count: int, keys: int) -> np.ndarray:
    """One order a row."""
    split = jax.random.split(jax.random.key(1), keys)
    return np.asarray(jax.jit(jax.vmap(lambda key: shuffle(key, count)))(split))


@pytest.mark.medium
@pytest.mark.parametrize("count", POWERS + OTHERS)
def test_every_number_comes_exactly_once(count: int) -> None:
    for order in orders(count, 3):
        np.testing.assert_array_equal(np.sort(order), np.arange(count))


@pytest.mark.medium
@given(seed=st.integers(0, 2**31 - 1), count=st.sampled_from([2, 8, 64, 12]))
def test_every_number_comes_exactly_once_for_any_key(seed: int, count: int) -> None:
    order = np.asarray(jax.jit(shuffle, static_argnums=1)(jax.random.key(seed), count))
    assert sorted(order.tolist()) == list(range(count))


@pytest.mark.medium
@pytest.mark.parametrize("count", [64, 256, 1024, 100])
def test_different_keys_give_different_orders(count: int) -> None:
    assert len({tuple(order) for order in orders(count, 500).tolist()}) == 500


@pytest.mark.medium
@pytest.mark.parametrize("count", [2, 3, 4, 16, 64, 48])
def test_every_number_is_as_likely_at_every_position(count: int) -> None:
    """Each cell of the table is binomial; five standard deviations are allowed."""
    keys = 8000
    found = orders(count, keys)
    for position in range(0, count, max(1, count // 8)):
        counts = np.bincount(found[:, position], minlength=count)
        deviation = np.sqrt(keys / count * (1 - 1 / count))
        assert np.abs(counts - keys / count).max() < 5 * deviation


@pytest.mark.medium
@pytest.mark.parametrize("count", [256, 1024])
def test_any_two_numbers_share_a_minibatch_about_as_often_as_in_a_true_shuffle(count: int) -> None:
    """Of four minibatches: neighbours, rows of one time step, numbers half the batch apart."""
    keys, quarter = 4000, count // 4
    found = orders(count, keys)
    minibatch = np.empty_like(found)
    np.put_along_axis(minibatch, found, np.arange(count)[None] // quarter, axis=1)
    expected = (quarter - 1) / (count - 1)
    for apart in (1, 2, 3, 8, 16, 37, count // 4, count // 2):
        shared = (minibatch[:, 0] == minibatch[:, apart]).mean()
        assert abs(shared - expected) < 0.04, (apart, shared)


@pytest.mark.medium
@pytest.mark.parametrize("count", [256, 100])
def test_same_key_same_order_and_jit_changes_nothing(count: int) -> None:
    key = jax.random.key(3)
    order = shuffle(key, count)
    np.testing.assert_array_equal(order, shuffle(key, count))
    np.testing.assert_array_equal(order, jax.jit(shuffle, static_argnums=1)(key, count))


@pytest.mark.slow
def test_vmap_is_a_loop() -> None:
    keys = jax.random.split(jax.random.key(5), 4)
    together = jax.vmap(lambda key: shuffle(key, 32))(keys)
    for key, order in zip(keys, together, strict=True):
        np.testing.assert_array_equal(order, shuffle(key, 32))
