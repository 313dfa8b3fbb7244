"""Tests of `backflip.preferences.queries`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backflip.preferences.queries import most_disputed, uniform_pairs


@given(clips=st.integers(2, 300), count=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_no_clip_is_compared_with_itself(clips, count, seed):
    pairs = uniform_pairs(np.random.default_rng(seed), clips, count)
    assert pairs.shape == (count, 2)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert ((pairs >= 0) & (pairs < clips)).all()


def test_all_ordered_pairs_are_equally_likely():
    clips, count = 5, 100_000
    pairs = uniform_pairs(np.random.default_rng(0), clips, count)
    times = np.zeros((clips, clips))
    np.add.at(times, (pairs[:, 0], pairs[:, 1]), 1)
    off = ~np.eye(clips, dtype=bool)
    share = 1 / off.sum()
    # Five standard deviations of a binomial count.
    assert np.abs(times[off] - count * share).max() < 5 * np.sqrt(count * share * (1 - share))


def test_the_most_disputed_pair_by_hand():
    # Members say σ(ΔR) = (.5, .5), (σ(4), σ(-4)) = (.98, .02), (σ(1), σ(-1)) = (.73, .27).
    returns = np.array([[0.0, 0.0], [4.0, -4.0], [1.0, -1.0]])
    pairs = np.array([[0, 0], [1, 0], [0, 2]])
    np.testing.assert_array_equal(most_disputed(returns, pairs, 1), [[1, 0]])
    np.testing.assert_array_equal(most_disputed(returns, pairs, 2), [[1, 0], [0, 2]])


def test_disagreement_is_about_preferences_and_not_margins():
    # The first pair's margins differ by 100, but both members are certain of the same side.
    returns = np.array([[0.0, 0.0], [10.0, 110.0], [0.5, -0.5]])
    pairs = np.array([[1, 0], [2, 0]])
    np.testing.assert_array_equal(most_disputed(returns, pairs, 1), [[2, 0]])


def test_disagreement_ignores_common_offsets_and_sides():
    rng = np.random.default_rng(1)
    returns = rng.normal(size=(20, 8))
    pairs = uniform_pairs(rng, 20, 100)
    chosen = most_disputed(returns, pairs, 10)
    np.testing.assert_array_equal(most_disputed(returns + rng.normal(size=8), pairs, 10), chosen)
    np.testing.assert_array_equal(most_disputed(returns, pairs[:, ::-1], 10), chosen[:, ::-1])


def test_the_first_of_equally_disputed_pairs_are_chosen():
    pairs = np.array([[3, 1], [0, 2], [1, 0]])
    np.testing.assert_array_equal(most_disputed(np.zeros((4, 2)), pairs, 2), pairs[:2])
