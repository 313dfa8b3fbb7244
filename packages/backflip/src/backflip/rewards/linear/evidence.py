"""The fit of the linear model: Bradley-Terry on the sum over each clip, in Laplace's approximation.

Each member is linear in the features of `backflip.rewards.linear.features`, with a Gaussian prior
of its own variance α_g for each group g of features: r(x) = wᵀf(x), w_g ~ N(0, α_g s_g I), where
s_g scales the group so that α_g is the prior variance of a label's logit. Labels follow the ordinal
model of `backflip.core.losses.answer_probabilities` with ε = 0.1: a tie means that the logit lies
within ±θ. The width θ of ties is fitted with w, under a log-normal prior; it is 0 for a teacher who
never answers with a tie.

Every combination of variances with up to three active groups, or all, is a model. The reward is
the mean of the models' most probable w, weighted by their evidence (MacKay 1992) and by a prior
that favours few active groups. The evidence is in Laplace's approximation, with the Fisher
information as the curvature. So labels decide whether states, changes, actions or thresholds are
rewarded, and features that explain nothing get small weights; a spurious reward of actions would
cost exploration. Each member draws a model from the same distribution and is the most probable w
given a bootstrap sample of the labels; queries are chosen where members disagree. With n labels and
F features the matrices are n x n or F x F, whichever is cheaper.

Ties are not half a label for each side: then each tie would say that the logit is near zero, and
the evidence would choose too small a variance α for the labels that are not ties.

Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2; Rasmussen & Williams 2006,
"Gaussian Processes for Machine Learning", section 3.4 (the algebra of the Laplace approximation);
Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6 (ordinal answers).

Departures from 1706.03741: linear on quadratic features instead of a network; the prior's
variances instead of an adaptive L2 weight; the reward is the mean of models fitted to all labels,
and members fitted to bootstrap samples only choose queries and measure held-out accuracy; the
reward is centred only if no labelled clip contains the end of an episode, because steps after the
end have a reward of zero; ties have a width.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.core.losses import NO_TIES, answer_probabilities

NOISE = 0.1
MEMBERS = 16
SCORING_STEPS = 12
DAMPING = 0.7  # step size; with noise the log-likelihood is not concave
WIDTH_DEVIATION = 1.0  # prior standard deviation of log θ, around 0
LARGEST_WIDTH_STEP = 0.5  # of log θ, in one scoring step
# A step costs about n³/3 with matrices of n labels, and 2 n F² with matrices of F features.
PRIMAL_FACTOR = 2.5
IN_PLAY = 0.1  # prior probability that a group is active
VARIANCES = (0.0, 30.0, 300.0)  # α candidates: prior variances of a label's logit; 0 first


class Labelled(NamedTuple):
    """Labels of one seed, padded to a fixed number n with weight 0.

    Attributes:
        difference: summed features of the left clip minus those of the right.
        left_preferred: 1 left, 0 right, ½ tie.
        weight: 1 for a label, 0 for padding.
    """

    difference: Float[Array, "n F"]
    left_preferred: Float[Array, " n"]
    weight: Float[Array, " n"]


class Ensemble(NamedTuple):
    """The fitted mixture of models, and members fitted to bootstrap samples.

    Attributes:
        models: the most probable w for each combination of variances α.
        chances: the posterior probability of each combination.
        members: the most probable w of each member given its bootstrap sample.
        drawn: how often each label is in a member's bootstrap sample; 0 means held out.
        log_evidence: the log evidence of each combination, in nats.
        tie_widths: θ of each combination; 0 without ties.
    """

    models: Float[Array, "V F"]
    chances: Float[Array, " V"]
    members: Float[Array, "M F"]
    drawn: Float[Array, "M n"]
    log_evidence: Float[Array, " V"]
    tie_widths: Float[Array, " V"]


class _MostProbable(NamedTuple):
    """The most probable dual coefficients or weights, their log evidence, and θ."""

    found: Float[Array, " k"]
    log_evidence: Float[Array, ""]
    tie_width: Float[Array, ""]


def fit(labelled: Labelled, groups: Sequence[int], key: PRNGKeyArray) -> Ensemble:
    """Return the ensemble fitted to the labels; `groups` are the sizes of the groups."""
    scaled = _scaled_groups(labelled, groups)
    grid = _combinations(len(groups))

    def model(variances: Array) -> _MostProbable:
        return _model(scaled, variances, labelled.left_preferred, labelled.weight)

    def member(key: PRNGKeyArray) -> tuple[Array, Array]:
        draw, resample = jax.random.split(key)
        variances = grid[jax.random.categorical(draw, log_posterior)]
        counts = _bootstrap(resample, labelled.weight)
        return _model(scaled, variances, labelled.left_preferred, counts).found, counts

    models, log_evidence, tie_widths = jax.lax.map(model, grid)
    log_posterior = log_evidence + _log_prior(grid)
    members, drawn = jax.vmap(member)(jax.random.split(key, MEMBERS))
    chances = jax.nn.softmax(log_posterior)
    return Ensemble(models, chances, members, drawn, log_evidence, tie_widths)


def _combinations(groups: int) -> Float[Array, "V G"]:
    """Return the combinations of candidate variances of the groups, with 1 to 3 active, or all.

    Three active groups, and all of them, have the same variance. Others are improbable a priori,
    and cost time.
    """
    every = itertools.product(VARIANCES, repeat=groups)
    return jnp.array([variances for variances in every if _is_candidate(variances)])


def _is_candidate(variances: tuple[float, ...]) -> bool:
    active = [x for x in variances if x > 0]
    return 1 <= len(active) <= 2 or (len(active) in (3, len(variances)) and len(set(active)) == 1)


def _model(
    scaled: "_Scaled",
    variances: Float[Array, " G"],
    left_preferred: Float[Array, " n"],
    weight: Float[Array, " n"],
) -> _MostProbable:
    """Return the most probable w for the groups' variances."""
    parts = scaled.parts
    if PRIMAL_FACTOR * sum(part.shape[1] for part in parts) < weight.shape[0]:
        roots = jnp.sqrt(variances)
        seen = jnp.concatenate([r * part for r, part in zip(roots, parts, strict=True)], axis=1)
        best = _most_probable_weights(seen, left_preferred, weight)
        pieces = jnp.split(best.found, np.cumsum([part.shape[1] for part in parts])[:-1])
    else:
        roots = variances
        kernel = jnp.tensordot(variances, scaled.kernels, 1)
        best = _most_probable(kernel, left_preferred, weight)
        pieces = [part.T @ best.found for part in parts]
    weights = [r * s * w for r, s, w in zip(roots, scaled.scales, pieces, strict=True)]
    return best._replace(found=jnp.concatenate(weights))


