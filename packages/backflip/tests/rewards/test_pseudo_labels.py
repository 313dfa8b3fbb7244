"""Tests of pseudo-labels: which pairs get one, its loss and gradient, and fits with them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import keys_of, labelled, some_clip

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import flatten
from backflip.rewards.interface import FitSettings, ObservedClip
from backflip.rewards.network import ensemble
from backflip.rewards.network.losses import Labelled
from backflip.rewards.network.model import PSEUDO_LABELS, NetworkRewardModel
from backflip.rewards.network.pseudo_labels import pseudo_label_loss, pseudo_labels
from backflip.rewards.registry import make_reward_model
from runshelf.errors import UsageError

BOX = Box(np.full(2, -2, np.float32), np.full(2, 2, np.float32), np.dtype("f4"))
SPEC = EnvSpec("vector", BOX, Discrete(3), 100)
LENGTH, N = 6, 30
OUTPUTS = np.random.default_rng(0).normal(size=(N, 2, LENGTH)).astype(np.float32)
ALIVE = np.arange(LENGTH) < np.random.default_rng(1).integers(1, LENGTH + 1, (N, 2, 1))
PAIRS = Labelled(*map(jnp.asarray, (OUTPUTS[..., None],) * 3), *map(jnp.asarray, (ALIVE,) * 3))
WIDTHS = pytest.mark.parametrize("width", [None, 0.0, 0.8])


def by_hand(i, width):
    """Return the likelier side and its probability, from eq. 1 of SURF and a width of ties."""
    left, right = (sum(OUTPUTS[i, s][ALIVE[i, s]].tolist()) for s in (0, 1))
    of_left, of_right = (1 / (1 + np.exp((width or 0.0) - d)) for d in (left - right, right - left))
    return float(of_left > of_right), max(of_left, of_right), left - right


@pytest.mark.medium
@WIDTHS
def test_pairs_above_the_threshold_get_the_likelier_side(width):
    given = None if width is None else jnp.float32(width)
    sides, counts = pseudo_labels(jnp.asarray(OUTPUTS), jnp.asarray(ALIVE), given, 0.8)
    for i in range(N):
        side, chance, _ = by_hand(i, width)
        assert float(sides[i]) == side
        assert bool(counts[i]) == (chance > 0.8)
    assert 0 < int(counts.sum()) < N


@pytest.mark.medium
@WIDTHS
def test_the_loss_is_the_mean_over_all_pairs_by_hand(width):
    given = None if width is None else jnp.float32(width)
    found = pseudo_label_loss(jnp.asarray(OUTPUTS), PAIRS, PAIRS.alive, given, 0.8)
    total = 0.0
    for i in range(N):
        side, chance, d = by_hand(i, width)
        if chance > 0.8:
            p = 1 / (1 + np.exp((width or 0.0) - (d if side else -d)))
            total -= np.log(0.9 * p + 0.1 / (3 if width else 2))
    assert float(found) == pytest.approx(total / N, rel=1e-4)


@pytest.mark.medium
def test_the_loss_of_a_crop_has_the_answer_of_the_whole_pair():
    outputs = jnp.asarray(
        [[[3.0, -1.0], [0.0, 1.0]]]
    )  # 2 against 1; of the last steps -1 against 1
    pair = jax.tree.map(lambda x: x[:1, :, :2], PAIRS._replace(left_preferred=(), weight=()))
    pair = pair._replace(alive=jnp.ones((1, 2, 2), bool))
    last = jnp.asarray([[[False, True], [False, True]]])
    found = pseudo_label_loss(outputs, pair, last, None, 0.7)
    assert float(found) == pytest.approx(-np.log(0.9 / (1 + np.exp(2)) + 0.05), rel=1e-5)


@pytest.mark.medium
def test_gradients_reach_only_pairs_that_count_and_not_the_width():
    outputs, width = jnp.asarray(OUTPUTS), jnp.float32(0.8)

    def loss(outputs, width, weight):
        return weight * pseudo_label_loss(outputs, PAIRS, PAIRS.alive, width, 0.8)

    of_outputs, of_width = jax.grad(loss, (0, 1))(outputs, width, 2.0)
    _, counts = pseudo_labels(outputs, PAIRS.alive, width, 0.8)
    reached = np.asarray(of_outputs != 0).any((1, 2))
    np.testing.assert_array_equal(reached, counts)
    assert float(of_width) == 0.0
    nothing = jax.grad(loss, (0, 1))(outputs, width, 0.0)
    assert not np.asarray(nothing[0]).any()


def unlabelled(n=12):
    """Pairs of two seeds, as arrays (seeds, pairs, sides, steps, ...)."""
    rng = np.random.default_rng(5)
    clips = [some_clip(SPEC, rng) for _ in range(2 * n * 2)]
    arrays = [np.stack(x) for x in zip(*clips, strict=True)]
    return ObservedClip(*(x.reshape(2, n, 2, *x.shape[1:]) for x in arrays))


@pytest.fixture(scope="module")
def fits():
    """Fits by name: of pairs of clips, of pairs without a step that is alive, and of none."""
    labels, keys, pairs = [labelled(SPEC, s, 16) for s in (0, 1)], keys_of(4, 5), unlabelled()
    dead = pairs._replace(alive=np.zeros_like(pairs.alive))
    spec = dataclasses.replace(SPEC)  # of its own: `UPDATES` is compiled in

    on, off = (
        NetworkRewardModel(spec, 16, 6, FitSettings(0, 0.75, weight, 0.7)) for weight in (1.0, 0.0)
    )
    ways = {
        "on": lambda: on.fit_unlabelled(None, labels, keys, pairs),
        "again": lambda: on.fit_unlabelled(None, labels, keys, pairs),
        "dead": lambda: on.fit_unlabelled(None, labels, keys, dead),
        "unlabelled": lambda: on.fit_unlabelled(None, [[], labels[1]], keys, pairs),
        "off": lambda: off.fit_unlabelled(None, labels, keys, pairs),
        "plain": lambda: NetworkRewardModel(spec, 16, 6).fit(None, labels, keys),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "UPDATES", 100)
        yield functools.cache(lambda name: ways[name]())


def same_bits(one, other):
    arrays = flatten(other.parameters)
    pairs = [(x, arrays[name]) for name, x in flatten(one.parameters).items()]
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.slow
def test_pseudo_labels_change_the_fit_and_not_what_counts_as_a_label(fits):
    on, plain = fits("on"), fits("plain")
    assert same_bits(on, fits("again"))
    assert not same_bits(on, plain)
    assert not same_bits(on, fits("dead"))
    for one, other in zip(on.metrics, plain.metrics, strict=True):
        assert one["reward_model_labels"] == other["reward_model_labels"] == 16
        assert set(one) == {*other, PSEUDO_LABELS}
        assert 0 < one[PSEUDO_LABELS] <= 1
    np.testing.assert_array_equal(
        on.parameters.standardiser.mean, plain.parameters.standardiser.mean
    )


@pytest.mark.slow
def test_a_weight_of_zero_changes_no_bit(fits):
    assert same_bits(fits("off"), fits("plain"))
    assert fits("off").metrics == fits("plain").metrics


@pytest.mark.slow
def test_pairs_without_living_steps_get_no_pseudo_label_and_no_labels_no_reward(fits):
    assert [one[PSEUDO_LABELS] for one in fits("dead").metrics] == [0.0, 0.0]
    assert fits("unlabelled").metrics[0][PSEUDO_LABELS] == 0.0
    assert not np.asarray(fits("unlabelled").parameters.members["head"]["w"])[0].any()


@pytest.mark.parametrize("name", ["additive", "auto", "change_map", "linear"])
def test_models_that_count_each_label_once_refuse_pseudo_labels(name):
    with pytest.raises(UsageError, match=r"try --set reward_model=network, or --set pseudo_"):
        make_reward_model(name, SPEC, 10, 6, FitSettings(pseudo_label_weight=1.0))
