"""Whether a representation has collapsed: it says nothing, or one thing, about what is seen."""

import numpy as np
from jaxtyping import Float

ONE_DIRECTION = 1.01  # effective directions; at most this many are one
LEAST_SPREAD = 1e-6  # standard deviation of a feature that is not constant


def directions_of(features: Float[np.ndarray, "n F"]) -> float:
    """Return the effective number of directions of features: (Σ λ)² / Σ λ².

    λ are the eigenvalues of the covariance of the features that vary, each divided by its standard
    deviation. 0 if none varies, or a feature is not finite.
    """
    if not np.isfinite(features).all():
        return 0.0
    deviation = features.std(0)
    varies = deviation > LEAST_SPREAD
    if not varies.any():
        return 0.0
    standard = (features[:, varies] - features[:, varies].mean(0)) / deviation[varies]
    products = (standard @ standard.T).astype(np.float64)
    return float(np.trace(products) ** 2 / np.square(products).sum())


def has_collapsed(features: Float[np.ndarray, "n F"]) -> bool:
    """Return whether features are not finite, constant, or all the same up to scale and sign."""
    return directions_of(features) <= ONE_DIRECTION