def prior_variances(
    groups: Sequence[int], labelled: Labelled, chances: Float[Array, " V"]
) -> Float[Array, " F"]:
    """Return the prior variance of each weight, Σ_v P(v) α_vg s_g², the mean over combinations v.

    Args:
        groups: the sizes of the groups.
        labelled: the labels.
        chances: P(v), the posterior probability of each combination.
    """
    of_groups = chances @ _combinations(len(groups))
    scales = jnp.stack(_scaled_groups(labelled, groups).scales)
    each = of_groups * jnp.square(scales)
    return jnp.concatenate([jnp.broadcast_to(x, n) for x, n in zip(each, groups, strict=True)])


class _Scaled(NamedTuple):
    """Each group's differences, scaled to a mean squared length of 1; the scales; the kernels."""

    parts: list[Float[Array, "n f"]]
    scales: list[Float[Array, ""]]
    kernels: Float[Array, "G n n"]


def _scaled_groups(labelled: Labelled, groups: Sequence[int]) -> _Scaled:
    """Return each group's differences, scaled to a mean squared length of 1."""
    parts, scales = [], []
    start = 0
    for size in groups:
        part = labelled.difference[:, start : start + size] * labelled.weight[:, None]
        mean_square = jnp.square(part).sum() / jnp.maximum(labelled.weight.sum(), 1.0)
        scale = jnp.where(mean_square > 1e-12, jax.lax.rsqrt(mean_square + 1e-12), 0.0)
        parts.append(part * scale)
        scales.append(scale)
        start += size
    return _Scaled(parts, scales, jnp.stack([part @ part.T for part in parts]))


