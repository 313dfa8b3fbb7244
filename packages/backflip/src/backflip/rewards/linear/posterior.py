"""The most probable weights of one linear model, and how well it predicts labels held out.

The prior is w ~ N(0, I), the logits of the labels are Φ w. Answers follow the ordinal model of
`backflip.core.losses.answer_probabilities` with a given share ε of random answers. Its width θ of
ties is fitted with w under a log-normal prior; θ is 0 for a teacher who never answers with a tie.

Models are compared by the log probability of each label given all others. In Laplace's
approximation the posterior of the logits is N(m, Σ) with Σ = (K⁻¹ + W)⁻¹, K = ΦΦᵀ, and W the Fisher
information. Without label i, whose gradient in m is g_i, the logit of i has

    variance  v_i = Σ_ii / (1 - W_i Σ_ii)      mean  μ_i = m_i - v_i g_i

and the logistic functions of the answer are averaged over it by σ(μ / √(1 + π v / 8)).

The marginal likelihood in the same approximation is no good measure. Where answers may be random,
the likelihood is flat at large logits, so W is nearly 0 there and the volume of the posterior is
far too large: a model that can only memorise labels gets exp(-.35) for each, not exp(-.69).

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", sections 3.4, 3.7 and
5.4.2; MacKay 1992, "The evidence framework applied to classification networks" (the average);
Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6 (ordinal answers).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, solve_triangular

from backflip.core.losses import NO_TIES
from backflip.rewards.interface import TIE

NEWTON_STEPS = 30  # at most
HALVINGS = 5  # at most, of a step that is too long; with noise the log-likelihood is not concave
SMALLEST_GAIN = 1e-2  # in nats: a step that gains less is the last one
WIDTH_DEVIATION = 1.0  # prior standard deviation of log θ, around 0
LARGEST_WIDTH_STEP = 1.0  # of log θ, in one step
SMALLEST_SHARE = 1e-9  # of a logit's variance that a label leaves: against division by zero
# With at least this many labels for each feature, matrices of features cost less than of labels.
LABELS_PER_FEATURE = 1.4


class Answers(NamedTuple):
    """How often each answer counts, the answers, and the share ε of random ones, in (0, 1)."""

    weight: Float[np.ndarray, " n"]
    left_preferred: Float[np.ndarray, " n"]
    noise: float


class Point(NamedTuple):
    """Logits m of the labels, and log θ."""

    logits: Float[np.ndarray, " n"]
    log_width: float


class Design(NamedTuple):
    """What the labels say something about: logits m = Φ w, with w ~ N(0, I).

    Both are in double precision: the weights are Φᵀa, and K multiplies the rounding errors of a by
    its largest eigenvalue, some 10⁵ if a clip is much shorter than the others.

    Attributes:
        features: Φ.
        kernel: K = ΦΦᵀ; None where `is_by_labels` is false, since it is not used.
    """

    features: Float[np.ndarray, "n F"]
    kernel: Float[np.ndarray, "n n"] | None

    def rows(self, chosen: Int[np.ndarray, " m"]) -> "Design":
        """Return the design of some labels."""
        features = self.features[chosen]
        if not is_by_labels(*features.shape):
            return Design(features, None)
        if self.kernel is None:
            return Design(features, features @ features.T)
        return Design(features, self.kernel[np.ix_(chosen, chosen)])


def is_by_labels(labels: int, features: int) -> bool:
    """Return whether matrices of labels cost less than matrices of features."""
    return labels < LABELS_PER_FEATURE * features


class MostProbable(NamedTuple):
    """The most probable w, given w ~ N(0, I) and logits Φ w.

    Attributes:
        weights: w.
        point: Φ w and log θ.
        log_held_out: Σ log p(label | all other labels), in nats.
        tie_width: θ; 0 without ties.
    """

    weights: Float[np.ndarray, " F"]
    point: Point
    log_held_out: float
    tie_width: float


def most_probable(design: Design, answers: Answers, start: Point) -> MostProbable:
    """Return the most probable w for a prior N(0, I) and logits m = Φ w, and how well it predicts.

    With a the gradient of the log-likelihood in m, w = Φᵀ a. The first step is that from `start`,
    whose logits need no w. If it does not lead to anything better than w = 0, steps begin there.

    Source: Rasmussen & Williams 2006, section 3.4, with the Fisher information as in section 3.7.
    """
    solve, nothing = _solver(design), np.zeros(len(design.features))
    state = _state(Point(nothing, start.log_width), nothing, answers)
    towards = _newton(_state(start, nothing, answers), solve)
    gain = math.inf
    state = _nearer(state, towards.point, towards.dual, answers)
    for _ in range(NEWTON_STEPS - 1):
        if gain < SMALLEST_GAIN:
            break
        towards = _newton(state, solve)
        before, state = state, _nearer(state, towards.point, towards.dual, answers)
        gain = state.value - before.value
    weights = design.features.T @ state.dual
    held_out = _log_held_out(design, state, answers)
    return MostProbable(weights, state.point, held_out, state.score.tie_width)


def _log_held_out(design: Design, state: "_State", answers: Answers) -> float:
    """Return Σ log p(label | all other labels); see the module."""
    score, variance = state.score, _variances(design, state.score.fisher)
    variance = variance / np.maximum(1.0 - score.fisher * variance, SMALLEST_SHARE)
    spread = np.sqrt(1.0 + np.pi / 8.0 * variance)
    logits = (state.point.logits - variance * score.gradient) / spread
    p = _probabilities(logits, score.tie_width / spread, answers.noise).p
    return float(answers.weight @ np.log(_chosen(p, answers.left_preferred)))


def _variances(design: Design, fisher: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the posterior variance of each logit, the diagonal of Φ (I + ΦᵀWΦ)⁻¹ Φᵀ."""
    features, kernel = design
    root = np.sqrt(fisher)[:, None]
    if kernel is None:
        rows = root * features
        lower = _factor(rows.T @ rows)
        return np.square(solve_triangular(lower, features.T, lower=True, check_finite=False)).sum(0)
    lower = _factor(root * kernel * root.T)
    known = solve_triangular(lower, root * kernel, lower=True, check_finite=False)
    return np.maximum(np.diagonal(kernel) - np.square(known).sum(0), 0.0)


