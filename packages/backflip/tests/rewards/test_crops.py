"""Tests of temporal crops: what is cropped, and which fits use them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import keys_of, labelled

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import flatten
from backflip.rewards.interface import FitSettings
from backflip.rewards.network import ensemble
from backflip.rewards.network.crops import crop_all, shortest_length, views_of
from backflip.rewards.network.losses import Labelled, label_losses
from backflip.rewards.network.model import NetworkRewardModel
from backflip.rewards.registry import make_reward_model
from backflip.training.teaching.config import TeachConfig, saved_teaching
from runshelf.errors import UsageError

BOX = Box(np.full(2, -2, np.float32), np.full(2, 2, np.float32), np.dtype("f4"))
SPEC = EnvSpec("vector", BOX, Discrete(3), 100)
LENGTH = 8
WHOLE = jnp.ones((200, 2, LENGTH), bool)


def labels(n=40, ties=False):
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, n, 2, LENGTH, 2)).astype(np.float32)
    preferred = rng.choice([0.0, 0.5, 1.0] if ties else [0.0, 1.0], n).astype(np.float32)
    action = np.zeros((n, 2, LENGTH), np.int32)
    whole = np.ones((n, 2, LENGTH), bool)
    return Labelled(*map(jnp.asarray, (before, action, after, whole, preferred, np.ones(n, "f4"))))


@pytest.mark.medium
def test_a_crop_is_one_piece_of_each_clip_of_one_length_with_independent_begins():
    found = np.asarray(crop_all(jax.random.key(0), WHOLE, 0.5))
    lengths, begins = found.sum(-1), found.argmax(-1)
    for row, side in np.ndindex(200, 2):
        first, many = begins[row, side], lengths[row, side]
        assert found[row, side, first : first + many].all()
    np.testing.assert_array_equal(lengths[:, 0], lengths[:, 1])
    assert set(lengths[:, 0]) == {4, 5, 6, 7, 8}
    shortest = lengths[:, 0] == 4
    assert {tuple(x) for x in begins[shortest]} > {(0, 4), (4, 0), (0, 0)}
    apart = np.abs(np.corrcoef(begins[shortest].T)[0, 1])
    assert apart < 0.5  # one begin for both would give 1


@pytest.mark.slow
def test_padding_changes_no_crop():
    one, other = (crop_all(jax.random.key(3), WHOLE[:n], 0.5) for n in (5, 9))
    np.testing.assert_array_equal(one, other[:5])


@pytest.mark.parametrize(
    ("length", "share", "expected"), [(8, 0.5, 4), (10, 0.7, 7), (25, 0.75, 19), (2, 0.01, 1)]
)
def test_the_shortest_length_is_a_share_rounded_up(length, share, expected):
    assert shortest_length(length, share) == expected


@pytest.mark.medium
def test_the_loss_of_a_crop_is_that_of_clips_cut_by_hand():
    whole = labels()
    outputs = np.random.default_rng(1).normal(size=(40, 2, LENGTH)).astype(np.float32)
    views = views_of(jax.random.key(0), whole, 2, 0.25)
    assert views.shape == (3, 40, 2, LENGTH)
    np.testing.assert_array_equal(views[0], whole.alive)
    for view in views[1:]:
        found = label_losses(jnp.asarray(outputs), whole._replace(alive=view))
        for i in range(40):
            begins, many = np.asarray(view[i]).argmax(-1), int(view[i, 0].sum())
            left, right = (
                outputs[i, side, begins[side] : begins[side] + many].sum() for side in (0, 1)
            )
            p = 0.9 / (1 + np.exp(right - left)) + 0.05
            expected = -np.log(p if whole.left_preferred[i] == 1 else 1 - p)
            assert float(found[i]) == pytest.approx(float(expected), rel=1e-4)
    assert not np.array_equal(views[1], views[2])


@pytest.mark.slow
def test_ties_and_pairs_with_the_end_of_an_episode_stay_whole():
    some = labels(ties=True)
    alive = np.array(some.alive)
    alive[::3, 1, 5:] = False  # the right clip ends
    some = some._replace(alive=jnp.asarray(alive))
    views = np.asarray(views_of(jax.random.key(0), some, 8, 0.25))
    kept = (np.asarray(some.left_preferred) == 0.5) | ~alive.all((1, 2))
    cropped = (views != alive).any((0, 2, 3))
    assert not (cropped & kept).any()
    assert cropped[~kept].all()


def fitted(monkeypatch, settings):
    spec = dataclasses.replace(SPEC)  # of its own: `UPDATES` is compiled in
    monkeypatch.setattr(ensemble, "UPDATES", 40)
    comparisons = [labelled(SPEC, seed, 16) for seed in (0, 1)]
    found = NetworkRewardModel(spec, 16, 6, settings).fit(None, comparisons, keys_of(4, 5))
    return flatten(found.parameters), found.metrics


@pytest.fixture(scope="module")
def plain():
    with pytest.MonkeyPatch.context() as patch:
        return fitted(patch, FitSettings())


@pytest.mark.slow
def test_crops_change_the_fit_and_not_what_counts_as_a_label(monkeypatch, plain):
    plain, of_plain = plain
    one, measured = fitted(monkeypatch, FitSettings(crops=2, shortest_crop=0.5))
    again, _ = fitted(monkeypatch, FitSettings(crops=2, shortest_crop=0.5))
    for name, array in one.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)
    assert any((array != plain[name]).any() for name, array in one.items())
    for name, array in plain.items():
        if name.startswith("standardiser"):
            np.testing.assert_array_equal(array, one[name], err_msg=name)
    names = ("reward_model_labels", "reward_model_ties")
    assert [[m[n] for n in names] for m in measured] == [[m[n] for n in names] for m in of_plain]


@pytest.mark.slow
def test_without_crops_their_length_changes_no_bit(monkeypatch, plain):
    one, measured = fitted(monkeypatch, FitSettings(shortest_crop=0.1))
    other, of_other = plain
    assert measured == of_other
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.parametrize("name", ["additive", "auto", "change_map", "linear"])
def test_models_that_count_each_label_once_refuse_crops(name):
    with pytest.raises(
        UsageError, match=r"`crops` only work .*try --set reward_model=network"
    ) as error:
        make_reward_model(name, SPEC, 10, 6, FitSettings(crops=1))
    assert "\n" not in str(error.value)


def test_a_model_of_your_own_refuses_crops():
    with pytest.raises(UsageError, match="`numpy:ndarray` is your own; try"):
        make_reward_model("numpy:ndarray", SPEC, 10, 6, FitSettings(crops=1))


def test_crops_are_off_by_default_and_in_old_runs():
    assert TeachConfig().fit_settings.only_labels
    assert saved_teaching({"labels": 10}).fit_settings == TeachConfig().fit_settings
    assert TeachConfig(crops=2, shortest_crop=0.5).fit_settings == FitSettings(2, 0.5)