def _log_prior(grid: Float[Array, "V G"]) -> Float[Array, " V"]:
    """Return the log prior odds of each combination against that of no active group.

    A group is active with probability `IN_PLAY`; then all combinations of `grid` with the same
    active groups are equally likely.
    """
    active = (grid > 0).astype(jnp.float32)
    alike = (active[:, None] == active[None]).all(-1).astype(jnp.float32).sum(1)
    return active.sum(1) * math.log(IN_PLAY / (1.0 - IN_PLAY)) - jnp.log(alike)


def _most_probable(
    kernel: Float[Array, "n n"], left_preferred: Float[Array, " n"], weight: Float[Array, " n"]
) -> _MostProbable:
    """Return dual coefficients a of the most probable logits m = K a.

    Fisher scoring: with g the gradient and W the Fisher information of the log-likelihood in m,
    m ← K b,  b = (W m + g) - W^½ B⁻¹ W^½ K (W m + g),  B = I + W^½ K W^½;
    log evidence = Σ log p - ½ mᵀa - ½ log|B|.

    Source: Rasmussen & Williams 2006, algorithm 3.1 and eq. 3.32.
    """
    identity = jnp.eye(kernel.shape[0])

    def solve(logits: Array, score: _Score) -> tuple[Array, Array]:
        root = jnp.sqrt(score.fisher)
        chol = jnp.linalg.cholesky(identity + root[:, None] * kernel * root[None])
        target = score.fisher * logits + score.gradient
        inner = jax.scipy.linalg.cho_solve((chol, True), root * (kernel @ target))
        return target - root * inner, jnp.log(jnp.diagonal(chol)).sum()

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        dual, log_width = state
        logits = kernel @ dual
        score = _score(logits, log_width, left_preferred, weight)
        towards, _half = solve(logits, score)
        return (dual + DAMPING * (towards - dual), _towards(log_width, score)), None

    first = (jnp.zeros_like(weight), jnp.zeros(()))
    (dual, log_width), _ = jax.lax.scan(step, first, None, length=SCORING_STEPS)
    logits = kernel @ dual
    score = _score(logits, log_width, left_preferred, weight)
    _, half_log_det = solve(logits, score)
    evidence = score.log_likelihood - 0.5 * logits @ dual - half_log_det
    return _MostProbable(dual, evidence + _width_evidence(log_width, score), score.tie_width)


def _most_probable_weights(
    seen: Float[Array, "n F"], left_preferred: Float[Array, " n"], weight: Float[Array, " n"]
) -> _MostProbable:
    """Return the most probable w for a prior N(0, I) and logits m = Φ w.

    Equal to `_most_probable` with K = ΦΦᵀ, but with F x F matrices, for more labels than features.
    w ← M⁻¹ Φᵀ (W m + g),  M = I + ΦᵀWΦ;  log evidence = Σ log p - ½ wᵀw - ½ log|M|.
    """
    identity = jnp.eye(seen.shape[1])

    def solve(w: Array, score: _Score) -> tuple[Array, Array]:
        chol = jnp.linalg.cholesky(identity + (seen.T * score.fisher[None]) @ seen)
        target = seen.T @ (score.fisher * (seen @ w) + score.gradient)
        return jax.scipy.linalg.cho_solve((chol, True), target), jnp.log(jnp.diagonal(chol)).sum()

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        w, log_width = state
        score = _score(seen @ w, log_width, left_preferred, weight)
        towards, _half = solve(w, score)
        return (w + DAMPING * (towards - w), _towards(log_width, score)), None

    first = (jnp.zeros(seen.shape[1]), jnp.zeros(()))
    (w, log_width), _ = jax.lax.scan(step, first, None, length=SCORING_STEPS)
    score = _score(seen @ w, log_width, left_preferred, weight)
    _, half_log_det = solve(w, score)
    evidence = score.log_likelihood - 0.5 * w @ w - half_log_det
    return _MostProbable(w, evidence + _width_evidence(log_width, score), score.tie_width)


