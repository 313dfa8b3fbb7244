"""Tests of `backflip.rewards.measures.label_metrics`: which margins agree with which answers."""

import numpy as np
import pytest

from backflip.rewards.measures import label_metrics

ACCURACIES = ("reward_model_accuracy", "reward_model_held_out_accuracy")
EVERY = np.ones((4, 2), bool)
LEFT = np.array([1.0, 0.0, 0.5, 1.0])  # left, right, tie, left


def test_three_decided_labels_by_hand():
    margin = np.array([[2.0, -1.0], [-3.0, 1.0], [5.0, 5.0], [0.0, 1.0]])
    found = label_metrics(margin, LEFT, EVERY)
    assert [found[name] for name in ACCURACIES] == pytest.approx([(1 + 1 + 0.5 + 1) / 6] * 2)
    assert (found["reward_model_labels"], found["reward_model_ties"]) == (4, 1)


def test_swapped_sides_change_nothing():
    margin = np.random.default_rng(0).integers(-1, 2, (4, 2)).astype(float)
    assert label_metrics(margin, LEFT, EVERY) == label_metrics(-margin, 1 - LEFT, EVERY)


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_no_difference_is_half_right_and_no_number_is_unknown(answer):
    answers = np.full(4, answer)
    same = label_metrics(np.zeros((4, 2)), answers, EVERY)
    assert [same[name] for name in ACCURACIES] == [0.5, 0.5]
    broken = label_metrics(np.full((4, 2), np.nan), answers, EVERY)
    assert all(np.isnan(broken[name]) for name in ACCURACIES)
