"""Tests of the choice of a representation by evidence, and of collapsed representations."""

import jax
import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import (
    LENGTH,
    keys_of,
    labelled,
    predicted,
    ready,
    same_bits,
    some_batch,
)
from packages.backflip.tests.rewards.test_conformance import GRID, PIXELS, VECTOR

from backflip.core.trees import row_of
from backflip.rewards.auto import AutoParameters, AutoRewardModel, candidates, choice
from backflip.rewards.interface import TIE_WIDTH
from backflip.rewards.linear.model import ChangeMapRewardModel, LinearRewardModel
from backflip.rewards.representations.collapse import directions_of, has_collapsed


def metrics(evidence, collapsed=0.0):
    return {"reward_model_log_evidence": evidence, "reward_model_collapsed": collapsed}


def test_the_candidate_of_largest_evidence_is_chosen():
    assert choice([metrics(-9.0), metrics(-3.0), metrics(-5.0)]) == 1
    assert choice([metrics(-3.0), metrics(-3.0)]) == 0
    assert choice([metrics(-9.0), metrics(-3.0, collapsed=1.0)]) == 0
    assert choice([metrics(np.nan), metrics(-30.0, collapsed=1.0)]) == 1
    assert choice([metrics(-9.0, collapsed=1.0), metrics(-3.0, collapsed=1.0)]) == 1


def test_candidates_suit_the_observations():
    assert list(candidates(PIXELS)) == ["linear", "change_map"]
    assert list(candidates(GRID)) == ["linear", "change_map", "contacts"]
    assert list(candidates(VECTOR)) == ["intervals", "linear"]


@pytest.mark.medium
def test_the_reward_is_that_of_the_chosen_candidate_alone():
    labels, batch = [labelled(PIXELS), labelled(PIXELS, 1)], some_batch(PIXELS)
    kinds = [LinearRewardModel, ChangeMapRewardModel]
    fits = []
    for kind in kinds:
        model = ready(lambda budget, kind=kind: kind(PIXELS, budget, LENGTH), PIXELS)
        fits.append((model, model.fit(model.initial(2), labels, keys_of(0, 1))))
    auto = ready(lambda budget: AutoRewardModel(PIXELS, budget, LENGTH), PIXELS)
    found = auto.fit(auto.initial(2), labels, keys_of(0, 1))
    for row in range(2):
        evidence = [fit.metrics[row]["reward_model_log_evidence"] for _, fit in fits]
        best = int(np.argmax(evidence))
        assert int(found.parameters.chosen[row]) == best
        assert found.metrics[row]["reward_model_choice"] == best
        assert auto.chosen_names(found.parameters)[row] == ["linear", "change_map"][best]
        model, fit = fits[best]
        assert same_bits(found.parameters.fitted[best], fit.parameters)
        alone = predicted(model, fit.parameters, batch, row)
        np.testing.assert_array_equal(predicted(auto, found.parameters, batch, row), alone)
        other = AutoParameters(np.full(2, 1 - best, np.int32), found.parameters.fitted)
        assert not np.array_equal(predicted(auto, other, batch, row), alone)
        clips = labels[row][0].clips()
        ours = auto.opinions(row_of(found.parameters, row), clips)
        assert same_bits(ours, model.opinions(row_of(fit.parameters, row), clips))
        assert found.metrics[row][TIE_WIDTH] == fit.metrics[row][TIE_WIDTH]


def test_directions_by_hand():
    one = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [1.0, 5.0]])
    assert directions_of(one) == pytest.approx(1)  # the second feature is constant
    two = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert directions_of(two * [1, 100]) == pytest.approx(2)
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(np.random.default_rng(0).normal(size=(9, 50))))
    features = np.random.default_rng(0).normal(size=(9, 50)).T
    expected = eigenvalues.sum() ** 2 / np.square(eigenvalues).sum()
    assert directions_of(features) == pytest.approx(expected)


def test_collapsed_features_are_noticed():
    rng = np.random.default_rng(0)
    sound = rng.normal(size=(30, 5))
    assert not has_collapsed(sound)
    assert has_collapsed(np.ones((30, 5)))
    assert has_collapsed(np.outer(sound[:, 0], [1, -2, 3]))
    sound[3, 2] = np.nan
    assert has_collapsed(sound)


@pytest.mark.slow
def test_a_model_of_images_in_which_nothing_moves_says_so_and_auto_uses_another():
    """The bar stands still within a clip: the change map is constant, the slow features are not."""

    def still(label):
        def frozen(clip):
            first = np.broadcast_to(clip.obs[:1], clip.obs.shape).copy()
            return clip._replace(obs=first, next_obs=first)

        pair = tuple(frozen(clip) for clip in label.clips())
        place = [np.nonzero(clip.obs[0, 0, :, 0])[0].mean() for clip in pair]
        return label._replace(clips=lambda: pair, left_preferred=float(place[0] > place[1]))

    labels = [still(label) for label in labelled(PIXELS)]
    model = ready(lambda budget: ChangeMapRewardModel(PIXELS, budget, LENGTH), PIXELS, seeds=1)
    found = model.fit(model.initial(1), [labels], keys_of(0))
    assert found.metrics[0]["reward_model_collapsed"] == 1.0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(found.parameters))
    auto = ready(lambda budget: AutoRewardModel(PIXELS, budget, LENGTH), PIXELS, seeds=1)
    chosen = auto.fit(auto.initial(1), [labels], keys_of(0))
    assert auto.chosen_names(chosen.parameters) == ["linear"]
    assert chosen.metrics[0]["reward_model_collapsed"] == 0.0
    assert chosen.metrics[0]["reward_model_accuracy"] > 0.8
