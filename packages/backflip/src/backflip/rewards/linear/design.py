"""The features of the labels, and the equations that a fit of their weights solves."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, get_lapack_funcs, solve_triangular

# With at least this many labels for each feature, matrices of features cost less than of labels.
LABELS_PER_FEATURE = 1.4
FEW_LABELS = 50  # the equations of more labels take as long if they are solved one by one
ROUNDING = 1e-13  # of the largest eigenvalue: smaller ones are errors of rounding

(_potrf,) = get_lapack_funcs(("potrf",), dtype=np.float64)


class Posterior(NamedTuple):
    """The posterior of logits in a normal approximation, of one model or of V.

    Attributes:
        variances: the diagonal of Φ (I + ΦᵀWΦ)⁻¹ Φᵀ.
        half_log_det: ½ log|I + ΦᵀWΦ|.
    """

    variances: Float[np.ndarray, "*V n"]
    half_log_det: Float[np.ndarray, "*V"]


@runtime_checkable
class Design(Protocol):
    """The features Φ of n labels for one model, whose logits are m = Φ w with w ~ N(0, I).

    All is in double precision: the weights are Φᵀa, and K multiplies the rounding errors of a by
    its largest eigenvalue, some 10⁵ if a clip is much shorter than the others.
    """

    def solve(
        self, curvature: Float[np.ndarray, " n"], target: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "n k"]:
        """Return Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t; t has k columns, W is diagonal."""
        ...

    def posterior(self, curvature: Float[np.ndarray, " n"]) -> "Posterior":
        """Return the variances of the logits, and ½ log|I + ΦᵀWΦ|."""
        ...


@runtime_checkable
class Designs(Protocol):
    """The designs of V models of the same labels."""

    def solve(
        self, curvature: Float[np.ndarray, "V n"], target: Float[np.ndarray, "V n k"]
    ) -> Float[np.ndarray, "V n k"]:
        """Return Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t of each model."""
        ...

    def posterior(self, curvature: Float[np.ndarray, "V n"]) -> "Posterior":
        """Return the variances of the logits of each model, and ½ log|I + ΦᵀWΦ|."""
        ...

    def some(self, models: Int[np.ndarray, " N"]) -> "Designs":
        """Return the designs of some of the models."""
        ...


@final
class Each(NamedTuple):
    """Designs whose equations are solved one after the other."""

    of_models: Sequence[Design]

    def solve(
        self, curvature: Float[np.ndarray, "V n"], target: Float[np.ndarray, "V n k"]
    ) -> Float[np.ndarray, "V n k"]:
        """Return Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t of each model."""
        every = zip(self.of_models, curvature, target, strict=True)
        return np.stack([design.solve(*given) for design, *given in every])

    def posterior(self, curvature: Float[np.ndarray, "V n"]) -> "Posterior":
        """Return the variances of the logits of each model, and ½ log|I + ΦᵀWΦ|."""
        every = zip(self.of_models, curvature, strict=True)
        found = [design.posterior(given) for design, given in every]
        return Posterior(*map(np.stack, zip(*found, strict=True)))

    def some(self, models: Int[np.ndarray, " N"]) -> "Each":
        """Return the designs of some of the models."""
        return Each([self.of_models[at] for at in models])


@final
class Together(NamedTuple):
    """Designs of few labels, with matrices of labels, whose equations are solved in one call.

    A call for each model takes longer than the arithmetic.

    Attributes:
        kernels: K = ΦΦᵀ of each model.
    """

    kernels: Float[np.ndarray, "V n n"]

    def solve(
        self, curvature: Float[np.ndarray, "V n"], target: Float[np.ndarray, "V n k"]
    ) -> Float[np.ndarray, "V n k"]:
        """Return K (t - W^½ B⁻¹ W^½ K t) with B = I + W^½ K W^½."""
        root = np.sqrt(curvature)[..., None]
        inner = np.linalg.solve(self._matrices(root), root * (self.kernels @ target))
        return self.kernels @ (target - root * inner)

    def posterior(self, curvature: Float[np.ndarray, "V n"]) -> "Posterior":
        """Return the diagonal of K - K W^½ B⁻¹ W^½ K, and ½ log|B|."""
        root = np.sqrt(curvature)[..., None]
        matrices, scaled = self._matrices(root), root * self.kernels
        known = (scaled * np.linalg.solve(matrices, scaled)).sum(1)
        variances = np.diagonal(self.kernels, axis1=1, axis2=2) - known
        return Posterior(variances, 0.5 * np.linalg.slogdet(matrices).logabsdet)

    def some(self, models: Int[np.ndarray, " N"]) -> "Together":
        """Return the designs of some of the models."""
        return Together(self.kernels[models])

    def _matrices(self, root: Float[np.ndarray, "V n 1"]) -> Float[np.ndarray, "V n n"]:
        found = self.kernels * root
        found *= root.swapaxes(1, 2)
        found += np.eye(found.shape[1])
        return found


@final
class ByFeatures(NamedTuple):
    """A design whose matrices are of features.

    Attributes:
        features: Φ.
    """

    features: Float[np.ndarray, "n F"]

    def solve(
        self, curvature: Float[np.ndarray, " n"], target: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "n k"]:
        """Return Φ (I + ΦᵀWΦ)⁻¹ Φᵀ t."""
        chol = _factor(self._matrix(curvature)), True
        return self.features @ cho_solve(chol, self.features.T @ target, check_finite=False)

    def posterior(self, curvature: Float[np.ndarray, " n"]) -> "Posterior":
        """Return the diagonal of Φ (I + ΦᵀWΦ)⁻¹ Φᵀ, and ½ log|I + ΦᵀWΦ|."""
        chol = _factor(self._matrix(curvature))
        half = solve_triangular(chol, self.features.T, lower=True, check_finite=False)
        return Posterior(np.square(half).sum(0), _half_log_det(chol))

    def _matrix(self, curvature: Float[np.ndarray, " n"]) -> Float[np.ndarray, "F F"]:
        rows = np.sqrt(curvature)[:, None] * self.features
        return rows.T @ rows


@final
class ByLabels(NamedTuple):
    """A design whose matrices are of labels.

    Labels without curvature have no part in them, as those that a bootstrap sample left out.

    Attributes:
        kernel: K = ΦΦᵀ.
    """

    kernel: Float[np.ndarray, "n n"]

    def solve(
        self, curvature: Float[np.ndarray, " n"], target: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "n k"]:
        """Return K (t - W^½ B⁻¹ W^½ K t) with B = I + W^½ K W^½."""
        rows, root, matrix = self._equations(curvature)
        seen = root * (self.kernel @ target)[rows]
        left = target.copy()
        left[rows] -= root * cho_solve((_factor(matrix), True), seen, check_finite=False)
        return self.kernel @ left

    def posterior(self, curvature: Float[np.ndarray, " n"]) -> "Posterior":
        """Return the diagonal of K - K W^½ B⁻¹ W^½ K, and ½ log|B|."""
        rows, root, matrix = self._equations(curvature)
        chol = _factor(matrix)
        half = solve_triangular(chol, root * self.kernel[rows], lower=True, check_finite=False)
        return Posterior(np.diagonal(self.kernel) - np.square(half).sum(0), _half_log_det(chol))

    def _equations(self, curvature: Float[np.ndarray, " n"]) -> "_Equations":
        rows = np.flatnonzero(curvature > 0)
        root = np.sqrt(curvature[rows])[:, None]
        is_all = len(rows) == len(curvature)
        kernel = self.kernel if is_all else self.kernel.take(rows, 0).take(rows, 1)
        matrix = kernel * root[:, 0]
        matrix *= root
        return _Equations(rows, root, matrix)


class _Equations(NamedTuple):
    """The m labels with curvature, W^½ as a column, and W^½ K W^½, of these labels."""

    rows: Int[np.ndarray, " m"]
    root: Float[np.ndarray, "m 1"]
    matrix: Float[np.ndarray, "m m"]


def fewest_features(features: Float[np.ndarray, "n F"]) -> Float[np.ndarray, "n r"]:
    """Return Q with QQᵀ = ΦΦᵀ and as many columns as Φ has independent ones.

    The logits Φ w and Q w have the same prior if w ~ N(0, I). Many features of images are 0 in each
    clip, or sums of others.
    """
    labels, count = features.shape
    wide = count > labels
    squares = features @ features.T if wide else features.T @ features
    sizes, axes = np.linalg.eigh(squares)
    kept = sizes >= ROUNDING * sizes[-1]  # all are if each is 0
    if wide:
        return axes[:, kept] * np.sqrt(sizes[kept])
    return features @ axes[:, kept]


def is_by_labels(labels: int, features: int) -> bool:
    """Return whether matrices of labels cost less than matrices of features."""
    return labels < LABELS_PER_FEATURE * features


def _factor(matrix: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of I + a symmetric matrix as `cho_solve` needs it.

    The matrix is overwritten. LAPACK is called as it is: `np.linalg.cholesky` takes twice the time.

    Raises:
        np.linalg.LinAlgError: I + the matrix is not positive definite.
    """
    matrix.flat[:: len(matrix) + 1] += 1
    chol, problem = _potrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if problem:
        raise np.linalg.LinAlgError(f"pivot {problem} of {len(matrix)} is not positive")
    return chol


def _half_log_det(chol: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.diagonal(chol)).sum())
