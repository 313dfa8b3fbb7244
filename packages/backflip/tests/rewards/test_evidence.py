"""Tests of the fit and the scaling of the linear reward model."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.losses import answer_probabilities, preference_loss
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.rewards.interface import LabelledComparison, ObservedClip
from backflip.rewards.linear import design as designs
from backflip.rewards.linear import evidence as module
from backflip.rewards.linear import grid as grids
from backflip.rewards.linear import marginal as marginals
from backflip.rewards.linear import posterior, search
from backflip.rewards.linear.answers import (
    Answers,
    Point,
    probabilities,
    score_of,
    some_models,
    with_models,
)
from backflip.rewards.linear.design import ByFeatures, ByLabels, Each, is_by_labels
from backflip.rewards.linear.evidence import MEMBERS, Labelled, fit
from backflip.rewards.linear.marginal import log_evidence
from backflip.rewards.linear.model import LinearRewardModel
from backflip.rewards.linear.steps import StepCache
from backflip.rewards.representations.interface import Inputs
from backflip.rewards.representations.slow import part_sizes

GROUPS = (1, 5, 4, 2)
NOISE = 0.1
SIZE = sum(GROUPS)
SPEC = EnvSpec(
    "vector",
    Box(np.full(2, -9, np.float32), np.full(2, 9, np.float32), np.dtype("f4")),
    Discrete(2),
    100,
)


def key(seed=0):
    return np.asarray(jax.random.key_data(jax.random.key(seed)))


class Found(NamedTuple):
    """The most probable weights and logits, θ, and the log evidence."""

    weights: np.ndarray
    point: Point
    tie_width: float
    log_evidence: float


def most_probable(seen, preferred, weight, start=None, noise=NOISE):
    """Return what is found for one model, whose matrices are of labels or of features."""
    seen = np.asarray(seen, float)
    one = ByLabels(seen @ seen.T) if is_by_labels(*seen.shape) else ByFeatures(seen)
    answers = Answers(*(np.array([x], float) for x in (weight, preferred, noise)))
    start = start or Point(np.zeros(len(seen)), 0.0)
    best = posterior.most_probable(Each([one]), answers, Point(*(np.array([x]) for x in start)))
    (evidence,) = log_evidence(Each([one]), best, answers)
    point = Point(best.point.logits[0], best.point.log_width[0])
    return Found(seen.T @ best.dual[0], point, best.score.tie_width[0], evidence)


def by_hand(kernel, preferred, weight):
    """Return the most probable logits, the log evidence and θ, given the covariance of logits."""
    root = np.linalg.cholesky(np.asarray(kernel, np.float64) + 1e-6 * np.eye(len(kernel)))
    found = most_probable(root, preferred, weight)
    return found.point.logits, found.log_evidence, found.tie_width


def labels_of(weights, count, seed=0, ties=0.0, noise=0.0):
    """Return labels of a reward that is linear in random features; a share of them are ties."""
    rng = np.random.default_rng(seed)
    difference = rng.normal(size=(count, len(weights))).astype(np.float32) * 3
    returns = difference @ weights + noise * rng.normal(size=count)
    close = np.abs(returns) < np.quantile(np.abs(returns), ties) if ties else returns != returns
    return Labelled(difference, np.where(close, 0.5, returns > 0))


def with_wrong_answers(labelled, share=0.0):
    """Return the labels with a share of the answers turned around."""
    wrong = np.random.default_rng(5).random(len(labelled.left_preferred)) < share
    preferred = labelled.left_preferred
    return labelled._replace(left_preferred=np.where(wrong, 1.0 - preferred, preferred))


def models_of(grid):
    """Return the variances and the share of random answers of each model."""
    return zip(grid.variances, grid.noises, strict=True)


def some_labels(count=20):
    return labels_of(np.random.default_rng(9).normal(size=SIZE), count)


def seen_of(count, scale=5.0, seed=0):
    rng = np.random.default_rng(seed)
    return np.sqrt(scale / 6) * rng.normal(size=(count, 6))


def log_likelihood(logits, log_width, preferred, weight):
    """Return the log-likelihood of labels by its definition, plus the log prior of log θ."""
    ties = bool(((preferred == 0.5) & (weight > 0)).any())
    width = jnp.exp(log_width) if ties else 0.0
    left, right = jax.nn.sigmoid(logits - width), jax.nn.sigmoid(-logits - width)
    tie = 1 - left - right
    chosen = jnp.where(preferred == 1, left, jnp.where(preferred == 0, right, tie))
    p = (1 - NOISE) * chosen + NOISE / (3 if ties else 2)
    prior = -0.5 * jnp.square(log_width / posterior.WIDTH_DEVIATION)
    return (weight * jnp.log(p)).sum() + prior


@pytest.mark.medium
def test_probabilities_of_both_orders_of_a_pair_sum_to_one():
    """Rahtz's bug 2; there is no dropout: what is scored is what is predicted."""
    left, right = jax.random.normal(jax.random.key(0), (2, 1000)) * 10

    @jax.jit
    def both(left, right):
        one, other = (answer_probabilities(x, 0.0, NOISE) for x in (left - right, right - left))
        return one[..., 2] + other[..., 2]

    np.testing.assert_allclose(both(left, right), 1.0, atol=1e-6)
    swapped = some_labels()
    turned = Labelled(-swapped.difference, 1 - swapped.left_preferred)
    one, other = (fit(x, GROUPS, key(3)) for x in (swapped, turned))
    np.testing.assert_allclose(one.models, other.models, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(one.members, other.members, rtol=1e-3, atol=1e-3)


@pytest.mark.medium
@pytest.mark.parametrize("scale", [0.5, 10.0, 100.0])
@pytest.mark.parametrize(
    "count",
    [6, pytest.param(12, marks=pytest.mark.slow)],
    ids=["matrices of labels", "of features"],
)
def test_the_posterior_gradient_is_zero_at_the_most_probable_weights(monkeypatch, scale, count):
    """At the maximum, w = Φᵀ ∂ log p / ∂m, and ∂ log p / ∂ log θ is 0."""
    monkeypatch.setattr(posterior, "SMALLEST_GAIN", 1e-5)
    rng = np.random.default_rng(1)
    seen = seen_of(count, scale)
    preferred = rng.choice([0, 0.5, 1], count)
    weight = rng.integers(0, 3, count)
    found = most_probable(seen, preferred, weight)
    slopes = jax.grad(log_likelihood, (0, 1))
    log_width = jnp.float32(np.log(found.tie_width))
    logits = jnp.asarray(found.point.logits, jnp.float32)
    np.testing.assert_allclose(logits, seen @ found.weights, rtol=1e-3, atol=1e-3)
    numbers = (jnp.asarray(x, jnp.float32) for x in (preferred, weight))
    gradient, of_width = slopes(logits, log_width, *numbers)
    np.testing.assert_allclose(found.weights, seen.T @ gradient, atol=0.02)
    assert abs(float(of_width)) < 0.02


@pytest.mark.medium
def test_the_most_probable_logits_are_a_maximum():
    kernel = seen_of(6) @ seen_of(6).T + 1e-3 * np.eye(6)
    preferred, weight = np.array([1.0, 0, 1, 1, 0, 0.5]), np.ones(6)
    best, _, width = by_hand(kernel, preferred, weight)
    log_width = np.log(width)

    def log_posterior(logits, log_width):
        point = jnp.asarray(logits, jnp.float32)
        fit = float(log_likelihood(point, log_width, jnp.asarray(preferred), jnp.asarray(weight)))
        return fit - 0.5 * logits @ np.linalg.solve(kernel, logits)

    rng = np.random.default_rng(0)
    chol = np.linalg.cholesky(kernel)
    others = [
        log_posterior(best + 0.3 * chol @ rng.normal(size=6), log_width + 0.3 * rng.normal())
        for _ in range(50)
    ]
    assert log_posterior(best, log_width) > max(others)


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_matrices_of_labels_and_of_features_give_the_same(monkeypatch, scale):
    rng = np.random.default_rng(3)
    seen = scale * rng.normal(size=(30, 6))
    preferred, weight = rng.choice([0, 0.5, 1], 30), rng.integers(0, 3, 30)
    found = []
    for factor in (0.0, 1e9):
        monkeypatch.setattr(designs, "LABELS_PER_FEATURE", factor)
        found.append(most_probable(seen, preferred, weight))
    one, other = found
    assert one.tie_width == pytest.approx(other.tie_width, rel=1e-3)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-3, atol=1e-3)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-3)


