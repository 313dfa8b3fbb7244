"""The most probable weights of one linear model, given the labels, and its log evidence.

The prior is w ~ N(0, I), the logits of the labels are Φ w. Answers follow the ordinal model of
`backflip.core.losses.answer_probabilities` with a given share ε of random answers. Its width θ of
ties is fitted with w under a log-normal prior; θ is 0 for a teacher who never answers with a tie.
The evidence is in Laplace's approximation, with the Fisher information as the curvature.

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", sections 3.4 and 3.7;
Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6 (ordinal answers).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve

from backflip.core.losses import NO_TIES
from backflip.rewards.interface import TIE

NEWTON_STEPS = 30  # at most
HALVINGS = 5  # at most, of a step that is too long; with noise the log-likelihood is not concave
SMALLEST_GAIN = 1e-2  # in nats: a step that gains less is the last one
WIDTH_DEVIATION = 1.0  # prior standard deviation of log θ, around 0
LARGEST_WIDTH_STEP = 1.0  # of log θ, in one step
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
        log_evidence: the log evidence, in nats.
        tie_width: θ; 0 without ties.
    """

    weights: Float[np.ndarray, " F"]
    point: Point
    log_evidence: float
    tie_width: float


def most_probable(design: Design, answers: Answers, start: Point, least: float) -> MostProbable:
    """Return the most probable w for a prior N(0, I) and logits m = Φ w, and its log evidence.

    With W the Fisher information of the log-likelihood in m, and a its gradient in m,
    w = Φᵀ a,  log evidence = Σ log p - ½ mᵀa - ½ log|I + ΦᵀWΦ|.
    The first step is that from `start`, whose logits need no w. If it does not lead to anything
    better than w = 0, steps begin there. If the next step would have to gain more than the last one
    for the evidence to reach `least`, the rest is left out.

    Source: Rasmussen & Williams 2006, section 3.4, with the Fisher information as in section 3.7.
    """
    solve, nothing = _solver(design), np.zeros(len(design.features))
    state = _state(Point(nothing, start.log_width), nothing, answers)
    towards = _newton(_state(start, nothing, answers), solve)
    gain = math.inf
    state = _nearer(state, towards.point, towards.dual, answers)
    for _ in range(NEWTON_STEPS - 1):
        if gain < SMALLEST_GAIN or state.value + gain - towards.half_log_det < least:
            break
        towards = _newton(state, solve)
        before, state = state, _nearer(state, towards.point, towards.dual, answers)
        gain = state.value - before.value
    _, half_log_det = solve(state.score.fisher, nothing[:, None])
    evidence = state.value - half_log_det + _width_volume(state.score)
    weights = design.features.T @ state.dual
    return MostProbable(weights, state.point, evidence, state.score.tie_width)


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
    """Where a step leads: m and log θ, a, and ½ log|I + ΦᵀHΦ| where it began."""

    point: Point
    dual: Float[np.ndarray, " n"]
    half_log_det: float


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
    both, half_log_det = solve(score.curvature, np.stack([target, score.cross], 1))
    gradient = score.width_gradient - log_width / WIDTH_DEVIATION**2
    least = 1 / WIDTH_DEVIATION**2
    curvature = max(score.width_curvature + least - float(score.cross @ both[:, 1]), least)
    step = (gradient - float(score.cross @ (both[:, 0] - logits))) / curvature
    step = min(max(step, -LARGEST_WIDTH_STEP), LARGEST_WIDTH_STEP)
    found = both[:, 0] - both[:, 1] * step
    dual = target - score.cross * step - score.curvature * found
    return _Towards(Point(found, log_width + step), dual, half_log_det)


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


_Solve = Callable[
    [Float[np.ndarray, " n"], Float[np.ndarray, "n k"]], tuple[Float[np.ndarray, "n k"], float]
]


def _solver(design: Design) -> _Solve:
    """Return the function (W, t) -> Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t, ½ log|I + ΦᵀWΦ|; t has columns.

    With B = I + W^½ K W^½ these are K (t - W^½ B⁻¹ W^½ K t) and ½ log|B|.
    """
    features, kernel = design

    def by_features(fisher: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
        rows = np.sqrt(fisher)[:, None] * features
        chol, half_log_det = _factor(rows.T @ rows)
        return features @ cho_solve(chol, features.T @ target, check_finite=False), half_log_det

    def by_labels(fisher: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
        assert kernel is not None
        root = np.sqrt(fisher)
        chol, half_log_det = _factor(root[:, None] * kernel * root[None])
        inner = cho_solve(chol, root[:, None] * (kernel @ target), check_finite=False)
        return kernel @ (target - root[:, None] * inner), half_log_det

    return by_features if kernel is None else by_labels


def _factor(matrix: np.ndarray) -> tuple[tuple[np.ndarray, bool], float]:
    """Return I + the matrix as `cho_solve` needs it, and half the logarithm of its determinant."""
    matrix.flat[:: len(matrix) + 1] += 1
    chol = np.linalg.cholesky(matrix)
    return (chol, True), float(np.log(np.diagonal(chol)).sum())


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


def _score(point: Point, answers: Answers) -> _Score:
    """Return the score of logits and of the logarithm of the tie width."""
    weight, preferred, noise = answers
    width = math.exp(point.log_width) if (preferred == TIE).any() else NO_TIES
    every = _probabilities(point.logits, width, noise)
    chosen = np.array([0.0, TIE, 1.0])[:, None] == preferred
    p, m, w, mm, mw, ww = (np.where(chosen, x, 0.0).sum(0) for x in every)
    p_m, p_w = m / p, w / p
    curvature, cross = np.square(p_m) - mm / p, p_m * p_w - mw / p
    fisher, width_fisher = (np.square(x) / every.p for x in (every.m, every.w))
    return _Score(
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


class _Probabilities(NamedTuple):
    """Of the answers right, tie, left: p and its derivatives in m and log θ, once and twice."""

    p: Float[np.ndarray, "3 n"]
    m: Float[np.ndarray, "3 n"]
    w: Float[np.ndarray, "3 n"]
    mm: Float[np.ndarray, "3 n"]
    mw: Float[np.ndarray, "3 n"]
    ww: Float[np.ndarray, "3 n"]


def _probabilities(logits: Float[np.ndarray, " n"], width: float, noise: float) -> _Probabilities:
    """Return those of `backflip.core.losses.answer_probabilities`, with their derivatives.

    If θ is 0, nobody answers with a tie. The p of a tie is then a positive number all the same, so
    that nothing is divided by zero.
    """
    left, right = (0.5 + 0.5 * np.tanh(0.5 * (sign * logits - width)) for sign in (1.0, -1.0))
    up, down = left * (1.0 - left), right * (1.0 - right)
    up_bend, down_bend = up * (1.0 - 2.0 * left), down * (1.0 - 2.0 * right)
    informed = 1.0 - noise
    p = informed * _of_answers(right, left) + noise / (3 if width else 2)
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


def _width_volume(score: _Score) -> float:
    """Return what the volume of log θ adds to the log evidence, in Laplace's approximation."""
    return -0.5 * math.log1p(WIDTH_DEVIATION**2 * score.width_fisher)
