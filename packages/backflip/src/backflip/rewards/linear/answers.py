"""The probability of the answers given the logits of the labels, and its derivatives.

Answers follow the ordinal model of `backflip.core.losses.answer_probabilities` with a given share ε
of random answers and a width θ of ties; θ is 0 for a teacher who never answers with a tie.

Source: Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from backflip.core.losses import NO_TIES
from backflip.rewards.interface import TIE


class Answers(NamedTuple):
    """The n answers to which V models are fitted.

    Attributes:
        weight: how often each answer counts.
        left_preferred: 1 left, 0 right, ½ tie.
        noise: the share ε of random ones, in (0, 1).
    """

    weight: Float[np.ndarray, "V n"]
    left_preferred: Float[np.ndarray, "V n"]
    noise: Float[np.ndarray, " V"]


class Point(NamedTuple):
    """Logits m of the labels, and log θ."""

    logits: Float[np.ndarray, "V n"]
    log_width: Float[np.ndarray, " V"]


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

    gradient: Float[np.ndarray, "V n"]
    fisher: Float[np.ndarray, "V n"]
    curvature: Float[np.ndarray, "V n"]
    cross: Float[np.ndarray, "V n"]
    log_likelihood: Float[np.ndarray, " V"]
    tie_width: Float[np.ndarray, " V"]
    width_gradient: Float[np.ndarray, " V"]
    width_fisher: Float[np.ndarray, " V"]
    width_curvature: Float[np.ndarray, " V"]


def some_models(of_all: Any, models: Int[np.ndarray, " N"]) -> Any:
    """Return the rows of some models of nested tuples of arrays with a leading axis of models."""
    if isinstance(of_all, tuple):
        return type(of_all)(*(some_models(x, models) for x in of_all))
    return of_all[models]


def together(models: Sequence[Any]) -> Any:
    """Return nested tuples of arrays with the models of all, one after the other."""
    if isinstance(models[0], tuple):
        return type(models[0])(*(together(of_all) for of_all in zip(*models, strict=True)))
    return np.concatenate(models)


def with_models(of_all: Any, models: Int[np.ndarray, " N"], found: Any) -> Any:
    """Return nested tuples of arrays with other rows for some models; copies, never in place."""
    if isinstance(of_all, tuple):
        pairs = zip(of_all, found, strict=True)
        return type(of_all)(*(with_models(x, models, of_some) for x, of_some in pairs))
    replaced = of_all.copy()
    replaced[models] = found
    return replaced


def score_of(point: Point, answers: Answers) -> Score:
    """Return the log-likelihood and its derivatives at a point; θ is 0 if no answer is a tie."""
    weight, preferred, noise = answers
    ties = ((preferred == TIE) & (weight > 0)).any(1)
    width = np.where(ties, np.exp(point.log_width), NO_TIES)
    every = probabilities(point.logits, width, noise)
    chosen = np.rint(2.0 * preferred).astype(int)  # the row of each answer: right, tie, left
    p, m, w, mm, mw, ww = (np.choose(chosen, x) for x in every)
    p_m, p_w = m / p, w / p
    curvature, cross = np.square(p_m) - mm / p, p_m * p_w - mw / p
    fisher, width_fisher = (np.square(x) / every.p for x in (every.m, every.w))
    return Score(
        gradient=weight * p_m,
        fisher=weight * fisher.sum(0),
        curvature=weight * np.maximum(curvature, 0.0),
        cross=np.where(curvature > 0, weight * cross, 0.0),
        log_likelihood=(weight * np.log(p)).sum(1),
        tie_width=width,
        width_gradient=(weight * p_w).sum(1),
        width_fisher=(weight * width_fisher.sum(0)).sum(1),
        width_curvature=(weight * (np.square(p_w) - ww / p)).sum(1),
    )


class Probabilities(NamedTuple):
    """Of the answers right, tie, left: p and its derivatives in m and log θ, once and twice."""

    p: Float[np.ndarray, "3 V n"]
    m: Float[np.ndarray, "3 V n"]
    w: Float[np.ndarray, "3 V n"]
    mm: Float[np.ndarray, "3 V n"]
    mw: Float[np.ndarray, "3 V n"]
    ww: Float[np.ndarray, "3 V n"]


def probabilities(
    logits: Float[np.ndarray, "V n"],
    width: Float[np.ndarray, " V"],
    noise: Float[np.ndarray, " V"],
) -> Probabilities:
    """Return those of `backflip.core.losses.answer_probabilities`, with their derivatives.

    If θ is 0, no answer is a tie. The p of a tie is then a positive number all the same, so that
    nothing is divided by zero.
    """
    width, noise = width[:, None], noise[:, None]
    left, right = (0.5 + 0.5 * np.tanh(0.5 * (sign * logits - width)) for sign in (1.0, -1.0))
    up, down = left * (1.0 - left), right * (1.0 - right)
    up_bend, down_bend = up * (1.0 - 2.0 * left), down * (1.0 - 2.0 * right)
    informed = 1.0 - noise
    p = informed * _of_answers(right, left) + noise / np.where(width > 0, 3, 2)
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
    right: Float[np.ndarray, "V n"], left: Float[np.ndarray, "V n"]
) -> Float[np.ndarray, "3 V n"]:
    """Return the rows right, tie and left; the row of ties is minus the sum of the others."""
    found = np.empty((3, *right.shape))  # `np.stack` takes longer than all the rest on few labels
    found[0], found[1], found[2] = right, -right - left, left
    return found