@pytest.mark.parametrize(("labels", "features"), [(40, 12), (12, 40)])
def test_dependent_features_give_as_many_columns_as_are_independent(labels, features):
    rng = np.random.default_rng(4)
    independent = rng.normal(size=(labels, 5)) * [1, 1e2, 1e-3, 1, 1]
    seen = np.zeros((labels, features))  # some features are 0 in each clip
    seen[:, :8] = independent @ rng.normal(size=(5, 8))
    found = designs.fewest_features(seen)
    assert found.shape == (labels, 5)
    largest = np.abs(seen).max() ** 2
    np.testing.assert_allclose(found @ found.T, seen @ seen.T, atol=1e-12 * largest)
    nothing = designs.fewest_features(np.zeros((labels, features)))
    np.testing.assert_array_equal(nothing, 0)


@pytest.mark.medium
def test_dependent_features_do_not_change_a_fit(monkeypatch):
    rng = np.random.default_rng(5)
    labels, groups = designs.FEW_LABELS + 30, (12, 9)
    of_each = [rng.normal(size=(labels, 4)) @ rng.normal(size=(4, size)) for size in groups]
    difference = np.concatenate(of_each, 1).astype(np.float32)
    labelled = Labelled(difference, (difference[:, :3].sum(1) > 0).astype(float))
    fewest = module._scaled_groups(labelled, groups).fewest
    assert [part.shape[1] for part in fewest] == [4, 4]
    found = fit(labelled, groups, key())
    monkeypatch.setattr(module, "fewest_features", lambda features: features)
    expected = fit(labelled, groups, key())
    np.testing.assert_array_equal(found.numbers, expected.numbers)
    np.testing.assert_allclose(found.chances, expected.chances, atol=1e-6)
    for one, other in ((found.models, expected.models), (found.members, expected.members)):
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(other).max())


@pytest.mark.medium
def test_probabilities_and_their_derivatives_are_those_of_the_losses():
    logits, log_width = np.linspace(-6, 6, 25), 0.4

    def p(m, w):
        return answer_probabilities(m, jnp.exp(w), NOISE)

    m, w = jnp.asarray(logits, jnp.float32), jnp.float32(log_width)
    alone = logits[None], np.exp(np.array([log_width])), np.array([NOISE])
    found = [x[:, 0] for x in probabilities(*alone)]
    by_m, by_w = jax.jacfwd(p, 0), jax.jacfwd(p, 1)
    expected = [
        jax.vmap(f, (0, None))(m, w)
        for f in (p, by_m, by_w, jax.jacfwd(by_m, 0), jax.jacfwd(by_m, 1), jax.jacfwd(by_w, 1))
    ]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, np.asarray(other).T, rtol=1e-3, atol=1e-5)
    without = answer_probabilities(m, 0.0, NOISE)
    decided = probabilities(logits[None], np.zeros(1), np.array([NOISE])).p[[0, 2], 0]
    np.testing.assert_allclose(decided, np.asarray(without).T[[0, 2]], atol=1e-6)


def test_the_weights_give_the_logits_even_if_one_difference_is_large():
    """A clip that ends early differs from all others in every feature."""
    rng = np.random.default_rng(2)
    seen = rng.normal(size=(120, 400))
    seen[7] += 400.0
    preferred = (seen[:, 0] > 0).astype(float)
    preferred[rng.random(120) < 0.6] = 0.5
    found = most_probable(seen, preferred, np.ones(120))
    np.testing.assert_allclose(seen @ found.weights, found.point.logits, atol=1e-3)


@pytest.mark.parametrize("start", [0.0, -3.0, 5.0])
def test_the_start_does_not_matter(start):
    rng = np.random.default_rng(4)
    seen = rng.normal(size=(40, 6))
    preferred, weight = rng.choice([0, 0.5, 1], 40), np.ones(40)
    one = most_probable(seen, preferred, weight)
    there = Point(start * rng.normal(size=40), start / 5)
    other = most_probable(seen, preferred, weight, there)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=0.02)
    np.testing.assert_allclose(other.weights, one.weights, atol=0.05)


