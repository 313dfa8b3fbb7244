"""The fit of the linear model: Bradley-Terry on the sum over each clip, a mixture of many models.

Each member is linear in the features of a representation, with a Gaussian prior of its own variance
α_g for each group g of features: r(x) = wᵀf(x), w_g ~ N(0, α_g s_g² I), where s_g scales the group
so that α_g is the prior variance of a label's logit. `backflip.rewards.linear.answers` has the
model of the answers, `posterior` the fit for given variances, `marginal` the evidence.

Every combination of variances with up to three active groups, or all, is a model. The reward is
the mean of the models' most probable w, weighted by their evidence (MacKay 1992) and by a prior
that favours few active groups. Labels decide whether states, changes, actions or thresholds are
rewarded, and features that explain nothing get small weights; a spurious reward of actions would
cost exploration. Each member draws a model from the same distribution and is the most probable w
given a bootstrap sample of the labels; queries are chosen where members disagree.

Many labels leave few probable models, so these are searched for: see
`backflip.rewards.linear.search`. The others have no part in the mean. With n labels and F active
independent features the matrices are n x n or F x F, whichever is cheaper. All is done on the
host: nothing is compiled, so nothing is padded.

The share ε of random answers is part of a model, too. With a fixed one in ten, a teacher who errs
more often makes large variances improbable, and features of chance explain the wrong answers.

Ties are not half a label for each side: then each tie would say that the logit is near zero, and
the evidence would choose too small a variance α for the labels that are not ties.

Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2; Rasmussen & Williams 2006,
"Gaussian Processes for Machine Learning", section 3.4 (the algebra of the fits);
Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6 (ordinal answers).

Departures from 1706.03741: linear on quadratic features instead of a network; the prior's
variances instead of an adaptive L2 weight; the reward is the mean of models fitted to all labels,
and members fitted to bootstrap samples only choose queries and measure held-out accuracy; the
reward is centred only if no labelled clip contains the end of an episode, because steps after the
end have a reward of zero; ties have a width.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt32

from backflip.rewards.linear.answers import Answers, Point, some_models
from backflip.rewards.linear.design import (
    FEW_LABELS,
    ByFeatures,
    ByLabels,
    Design,
    Designs,
    Each,
    Together,
    fewest_features,
    is_by_labels,
)
from backflip.rewards.linear.grid import grid_of
from backflip.rewards.linear.posterior import most_probable
from backflip.rewards.linear.search import refit, search

MEMBERS = 16
UNLIKELY = 1e-5  # probability of models that a quarter more labels do not make probable


class Labelled(NamedTuple):
    """Labels of one seed.

    Attributes:
        difference: summed features of the left clip minus those of the right.
        left_preferred: 1 left, 0 right, ½ tie.
    """

    difference: Float[np.ndarray, "n F"]
    left_preferred: Float[np.ndarray, " n"]


class Ensemble(NamedTuple):
    """The fitted mixture of models, and members fitted to bootstrap samples.

    Attributes:
        models: the most probable w of each model that was fitted.
        variances: α of each group in these models.
        noises: ε of each of these models.
        chances: the posterior probability of each of these models.
        members: the most probable w of each member given its bootstrap sample.
        drawn: how often each label is in a member's bootstrap sample; 0 means held out.
        log_evidence: the log evidence of each of these models, in nats.
        tie_widths: θ of each of these models; 0 without ties.
        numbers: the number of each of these models in the grid.
    """

    models: Float[np.ndarray, "V F"]
    variances: Float[np.ndarray, "V G"]
    noises: Float[np.ndarray, " V"]
    chances: Float[np.ndarray, " V"]
    members: Float[np.ndarray, "M F"]
    drawn: Float[np.ndarray, "M n"]
    log_evidence: Float[np.ndarray, " V"]
    tie_widths: Float[np.ndarray, " V"]
    numbers: Int[np.ndarray, " V"]


def fit(
    labelled: Labelled,
    groups: Sequence[int],
    key: UInt32[np.ndarray, "2"],
    searched: Ensemble | None = None,
) -> Ensemble:
    """Return the ensemble fitted to the labels.

    Args:
        labelled: the labels. If a feature is not finite, all weights are NaN.
        groups: the sizes of the groups of features.
        key: the only source of randomness, of members.
        searched: what a search found for nearly as many of the labels. Then only the models that
            may have become probable since are fitted.
    """
    rng = np.random.default_rng(key)
    drawn = _bootstrap(rng, len(labelled.left_preferred))
    if not np.isfinite(labelled.difference).all():
        return _unknown(sum(groups), len(groups), drawn)
    scaled, grid = _scaled_groups(labelled, groups), grid_of(len(groups))
    given = partial(_designs, scaled), grid, labelled.left_preferred
    found = search(*given) if searched is None else refit(*given, *_probable(searched, labelled))
    models, best, log_evidence = found
    variances, noises = grid.variances[models], grid.noises[models]
    chances = _softmax(log_evidence + grid.log_prior[models])
    of_members = rng.choice(len(models), MEMBERS, p=chances)
    preferred = np.broadcast_to(labelled.left_preferred, drawn.shape).astype(float)
    samples = Answers(drawn, preferred, noises[of_members])
    starts = some_models(best.point, of_members)
    members = most_probable(_designs(scaled, variances[of_members]), samples, starts)
    return Ensemble(
        models=_weights(scaled, variances, best.dual),
        variances=variances,
        noises=noises,
        chances=chances,
        members=_weights(scaled, variances[of_members], members.dual),
        drawn=drawn,
        log_evidence=log_evidence,
        tie_widths=best.score.tie_width,
        numbers=models,
    )


def _unknown(features: int, groups: int, drawn: Float[np.ndarray, "M n"]) -> Ensemble:
    """Return an ensemble of NaN."""
    models = np.full((1, features), np.nan)
    unknown = np.full(1, np.nan)
    members = np.repeat(models, MEMBERS, 0)
    variances = np.full((1, groups), np.nan)
    numbers = np.zeros(1, int)
    return Ensemble(
        models=models,
        variances=variances,
        noises=unknown,
        chances=np.ones(1),
        members=members,
        drawn=drawn,
        log_evidence=unknown,
        tie_widths=unknown,
        numbers=numbers,
    )


def _probable(searched: Ensemble, labelled: Labelled) -> tuple[Int[np.ndarray, " V"], Point]:
    """Return the numbers of the models that may be probable, and where their steps begin."""
    kept = searched.chances > UNLIKELY
    widths = searched.tie_widths[kept]
    log_widths = np.log(np.where(widths > 0, widths, 1.0))
    logits = labelled.difference.astype(np.float64) @ searched.models[kept].T
    return searched.numbers[kept], Point(np.ascontiguousarray(logits.T), log_widths)


def prior_variances(
    groups: Sequence[int], labelled: Labelled, ensemble: Ensemble
) -> Float[np.ndarray, " F"]:
    """Return the prior variance of each weight, Σ_v P(v) α_vg s_g², the mean over combinations v.

    Args:
        groups: the sizes of the groups.
        labelled: the labels.
        ensemble: what was fitted to them.
    """
    of_groups = ensemble.chances @ ensemble.variances
    return np.repeat(of_groups * np.square(_scales(labelled, groups)), groups)


class _Scaled(NamedTuple):
    """The scaled differences of each group.

    Attributes:
        parts: P, the differences of each group, scaled to a mean squared length of 1.
        scales: the factor of each group.
        fewest: Q of each group with QQᵀ = PPᵀ, in as few columns as that takes.
        kernels: PPᵀ of each group; None with many labels, when no model needs it.
    """

    parts: list[Float[np.ndarray, "n f"]]
    scales: Float[np.ndarray, " G"]
    fewest: list[Float[np.ndarray, "n r"]]
    kernels: Float[np.ndarray, "G n n"] | None


def _scaled_groups(labelled: Labelled, groups: Sequence[int]) -> _Scaled:
    """Return each group's differences, scaled to a mean squared length of 1."""
    parts = np.split(labelled.difference.astype(np.float64), np.cumsum(groups)[:-1], axis=1)
    scales = _scales(labelled, groups)
    parts = [part * s for part, s in zip(parts, scales, strict=True)]
    labels = len(labelled.left_preferred)
    few = labels <= FEW_LABELS
    fewest = parts if few else [fewest_features(part) for part in parts]
    needed = few or is_by_labels(labels, sum(x.shape[1] for x in fewest))
    return _Scaled(parts, scales, fewest, np.stack([x @ x.T for x in fewest]) if needed else None)


