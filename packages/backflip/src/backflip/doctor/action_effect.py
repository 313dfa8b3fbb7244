"""Whether actions have an effect on what is seen next.

Needs NumPy alone: it also runs in environments of other libraries.
"""

import math
from typing import Any

import numpy as np

KNOWN = 32  # columns of the observation that y is explained by, at most
WANTED = 4_096  # columns of the change that may show an effect, at most
FEWEST = 500  # rows: with fewer, an effect on slippery ice is not seen
TESTED = 8  # columns y at most, those that a explains best
MIXTURES = 8
ROWS_PER_COLUMN = 3  # at least, of (1, s, s², a)
TINY = 1e-9  # relative
DEPENDENT = 1e-2  # p-value below which actions depend on the observation

Values = np.ndarray[Any, Any]


def action_effect(
    obs: Any, actions: Any, next_obs: Any, rewards: Any, ended: Any, *, choices: int = 0
) -> float:
    """Return the p-value of the hypothesis that actions have no effect on what comes next.

    With s the observation, standardised, and y one column of (s' - s, r), two linear models

        y = b₀ᵀ(1, s, s²) + ε,        y = b₁ᵀ(1, s, s², a) + ε

    are compared. With ε what the first leaves over of y, and a what (1, s, s²) leaves over of the
    actions, in q columns, u = Σ ε a and V = Σ ε² a aᵀ, uᵀ V⁻¹ u has about a χ² distribution with q
    degrees of freedom if a has no effect, also where ε varies more in some states than in others
    (score test with the covariance of White 1980). A likelihood ratio does not: on one-hot
    observations it finds an effect of actions that are ignored. The least of the probabilities of
    all columns y is multiplied by their number (Bonferroni). If observations are long, s has only
    the `KNOWN` columns that change most, and y only the `WANTED` columns that change most, the
    reward and `MIXTURES` sums of all columns.

    If a does not depend on s, so that a policy does not act yet, the columns of a times s are added
    to those of a. In a market, for example, what an action earns depends on where the price goes,
    and its mean effect is 0.

    Actions of a policy depend on s. Any effect of s beyond a quadratic function then looks like an
    effect of a, so actions that are as random as possible give the best evidence. An effect that
    comes later than the next observation is not seen. In images of games effects often come later,
    so images give NaN.

    Args:
        obs: s of n rows, (n, d) or (n,).
        actions: a, (n,) or (n, m).
        next_obs: s' of these rows, with the shape of `obs`.
        rewards: r, (n,).
        ended: whether the episode ended, so that s' may be the beginning of another, (n,).
        choices: the number of discrete actions; 0 for continuous ones.

    Returns:
        The p-value, from 0 to 1; NaN if fewer than `FEWEST` rows remain, or too few for so many
        columns, or actions do not vary beyond what the observation says of them, or observations
        are not vectors.
    """
    if np.ndim(obs) > 2:
        return math.nan
    seen, after = (np.asarray(x, np.float64).reshape(len(x), -1) for x in (obs, next_obs))
    numbers = (seen, after, np.asarray(actions, np.float64).reshape(len(seen), -1))
    kept = ~np.asarray(ended, bool).ravel() & np.all([np.isfinite(x).all(1) for x in numbers], 0)
    if kept.sum() < FEWEST:
        return math.nan
    change = after[kept] - seen[kept]
    order = np.argsort(-change.var(0), kind="stable")
    scaled = _scaled(seen[kept][:, order[:KNOWN]])
    known = _known(scaled)
    reward = np.asarray(rewards, np.float64).reshape(-1)[kept]
    wanted = np.column_stack([reward, _mixtures(change), change[:, order[:WANTED]]])
    acted = _columns(np.asarray(actions)[kept], choices)
    if _is_independent(acted, known):
        # Signs, and actions without their mean: a product must say nothing of s alone, and a few
        # rows far out must not decide.
        centred = (acted - acted.mean(0))[:, :, None]
        products = (centred * np.sign(scaled)[:, None, :]).reshape(len(acted), -1)
        both = np.column_stack([acted, products])
        if len(known) >= ROWS_PER_COLUMN * (known.shape[1] + both.shape[1]):
            acted = both
    added = _basis(_without(known, acted), acted)
    if not added.shape[1] or len(known) < ROWS_PER_COLUMN * (known.shape[1] + added.shape[1]):
        return math.nan
    return _chance(_without(known, wanted), added, wanted)