def marginal(kernel, preferred, noise=0.1, points=60):
    """Return the log evidence by Gauss-Hermite quadrature over independent coordinates."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    root = np.linalg.cholesky(kernel + 1e-9 * np.eye(len(kernel)))
    total = 0.0
    for chosen in itertools.product(range(points), repeat=len(kernel)):
        logits = root @ nodes[list(chosen)]
        p = (1 - noise) / (1 + np.exp(-logits)) + noise / 2
        likelihood = np.prod(np.where(preferred > 0.5, p, 1 - p))
        total += weights[list(chosen)].prod() * likelihood
    return np.log(total)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kernel", "preferred"),
    [
        ([[1.0]], [1.0]),
        ([[4.0]], [0.0]),
        ([[2.0, 1.5], [1.5, 2.0]], [1.0, 1.0]),
        ([[2.0, 1.5], [1.5, 2.0]], [1.0, 0.0]),
        ([[2.0, -1.5], [-1.5, 2.0]], [1.0, 1.0]),
        ([[300.0, 0.0], [0.0, 300.0]], [1.0, 1.0]),
        ([[300.0, 250.0], [250.0, 300.0]], [1.0, 0.0]),
    ],
)
def test_the_evidence_is_near_the_marginal_likelihood(kernel, preferred):
    kernel, preferred = np.array(kernel), np.array(preferred)
    _, evidence, _ = by_hand(kernel, preferred, np.ones(len(kernel)))
    # Laplace's approximation is 0.15 nats off for small variances, and 0.6 for the largest.
    assert float(evidence) == pytest.approx(marginal(kernel, preferred), abs=0.03)


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_labels_that_share_nothing_are_chances_of_one_half(noise):
    """However large the prior variance is; a memorised label tells nothing of others."""
    seen = np.sqrt(300) * np.eye(40)
    preferred = np.resize([0.0, 1.0, 1.0], 40)
    found = most_probable(seen, preferred, np.ones(40), noise=noise)
    assert found.log_evidence == pytest.approx(40 * np.log(0.5), rel=1e-3)


@pytest.mark.parametrize(("mean", "deviation"), [(0.5, 0.1), (3.0, 1.0), (-4.0, 5.0), (10.0, 17.0)])
@pytest.mark.parametrize("width", [0.0, 2.0])
def test_the_expected_chance_is_that_over_the_logit(mean, deviation, width):
    logits = mean + deviation * np.linspace(-9, 9, 20_001)[None]
    density = np.exp(-0.5 * np.square((logits - mean) / deviation))
    widths, noise = np.array([width]), np.array([0.2])
    every = probabilities(logits, widths, noise).p[:, 0]
    for row, preferred in ((0, 0.0), (1, 0.5), (2, 1.0)) if width else ((0, 0.0), (2, 1.0)):
        answers = Answers(np.ones((1, 1)), np.full((1, 1), preferred), noise)
        both = np.array([[mean]]), np.array([[deviation**2]])
        expected = (every[row] * density[0]).sum() / density.sum()
        found = marginals.expected_chance(*both, widths, answers)
        assert found[0, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("preferred", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("variance", [0.3, 4.0])
def test_the_evidence_of_a_tie_and_an_answer_integrates_over_the_width(preferred, variance):
    """Two labels of the same pair, one of them a tie: by quadrature over the logit and log θ."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    logits, widths = np.sqrt(variance) * nodes[:, None], np.exp(nodes[None])
    left, right = (np.exp(-np.logaddexp(0, widths - sign * logits)) for sign in (1, -1))
    answers = {0.0: right, 0.5: 1 - left - right, 1.0: left}
    both = (0.9 * answers[preferred] + 0.1 / 3) * (0.9 * answers[0.5] + 0.1 / 3)
    chance = np.outer(weights, weights) / weights.sum() ** 2
    _, evidence, _ = by_hand(np.full((2, 2), variance), [preferred, 0.5], np.ones(2))
    assert float(evidence) == pytest.approx(np.log((chance * both).sum()), abs=0.3)


@pytest.mark.medium
def test_without_ties_the_likelihood_is_that_of_bradley_and_terry():
    logits, preferred = np.array([0.3, -2.0, 5.0]), np.array([1.0, 0.0, 0.0])
    answers = Answers(np.ones((1, 3)), preferred[None], np.array([NOISE]))
    score = score_of(Point(logits[None], np.ones(1)), answers)
    numbers = (jnp.asarray(x, jnp.float32) for x in (logits, np.zeros(3), preferred))
    expected = -preference_loss(*numbers, NOISE).sum()
    assert score.log_likelihood == pytest.approx(float(expected), rel=1e-5)
    assert score.tie_width == score.width_gradient == score.width_fisher == 0