class _State(NamedTuple):
    """Where the steps have led: m = ΦΦᵀ a and log θ, a, the score there, and the log posterior."""

    point: Point
    dual: Float[np.ndarray, " n"]
    score: "_Score"
    value: float


def _state(point: Point, dual: Float[np.ndarray, " n"], answers: Answers) -> _State:
    """Return the state at a point; its value is Σ log p - ½ mᵀa - ½ (log θ / deviation)²."""
    score = _score(point, answers)
    spread = (point.log_width / WIDTH_DEVIATION) ** 2
    value = score.log_likelihood - 0.5 * float(point.logits @ dual) - 0.5 * spread
    return _State(point, dual, score, value)


class _Towards(NamedTuple):
    """Where a step leads: m and log θ, and a."""

    point: Point
    dual: Float[np.ndarray, " n"]


def _newton(centre: _State, solve: "_Solve") -> _Towards:
    """Return where a step of Newton's method in w and log θ together leads.

    With g the gradient in m, and H, C and D the curvature of the log posterior in m, in m and
    log θ, and in log θ,
    m' = Φ (I + ΦᵀHΦ)⁻¹ Φᵀ (H m + g - C δ),  a' = H (m - m') + g - C δ,
    where δ, the change of log θ, solves  D δ = d - Cᵀ(m' - m)  with d the gradient in log θ.
    Where the posterior is not concave, the step is shorter.
    """
    score, (logits, log_width) = centre.score, centre.point
    target = score.curvature * logits + score.gradient
    both = solve(score.curvature, np.stack([target, score.cross], 1))
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


_Solve = Callable[[Float[np.ndarray, " n"], Float[np.ndarray, "n k"]], Float[np.ndarray, "n k"]]


def _solver(design: Design) -> _Solve:
    """Return the function (W, t) -> Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t; t has columns.

    With B = I + W^½ K W^½ this is K (t - W^½ B⁻¹ W^½ K t).
    """
    features, kernel = design

    def by_features(fisher: np.ndarray, target: np.ndarray) -> np.ndarray:
        rows = np.sqrt(fisher)[:, None] * features
        lower = _factor(rows.T @ rows)
        return features @ cho_solve((lower, True), features.T @ target, check_finite=False)

    def by_labels(fisher: np.ndarray, target: np.ndarray) -> np.ndarray:
        assert kernel is not None
        root = np.sqrt(fisher)[:, None]
        lower = _factor(root * kernel * root.T)
        inner = cho_solve((lower, True), root * (kernel @ target), check_finite=False)
        return kernel @ (target - root * inner)

    return by_features if kernel is None else by_labels


