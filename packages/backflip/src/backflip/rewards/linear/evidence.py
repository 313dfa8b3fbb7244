"""The fit of the linear model: Bradley-Terry on the sum over each clip, in Laplace's approximation.

Each member is linear in the features of a representation, with a Gaussian prior
of its own variance α_g for each group g of features: r(x) = wᵀf(x), w_g ~ N(0, α_g s_g² I), where
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
given a bootstrap sample of the labels; queries are chosen where members disagree.

Many labels leave few probable models, so models are searched for: from those with one active group
to their neighbours, as long as a model is not improbable beside the best one found. The others have
no part in the mean. With n labels and F active features the matrices are n x n or F x F, whichever
is cheaper. All is done on the host: nothing is compiled, so nothing is padded.

Ties are not half a label for each side: then each tie would say that the logit is near zero, and
the evidence would choose too small a variance α for the labels that are not ties.

Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2; Rasmussen & Williams 2006,
"Gaussian Processes for Machine Learning", section 3.4 (the algebra of the Laplace approximation);
Chu & Ghahramani 2005, "Gaussian processes for ordinal regression", JMLR 6 (ordinal answers);
Madigan & Raftery 1994, "Model selection and accounting for model uncertainty in graphical models
using Occam's window", JASA 89 (the search).

Departures from 1706.03741: linear on quadratic features instead of a network; the prior's
variances instead of an adaptive L2 weight; the reward is the mean of models fitted to all labels,
and members fitted to bootstrap samples only choose queries and measure held-out accuracy; the
reward is centred only if no labelled clip contains the end of an episode, because steps after the
end have a reward of zero; ties have a width.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt32
from scipy.linalg import cho_solve

from backflip.core.losses import NO_TIES

NOISE = 0.1
MEMBERS = 16
NEWTON_STEPS = 30  # at most
HALVINGS = 5  # at most, of a step that is too long; with noise the log-likelihood is not concave
SMALLEST_GAIN = 1e-2  # in nats: a step that gains less is the last one
TIE = 0.5  # `left_preferred` of a tie
WIDTH_DEVIATION = 1.0  # prior standard deviation of log θ, around 0
LARGEST_WIDTH_STEP = 1.0  # of log θ, in one step
# With at least this many labels for each feature, matrices of features cost less than of labels.
LABELS_PER_FEATURE = 1.4
IN_PLAY = 0.1  # prior probability that a group is active
VARIANCES = (0.0, 30.0, 300.0)  # α candidates: prior variances of a label's logit; 0 first
# The neighbours of a model are fitted if it is at least this probable, relative to the best one.
IMPROBABLE = 1e-2
MARGIN = 5.0  # in nats: a fit ends early only if its model is improbable by so much more


class Labelled(NamedTuple):
    """Labels of one seed.

    Attributes:
        difference: summed features of the left clip minus those of the right.
        left_preferred: 1 left, 0 right, ½ tie.
    """

    difference: Float[np.ndarray, "n F"]
    left_preferred: Float[np.ndarray, " n"]


class Ensemble(NamedTuple):
    """The fitted mixture of models, and members fitted to bootstrap samples.

    Attributes:
        models: the most probable w for each combination of variances that was fitted.
        variances: α of each group in these combinations.
        chances: the posterior probability of each of these combinations.
        members: the most probable w of each member given its bootstrap sample.
        drawn: how often each label is in a member's bootstrap sample; 0 means held out.
        log_evidence: the log evidence of each of these combinations, in nats.
        tie_widths: θ of each of these combinations; 0 without ties.
    """

    models: Float[np.ndarray, "V F"]
    variances: Float[np.ndarray, "V G"]
    chances: Float[np.ndarray, " V"]
    members: Float[np.ndarray, "M F"]
    drawn: Float[np.ndarray, "M n"]
    log_evidence: Float[np.ndarray, " V"]
    tie_widths: Float[np.ndarray, " V"]


class _Answers(NamedTuple):
    """How often each answer counts, and the answers."""

    weight: Float[np.ndarray, " n"]
    left_preferred: Float[np.ndarray, " n"]


class _Point(NamedTuple):
    """Logits m of the labels, and log θ."""

    logits: Float[np.ndarray, " n"]
    log_width: float


class _MostProbable(NamedTuple):
    """The most probable w, given w ~ N(0, I) and logits Φ w.

    Attributes:
        weights: w.
        point: Φ w and log θ.
        log_evidence: the log evidence, in nats.
        tie_width: θ; 0 without ties.
    """

    weights: Float[np.ndarray, " F"]
    point: _Point
    log_evidence: float
    tie_width: float


def fit(labelled: Labelled, groups: Sequence[int], key: UInt32[np.ndarray, "2"]) -> Ensemble:
    """Return the ensemble fitted to the labels.

    Args:
        labelled: the labels. If a feature is not finite, all weights are NaN.
        groups: the sizes of the groups of features.
        key: the only source of randomness, of members.
    """
    rng = np.random.default_rng(key)
    drawn = _bootstrap(rng, len(labelled.left_preferred))
    if not np.isfinite(labelled.difference).all():
        return _unknown(sum(groups), len(groups), drawn)
    scaled = _scaled_groups(labelled, groups)
    grid = _combinations(len(groups))
    found = _search(scaled, grid, labelled.left_preferred)
    at, fits = list(found), list(found.values())
    log_evidence = np.array([one.log_evidence for one in fits])
    chances = _softmax(log_evidence + _log_prior(grid)[at])
    choices = rng.choice(len(at), MEMBERS, p=chances)
    members = [
        _member(scaled, grid[at[v]], labelled.left_preferred, fits[v].point, counts)
        for v, counts in zip(choices, drawn, strict=True)
    ]
    models = [_unscaled(scaled, grid[v], one.weights) for v, one in found.items()]
    widths = np.array([one.tie_width for one in fits])
    return Ensemble(
        np.stack(models), grid[at], chances, np.stack(members), drawn, log_evidence, widths
    )


def _unknown(features: int, groups: int, drawn: Float[np.ndarray, "M n"]) -> Ensemble:
    """Return an ensemble of NaN."""
    models = np.full((1, features), np.nan)
    rest = np.full((1, groups), np.nan), np.ones(1), np.repeat(models, MEMBERS, 0), drawn
    return Ensemble(models, *rest, np.full(1, np.nan), np.full(1, np.nan))


def _combinations(groups: int) -> Float[np.ndarray, "V G"]:
    """Return the combinations of candidate variances of the groups, with 1 to 3 active, or all.

    Three active groups, and all of them, have the same variance. Others are improbable a priori,
    and cost time.
    """
    every = itertools.product(VARIANCES, repeat=groups)
    return np.array([variances for variances in every if _is_candidate(variances)])


def _is_candidate(variances: tuple[float, ...]) -> bool:
    active = [x for x in variances if x > 0]
    return 1 <= len(active) <= 2 or (len(active) in (3, len(variances)) and len(set(active)) == 1)


def _search(
    scaled: "_Scaled", grid: Float[np.ndarray, "V G"], left_preferred: Float[np.ndarray, " n"]
) -> dict[int, _MostProbable]:
    """Return the fits of the combinations that may be probable, by their number in the grid.

    First those with one active group. Then, the most probable one first, the neighbours of each
    that is not improbable. So a missing one is a neighbour of improbable ones only. Steps begin
    at the neighbour's logits.
    """
    log_prior, near = _log_prior(grid), _neighbours(grid)
    answers = _Answers(np.ones(len(left_preferred)), left_preferred)
    found: dict[int, _MostProbable] = {}
    tried: set[int] = set()

    def add(wanted: Bool[np.ndarray, " V"], start: _Point) -> None:
        best = max(map(worth, found), default=-math.inf)
        for v in map(int, np.flatnonzero(wanted)):
            if v not in found:
                least = best + math.log(IMPROBABLE) - MARGIN - float(log_prior[v])
                found[v] = _most_probable(_seen(scaled, grid[v]), answers, start, least)

    def worth(v: int) -> float:
        return found[v].log_evidence + float(log_prior[v])

    add((grid > 0).sum(1) == 1, _Point(np.zeros(len(left_preferred)), 0.0))
    while True:
        least = max(map(worth, found)) + math.log(IMPROBABLE)
        fresh = [v for v in found if v not in tried and worth(v) >= least]
        if not fresh:
            return found
        best = max(fresh, key=worth)
        tried.add(best)
        add(near[best], found[best].point)


def _neighbours(grid: Float[np.ndarray, "V G"]) -> Bool[np.ndarray, "V V"]:
    """Return which combinations are neighbours: that differ in the variance of one group.

    Groups with a common variance count as one, because it changes together: with three active
    groups, what counts is whether one more is active. All groups are neighbours of three.
    """
    active = grid > 0
    more = (active[:, None] != active[None]).sum(-1)
    apart = (grid[:, None] != grid[None]).sum(-1)
    many = active.sum(1) >= 3
    common = many[:, None] | many[None]
    return np.where(
        common, (more <= 1) | (many[:, None] & active.all(1, keepdims=True).T), apart <= 1
    )


def _member(
    scaled: "_Scaled",
    variances: Float[np.ndarray, " G"],
    left_preferred: Float[np.ndarray, " n"],
    start: _Point,
    counts: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " F"]:
    """Return the most probable w given a bootstrap sample."""
    rows = np.flatnonzero(counts)
    seen = _seen(scaled, variances)[rows]
    answers = _Answers(counts[rows], left_preferred[rows])
    there = _Point(start.logits[rows], start.log_width)
    best = _most_probable(seen, answers, there, -math.inf)
    return _unscaled(scaled, variances, best.weights)


def prior_variances(
    groups: Sequence[int], labelled: Labelled, ensemble: Ensemble
) -> Float[np.ndarray, " F"]:
    """Return the prior variance of each weight, Σ_v P(v) α_vg s_g², the mean over combinations v.

    Args:
        groups: the sizes of the groups.
        labelled: the labels.
        ensemble: what was fitted to them.
    """
    of_groups = ensemble.chances @ ensemble.variances
    return np.repeat(of_groups * np.square(_scaled_groups(labelled, groups).scales), groups)


class _Scaled(NamedTuple):
    """Each group's differences, scaled to a mean squared length of 1, and the scales."""

    parts: list[Float[np.ndarray, "n f"]]
    scales: Float[np.ndarray, " G"]