def _scales(labelled: Labelled, groups: Sequence[int]) -> Float[np.ndarray, " G"]:
    """Return the factor of each group that gives it a mean squared length of 1; 0 if it is zero."""
    count = max(len(labelled.left_preferred), 1)
    every = np.square(labelled.difference, dtype=np.float64).sum(0) / count
    starts = np.concatenate([[0], np.cumsum(groups)[:-1]]).astype(int)
    squares = np.add.reduceat(every, starts)
    return np.where(squares > 1e-12, 1 / np.sqrt(squares + 1e-12), 0.0)


def _designs(scaled: _Scaled, variances: Float[np.ndarray, "V G"]) -> Designs:
    """Return the designs of models, whose active groups are scaled to a prior N(0, I) of w.

    Models with the same variances share a matrix, which is large if labels are many.
    """
    if len(scaled.parts[0]) <= FEW_LABELS:
        assert scaled.kernels is not None
        return Together(np.tensordot(variances, scaled.kernels, 1))
    different, of_models = np.unique(variances, axis=0, return_inverse=True)
    designs = [_design(scaled, of_groups) for of_groups in different]
    return Each([designs[at] for at in of_models.ravel()])


def _design(scaled: _Scaled, variances: Float[np.ndarray, " G"]) -> Design:
    active = np.flatnonzero(variances)
    features = sum(scaled.fewest[g].shape[1] for g in active)
    if scaled.kernels is not None and is_by_labels(len(scaled.parts[0]), features):
        return ByLabels(np.asarray(sum(variances[g] * scaled.kernels[g] for g in active)))
    return ByFeatures(np.concatenate([np.sqrt(variances[g]) * scaled.fewest[g] for g in active], 1))


def _weights(
    scaled: _Scaled, variances: Float[np.ndarray, "V G"], dual: Float[np.ndarray, "V n"]
) -> Float[np.ndarray, "V F"]:
    """Return the weights of all features, α_g s_g Pᵀ a for group g."""
    of_groups = [dual @ part for part in scaled.parts]
    factors = np.repeat(variances * scaled.scales, [x.shape[1] for x in of_groups], axis=1)
    return (np.concatenate(of_groups, axis=1) * factors).astype(np.float32)


def _softmax(x: Float[np.ndarray, " V"]) -> Float[np.ndarray, " V"]:
    odds = np.exp(x - x.max())
    return odds / odds.sum()


def _bootstrap(rng: np.random.Generator, count: int) -> Float[np.ndarray, "M n"]:
    """Return how often each label is in each member's bootstrap sample of as many labels."""
    samples = [rng.integers(count, size=count) for _ in range(MEMBERS if count else 0)]
    drawn = [np.bincount(sample, minlength=count) for sample in samples]
    return np.array(drawn, float).reshape(MEMBERS, count)