def _mixtures(change: Values) -> Values:
    """Return sums of all columns, the first weighted by their numbers, the others at random.

    What is seen may be a grid with a few cells that are not 0. Each cell changes too rarely to show
    an effect of a, and the number of a cell says where it is.
    """
    weights = np.random.default_rng(0).normal(size=(change.shape[1], MIXTURES))
    weights[:, 0] = np.arange(len(weights))
    return change @ weights


def _columns(actions: Any, choices: int) -> Values:
    values = np.asarray(actions).reshape(len(actions), -1)
    if choices:
        return np.eye(choices)[values[:, 0].astype(int)][:, 1:]
    return values.astype(np.float64)


def _scaled(seen: Values) -> Values:
    """Return the columns that vary, standardised."""
    deviation = seen.std(0)
    varied = deviation > TINY * (1.0 + np.abs(seen).max(0))
    return (seen[:, varied] - seen[:, varied].mean(0)) / deviation[varied]


def _is_independent(acted: Values, known: Values) -> bool:
    """Return whether (1, s, s²) says nothing of the actions."""
    centred = acted - acted.mean(0)
    if known.shape[1] < 2 or not centred.any():
        return False
    constant = np.full((len(known), 1), len(known) ** -0.5)
    chance = _chance(centred, _basis(_without(constant, known), known), centred)
    return chance > DEPENDENT  # false for NaN


def _known(scaled: Values) -> Values:
    """Return an orthonormal basis of (1, s, s²)."""
    every = np.column_stack([np.ones(len(scaled)), scaled, scaled**2])
    return _basis(every, every)


def _basis(columns: Values, scale: Values) -> Values:
    """Return an orthonormal basis of columns; those that are tiny beside `scale` are rounding."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, size > 1e-6 * np.linalg.norm(scale)] if size.size else left


def _without(basis: Values, values: Values) -> Values:
    return values - basis @ (basis.T @ values)


def _chance(left_over: Values, acted: Values, wanted: Values) -> float:
    """Return the p-value of the hypothesis that `acted` explains nothing of what is left over."""
    before = (left_over**2).sum(0)
    noisy = np.flatnonzero(before > TINY**2 * (wanted**2).sum(0))
    if not noisy.size:
        return math.nan
    explained = ((acted.T @ left_over[:, noisy]) ** 2).sum(0) / before[noisy]
    most = noisy[np.argsort(-explained, kind="stable")[:TESTED]]
    tested = np.union1d(most, noisy[noisy <= MIXTURES])
    scores = [_score(left_over[:, column], acted) for column in tested]
    return min(1.0, len(noisy) * min(_beyond(score, acted.shape[1]) for score in scores))


def _score(error: Values, acted: Values) -> float:
    """Return uᵀ V⁻¹ u, with u = Σ ε a and V = Σ ε² a aᵀ over the rows."""
    each = acted * error[:, None]
    total = each.sum(0)
    return float(total @ np.linalg.lstsq(each.T @ each, total, rcond=1e-10)[0])


def _beyond(value: float, degrees: int) -> float:
    """Return P(χ² ≥ value), by recurrence over the degrees of freedom."""
    half = value / 2.0
    found = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    for k in range(2 - degrees % 2, degrees, 2):
        log_term = k / 2 * math.log(half) - half - math.lgamma(k / 2 + 1) if half else -math.inf
        found += math.exp(log_term)
    return min(found, 1.0)
