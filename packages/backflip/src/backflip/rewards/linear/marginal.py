"""The log evidence of a linear model: the smaller one of two approximations.

Both need the most probable logits m = Φ w, and there the gradient g and the Fisher information W of
the log-likelihood. Laplace's approximation is

    log Z = Σ log p - ½ |w|² - ½ log|I + ΦᵀWΦ|

Where some answers are random, the likelihood of a label is flat at large logits. W is nearly 0
there, and the approximation counts a volume that is not there: with a prior variance of 300 and
ε = .2, labels that share nothing get -.33 nats each, where log ½ = -.69 is the truth. A model with
many features is such a model of few labels.

The other one is the energy of expectation propagation, with Laplace's sites in place of its own.
With Σ the variances of the logits given all labels, v = Σ / (1 - W Σ) and µ = m - v g are the
variance and the mean of a logit given all labels but its own, and

    log Z = Σ log z + ½ (W m + g)ᵀm - ½ log|I + ΦᵀWΦ| + ½ Σ [log(1 + W v) - m² / Σ + µ² / v]

with z the probability of the answer if the logit is N(µ, v). This is exact for labels that share
nothing, and up to 3 nats too small for 40 labels of 2 features, where Laplace's is 2 too small to 1
too large. It holds at the most probable weights only: of a fit that ended early it can be anything,
even above 0, so the smaller one of both counts.

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", equations 3.32 and
3.65 to 3.73; MacKay 1992, "The evidence framework applied to classification networks" (the mean of
a sigmoid of a normal variable).
"""

import math

import numpy as np
from jaxtyping import Float

from backflip.rewards.linear.answers import Answers, Score, of_answers_given, probabilities
from backflip.rewards.linear.design import Design, variances
from backflip.rewards.linear.posterior import WIDTH_DEVIATION, MostProbable

LEAST_WITHOUT = 1e-9  # of 1 - W Σ, the share of a logit's information that other labels have


def log_evidence(design: Design, answers: Answers, found: MostProbable) -> float:
    """Return the log evidence of a model in nats, the smaller one of two approximations.

    Args:
        design: of the labels.
        answers: of the labels, each with weight 1.
        found: the most probable weights.
    """
    of_logits, half_log_det = variances(design, found.score.fisher)
    laplace = found.score.log_likelihood - 0.5 * float(found.weights @ found.weights)
    energy = _energy(of_logits, answers, found)
    return min(laplace, energy) - half_log_det + _of_width(found)


def _energy(variance: Float[np.ndarray, " n"], answers: Answers, found: MostProbable) -> float:
    """Return the energy without its log determinant."""
    score, logits = found.score, found.point.logits
    without = variance / np.maximum(1 - score.fisher * variance, LEAST_WITHOUT)
    mean = logits - without * score.gradient
    log_z = np.log(_chances(mean, without, answers, score))
    sites = (score.fisher * logits + score.gradient) * logits
    volume = np.log1p(score.fisher * without) - logits**2 / variance + mean**2 / without
    return float((log_z + 0.5 * sites + 0.5 * volume).sum())


def _chances(
    mean: Float[np.ndarray, " n"],
    variance: Float[np.ndarray, " n"],
    answers: Answers,
    score: Score,
) -> Float[np.ndarray, " n"]:
    """Return the probability of each answer if its logit is normal.

    The mean of σ(m - θ) is nearly σ((µ - θ) / s), with s² = 1 + π v / 8.
    """
    shrunk = np.sqrt(1 + np.pi / 8 * variance)
    every = probabilities(mean / shrunk, score.tie_width / shrunk, answers.noise).p
    return of_answers_given(answers.left_preferred, every)


def _of_width(found: MostProbable) -> float:
    """Return the log prior of log θ, and the log of its volume in Laplace's approximation."""
    of_prior = 0.5 * (found.point.log_width / WIDTH_DEVIATION) ** 2
    return -of_prior - 0.5 * math.log1p(WIDTH_DEVIATION**2 * found.score.width_fisher)
