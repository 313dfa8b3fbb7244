"""Whether a change costs return."""

from typing import Any

import numpy as np
from scipy import stats

CHANCE = 0.01
SPREADS = 3.0  # a change has an effect if it costs more than this many standard deviations


def has_effect(clean: "np.ndarray[Any, Any]", changed: "np.ndarray[Any, Any]") -> bool:
    """Return whether the mean return falls by more than three standard deviations (the larger)."""
    if not np.isfinite(changed).all():
        return True
    spread = max(float(clean.std(ddof=1)), float(changed.std(ddof=1)))
    return float(clean.mean() - changed.mean()) > SPREADS * spread


def lowers_return(clean: "np.ndarray[Any, Any]", changed: "np.ndarray[Any, Any]") -> bool:
    """Return whether the mean return is lower by Welch's one-sided t-test, p < `CHANCE`.

    Unlike `has_effect`, it does not want the spread of seeds to be small: a clean training run with
    one unlucky seed can still be compared with a broken one that never learns.
    """
    if not np.isfinite(changed).all():
        return True
    errors = np.asarray([x.var(ddof=1) / len(x) for x in (clean, changed)])
    gap, error = float(clean.mean() - changed.mean()), float(np.sqrt(errors.sum()))
    if error == 0:
        return gap > 0
    freedom = errors.sum() ** 2 / (errors**2 / [len(clean) - 1, len(changed) - 1]).sum()
    return bool(stats.t.sf(gap / error, freedom) < CHANCE)
