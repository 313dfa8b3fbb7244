"""The probability of the answers given the logits of the labels, and its derivatives.

Answers follow the ordinal model of `backflip.core.losses.answer_probabilities` with a given share ε
of random answers and a width θ of ties; θ is 0 for a teacher who never answers with a tie.

Source: Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from backflip.core.losses import NO_TIES
from backflip.rewards.interface import TIE


class Answers(NamedTuple):
    """How often each answer counts, the answers, and the share ε of random ones, in (0, 1)."""

    weight: Float[np.ndarray, " n"]
    left_preferred: Float[np.ndarray, " n"]
    noise: float


class Point(NamedTuple):
    """Logits m of the labels, and log θ."""

    logits: Float[np.ndarray, " n"]
    log_width: float


class Score(NamedTuple):
    """The log-likelihood of logits m and a tie width θ, and its derivatives.

    Attributes:
        gradient: in m.
        fisher: the Fisher information of each logit.
        curvature: minus the second derivative in m where this is positive; else 0.
        cross: minus the derivative in m and log θ; 0 where the curvature is.
        log_likelihood: its value.
        tie_width: θ.
        width_gradient: in log θ; 0 without ties.
        width_fisher: the Fisher information of log θ; 0 without ties.
        width_curvature: minus the second derivative in log θ; 0 without ties.
    """

    gradient: Float[np.ndarray, " n"]
    fisher: Float[np.ndarray, " n"]
    curvature: Float[np.ndarray, " n"]
    cross: Float[np.ndarray, " n"]
    log_likelihood: float
    tie_width: float
    width_gradient: float
    width_fisher: float
    width_curvature: float


def score_of(point: Point, answers: Answers) -> Score:
    """Return the log-likelihood and its derivatives at a point; θ is 0 if no answer is a tie."""
    weight, preferred, noise = answers
    width = math.exp(point.log_width) if (preferred == TIE).any() else NO_TIES
    every = probabilities(point.logits, width, noise)
    chosen = np.rint(2.0 * preferred).astype(int)  # the row of each answer: right, tie, left
    p, m, w, mm, mw, ww = np.array(every)[:, chosen, np.arange(len(chosen))]
    p_m, p_w = m / p, w / p
    curvature, cross = np.square(p_m) - mm / p, p_m * p_w - mw / p
    fisher, width_fisher = (np.square(x) / every.p for x in (every.m, every.w))
    return Score(
        gradient=weight * p_m,
        fisher=weight * fisher.sum(0),
        curvature=weight * np.maximum(curvature, 0.0),
        cross=np.where(curvature > 0, weight * cross, 0.0),
        log_likelihood=float(weight @ np.log(p)),
        tie_width=width,
        width_gradient=float(weight @ p_w),
        width_fisher=float(weight @ width_fisher.sum(0)),
        width_curvature=float(weight @ (np.square(p_w) - ww / p)),
    )


class Probabilities(NamedTuple):
    """Of the answers right, tie, left: p and its derivatives in m and log θ, once and twice."""

    p: Float[np.ndarray, "3 n"]
    m: Float[np.ndarray, "3 n"]
    w: Float[np.ndarray, "3 n"]
    mm: Float[np.ndarray, "3 n"]
    mw: Float[np.ndarray, "3 n"]
    ww: Float[np.ndarray, "3 n"]


def probabilities(logits: Float[np.ndarray, " n"], width: float, noise: float) -> Probabilities:
    """Return those of `backflip.core.losses.answer_probabilities`, with their derivatives.

    If θ is 0, no answer is a tie. The p of a tie is then a positive number all the same, so that
    nothing is divided by zero.
    """
    left, right = (0.5 + 0.5 * np.tanh(0.5 * (sign * logits - width)) for sign in (1.0, -1.0))
    up, down = left * (1.0 - left), right * (1.0 - right)
    up_bend, down_bend = up * (1.0 - 2.0 * left), down * (1.0 - 2.0 * right)
    informed = 1.0 - noise
    p = informed * _of_answers(right, left) + noise / (3 if width else 2)
    p[1] += informed
    in_width = informed * _of_answers(-width * down, -width * up)
    bend = informed * _of_answers(down_bend, up_bend)
    return Probabilities(
        p,
        informed * _of_answers(-down, up),
        in_width,
        bend,
        informed * _of_answers(width * down_bend, -width * up_bend),
        in_width + width**2 * bend,
    )


def _of_answers(
    right: Float[np.ndarray, " n"], left: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "3 n"]:
    """Return the rows right, tie and left; the row of ties is minus the sum of the others."""
    found = np.empty((3, len(right)))  # `np.stack` takes longer than all the rest on few labels
    found[0], found[1], found[2] = right, -right - left, left
    return found
