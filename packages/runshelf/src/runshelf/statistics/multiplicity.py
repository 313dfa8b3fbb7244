"""Several comparisons at once: p values that keep the chance of any false finding."""

import numpy as np
from jaxtyping import Float


def holm(p: Float[np.ndarray, " comparisons"]) -> Float[np.ndarray, " comparisons"]:
    """Return Holm's adjusted p values, in the order given.

    With p_(1) ≤ ... ≤ p_(k), the adjusted p_(i) is the maximum over j ≤ i of (k - j + 1) p_(j), at
    most 1. Those at most α may be called findings: the chance of any false one is at most α,
    however the comparisons depend on each other.

    Source: Holm 1979, Scandinavian Journal of Statistics 6(2).
    """
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return adjusted
