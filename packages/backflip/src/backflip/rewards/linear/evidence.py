"""The fit of the linear model: Bradley-Terry on the sum over each clip, in Laplace's approximation.

Each member is linear in the features of `backflip.rewards.linear.features`, with a Gaussian prior
of its own variance α_g for each group g of features: r(x) = wᵀf(x), w_g ~ N(0, α_g s_g I), where
s_g scales the group so that α_g is the prior variance of a label's logit. Labels follow

    P[left ≻ right] = (1 - ε) σ(Σ r(left) - Σ r(right)) + ε/2,   ε = 0.1

Every combination of variances is a model. The reward is the mean of the models' most probable w,
weighted by their evidence (MacKay 1992) and by a prior that favours few active groups. The evidence
is in Laplace's approximation, with the Fisher information as the curvature. So labels decide
whether states, changes or actions are rewarded, and features that explain nothing get small
weights; a spurious reward of actions would cost exploration. Each member draws a model from the
same distribution and is the most probable w given a bootstrap sample of the labels; queries are
chosen where members disagree. With n labels and F features the matrices are n x n or F x F,
whichever is smaller.

Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2; Rasmussen & Williams 2006,
"Gaussian Processes for Machine Learning", section 3.4 (the algebra of the Laplace approximation).

Departures from 1706.03741: linear on quadratic features instead of a network; the prior's
variances instead of an adaptive L2 weight; the reward is the mean of models fitted to all labels,
and members fitted to bootstrap samples only choose queries and measure held-out accuracy; the
reward is centred only if no labelled clip contains the end of an episode, because steps after the
end have a reward of zero.
"""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.core.losses import preference_probability
from backflip.rewards.linear.features import Groups

NOISE = 0.1
MEMBERS = 16
SCORING_STEPS = 12
DAMPING = 0.7  # step size; with noise the log-likelihood is not concave
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
    """

    models: Float[Array, "V F"]
    chances: Float[Array, " V"]
    members: Float[Array, "M F"]
    drawn: Float[Array, "M n"]
    log_evidence: Float[Array, " V"]


def fit(labelled: Labelled, groups: Groups, key: PRNGKeyArray) -> Ensemble:
    """Return the ensemble fitted to the labels."""
    scaled = _scaled_groups(labelled, groups)
    grid = _combinations(len(groups))

    def model(variances: Array) -> tuple[Array, Array]:
        return _model(scaled, variances, labelled.left_preferred, labelled.weight)

    def member(key: PRNGKeyArray) -> tuple[Array, Array]:
        draw, resample = jax.random.split(key)
        variances = grid[jax.random.categorical(draw, log_posterior)]
        counts = _bootstrap(resample, labelled.weight)
        weights, _ = _model(scaled, variances, labelled.left_preferred, counts)
        return weights, counts

    models, log_evidence = jax.lax.map(model, grid)
    log_posterior = log_evidence + _log_prior(grid)
    members, drawn = jax.vmap(member)(jax.random.split(key, MEMBERS))
    chances = jax.nn.softmax(log_posterior)
    return Ensemble(models, chances, members, drawn, log_evidence)


def _combinations(groups: int) -> Float[Array, "V G"]:
    """Return all combinations of candidate variances of the groups, except all zero."""
    every = itertools.product(VARIANCES, repeat=groups)
    return jnp.array([variances for variances in every if any(variances)])


def _model(
    scaled: "_Scaled",
    variances: Float[Array, " G"],
    left_preferred: Float[Array, " n"],
    weight: Float[Array, " n"],
) -> tuple[Float[Array, " F"], Float[Array, ""]]:
    """Return the most probable w for the groups' variances, and the log evidence."""
    parts = scaled.parts
    if sum(part.shape[1] for part in parts) < weight.shape[0]:
        roots = jnp.sqrt(variances)
        seen = jnp.concatenate([r * part for r, part in zip(roots, parts, strict=True)], axis=1)
        found, evidence = _most_probable_weights(seen, left_preferred, weight)
        pieces = jnp.split(found, np.cumsum([part.shape[1] for part in parts])[:-1])
    else:
        roots = variances
        dual, evidence = _most_probable(
            jnp.tensordot(variances, scaled.kernels, 1), left_preferred, weight
        )
        pieces = [part.T @ dual for part in parts]
    weights = [r * s * w for r, s, w in zip(roots, scaled.scales, pieces, strict=True)]
    return jnp.concatenate(weights), evidence


class _Scaled(NamedTuple):
    """Each group's differences, scaled to a mean squared length of 1; the scales; the kernels."""

    parts: list[Float[Array, "n f"]]
    scales: list[Float[Array, ""]]
    kernels: Float[Array, "G n n"]


