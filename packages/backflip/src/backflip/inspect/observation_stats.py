"""Statistics of each dimension of the observations, computed incrementally."""

from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, Shaped


class ObservationStats(NamedTuple):
    """Minimum, mean, standard deviation and maximum of each of D dimensions."""

    low: Float[np.ndarray, " D"]
    mean: Float[np.ndarray, " D"]
    std: Float[np.ndarray, " D"]
    high: Float[np.ndarray, " D"]

    @property
    def largest_z(self) -> Float[np.ndarray, " D"]:
        """The largest distance from the mean, in standard deviations; 0 for a constant."""
        furthest = np.maximum(self.high - self.mean, self.mean - self.low)
        return np.divide(furthest, self.std, out=np.zeros_like(furthest), where=self.std > 0)

    @property
    def constant(self) -> Shaped[np.ndarray, " D"]:
        """True for dimensions that never changed."""
        return self.low == self.high

    @property
    def binary(self) -> Shaped[np.ndarray, " D"]:
        """True for dimensions that were only 0 or 1: exactly these have σ² = μ (1 - μ)."""
        within = (self.low == 0) & (self.high == 1)
        return within & np.isclose(np.square(self.std), self.mean * (1 - self.mean), atol=1e-9)


@final
class RunningStats:
    """Accumulates observations.

    Sums are taken of differences from the first observation: squares of values such as 1000.001
    would lose the variation to rounding.
    """

    def __init__(self) -> None:
        self.count = 0
        self._origin: np.ndarray = np.zeros(0)
        self._sum = self._squares = self._low = self._high = self._origin

    def add(self, obs: Shaped[np.ndarray, "n ..."]) -> None:
        """Add n observations."""
        if not len(obs):
            return
        rows = obs.reshape(len(obs), -1).astype(np.float64)
        if not self.count:
            self._origin = rows[0]
            self._sum, self._squares = np.zeros_like(rows[0]), np.zeros_like(rows[0])
            self._low, self._high = rows[0], rows[0]
        shifted = rows - self._origin
        self.count += len(rows)
        self._sum = self._sum + shifted.sum(0)
        self._squares = self._squares + np.square(shifted).sum(0)
        self._low = np.minimum(self._low, rows.min(0))
        self._high = np.maximum(self._high, rows.max(0))

    def result(self) -> ObservationStats:
        """Return the statistics of all observations added."""
        mean = self._sum / max(self.count, 1)
        variance = np.maximum(self._squares / max(self.count, 1) - np.square(mean), 0.0)
        return ObservationStats(self._low, self._origin + mean, np.sqrt(variance), self._high)
