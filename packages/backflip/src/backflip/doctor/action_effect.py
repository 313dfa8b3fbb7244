"""Whether actions have an effect on what is seen next.

Needs NumPy alone: it also runs in environments of other libraries.
"""

import math
from typing import Any

import numpy as np

KNOWN = 32  # columns of the observation that y is explained by, at most
WANTED = 4_096  # columns of the change that may show an effect, at most
FEWEST = 500  # rows: with fewer, an effect on slippery ice is not seen
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

    are fitted. If a has no effect, (n - k - (q + 1) / 2) log(RSS₀ / RSS₁) has about a χ²
    distribution with q degrees of freedom; k is the number of columns of (1, s, s²), and q of those
    that a adds (likelihood ratio; Wilks 1938, with the correction of Bartlett 1938). The least of
    the probabilities of all columns y is multiplied by their number (Bonferroni). If observations
    are long, s has only the `KNOWN` columns that change most, and y only the `WANTED` columns that
    change most, and the reward.

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
    kept = ~np.asarray(ended, bool).ravel() & np.isfinite(seen).all(1) & np.isfinite(after).all(1)
    if kept.sum() < FEWEST:
        return math.nan
    change = after[kept] - seen[kept]
    order = np.argsort(-change.var(0), kind="stable")
    scaled = _scaled(seen[kept][:, order[:KNOWN]])
    known = _known(scaled)
    change = change[:, order[:WANTED]]
    wanted = np.column_stack([change, np.asarray(rewards, np.float64).reshape(-1)[kept]])
    acted = _columns(actions, choices)[kept]
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
    return _chance(_without(known, wanted), added, wanted, known.shape[1])


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
    chance = _chance(centred, _basis(_without(constant, known), known), centred, 1)
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


def _chance(left_over: Values, acted: Values, wanted: Values, known: int) -> float:
    rows, added = acted.shape
    before = (left_over**2).sum(0)
    noisy = before > TINY**2 * (wanted**2).sum(0)
    if not noisy.any():
        return math.nan
    explained = ((acted.T @ left_over) ** 2).sum(0)
    rest = np.maximum(before - explained, TINY * before)
    ratios = (rows - known - (added + 1) / 2) * np.log(before[noisy] / rest[noisy])
    return min(1.0, len(ratios) * min(_beyond(ratio, added) for ratio in ratios.tolist()))


def _beyond(value: float, degrees: int) -> float:
    """Return P(χ² ≥ value), by recurrence over the degrees of freedom."""
    half = value / 2.0
    found = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    for k in range(2 - degrees % 2, degrees, 2):
        log_term = k / 2 * math.log(half) - half - math.lgamma(k / 2 + 1) if half else -math.inf
        found += math.exp(log_term)
    return min(found, 1.0)