def _scaled_groups(labelled: Labelled, groups: Groups) -> _Scaled:
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

    A group is active with probability `IN_PLAY`; then all its non-zero variances are equally
    likely.
    """
    in_play = (grid > 0).sum(1).astype(jnp.float32)
    return in_play * math.log(IN_PLAY / (1.0 - IN_PLAY) / (len(VARIANCES) - 1))


def _most_probable(
    kernel: Float[Array, "n n"], left_preferred: Float[Array, " n"], weight: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Return dual coefficients a of the most probable logits m = K a, and the log evidence.

    Fisher scoring: with g the gradient and W the Fisher information of the log-likelihood in m,
    m ← K b,  b = (W m + g) - W^½ B⁻¹ W^½ K (W m + g),  B = I + W^½ K W^½;
    log evidence = Σ log p - ½ mᵀa - ½ log|B|.

    Source: Rasmussen & Williams 2006, algorithm 3.1 and eq. 3.32.
    """
    identity = jnp.eye(kernel.shape[0])

    def solve(logits: Array, gradient: Array, fisher: Array) -> tuple[Array, Array]:
        root = jnp.sqrt(fisher)
        chol = jnp.linalg.cholesky(identity + root[:, None] * kernel * root[None])
        target = fisher * logits + gradient
        inner = jax.scipy.linalg.cho_solve((chol, True), root * (kernel @ target))
        return target - root * inner, jnp.log(jnp.diagonal(chol)).sum()

    def step(dual: Float[Array, " n"], _: None) -> tuple[Float[Array, " n"], None]:
        logits = kernel @ dual
        gradient, fisher, _fit = _score(logits, left_preferred, weight)
        towards, _half = solve(logits, gradient, fisher)
        return dual + DAMPING * (towards - dual), None

    dual, _ = jax.lax.scan(step, jnp.zeros_like(weight), None, length=SCORING_STEPS)
    logits = kernel @ dual
    gradient, fisher, log_likelihood = _score(logits, left_preferred, weight)
    _, half_log_det = solve(logits, gradient, fisher)
    return dual, log_likelihood - 0.5 * logits @ dual - half_log_det


def _most_probable_weights(
    seen: Float[Array, "n F"], left_preferred: Float[Array, " n"], weight: Float[Array, " n"]
) -> tuple[Float[Array, " F"], Float[Array, ""]]:
    """Return the most probable w for a prior N(0, I) and logits m = Φ w, and the log evidence.

    Equal to `_most_probable` with K = ΦΦᵀ, but with F x F matrices, for more labels than features.
    w ← M⁻¹ Φᵀ (W m + g),  M = I + ΦᵀWΦ;  log evidence = Σ log p - ½ wᵀw - ½ log|M|.
    """
    identity = jnp.eye(seen.shape[1])

    def solve(w: Array, gradient: Array, fisher: Array) -> tuple[Array, Array]:
        chol = jnp.linalg.cholesky(identity + (seen.T * fisher[None]) @ seen)
        target = seen.T @ (fisher * (seen @ w) + gradient)
        return jax.scipy.linalg.cho_solve((chol, True), target), jnp.log(jnp.diagonal(chol)).sum()

    def step(w: Float[Array, " F"], _: None) -> tuple[Float[Array, " F"], None]:
        gradient, fisher, _fit = _score(seen @ w, left_preferred, weight)
        towards, _half = solve(w, gradient, fisher)
        return w + DAMPING * (towards - w), None

    w, _ = jax.lax.scan(step, jnp.zeros(seen.shape[1]), None, length=SCORING_STEPS)
    gradient, fisher, log_likelihood = _score(seen @ w, left_preferred, weight)
    _, half_log_det = solve(w, gradient, fisher)
    return w, log_likelihood - 0.5 * w @ w - half_log_det


def _score(
    logits: Float[Array, " n"], left_preferred: Float[Array, " n"], weight: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, ""]]:
    """Return gradient g, Fisher information W and value of the log-likelihood of logits."""
    s = jax.nn.sigmoid(logits)
    p = preference_probability(logits, jnp.zeros_like(logits), NOISE)
    slope = (1.0 - NOISE) * s * (1.0 - s)
    gradient = weight * slope * (left_preferred / p - (1.0 - left_preferred) / (1.0 - p))
    fisher = weight * jnp.square(slope) / (p * (1.0 - p))
    fit = weight * (left_preferred * jnp.log(p) + (1 - left_preferred) * jnp.log1p(-p))
    return gradient, fisher, fit.sum()


def _bootstrap(key: PRNGKeyArray, weight: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return how often each label is in a bootstrap sample of as many labels as there are."""
    size = weight.shape[0]
    count = weight.sum()
    drawn = jnp.floor(jax.random.uniform(key, (size,)) * count).astype(jnp.int32)
    times = (drawn[None, :] == jnp.arange(size)[:, None]) & (
        jnp.arange(size) < count.astype(jnp.int32)
    )[None]
    return times.sum(1).astype(jnp.float32)