def _scaled_groups(labelled: Labelled, groups: Sequence[int]) -> _Scaled:
    """Return each group's differences, scaled to a mean squared length of 1."""
    parts = np.split(labelled.difference.astype(np.float32), np.cumsum(groups)[:-1], axis=1)
    count = max(len(labelled.left_preferred), 1)
    squares = np.array([np.square(part).sum() / count for part in parts])
    scales = np.where(squares > 1e-12, 1 / np.sqrt(squares + 1e-12), 0.0)
    return _Scaled([part * np.float32(s) for part, s in zip(parts, scales, strict=True)], scales)


def _seen(scaled: _Scaled, variances: Float[np.ndarray, " G"]) -> Float[np.ndarray, "n f"]:
    """Return the active groups' differences, scaled to a prior N(0, I) of the weights."""
    roots = np.sqrt(variances).astype(np.float32)
    both = zip(roots, scaled.parts, strict=True)
    return np.concatenate([root * part for root, part in both if root > 0], axis=1)


def _unscaled(
    scaled: _Scaled, variances: Float[np.ndarray, " G"], found: Float[np.ndarray, " f"]
) -> Float[np.ndarray, " F"]:
    """Return the weights of all features, given those of `_seen`."""
    sizes = [part.shape[1] for part in scaled.parts]
    weights = np.zeros(sum(sizes))
    weights[np.repeat(variances > 0, sizes)] = found
    return (weights * np.repeat(np.sqrt(variances) * scaled.scales, sizes)).astype(np.float32)


