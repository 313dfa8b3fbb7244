"""Tests of the ensembles of one seed, round after round."""

import numpy as np
import pytest

from backflip.rewards.interface import LabelledComparison
from backflip.rewards.linear import ensembles as module
from backflip.rewards.linear import evidence
from backflip.rewards.linear.ensembles import DOUBLED, Ensembles, last_growth, last_search
from backflip.rewards.linear.evidence import Labelled, fit

GROUPS = (3, 5, 4)
KEY = np.array([0, 7], np.uint32)


def labels_of(count, per_round=10, seed=0):
    """Return labels of a reward that is linear in the second group, and their features."""
    rng = np.random.default_rng(seed)
    difference = rng.normal(size=(count, sum(GROUPS))).astype(np.float32)
    preferred = (difference[:, 3:8].sum(1) + 0.5 * rng.normal(size=count) > 0).astype(float)
    comparisons = [
        LabelledComparison(query, tuple, float(one), query // per_round)
        for query, one in enumerate(preferred)
    ]
    return comparisons, Labelled(difference, preferred)


def first(labels, count):
    comparisons, labelled = labels
    return comparisons[:count], Labelled(*(x[:count] for x in labelled))


@pytest.mark.parametrize(
    ("asked_at", "labels"),
    [([], 0), ([0, 0], 2), ([0, 0, 9], 2), ([0, 0, 9, 9], 4), ([0, 0, 9, 9, 20, 20, 30], 4)],
)
def test_encoders_are_fitted_when_labels_have_doubled(asked_at, labels):
    assert last_growth(asked_at, DOUBLED) == labels


def test_models_are_searched_for_when_labels_have_grown_by_a_quarter_or_doubled(monkeypatch):
    monkeypatch.setattr(module, "MANY_LABELS", 6)
    # 4 and 5 labels are few; 8, 10 and 13 are a quarter more than 6, 8 and 10; 15 is not.
    asked_at = np.repeat(np.arange(8), [4, 1, 1, 2, 1, 1, 3, 2])
    rounds = np.cumsum(np.bincount(asked_at))
    found = [last_search(asked_at[:count].tolist()) for count in rounds]
    assert found == [4, 5, 6, 8, 8, 10, 13, 13]
    # 8 has doubled since 4, though 7 was searched just before.
    assert last_search([0] * 4 + [1] * 3 + [2]) == 8


@pytest.fixture
def searches(monkeypatch):
    """The number of labels of each search."""
    found = []

    def search(designs_of, grid, left_preferred):
        found.append(len(left_preferred))
        return original(designs_of, grid, left_preferred)

    original = evidence.search
    monkeypatch.setattr(evidence, "search", search)
    monkeypatch.setattr(module, "MANY_LABELS", 40)
    return found


@pytest.mark.medium
def test_rounds_between_searches_fit_the_models_that_were_probable(searches):
    labels, kept = labels_of(80), Ensembles(GROUPS)
    ensembles = {count: kept.fit(*first(labels, count), KEY) for count in (30, 40, 50, 60, 70)}
    assert searches == [30, 40, 50, 70]
    every = fit(first(labels, 60)[1], GROUPS, KEY)
    chances = dict(zip(every.numbers.tolist(), every.chances, strict=True))
    found = ensembles[60]
    assert len(found.numbers) < len(chances)
    assert set(found.numbers) == set(ensembles[50].numbers[ensembles[50].chances > 1e-5])
    for model, chance in zip(found.numbers.tolist(), found.chances, strict=True):
        assert chance == pytest.approx(chances.get(model, 0.0), abs=0.02)
    mean, expected = (x.chances @ x.models for x in (found, every))
    np.testing.assert_allclose(mean, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.medium
def test_a_resumed_run_has_the_same_ensemble(searches):
    labels, kept = labels_of(60), Ensembles(GROUPS)
    for count in (40, 50):
        kept.fit(*first(labels, count), KEY)
    one = kept.fit(*labels, KEY)
    other = Ensembles(GROUPS).fit(*labels, KEY)
    assert searches == [40, 50, 50]
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y)
    assert kept.known(*labels) is one
    fresh = Ensembles(GROUPS).known(*labels)
    np.testing.assert_array_equal(fresh.models, one.models)  # only members have a key


@pytest.mark.medium
def test_models_are_searched_for_again_if_an_answer_was_changed(searches):
    labels, kept = labels_of(60), Ensembles(GROUPS)
    kept.fit(*first(labels, 50), KEY)
    comparisons, labelled = labels
    comparisons[7] = comparisons[7]._replace(left_preferred=0.5)
    labelled.left_preferred[7] = 0.5
    one = kept.fit(comparisons, labelled, KEY)
    assert searches == [50, 50]
    other = Ensembles(GROUPS).fit(comparisons, labelled, KEY)
    np.testing.assert_array_equal(one.models, other.models)