@pytest.mark.slow
def test_a_tie_says_that_the_clips_are_close_not_that_the_reward_is_small():
    """As half a label for each side, ties would shrink the prior; without them, less is known."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        difference = 3 * rng.normal(size=(40, SIZE))
        truth = rng.normal(size=SIZE)
        returns = difference @ truth
        close = np.abs(returns) < np.quantile(np.abs(returns), 0.5)
        preferred = np.where(close, 0.5, returns > 0)
        fresh = rng.normal(size=(500, SIZE))
        both = [Labelled(difference[x], preferred[x]) for x in (~close, slice(None))]
        fits = [fit(x, GROUPS, key()) for x in both]
        found = [np.corrcoef(fresh @ (x.chances @ x.models), fresh @ truth)[0, 1] for x in fits]
        gains.append(found[1] - found[0])
    assert np.mean(gains) > 0.02


def test_with_zero_variance_the_evidence_is_that_of_guessing():
    found = most_probable(np.zeros((3, 2)), [1.0, 0.0, 1.0], np.ones(3))
    assert found.log_evidence == pytest.approx(3 * np.log(0.5), abs=1e-5)
    np.testing.assert_array_equal(found.weights, 0)


@pytest.mark.medium
def test_evidence_selects_the_relevant_group():
    weights = np.zeros(SIZE)
    weights[6:10] = [1, -1, 2, 1]  # the third group
    labelled = labels_of(weights, 60)
    ensemble = fit(labelled, GROUPS, key())
    grid, evidence = ensemble.variances, ensemble.log_evidence
    assert len(grids.combinations(4)) == 4 * 2 + 6 * 4 + 4 * 2 + 2  # one, two, three, all groups
    without = evidence[grid[:, 2] == 0].max()
    assert evidence[grid[:, 2] > 0].max() > without + 10  # nats
    alone = evidence[((grid > 0) == [False, False, True, False]).all(1)].max()
    assert alone > without + 10
    expected = ensemble.chances @ (grid > 0)
    assert expected[2] > 0.99
    assert max(expected[[0, 1, 3]]) < 0.2


def test_each_group_is_active_with_the_prior_probability(monkeypatch):
    monkeypatch.setattr(grids, "IN_PLAY", 0.25)
    grid = grids.grid_of(4)
    # Odds of 1 to 3 for each active group, shared by 2, 4, 2 or 2 combinations of variances.
    of_active = {1: 1 / 3 / 2, 2: 1 / 9 / 4, 3: 1 / 27 / 2, 4: 1 / 81 / 2}
    expected = [
        of_active[int((variances > 0).sum())] * grids.NOISES[noise]
        for variances, noise in models_of(grid)
    ]
    np.testing.assert_allclose(np.exp(grids.log_prior(grid)), expected, rtol=1e-5)
    every = np.exp(grids.log_prior(grids.grid_of(3))).sum()
    assert sum(grids.NOISES.values()) == pytest.approx(1)
    assert every == pytest.approx((4 / 3) ** 3 - 1, rel=1e-5)  # all but none in play


def every_model(labelled, groups):
    """Return each model, its log evidence and weights, all of them fitted from zero."""
    scaled = module._scaled_groups(labelled, groups)
    for variances, noise in models_of(grids.grid_of(len(groups))):
        both = zip(np.sqrt(variances), scaled.parts, strict=True)
        seen = np.concatenate([root * part for root, part in both], 1)
        found = most_probable(seen, labelled.left_preferred, np.ones(len(seen)), noise=noise)
        scales = np.repeat(np.sqrt(variances) * scaled.scales, groups)
        yield (*variances, noise), found.log_evidence, found.weights * scales


PROBLEMS = {
    "one group": ([0, 2], 40, 0.0, 0.0),
    "two groups": ([2, 3], 60, 0.0, 0.0),
    "three groups and noise": ([0, 1, 2], 90, 0.0, 2.0),
    "ties": ([1, 3], 60, 0.4, 0.0),
    "all groups": ([0, 1, 2, 3], 120, 0.3, 0.0),
    "six labels": ([1], 6, 0.0, 0.0),
    "one label": ([1], 1, 0.0, 0.0),
    "noise alone": ([], 40, 0.2, 1.0),
    "wrong answers": ([1, 2], 90, 0.0, 0.0, 0.2),
}


QUICK = ("two groups", "ties", "one label", "wrong answers")


@pytest.mark.medium
@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(x, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, x in PROBLEMS.items()
    ],
)
def test_the_mixture_is_that_of_all_models(monkeypatch, problem):
    """The search leaves out only what is improbable, and prior times evidence weighs the rest."""
    monkeypatch.setattr(posterior, "SMALLEST_GAIN", 1e-4)
    active, count, ties, noise, *wrong = problem
    if not active:  # with large ε, noise has several most probable explanations, one for each start
        monkeypatch.setattr(grids, "NOISES", {0.1: 1.0})
    starts = np.cumsum((0, *GROUPS))
    truth = np.zeros(SIZE)
    for group in active:
        truth[starts[group] : starts[group + 1]] = np.random.default_rng(group).normal()
    labelled = with_wrong_answers(labels_of(truth, count, 1, ties, noise), *wrong)
    ensemble = fit(labelled, GROUPS, key())
    grid = grids.Grid(ensemble.variances, ensemble.noises)
    largest = grids.largest_evidence(grid, labelled.left_preferred)
    assert (ensemble.log_evidence <= largest + 1e-9).all()
    models = models_of(grid)
    found = {(*variances, noise): at for at, (variances, noise) in enumerate(models)}
    odds, expected = {}, np.zeros(SIZE)
    for model, evidence, weights in every_model(labelled, GROUPS):
        groups = sum(v > 0 for v in model[:-1])
        prior = (grids.IN_PLAY / (1 - grids.IN_PLAY)) ** groups / {1: 2, 2: 4, 3: 2, 4: 2}[groups]
        odds[model] = np.exp(evidence) * prior * grids.NOISES[model[-1]]
        expected += odds[model] * weights
    total = sum(odds.values())
    chances = {model: x / total for model, x in odds.items()}
    assert sum(chances[model] for model in chances if model not in found) < 1e-2
    for model, at in found.items():
        assert ensemble.chances[at] == pytest.approx(chances[model], abs=1e-2)
    mean = ensemble.chances @ ensemble.models
    apart = labelled.difference @ (mean - expected / total)
    scale = np.abs(labelled.difference @ mean).max()
    assert np.abs(apart).max() < 0.02 * scale + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.medium)])
def test_probable_models_of_many_features_are_fitted_to_the_end(seed):
    """Their evidence rises by tens of nats in the last steps, as large logits say less."""
    groups, rng = (2, 30, 40, 30), np.random.default_rng(seed)
    common = rng.normal(size=(120, 8))
    seen = common @ rng.normal(size=(8, sum(groups))) + rng.normal(size=(120, sum(groups)))
    wanted = seen[:, 2:72] @ rng.normal(size=70)
    preferred = (wanted > 0) != (rng.random(120) < 0.05)
    labelled = Labelled(seen, preferred.astype(float))
    ensemble = fit(labelled, groups, key())
    models = zip(ensemble.variances, ensemble.noises, strict=True)
    found = {(*variances, noise): at for at, (variances, noise) in enumerate(models)}
    converged = {model: evidence for model, evidence, _ in every_model(labelled, groups)}
    least = max(converged.values()) - 9
    probable = {model for model, evidence in converged.items() if evidence > least}
    assert sum(model in found for model in probable) >= len(probable) / 2
    for model in probable & set(found):
        assert ensemble.log_evidence[found[model]] > converged[model] - 0.5


def test_changes_are_smaller_variances_and_a_larger_share_of_random_answers():
    variances = np.array([[300, 30, 0], [30, 300, 300], [300, 0, 0]], float)
    grid = grids.Grid(variances, np.array([0.1, 0.2, 0.1]))
    smaller, larger = grids.Change(0, 30.0), grids.Change(None, 0.2)
    assert grid.changes(0, 1) == {smaller, larger}
    assert grid.changes(1, 0) == {grids.Change(1, 30.0)}
    assert grid.changes(0, 2) == set()


@pytest.mark.medium
def test_what_made_a_part_of_a_model_improbable_is_not_tried_again(monkeypatch):
    monkeypatch.setattr(search, "EXPANDED", 1)  # as with many labels
    truth = np.zeros(SIZE)
    truth[: sum(GROUPS[:2])] = np.random.default_rng(0).normal(size=sum(GROUPS[:2])) * 3
    labelled = labels_of(truth, 300)
    few = fit(labelled, GROUPS, key())
    monkeypatch.setattr(search._Window, "_refuted_in", lambda self, model: set())
    every = fit(labelled, GROUPS, key())
    found = set(map(tuple, np.column_stack([few.variances, few.noises])))
    chances = dict(
        zip(
            map(tuple, np.column_stack([every.variances, every.noises])), every.chances, strict=True
        )
    )
    assert found < set(chances)
    assert sum(chance for model, chance in chances.items() if model not in found) < 1e-3


def test_a_change_is_refuted_for_larger_models_while_the_smaller_one_is_probable():
    grid = grids.Grid(np.array([[30, 0, 0], [30, 30, 0], [0, 30, 0]], float), np.full(3, 0.1))
    window = search._Window(lambda variances: pytest.fail("no fit"), grid, np.ones(5))
    change = grids.Change(0, 30.0)
    window._refuted = {change: [0]}
    window.worth = {0: -3.0, 1: 0.0, 2: 0.0}
    assert window._refuted_in(1) == {change}
    assert window._refuted_in(2) == set()  # it has other groups
    window.worth[2] = 20.0
    assert window._refuted_in(1) == set()


def test_a_matrix_that_is_not_positive_is_an_error_and_no_factor():
    with pytest.raises(np.linalg.LinAlgError):
        designs._factor(np.diag([1.0, -5.0]))


def test_few_models_are_fitted_when_labels_are_many():
    truth = np.zeros(SIZE)
    truth[6:10] = [1, -1, 2, 1]
    assert len(fit(labels_of(truth, 300), GROUPS, key()).chances) < 50
    assert len(grids.grid_of(4).noises) == 42 * len(grids.NOISES)


def test_without_labels_no_combination_of_groups_is_fitted():
    ensemble = fit(labels_of(np.zeros(SIZE), 0), GROUPS, key())
    assert ((ensemble.variances > 0).sum(1) == 1).all()
    assert not ensemble.models.any()
    assert not ensemble.members.any()
    assert ensemble.chances.sum() == pytest.approx(1)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("share", "low", "high"),
    [pytest.param(0.0, 0.1, 0.11, marks=pytest.mark.slow), (0.1, 0.15, 0.3)],
)
def test_the_share_of_random_answers_follows_from_the_labels(share, low, high):
    """A share w of wrong answers is a share 2w of random ones."""
    found = []
    for seed in range(6):
        truth = np.zeros(SIZE)
        truth[6:10] = np.random.default_rng(seed).normal(size=4)
        labelled = with_wrong_answers(labels_of(truth, 200, seed), share)
        ensemble = fit(labelled, GROUPS, key())
        found.append(ensemble.chances @ ensemble.noises)
    assert low <= np.mean(found) <= high


@pytest.mark.slow
def test_wrong_answers_cost_less_if_their_share_is_chosen(monkeypatch):
    """A fit that assumes one random answer in ten explains one wrong one in five by chance."""
    gains = []
    for seed in range(6):
        truth = np.random.default_rng(seed).normal(size=SIZE)
        labelled = with_wrong_answers(labels_of(truth, 80, seed), 0.2)
        fits = [fit(labelled, GROUPS, key())]
        with monkeypatch.context() as fixed:
            fixed.setattr(grids, "NOISES", {0.1: 1.0})
            fits.append(fit(labelled, GROUPS, key()))
        fresh = np.random.default_rng(9).normal(size=(500, SIZE))
        right = [np.corrcoef(fresh @ (x.chances @ x.models), fresh @ truth)[0, 1] for x in fits]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0.01


def test_neighbours_differ_in_one_variance_or_in_the_next_share_of_random_answers():
    grid = grids.grid_of(2)
    near = grids.neighbours(grid)
    np.testing.assert_array_equal(near, near.T)
    place = {(*map(float, v), e): at for at, (v, e) in enumerate(models_of(grid))}
    one = place[30.0, 0.0, 0.1]
    expected = {(300.0, 0.0, 0.1), (30.0, 30.0, 0.1), (30.0, 300.0, 0.1), (30.0, 0.0, 0.2)}
    found = {model for model, at in place.items() if near[one, at] and at != one}
    assert found == expected


@pytest.mark.slow
def test_members_know_nothing_of_labels_that_they_were_not_fitted_to():
    """Labels of pure noise are held out at chance although steps begin at the fit to all labels."""
    right, members = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labelled = Labelled(rng.normal(size=(60, SIZE)), rng.integers(0, 2, 60).astype(float))
        ensemble = fit(labelled, GROUPS, key(seed))
        margins = labelled.difference @ ensemble.members.T
        agrees = (margins > 0) == (labelled.left_preferred[:, None] > 0.5)
        right.append(agrees[ensemble.drawn.T == 0].mean())
        members.append(agrees[ensemble.drawn.T > 0].mean())
    assert np.mean(right) == pytest.approx(0.5, abs=0.06)  # 10 seeds of about 22 labels each
    assert np.mean(members) > 0.53


def one_model(labelled, variances, noise=NOISE):
    """Return the designs of one model, and its answers."""
    preferred = np.asarray(labelled.left_preferred, float)[None]
    scaled = module._scaled_groups(labelled, GROUPS)
    designs = module._designs(scaled, np.array([variances], float))
    return designs, Answers(np.ones_like(preferred), preferred, np.array([noise]))


def test_a_step_that_leads_to_nothing_better_is_not_taken(monkeypatch):
    monkeypatch.setattr(posterior, "SMALLEST_GAIN", 1e-9)
    model, answers = one_model(some_labels(), [30.0, 0.0, 0.0, 0.0])
    found = posterior.most_probable(model, answers, Point(np.zeros((1, 20)), np.zeros(1)))
    away = Point(-3 * found.point.logits, found.point.log_width)
    after = posterior._nearer(found, posterior._Towards(away, -3 * found.dual), answers)
    np.testing.assert_array_equal(after.dual, found.dual)
    assert after.log_posterior == found.log_posterior


def test_a_step_that_is_too_long_is_halved_each_time(monkeypatch):
    model, answers = one_model(some_labels(), [30.0, 0.0, 0.0, 0.0])
    found = posterior.most_probable(model, answers, Point(np.zeros((1, 20)), np.zeros(1)))
    tried, state_at = [], posterior._state

    def record(point, dual, answers):
        tried.append((point.logits[0, 0] - found.point.logits[0, 0], dual[0, 0]))
        return state_at(point, dual, answers)._replace(log_posterior=found.log_posterior - 1)

    monkeypatch.setattr(posterior, "_state", record)
    away = posterior._Towards(Point(found.point.logits + 32.0, np.zeros(1)), found.dual - 32.0)
    posterior._nearer(found, away, answers)
    shares = 0.5 ** np.arange(posterior.HALVINGS + 1)
    np.testing.assert_allclose([way for way, _ in tried], 32.0 * shares, rtol=1e-6)
    np.testing.assert_allclose([x for _, x in tried], found.dual[0, 0] - 32.0 * shares, rtol=1e-6)


def test_rows_of_some_models_are_replaced_in_a_copy():
    point = Point(np.zeros((3, 2)), np.zeros(3))
    changed = with_models(point, np.array([1]), Point(np.ones((1, 2)), np.ones(1)))
    np.testing.assert_array_equal(changed.logits, [[0, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(changed.log_width, [0, 1, 0])
    assert not point.logits.any()


def test_equations_without_curvature_are_solved():
    target = np.arange(6.0).reshape(3, 2)
    design = designs.ByLabels(np.diag([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(design.solve(np.zeros(3), target), design.kernel @ target)
    variances, half_log_det = design.posterior(np.zeros(3))
    np.testing.assert_array_equal(variances, [1.0, 2.0, 3.0])
    assert half_log_det == 0


MATRICES = pytest.mark.parametrize(
    ("few", "count"),
    [(0, 30), (0, 8), (50, 30)],
    ids=["matrices of features", "of labels", "all in one call"],
)


@MATRICES
def test_a_member_does_not_depend_on_labels_that_it_was_not_fitted_to(monkeypatch, few, count):
    monkeypatch.setattr(module, "FEW_LABELS", few)
    labelled = some_labels(count)
    counts = np.resize([0.0, 1.0, 2.0], (1, count))
    rows = np.flatnonzero(counts[0])
    nowhere = Point(np.zeros((1, count)), np.zeros(1))
    found = []
    for preferred in (labelled.left_preferred, np.where(counts[0], labelled.left_preferred, 0.5)):
        labels = labelled._replace(left_preferred=preferred)
        designs, answers = one_model(labels, [30.0, 300.0, 0.0, 0.0])
        sample = answers._replace(weight=counts)
        found.append(posterior.most_probable(designs, sample, nowhere))
    np.testing.assert_array_equal(found[0].dual, found[1].dual)
    assert not found[0].dual[counts == 0].any()
    scaled = module._scaled_groups(labelled, GROUPS)
    fewer = scaled._replace(fewest=[x[rows] for x in scaled.fewest], kernels=None)
    alone = Each([module._design(fewer, np.array([30.0, 300.0, 0.0, 0.0]))])
    sample = Answers(counts[:, rows], answers.left_preferred[:, rows], answers.noise)
    start = Point(np.zeros((1, len(rows))), np.zeros(1))
    of_rows = posterior.most_probable(alone, sample, start)
    np.testing.assert_allclose(found[0].dual[:, rows], of_rows.dual, rtol=1e-6, atol=1e-9)


@pytest.mark.medium
@MATRICES
@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_models_that_are_fitted_together_are_those_fitted_alone(monkeypatch, few, count, ties):
    """Some arrive before others, and some steps are halved."""
    monkeypatch.setattr(module, "FEW_LABELS", few)
    labelled = with_wrong_answers(labels_of(np.ones(SIZE), count, ties=ties), 0.2)
    scaled, grid = module._scaled_groups(labelled, GROUPS), grids.grid_of(len(GROUPS))
    rng = np.random.default_rng(0)
    start = Point(3 * rng.normal(size=(len(grid.noises), count)), rng.normal(size=len(grid.noises)))
    weight = rng.integers(0, 3, start.logits.shape).astype(float)
    preferred = np.broadcast_to(labelled.left_preferred, weight.shape).astype(float)
    answers = Answers(weight, preferred, grid.noises)
    designs = module._designs(scaled, grid.variances)
    together = posterior.most_probable(designs, answers, start)
    evidence = log_evidence(designs, together, answers)
    for v in range(0, len(grid.noises), 5):
        one = np.array([v])
        of_one = Each([module._design(scaled, grid.variances[v])])
        its_answers = some_models(answers, one)
        alone = posterior.most_probable(of_one, its_answers, some_models(start, one))
        np.testing.assert_allclose(together.dual[one], alone.dual, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(together.point.log_width[one], alone.point.log_width, rtol=1e-6)
        assert evidence[v] == pytest.approx(log_evidence(of_one, alone, its_answers)[0], rel=1e-6)


def test_a_feature_that_is_not_finite_gives_nan():
    labelled = some_labels()
    labelled.difference[3, 2] = np.inf
    ensemble = fit(labelled, GROUPS, key())
    assert np.isnan(ensemble.models).all()
    assert np.isnan(ensemble.log_evidence).all()


def test_groups_are_scaled_to_a_mean_squared_length_of_one():
    labelled = some_labels(15)
    parts, scales, *_ = module._scaled_groups(labelled, GROUPS)
    start = 0
    for part, scale, size in zip(parts, scales, GROUPS, strict=True):
        assert part.shape == (15, size)
        assert float(np.square(part).sum()) / 15 == pytest.approx(1, rel=1e-4)
        piece = labelled.difference[:, start : start + size]
        np.testing.assert_allclose(part, piece * scale, rtol=1e-5)
        start += size


def test_a_constant_group_has_zero_weights():
    labelled = some_labels()
    labelled.difference[:, 0] = 0.0
    ensemble = fit(labelled, GROUPS, key())
    np.testing.assert_array_equal(ensemble.models[:, 0], 0)
    np.testing.assert_array_equal(ensemble.members[:, 0], 0)
    assert np.isfinite(ensemble.models).all()


def test_bootstrap_samples_have_the_number_of_labels():
    rng = np.random.default_rng(0)
    drawn = np.concatenate([module._bootstrap(rng, 10) for _ in range(4000 // MEMBERS)])
    np.testing.assert_array_equal(drawn.sum(1), 10)
    # Each count is binomial(10, 1/10): mean 1, variance 0.9, 0 with probability 0.9¹⁰.
    error = 5 / np.sqrt(4000)
    np.testing.assert_allclose(drawn.mean(0), 1, atol=error * np.sqrt(0.9))
    np.testing.assert_allclose(drawn.var(0), 0.9, atol=0.15)
    left_out = 0.9**10
    np.testing.assert_allclose(
        (drawn == 0).mean(0), left_out, atol=error * np.sqrt(left_out * (1 - left_out))
    )


@pytest.mark.medium
def test_members_draw_different_labels():
    drawn = fit(some_labels(), GROUPS, key()).drawn
    assert drawn.shape == (MEMBERS, 20)
    assert len({row.tobytes() for row in drawn}) == MEMBERS


@pytest.mark.medium
def test_a_known_linear_reward_is_recovered():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=SIZE)
    ensemble = fit(labels_of(truth, 100), GROUPS, key())
    fresh = rng.normal(size=(1000, SIZE))
    found = fresh @ (ensemble.chances @ ensemble.models)
    assert np.corrcoef(found, fresh @ truth)[0, 1] > 0.9


@pytest.mark.medium
def test_ties_alone_give_zero_weights():
    labelled = some_labels()
    labelled = labelled._replace(left_preferred=np.full(20, 0.5))
    ensemble = fit(labelled, GROUPS, key())
    np.testing.assert_allclose(ensemble.models, 0, atol=1e-6)
    np.testing.assert_allclose(ensemble.members, 0, atol=1e-6)


@pytest.mark.slow
def test_the_fit_is_a_pure_function():
    one, again = (fit(some_labels(), GROUPS, key(1)) for _ in range(2))
    for left, right in zip(one, again, strict=True):
        np.testing.assert_array_equal(left, right)
    other = fit(some_labels(), GROUPS, key(2))
    np.testing.assert_array_equal(one.models, other.models)  # chance is the members' alone
    assert not np.array_equal(one.members, other.members)


def labels_on_clips(count, ending=False, seed=0, asked_at=0):
    """Return labels on clips of 6 steps, the better of which stays nearer to zero."""
    rng = np.random.default_rng(seed)

    def clip():
        steps = rng.normal(size=(7, 2)).astype(np.float32)
        alive = np.arange(6) < (rng.integers(2, 7) if ending else 6)
        return ObservedClip(steps[:-1], rng.integers(0, 2, 6), steps[1:], alive)

    def label(query):
        pair = clip(), clip()
        cost = [np.square(x.obs[x.alive]).sum() for x in pair]
        return LabelledComparison(query, lambda: pair, float(cost[0] < cost[1]), asked_at)

    return [label(100 * seed + i) for i in range(count)]


def record(seed=0):
    """Return observations of a random policy: a random walk."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 1, 2)).astype(np.float32)
    moved = x + rng.normal(scale=0.2, size=x.shape).astype(np.float32)
    flags = np.zeros((500, 1), bool)
    return Transition(x, flags, flags, flags, flags, moved, ~flags, ())