def _factor(matrix: np.ndarray) -> np.ndarray:
    """Return the lower factor of Cholesky of I + the matrix, which is changed."""
    matrix.flat[:: len(matrix) + 1] += 1
    return np.linalg.cholesky(matrix)


class _Score(NamedTuple):
    """The log-likelihood of logits m and a tie width θ, and its derivatives.

    Attributes:
        gradient: in m.
        fisher: the Fisher information of each logit.
        curvature: minus the second derivative in m where this is positive; else 0.
        cross: minus the derivative in m and log θ; 0 where the curvature is.
        log_likelihood: its value.
        tie_width: θ.
        width_gradient: in log θ; 0 without ties.
        width_curvature: minus the second derivative in log θ; 0 without ties.
    """

    gradient: Float[np.ndarray, " n"]
    fisher: Float[np.ndarray, " n"]
    curvature: Float[np.ndarray, " n"]
    cross: Float[np.ndarray, " n"]
    log_likelihood: float
    tie_width: float
    width_gradient: float
    width_curvature: float


def _score(point: Point, answers: Answers) -> _Score:
    """Return the score of logits and of the logarithm of the tie width."""
    weight, preferred, noise = answers
    width = math.exp(point.log_width) if (preferred == TIE).any() else NO_TIES
    every = _probabilities(point.logits, width, noise)
    p, m, w, mm, mw, ww = (_chosen(x, preferred) for x in every)
    p_m, p_w = m / p, w / p
    curvature, cross = np.square(p_m) - mm / p, p_m * p_w - mw / p
    fisher = np.square(every.m) / every.p
    return _Score(
        gradient=weight * p_m,
        fisher=weight * fisher.sum(0),
        curvature=weight * np.maximum(curvature, 0.0),
        cross=np.where(curvature > 0, weight * cross, 0.0),
        log_likelihood=float(weight @ np.log(p)),
        tie_width=width,
        width_gradient=float(weight @ p_w),
        width_curvature=float(weight @ (np.square(p_w) - ww / p)),
    )


class _Probabilities(NamedTuple):
    """Of the answers right, tie, left: p and its derivatives in m and log θ, once and twice."""

    p: Float[np.ndarray, "3 n"]
    m: Float[np.ndarray, "3 n"]
    w: Float[np.ndarray, "3 n"]
    mm: Float[np.ndarray, "3 n"]
    mw: Float[np.ndarray, "3 n"]
    ww: Float[np.ndarray, "3 n"]


def _probabilities(
    logits: Float[np.ndarray, " n"], width: float | Float[np.ndarray, " n"], noise: float
) -> _Probabilities:
    """Return those of `backflip.core.losses.answer_probabilities`, with their derivatives.

    If θ is 0, nobody answers with a tie. The p of a tie is then a positive number all the same, so
    that nothing is divided by zero.
    """
    left, right = (0.5 + 0.5 * np.tanh(0.5 * (sign * logits - width)) for sign in (1.0, -1.0))
    up, down = left * (1.0 - left), right * (1.0 - right)
    up_bend, down_bend = up * (1.0 - 2.0 * left), down * (1.0 - 2.0 * right)
    informed = 1.0 - noise
    p = informed * _of_answers(right, left) + noise / (3 if np.any(width) else 2)
    p[1] += informed
    in_width = informed * _of_answers(-width * down, -width * up)
    bend = informed * _of_answers(down_bend, up_bend)
    return _Probabilities(
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
    """Return the rows of right, tie and left, of which a tie gets minus the sum."""
    return np.stack([right, -right - left, left])


def _chosen(
    of_answers: Float[np.ndarray, "3 n"], left_preferred: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return what belongs to the answer that was given."""
    given = np.array([0.0, TIE, 1.0])[:, None] == left_preferred
    return np.where(given, of_answers, 0.0).sum(0)