def _log_prior(grid: Float[np.ndarray, "V G"]) -> Float[np.ndarray, " V"]:
    """Return the log prior odds of each combination against that of no active group.

    A group is active with probability `IN_PLAY`; then all combinations of `grid` with the same
    active groups are equally likely.
    """
    active = grid > 0
    alike = (active[:, None] == active[None]).all(-1).sum(1)
    return active.sum(1) * math.log(IN_PLAY / (1.0 - IN_PLAY)) - np.log(alike)


def _softmax(x: Float[np.ndarray, " V"]) -> Float[np.ndarray, " V"]:
    odds = np.exp(x - x.max())
    return odds / odds.sum()


def _most_probable(
    seen: Float[np.ndarray, "n f"], answers: _Answers, start: _Point, least: float
) -> _MostProbable:
    """Return the most probable w for a prior N(0, I) and logits m = Φ w, and its log evidence.

    With W the Fisher information of the log-likelihood in m, and a its gradient in m,
    w = Φᵀ a,  log evidence = Σ log p - ½ mᵀa - ½ log|I + ΦᵀWΦ|.
    The first step is that from `start`, whose logits need no w; it must be better than zero. If the
    next step would have to gain more than the last one for the evidence to reach `least`, the rest
    is left out.

    Source: Rasmussen & Williams 2006, section 3.4, with the Fisher information as in section 3.7.
    """
    solve, nothing = _solver(seen), np.zeros(len(seen))
    state = _state(_Point(nothing, start.log_width), nothing, answers)
    centre = _state(start, nothing, answers)
    for _ in range(NEWTON_STEPS):
        towards = _newton(centre, solve)
        before, state = state, _nearer(state, towards.point, towards.dual, answers)
        gain = state.value - before.value
        if gain < SMALLEST_GAIN or state.value + gain - towards.half_log_det < least:
            break
        centre = state
    _, half_log_det = solve(state.score.fisher, nothing[:, None])
    evidence = state.value - half_log_det + _width_volume(state.score)
    weights = seen.T @ state.dual.astype(seen.dtype)
    return _MostProbable(weights, state.point, evidence, state.score.tie_width)


class _State(NamedTuple):
    """Where the steps have led: m = ΦΦᵀ a and log θ, a, the score there, and the log posterior."""

    point: _Point
    dual: Float[np.ndarray, " n"]
    score: "_Score"
    value: float


