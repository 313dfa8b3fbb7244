"""The features of the labels, and the equations that a fit of their weights solves."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, get_lapack_funcs

# With at least this many labels for each feature, matrices of features cost less than of labels.
LABELS_PER_FEATURE = 1.4

(_potrf,) = get_lapack_funcs(("potrf",), dtype=np.float64)


class Design(NamedTuple):
    """The features Φ of the labels, whose logits are m = Φ w with w ~ N(0, I).

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


Solve = Callable[
    [Float[np.ndarray, " n"], Float[np.ndarray, "n k"]], tuple[Float[np.ndarray, "n k"], float]
]


def solver(design: Design) -> Solve:
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
        scaled = kernel * root
        scaled *= root[:, None]
        chol, half_log_det = _factor(scaled)
        inner = cho_solve(chol, root[:, None] * (kernel @ target), check_finite=False)
        return kernel @ (target - root[:, None] * inner), half_log_det

    return by_features if kernel is None else by_labels


def _factor(matrix: np.ndarray) -> tuple[tuple[np.ndarray, bool], float]:
    """Return I + a symmetric matrix as `cho_solve` needs it, and half the log of its determinant.

    The matrix is overwritten. LAPACK is called as it is: `np.linalg.cholesky` takes twice the time.

    Raises:
        np.linalg.LinAlgError: I + the matrix is not positive definite.
    """
    matrix.flat[:: len(matrix) + 1] += 1
    chol, problem = _potrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if problem:
        raise np.linalg.LinAlgError(f"pivot {problem} of {len(matrix)} is not positive")
    return (chol, True), float(np.log(np.diagonal(chol)).sum())
