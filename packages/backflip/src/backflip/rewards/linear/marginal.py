"""The log evidence of a linear model.

With the most probable logits m = Φ w, and there g and W, the gradient and the Fisher information of
the log-likelihood, each answer has an approximate likelihood N(m + g/W, 1/W) of its logit, up to a
factor. Without the answer, the logit is N(µ_i, v_i), with Σ_ii its posterior variance,

    v_i = Σ_ii / (1 - W_i Σ_ii),  µ_i = m_i - v_i g_i

and the answer has the probability z_i. The factors are such that each approximate likelihood gives
z_i as well, so that

    log Z = Σ log z_i + ½ (W m + g)ᵀm - ½ log|I + ΦᵀWΦ|
            + ½ Σ [log(1 + W_i v_i) - m_i²/Σ_ii + µ_i²/v_i]

This is the energy of expectation propagation, at the sites of Laplace's approximation. On saved
labels it is within .1 nats of where expectation propagation leads. Laplace's own value,
Σ log p - ½ mᵀa - ½ log|I + ΦᵀWΦ|, is 17 to 20 nats too large for models that memorise 40 labels of
MinAtar's Asterix: where some answers are random, the likelihood of a label is flat at large logits,
W is nearly 0 there, and it counts a volume that is not there.

The width θ of ties is integrated by Laplace's approximation.

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", equations 3.56, 3.65
and 3.73; Minka 2001, "Expectation propagation for approximate Bayesian inference", UAI; Monahan &
Stefanski 1989, "Normal scale mixture approximations to F*(z) and computation of the logistic-normal
integral" (the logistic function as a sum of normal distributions).
"""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from backflip.rewards.interface import TIE
from backflip.rewards.linear.answers import Answers
from backflip.rewards.linear.design import Designs
from backflip.rewards.linear.posterior import WIDTH_DEVIATION, MostProbable

SMALLEST = 1e-12  # of a variance, where it divides
# 1 / (1 + e^-x) = Σ p Φ(s x) within 3e-9, with the normal distribution function Φ.
SHARES = np.array(
    [
        0.003246343272134,
        0.051517477033972,
        0.195077912673858,
        0.315569823632818,
        0.274149576158423,
        0.131076880695470,
        0.027912418727972,
        0.001449567805354,
    ]
)
SLOPES = np.array(
    [
        1.365340806296348,
        1.059523971016916,
        0.830791313765644,
        0.650732166639391,
        0.508135425366489,
        0.396313345166341,
        0.308904252267995,
        0.238212616409306,
    ]
)


def log_evidence(
    designs: Designs, found: MostProbable, answers: Answers
) -> Float[np.ndarray, " V"]:
    """Return the log evidence of each model in nats.

    Args:
        designs: of the models.
        found: the most probable weights.
        answers: the answers that they were found for, each of which counts once.
    """
    score, (m, log_width) = found.score, found.point
    w, (variances, half_log_det) = score.fisher, designs.posterior(score.fisher)
    s = np.maximum(variances, SMALLEST)
    v = s / np.maximum(1.0 - w * s, SMALLEST)
    mu = m - v * score.gradient
    log_z = np.log(expected_chance(mu, v, score.tie_width, answers))
    sites = np.log1p(w * v) - np.square(m) / s + np.square(mu) / v
    of_labels = log_z + 0.5 * (w * m + score.gradient) * m + 0.5 * sites
    of_width = np.square(log_width / WIDTH_DEVIATION) + np.log1p(
        WIDTH_DEVIATION**2 * score.width_fisher
    )
    return of_labels.sum(1) - half_log_det - 0.5 * of_width


def expected_chance(
    mean: Float[np.ndarray, "V n"],
    variance: Float[np.ndarray, "V n"],
    width: Float[np.ndarray, " V"],
    answers: Answers,
) -> Float[np.ndarray, "V n"]:
    """Return the expected probability of each answer, for a logit of N(mean, variance)."""
    apart = np.sqrt(1.0 + np.square(SLOPES) * variance[..., None])

    def sigmoid(x: Float[np.ndarray, "V n"]) -> Float[np.ndarray, "V n"]:
        return ndtr(SLOPES * x[..., None] / apart) @ SHARES

    left, right = sigmoid(mean - width[:, None]), sigmoid(-mean - width[:, None])
    preferred, noise = answers.left_preferred, answers.noise[:, None]
    chance = np.where(preferred == TIE, 1.0 - left - right, np.where(preferred > TIE, left, right))
    return (1.0 - noise) * chance + noise / np.where(width > 0, 3, 2)[:, None]
