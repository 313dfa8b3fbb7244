"""The most probable weights of linear models, given the labels.

The prior is w ~ N(0, I), the logits of the labels are Φ w. `backflip.rewards.linear.answers` has
the probabilities of the answers. The width θ of ties is fitted with w under a log-normal prior.
All arrays have a leading axis of models, which share nothing but the labels.

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", section 3.4.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from backflip.rewards.linear.answers import (
    Answers,
    Point,
    Score,
    score_of,
    some_models,
    with_models,
)
from backflip.rewards.linear.design import Designs

NEWTON_STEPS = 30  # at most
HALVINGS = 5  # at most, of a step that is too long; with noise the log-likelihood is not concave
SMALLEST_GAIN = 1e-2  # in nats: a step that gains less is the last one
WIDTH_DEVIATION = 1.0  # prior standard deviation of log θ, around 0
LARGEST_WIDTH_STEP = 1.0  # of log θ, in one step


class MostProbable(NamedTuple):
    """The most probable w = Φᵀ a of V models, given w ~ N(0, I) and logits Φ w.

    Attributes:
        point: m = Φ w and log θ.
        dual: a, the gradient of the log-likelihood in m.
        score: the score there.
        log_posterior: the log of the posterior there, without constants.
    """

    point: Point
    dual: Float[np.ndarray, "V n"]
    score: Score
    log_posterior: Float[np.ndarray, " V"]


def most_probable(designs: Designs, answers: Answers, start: Point) -> MostProbable:
    """Return the most probable w of each model.

    The first step is that from `start`, whose logits need no w. If it does not lead to anything
    better than w = 0, steps begin there.

    Source: Rasmussen & Williams 2006, section 3.4.
    """
    nothing = np.zeros_like(start.logits)
    state = _state(Point(nothing, start.log_width), nothing, answers)
    state = _nearer(state, _newton(_state(start, nothing, answers), designs), answers)
    return _climb(state, designs, answers, NEWTON_STEPS - 1)


def _climb(state: MostProbable, designs: Designs, answers: Answers, steps: int) -> MostProbable:
    """Return where Newton's method leads each model; those that have arrived take no more steps."""
    after = _nearer(state, _newton(state, designs), answers)
    moves = after.log_posterior - state.log_posterior >= SMALLEST_GAIN
    if steps == 1 or not moves.any():
        return after
    if moves.all():
        return _climb(after, designs, answers, steps - 1)
    rows = np.flatnonzero(moves)
    moving, their_answers = some_models(after, rows), some_models(answers, rows)
    return with_models(after, rows, _climb(moving, designs.some(rows), their_answers, steps - 1))


def _state(point: Point, dual: Float[np.ndarray, "V n"], answers: Answers) -> MostProbable:
    """Return the state at m = ΦΦᵀ a and log θ; its value is Σ log p - ½ mᵀa - ½ (log θ / σ)²."""
    score = score_of(point, answers)
    spread = np.square(point.log_width / WIDTH_DEVIATION)
    value = score.log_likelihood - 0.5 * (point.logits * dual).sum(1) - 0.5 * spread
    return MostProbable(point, dual, score, value)


class _Towards(NamedTuple):
    """Where a step leads: m and log θ, and a."""

    point: Point
    dual: Float[np.ndarray, "V n"]


def _newton(centre: MostProbable, designs: Designs) -> _Towards:
    """Return where a step of Newton's method in w and log θ together leads.

    With g the gradient in m, and H, C and D the curvature of the log posterior in m, in m and
    log θ, and in log θ,
    m' = Φ (I + ΦᵀHΦ)⁻¹ Φᵀ (H m + g - C δ),  a' = H (m - m') + g - C δ,
    where δ, the change of log θ, solves  D δ = d - Cᵀ(m' - m)  with d the gradient in log θ.
    Where the posterior is not concave, the step is shorter.
    """
    score, (logits, log_width) = centre.score, centre.point
    target = score.curvature * logits + score.gradient
    both = designs.solve(score.curvature, np.stack([target, score.cross], 2))
    without, for_each = both[..., 0], both[..., 1]
    gradient = score.width_gradient - log_width / WIDTH_DEVIATION**2
    least = 1 / WIDTH_DEVIATION**2
    curvature = score.width_curvature + least - (score.cross * for_each).sum(1)
    step = (gradient - (score.cross * (without - logits)).sum(1)) / np.maximum(curvature, least)
    step = np.clip(step, -LARGEST_WIDTH_STEP, LARGEST_WIDTH_STEP)
    found = without - for_each * step[:, None]
    dual = target - score.cross * step[:, None] - score.curvature * found
    return _Towards(Point(found, log_width + step), dual)


def _nearer(state: MostProbable, towards: _Towards, answers: Answers) -> MostProbable:
    """Return the state where a step leads, or halfway and so on, until it is better than this."""
    found = _state(*towards, answers)
    worse = ~_is_better(found, state)
    for halving in range(1, HALVINGS + 1):
        if not worse.any():
            return found
        rows = np.flatnonzero(worse)
        between = _between(some_models(state, rows), some_models(towards, rows), 0.5**halving)
        found = with_models(found, rows, _state(*between, some_models(answers, rows)))
        worse = ~_is_better(found, state)
    if worse.any():
        rows = np.flatnonzero(worse)
        found = with_models(found, rows, some_models(state, rows))
    return found


def _is_better(found: MostProbable, state: MostProbable) -> Bool[np.ndarray, " V"]:
    return found.log_posterior > state.log_posterior


def _between(state: MostProbable, towards: _Towards, share: float) -> _Towards:
    """Return a share of the way to where a step leads."""
    (logits, log_width), (far_logits, far_log_width) = state.point, towards.point
    near = 1 - share
    point = Point(near * logits + share * far_logits, near * log_width + share * far_log_width)
    return _Towards(point, near * state.dual + share * towards.dual)
