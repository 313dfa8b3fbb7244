"""The most probable weights of one linear model, given the labels.

The prior is w ~ N(0, I), the logits of the labels are Φ w. `backflip.rewards.linear.answers` has
the probabilities of the answers. The width θ of ties is fitted with w under a log-normal prior.

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", section 3.4.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from backflip.rewards.linear.answers import Answers, Point, Score, score_of
from backflip.rewards.linear.design import Design, Solve, solver

NEWTON_STEPS = 30  # at most
HALVINGS = 5  # at most, of a step that is too long; with noise the log-likelihood is not concave
SMALLEST_GAIN = 1e-2  # in nats: a step that gains less is the last one
WIDTH_DEVIATION = 1.0  # prior standard deviation of log θ, around 0
LARGEST_WIDTH_STEP = 1.0  # of log θ, in one step


class MostProbable(NamedTuple):
    """The most probable w, given w ~ N(0, I) and logits Φ w.

    Attributes:
        weights: w.
        point: Φ w and log θ.
        score: the score there.
        log_posterior: the log of the posterior there, without constants.
    """

    weights: Float[np.ndarray, " F"]
    point: Point
    score: Score
    log_posterior: float


def most_probable(design: Design, answers: Answers, start: Point) -> MostProbable:
    """Return the most probable w = Φᵀ a, with a the gradient of the log-likelihood in m = Φ w.

    The first step is that from `start`, whose logits need no w. If it does not lead to anything
    better than w = 0, steps begin there.

    Source: Rasmussen & Williams 2006, section 3.4.
    """
    solve, nothing = solver(design), np.zeros(len(design.features))
    state = _state(Point(nothing, start.log_width), nothing, answers)
    towards = _newton(_state(start, nothing, answers), solve)
    state = _nearer(state, towards.point, towards.dual, answers)
    for _ in range(NEWTON_STEPS - 1):
        towards = _newton(state, solve)
        before, state = state, _nearer(state, towards.point, towards.dual, answers)
        if state.value - before.value < SMALLEST_GAIN:
            break
    weights = design.features.T @ state.dual
    return MostProbable(weights, state.point, state.score, state.value)


class _State(NamedTuple):
    """Where the steps have led: m = ΦΦᵀ a and log θ, a, the score there, and the log posterior."""

    point: Point
    dual: Float[np.ndarray, " n"]
    score: Score
    value: float


def _state(point: Point, dual: Float[np.ndarray, " n"], answers: Answers) -> _State:
    """Return the state at a point; its value is Σ log p - ½ mᵀa - ½ (log θ / deviation)²."""
    score = score_of(point, answers)
    spread = (point.log_width / WIDTH_DEVIATION) ** 2
    value = score.log_likelihood - 0.5 * float(point.logits @ dual) - 0.5 * spread
    return _State(point, dual, score, value)


class _Towards(NamedTuple):
    """Where a step leads: m and log θ, and a."""

    point: Point
    dual: Float[np.ndarray, " n"]


def _newton(centre: _State, solve: Solve) -> _Towards:
    """Return where a step of Newton's method in w and log θ together leads.

    With g the gradient in m, and H, C and D the curvature of the log posterior in m, in m and
    log θ, and in log θ,
    m' = Φ (I + ΦᵀHΦ)⁻¹ Φᵀ (H m + g - C δ),  a' = H (m - m') + g - C δ,
    where δ, the change of log θ, solves  D δ = d - Cᵀ(m' - m)  with d the gradient in log θ.
    Where the posterior is not concave, the step is shorter.
    """
    score, (logits, log_width) = centre.score, centre.point
    target = score.curvature * logits + score.gradient
    both, _ = solve(score.curvature, np.stack([target, score.cross], 1))
    gradient = score.width_gradient - log_width / WIDTH_DEVIATION**2
    least = 1 / WIDTH_DEVIATION**2
    curvature = max(score.width_curvature + least - float(score.cross @ both[:, 1]), least)
    step = (gradient - float(score.cross @ (both[:, 0] - logits))) / curvature
    step = min(max(step, -LARGEST_WIDTH_STEP), LARGEST_WIDTH_STEP)
    found = both[:, 0] - both[:, 1] * step
    dual = target - score.cross * step - score.curvature * found
    return _Towards(Point(found, log_width + step), dual)


def _nearer(state: _State, point: Point, dual: Float[np.ndarray, " n"], answers: Answers) -> _State:
    """Return the state at the point, or halfway to it and so on, until it is better than this."""
    for halving in range(HALVINGS + 1):
        near, far = 1 - 0.5**halving, 0.5**halving
        between = Point(
            near * state.point.logits + far * point.logits,
            near * state.point.log_width + far * point.log_width,
        )
        found = _state(between, near * state.dual + far * dual, answers)
        if found.value > state.value:
            return found
    return state