def ready(budget=12, seeds=1):
    model = LinearRewardModel(SPEC, budget, 6)
    for _ in range(seeds):
        model.observe(record())
    return model


def fitted(model, *labels):
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), len(labels))))
    return model.fit(model.initial(len(labels)), labels, keys)


def refitted(labels, budget=12):
    """Return one seed's parameters, metrics, and features of all alive steps."""
    model = ready(budget)
    found = fitted(model, labels)
    parameters = row_of(found.parameters, 0)
    size = sum(part_sizes(SPEC))
    steps = model._steps(0, parameters.inputs, labels).alive if labels else np.zeros((0, size))
    return parameters, found.metrics[0], steps


@pytest.mark.medium
@pytest.mark.parametrize("ending", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_reward_has_a_constant_spread_over_labelled_clips(ending):
    parameters, metrics, steps = refitted(labels_on_clips(12, ending))
    raw = (steps @ parameters.weights - parameters.offset) / parameters.scale
    if ending:  # zero stays what comes after the end
        assert parameters.offset == 0
        assert np.sqrt(np.square(raw).mean()) == pytest.approx(1, rel=1e-3)
    else:
        assert raw.mean() == pytest.approx(0, abs=1e-4)
        assert raw.std() == pytest.approx(1, rel=1e-3)
    assert metrics["reward_model_std"] == pytest.approx(raw.std(), rel=1e-3)
    assert metrics["reward_model_mean"] == pytest.approx(raw.mean(), abs=1e-4)
    assert metrics["reward_model_min"] == pytest.approx(raw.min(), rel=1e-3)
    assert metrics["reward_model_max"] == pytest.approx(raw.max(), rel=1e-3)


@pytest.mark.medium
def test_the_reward_is_the_mean_of_models_of_equal_spread():
    """The weight of a model is its probability, independent of the size of its rewards."""
    labels = labels_on_clips(12)
    parameters, _, steps = refitted(labels)
    labelled = ready()._steps(0, parameters.inputs, labels).labelled
    ensemble = fit(labelled, tuple(filter(None, part_sizes(SPEC))), key())
    worth = np.zeros(len(steps))
    for chance, weights in zip(ensemble.chances, ensemble.models, strict=True):
        said = steps @ weights
        worth += chance * said / max(said.std(), 1e-8)
    np.testing.assert_allclose(steps @ parameters.weights, worth, rtol=1e-2, atol=1e-3)


@pytest.mark.medium
def test_opinions_have_the_reward_and_the_members_spread():
    labels = labels_on_clips(12, ending=True)
    model = ready()
    parameters = row_of(fitted(model, labels).parameters, 0)
    clips = labels[0].clips()
    opinions = model.opinions(parameters, clips)
    seen = model._clip_features(parameters.inputs, [model._clips.encode(x) for x in clips])
    worth = [[float(x @ parameters.weights) for x in clip] for clip in seen]
    votes = np.array([[[float(w @ x) for w in parameters.members] for x in clip] for clip in seen])
    means = votes.mean(2)
    alive = np.array([clip.alive for clip in clips])
    factor = (np.array(worth) * means)[alive].sum() / np.square(means)[alive].sum()
    for i, clip in enumerate(clips):
        reward = np.clip((np.array(worth[i]) - parameters.offset) / parameters.scale, -3, 3)
        apart = abs(factor) * votes[i].std(1) / parameters.scale
        np.testing.assert_allclose(opinions.reward[i], reward * clip.alive, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(opinions.spread[i], apart * clip.alive, rtol=1e-3, atol=1e-4)


@pytest.mark.medium
def test_metrics_of_labels_ties_and_accuracy():
    labels = labels_on_clips(12)
    labels[3] = labels[3]._replace(left_preferred=0.5)
    parameters, metrics, _ = refitted(labels)
    assert metrics["reward_model_labels"] == 12
    assert metrics["reward_model_ties"] == 1
    assert 0.6 < metrics["reward_model_accuracy"] <= 1
    assert 0 <= metrics["reward_model_held_out_accuracy"] <= 1
    assert np.isfinite(parameters.members).all()


@pytest.mark.slow
def test_from_ties_alone_the_reward_is_zero():
    """Not the rounding noise of the fit, scaled up."""
    ties = [label._replace(left_preferred=0.5) for label in labels_on_clips(12)]
    model = ready()
    parameters = row_of(fitted(model, ties).parameters, 0)
    assert not np.asarray(parameters.weights).any()
    assert model.opinions(parameters, ties[0].clips()) is None
    decided = [*ties[:-1], labels_on_clips(12)[-1]]
    other = row_of(fitted(ready(), decided).parameters, 0)
    assert np.asarray(other.members).any()


@pytest.mark.medium
def test_the_embedding_has_the_mixtures_prior_and_weights():
    """Its returns are those of the mean model; its kernel is Σ P(v) α_vg K_g, group by group."""
    labels = labels_on_clips(12)
    model = ready()
    parameters = row_of(fitted(model, labels).parameters, 0)
    clips = [clip for label in labels for clip in label.clips()]
    found = model.embed(0, labels, clips)
    inputs = Inputs(parameters.encoder, ())
    sums, groups = model._steps(0, inputs, labels).sums, tuple(filter(None, part_sizes(SPEC)))
    difference = sums[0::2] - sums[1::2]
    preferred = np.array([one.left_preferred for one in labels])
    ensemble = fit(Labelled(difference, preferred), groups, key(9))
    np.testing.assert_allclose(
        found.clips @ found.weights, sums @ (ensemble.chances @ ensemble.models), atol=2e-3
    )
    kernel, start = np.zeros((12, 12)), 0
    for group, size in enumerate(groups):
        part = difference[:, start : start + size]
        scale = np.square(part).sum() / 12
        alpha = float(ensemble.chances @ ensemble.variances[:, group])
        kernel += alpha * part @ part.T / max(scale, 1e-12)
        start += size
    np.testing.assert_allclose(found.labelled @ found.labelled.T, kernel, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(found.clips[0::2] - found.clips[1::2], found.labelled, atol=1e-3)


@pytest.mark.slow
def test_a_resumed_model_embeds_as_one_that_was_fitted():
    labels = labels_on_clips(12)
    one, resumed = ready(), ready()
    fitted(one, labels)
    clips = labels[0].clips()
    for x, y in zip(one.embed(0, labels, clips), resumed.embed(0, labels, clips), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    assert resumed.embed(0, [], clips) is None


def test_clips_without_alive_steps_are_kept_in_their_place():
    labels = labels_on_clips(2)
    dead = np.zeros((2, 3), bool), np.ones((2, 3), bool)
    features = np.arange(12.0, dtype=np.float32).reshape(2, 3, 2)
    cache, inputs = StepCache(2), ready().representation.initial()
    cache.steps(inputs, labels[:1], lambda _: (features, dead[0]))
    found = cache.steps(inputs, labels, lambda _: (features, dead[1]))
    np.testing.assert_array_equal(found.clip, [2, 2, 2, 3, 3, 3])
    np.testing.assert_array_equal(found.sums, [[0, 0], [0, 0], [6, 9], [24, 27]])
    assert not found.endless


@pytest.mark.slow
def test_kept_features_change_nothing():
    """Labels are added, some are undone, one changes, and with twice as many the encoder does."""
    labels = labels_on_clips(13)
    labels = [one._replace(env_steps=100 * (i // 5)) for i, one in enumerate(labels)]
    undone = [*labels[:3], labels[4]._replace(left_preferred=0.5), *labels[5:]]
    last_but_one = [*labels[:11], labels[12]]  # undone, with the encoder of before
    old = ready()
    for earlier in (labels[:5], labels[:6], labels[:12], last_but_one, undone):
        found, expected = fitted(old, earlier), fitted(ready(), earlier)
        for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_the_fit_of_a_seed_does_not_depend_on_other_seeds():
    seeds = [labels_on_clips(12, seed=1), labels_on_clips(7, seed=2), []]
    model = ready(seeds=3)
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), 3)))
    together = model.fit(model.initial(3), seeds, keys).parameters
    for i, labels in enumerate(seeds):
        alone = ready().fit(model.initial(1), [labels], keys[i : i + 1]).parameters
        np.testing.assert_array_equal(together.weights[i], alone.weights[0])
        np.testing.assert_array_equal(together.members[i], alone.members[0])


@pytest.mark.slow
def test_an_encoder_is_cached_until_labels_have_doubled_or_one_is_undone():
    first = labels_on_clips(4)
    later = labels_on_clips(3, seed=1, asked_at=9)
    model = ready()

    def mean(labels):
        return np.asarray(fitted(model, labels).parameters.encoder.mean)[0]

    kept = mean(first)
    np.testing.assert_array_equal(mean(first + later), kept)
    assert not np.array_equal(mean(first[1:] + later), kept)
    more = mean(first + later + labels_on_clips(1, seed=2, asked_at=9))
    assert not np.array_equal(more, kept)
