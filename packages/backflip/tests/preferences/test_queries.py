"""Tests of `backflip.preferences.queries`."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.core.losses import answer_probabilities
from backflip.preferences.queries import (
    NOISE,
    answer_information,
    farthest_first,
    most_disputed,
    most_informative,
    most_informative_of_members,
    posterior_covariance,
    redrawn,
    uniform_pairs,
)
from backflip.preferences.rankings import most_disputed_sets
from backflip.rewards.calibration import expected_answer, left_probability


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


# Information


def beliefs(clips: int, features: int, labels: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(clips, features)), rng.normal(size=(labels, features)), rng


@pytest.mark.medium
@pytest.mark.parametrize("width", [0.0, 0.7])
def test_the_information_of_an_answer_is_the_expected_squared_score(width):
    logits = np.linspace(-6, 6, 25)

    def log_p(logit: jnp.ndarray) -> jnp.ndarray:
        used = jnp.array([0, 2, 1] if width else [0, 2])
        return jnp.log(answer_probabilities(logit, width, NOISE)[used])

    scores = np.stack([jax.jacfwd(log_p)(jnp.float32(x)) for x in logits])
    chances = np.exp(np.stack([log_p(jnp.float32(x)) for x in logits]))
    np.testing.assert_allclose(
        answer_information(logits, width), (chances * scores**2).sum(1), rtol=2e-3, atol=1e-5
    )


def test_the_information_of_an_answer_by_hand():
    # p = .5 and p' = .9 / 4 for both answers: 2 (.225)² / .5 = .2025.
    np.testing.assert_allclose(answer_information(np.zeros(1), 0.0), [0.2025])


def test_the_expected_information_is_what_an_answer_says_on_average():
    """A small belief, where the Gaussian of the logit is what an answer halves: Monte Carlo."""
    mean, deviation = 0.4, 0.5
    rng = np.random.default_rng(0)
    logits = rng.normal(mean, deviation, 400_000)
    p = 0.9 / (1 + np.exp(-logits)) + 0.05

    def entropy(p):
        return -p * np.log(p) - (1 - p) * np.log(1 - p)

    said = entropy(p.mean()) - entropy(p).mean()
    expected = 0.5 * np.log1p(answer_information(np.array([mean]), 0.0)[0] * deviation**2)
    assert expected == pytest.approx(said, rel=0.1)


@pytest.mark.parametrize(("labels", "features"), [(0, 3), (4, 3), (3, 6)])
def test_the_posterior_covariance_is_that_of_the_weights(labels, features):
    clips, labelled, rng = beliefs(5, features, labels)
    fisher = rng.uniform(0, 2, labels)
    precision = np.eye(features)
    for one, information in zip(labelled, fisher, strict=True):
        precision += information * np.outer(one, one)
    np.testing.assert_allclose(
        posterior_covariance(clips, labelled, fisher),
        clips @ np.linalg.inv(precision) @ clips.T,
        atol=1e-10,
    )


def set_information(chosen, mean, covariance, width):
    """½ log det(I + F^½ D S Dᵀ F^½), as written."""
    differences = np.zeros((len(chosen), len(mean)))
    for row, (left, right) in enumerate(chosen):
        differences[row, left] += 1
        differences[row, right] -= 1
    root = np.diag(np.sqrt(answer_information(differences @ mean, width)))
    inside = root @ differences @ covariance @ differences.T @ root
    return 0.5 * np.linalg.slogdet(np.eye(len(chosen)) + inside)[1]


def different_pairs(rng):
    return rng.permutation(list(itertools.combinations(range(7), 2)))[:12]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("width", [0.0, 0.5])
def test_each_greedy_choice_adds_the_most_to_the_information_of_the_set(seed, width):
    clips, labelled, rng = beliefs(7, 3, 2, seed)
    covariance = posterior_covariance(clips, labelled, np.ones(2))
    mean, pairs = rng.normal(size=7), different_pairs(rng)
    chosen = most_informative(mean, covariance, width, pairs, 4).tolist()
    for count in range(1, 5):
        so_far = chosen[: count - 1]
        left = [pair for pair in pairs.tolist() if pair not in so_far]
        best = max(set_information([*so_far, pair], mean, covariance, width) for pair in left)
        assert set_information(chosen[:count], mean, covariance, width) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(6))
def test_two_greedy_choices_are_nearly_the_best_of_all_sets_of_two(seed):
    clips, labelled, rng = beliefs(7, 3, 2, seed)
    covariance, mean = posterior_covariance(clips, labelled, np.ones(2)), rng.normal(size=7)
    pairs = different_pairs(rng)
    best = max(
        set_information(two, mean, covariance, 0.0)
        for two in itertools.combinations(pairs.tolist(), 2)
    )
    chosen = most_informative(mean, covariance, 0.0, pairs, 2).tolist()
    found = set_information(chosen, mean, covariance, 0.0)
    assert (1 - 1 / np.e) * best <= found <= best + 1e-12


def test_a_pair_is_not_asked_with_its_mirror_image_or_twice():
    covariance = np.diag([9.0, 9.0, 4.0, 4.0])
    pairs = np.array([[0, 1], [1, 0], [0, 1], [2, 3]])
    chosen = most_informative(np.zeros(4), covariance, 0.0, pairs, 2)
    np.testing.assert_array_equal(chosen, [[0, 1], [2, 3]])
    assert len(most_informative(np.zeros(4), covariance, 0.0, pairs, 9)) == 4


def test_members_information_by_hand():
    # Both certain of opposite sides: p = .95 and .05. Certain of one side: nothing to learn.
    returns = np.array([[0.0, 0.0], [40.0, -40.0], [40.0, 40.0]])
    pairs = np.array([[2, 0], [1, 0]])
    np.testing.assert_array_equal(most_informative_of_members(returns, pairs, 1), [[1, 0]])


@pytest.mark.medium
@pytest.mark.parametrize("tie_width", [0.0, 1.0, 3.0])
def test_members_information_is_the_expected_drop_of_entropy(tie_width):
    """The mutual information of answer and member, from their joint distribution."""
    rng = np.random.default_rng(3)
    returns, pairs = 2.0 * rng.normal(size=(7, 4)), different_pairs(rng)
    worth = []
    for left, right in pairs:
        margin = jnp.asarray(returns[left] - returns[right])
        of_answers = answer_probabilities(margin, tie_width, 0.1)
        joint = np.asarray(of_answers, np.float64).T / 4
        joint = joint[joint.any(1)]  # a tie is impossible without a width
        apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        worth.append((joint * np.log(joint / apart)).sum())
    expected = pairs[np.argsort(-np.array(worth), kind="stable")[:5]]
    chosen = most_informative_of_members(returns, pairs, 5, tie_width)
    np.testing.assert_array_equal(chosen, expected)


# Coverage


def test_each_choice_is_farthest_from_all_before_it():
    rng = np.random.default_rng(1)
    candidates, labelled = rng.normal(size=(20, 3)), rng.normal(size=(4, 3))
    chosen = farthest_first(candidates, labelled, 5)
    for number, place in enumerate(chosen):
        before = [np.zeros(3), *labelled, *candidates[chosen[:number]]]

        def nearest(one, before=before):
            apart = [min(np.linalg.norm(one - x), np.linalg.norm(one + x)) for x in before]
            return min(apart)

        assert nearest(candidates[place]) == pytest.approx(max(map(nearest, candidates)))


def test_coverage_by_hand():
    candidates = np.array([[1.0, 0.0], [-3.0, 0.0], [3.0, 0.1], [0.0, 2.0]])
    # The second is the longest; the third is its mirror image, so the last is farther away.
    np.testing.assert_array_equal(farthest_first(candidates, np.zeros((0, 2)), 2), [2, 3])
    np.testing.assert_array_equal(farthest_first(candidates, candidates[1:2], 1), [3])
    assert sorted(farthest_first(candidates, np.zeros((0, 2)), 9)) == [0, 1, 2, 3]


# Pairs that should not be asked


def test_pairs_that_should_not_be_asked_are_drawn_again():
    rng = np.random.default_rng(0)
    pairs = np.array([[i, i + 1] for i in range(50)])
    seen = redrawn(rng, 60, pairs, lambda pairs: (pairs < 40).all(1))
    assert (seen < 40).all()
    fine = (pairs < 40).all(1)
    np.testing.assert_array_equal(seen[fine], pairs[fine])


def test_pairs_of_the_same_clips_are_drawn_again():
    """A first round of 220 queries about 64 clips had 11 such pairs."""
    rng = np.random.default_rng(0)
    pairs = uniform_pairs(rng, 64, 220)
    seen = redrawn(rng, 64, pairs, lambda pairs: np.ones(len(pairs), bool))
    assert len({frozenset(pair) for pair in pairs.tolist()}) < 215
    assert len({frozenset(pair) for pair in seen.tolist()}) == 220


def test_if_all_clips_are_alike_they_are_asked_after_all():
    rng = np.random.default_rng(0)
    seen = redrawn(rng, 4, uniform_pairs(rng, 4, 6), lambda pairs: np.zeros(len(pairs), bool))
    assert seen.shape == (6, 2)
    assert (seen[:, 0] != seen[:, 1]).all()


@pytest.mark.medium
def test_no_random_number_is_used_if_all_pairs_may_be_asked():
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    uniform_pairs(rng, 4, 6)
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    redrawn(rng, 4, pairs, lambda pairs: np.ones(len(pairs), bool))
    uniform_pairs(other, 4, 6)
    assert rng.random() == other.random()


@pytest.mark.medium
def test_members_who_differ_within_the_width_of_ties_agree():
    """The answers that members expect, by the ordinal model: left 1, tie ½, right 0."""
    returns = np.array([[0.0, 0.0], [2.0, -2.0], [3.0, 9.0]])
    pairs = np.array([[1, 0], [2, 0]])  # margins 2 and -2; 3 and 9

    def answer(margin, width):
        left, right = (1 / (1 + np.exp(-(sign * margin - width))) for sign in (1, -1))
        return left + (1 - left - right) / 2

    margins = returns[pairs[:, 0]] - returns[pairs[:, 1]]
    for width, first in ((0.0, 0), (6.0, 1)):
        assert expected_answer(margins, width) == pytest.approx(answer(margins, width))
        assert most_disputed(returns, pairs, 1, width).tolist() == [pairs[first].tolist()]
        assert most_disputed_sets(returns, pairs, 1, width).tolist() == [pairs[first].tolist()]
    assert left_probability(margins, 6.0) == pytest.approx(
        (0.9 * answer(margins, 6.0) + 0.05).mean(1)
    )