class _Score(NamedTuple):
    """The log-likelihood of logits m and a tie width θ, and its derivatives.

    Attributes:
        gradient: g, in m.
        fisher: W, the Fisher information of each logit.
        log_likelihood: its value.
        tie_width: θ.
        width_gradient: in log θ; 0 without ties.
        width_fisher: the Fisher information of log θ; 0 without ties.
    """

    gradient: Float[Array, " n"]
    fisher: Float[Array, " n"]
    log_likelihood: Float[Array, ""]
    tie_width: Float[Array, ""]
    width_gradient: Float[Array, ""]
    width_fisher: Float[Array, ""]


def _score(
    logits: Float[Array, " n"],
    log_width: Float[Array, ""],
    left_preferred: Float[Array, " n"],
    weight: Float[Array, " n"],
) -> _Score:
    """Return the score of logits and of the logarithm of the tie width."""
    tied = (left_preferred == 0.5) & (weight > 0)
    width = jnp.where(tied.any(), jnp.exp(log_width), NO_TIES)
    chosen = jnp.stack([left_preferred == 0.0, left_preferred == 0.5, left_preferred == 1.0], -1)
    p = answer_probabilities(logits, width, NOISE)
    left, right = (jax.nn.sigmoid(sign * logits - width) for sign in (1.0, -1.0))
    up, down = (1.0 - NOISE) * left * (1.0 - left), (1.0 - NOISE) * right * (1.0 - right)
    by_logit = jnp.stack([-down, down - up, up], -1)
    by_width = width * jnp.stack([-down, up + down, -up], -1)

    safe = jnp.where(p > 0, p, 1.0)  # without ties their probability is 0

    def gradient_of(slope: Array) -> Array:
        return weight * jnp.where(chosen, slope / safe, 0.0).sum(-1)

    def fisher_of(slope: Array) -> Array:
        return weight * (jnp.square(slope) / safe).sum(-1)

    fit = weight * jnp.where(chosen, jnp.log(safe), 0.0).sum(-1)
    of_width = gradient_of(by_width).sum(), fisher_of(by_width).sum()
    return _Score(gradient_of(by_logit), fisher_of(by_logit), fit.sum(), width, *of_width)


def _towards(log_width: Float[Array, ""], score: _Score) -> Float[Array, ""]:
    """Return log θ after one step of Fisher scoring under its prior."""
    precision = 1.0 / WIDTH_DEVIATION**2
    step = (score.width_gradient - precision * log_width) / (score.width_fisher + precision)
    return log_width + DAMPING * jnp.clip(step, -LARGEST_WIDTH_STEP, LARGEST_WIDTH_STEP)


def _width_evidence(log_width: Float[Array, ""], score: _Score) -> Float[Array, ""]:
    """Return what log θ adds to the log evidence, in Laplace's approximation."""
    spread = jnp.square(log_width / WIDTH_DEVIATION)
    return -0.5 * (spread + jnp.log1p(WIDTH_DEVIATION**2 * score.width_fisher))


def _bootstrap(key: PRNGKeyArray, weight: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return how often each label is in a bootstrap sample of as many labels as there are."""
    size = weight.shape[0]
    count = weight.sum()
    drawn = jnp.floor(jax.random.uniform(key, (size,)) * count).astype(jnp.int32)
    times = (drawn[None, :] == jnp.arange(size)[:, None]) & (
        jnp.arange(size) < count.astype(jnp.int32)
    )[None]
    return times.sum(1).astype(jnp.float32)