def _state(point: _Point, dual: Float[np.ndarray, " n"], answers: _Answers) -> _State:
    """Return the state at a point; its value is Σ log p - ½ mᵀa - ½ (log θ / deviation)²."""
    score = _score(point, answers)
    spread = (point.log_width / WIDTH_DEVIATION) ** 2
    value = score.log_likelihood - 0.5 * float(point.logits @ dual) - 0.5 * spread
    return _State(point, dual, score, value)


class _Towards(NamedTuple):
    """Where a step leads: m and log θ, a, and ½ log|I + ΦᵀHΦ| where it began."""

    point: _Point
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
    return _Towards(_Point(found, log_width + step), dual, half_log_det)


def _nearer(
    state: _State, point: _Point, dual: Float[np.ndarray, " n"], answers: _Answers
) -> _State:
    """Return the state at the point, or halfway to it and so on, until it is better than this."""
    for halving in range(HALVINGS + 1):
        near, far = 1 - 0.5**halving, 0.5**halving
        between = _Point(
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


def _solver(seen: Float[np.ndarray, "n f"]) -> _Solve:
    """Return the function (W, t) -> Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t, ½ log|I + ΦᵀWΦ|; t has columns.

    With K = ΦΦᵀ and B = I + W^½ K W^½ these are K (t - W^½ B⁻¹ W^½ K t) and ½ log|B|.
    """

    def by_features(fisher: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
        root, t = (x.astype(seen.dtype) for x in (np.sqrt(fisher), target))
        rows = root[:, None] * seen
        chol, half_log_det = _factor(rows.T @ rows)
        return seen @ cho_solve(chol, seen.T @ t, check_finite=False), half_log_det

    def by_labels(fisher: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
        root, t = (x.astype(seen.dtype) for x in (np.sqrt(fisher), target))
        chol, half_log_det = _factor(root[:, None] * kernel * root[None])
        inner = cho_solve(chol, root[:, None] * (kernel @ t), check_finite=False)
        return kernel @ (t - root[:, None] * inner), half_log_det

    if len(seen) >= LABELS_PER_FEATURE * seen.shape[1]:
        return by_features
    kernel = seen @ seen.T
    return by_labels


def _factor(matrix: np.ndarray) -> tuple[tuple[np.ndarray, bool], float]:
    """Return I + the matrix as `cho_solve` needs it, and half the logarithm of its determinant."""
    matrix.flat[:: len(matrix) + 1] += 1
    chol = np.linalg.cholesky(matrix)
    return (chol, True), float(np.log(np.diagonal(chol)).sum(dtype=np.float64))


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


def _score(point: _Point, answers: _Answers) -> _Score:
    """Return the score of logits and of the logarithm of the tie width."""
    weight, preferred = answers
    width = math.exp(point.log_width) if (preferred == TIE).any() else NO_TIES
    every = _probabilities(point.logits, width)
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


def _probabilities(logits: Float[np.ndarray, " n"], width: float) -> _Probabilities:
    """Return those of `backflip.core.losses.answer_probabilities`, with their derivatives.

    For θ = 0 nobody answers with a tie; its p is not 0 then, only so that one may divide by it.
    """
    left, right = (0.5 + 0.5 * np.tanh(0.5 * (sign * logits - width)) for sign in (1.0, -1.0))
    up, down = left * (1.0 - left), right * (1.0 - right)
    up_bend, down_bend = up * (1.0 - 2.0 * left), down * (1.0 - 2.0 * right)

    def three(of_right: np.ndarray, of_left: np.ndarray) -> np.ndarray:
        return (1.0 - NOISE) * np.stack([of_right, -of_right - of_left, of_left])

    p = three(right, left) + NOISE / (3 if width else 2)
    p[1] += 1.0 - NOISE
    in_width = three(-width * down, -width * up)
    return _Probabilities(
        p,
        three(-down, up),
        in_width,
        three(down_bend, up_bend),
        three(width * down_bend, -width * up_bend),
        in_width + width**2 * three(down_bend, up_bend),
    )


def _width_volume(score: _Score) -> float:
    """Return what the volume of log θ adds to the log evidence, in Laplace's approximation."""
    return -0.5 * math.log1p(WIDTH_DEVIATION**2 * score.width_fisher)


def _bootstrap(rng: np.random.Generator, count: int) -> Float[np.ndarray, "M n"]:
    """Return how often each label is in each member's bootstrap sample of as many labels."""
    samples = [rng.integers(count, size=count) for _ in range(MEMBERS if count else 0)]
    drawn = [np.bincount(sample, minlength=count) for sample in samples]
    return np.array(drawn, float).reshape(MEMBERS, count)
