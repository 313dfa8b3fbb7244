"""The scale of each number of an observation, gathered step by step in little memory."""

from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, Shaped


class ObservationStats(NamedTuple):
    """Least, mean, standard deviation and largest of each number, of D of them."""

    low: Float[np.ndarray, " D"]
    mean: Float[np.ndarray, " D"]
    std: Float[np.ndarray, " D"]
    high: Float[np.ndarray, " D"]

    @property
    def largest_z(self) -> Float[np.ndarray, " D"]:
        """How many standard deviations the furthest value is from the mean; 0 of a constant."""
        furthest = np.maximum(self.high - self.mean, self.mean - self.low)
        return np.divide(furthest, self.std, out=np.zeros_like(furthest), where=self.std > 0)

    @property
    def constant(self) -> Shaped[np.ndarray, " D"]:
        """Which numbers never changed."""
        return self.low == self.high

    @property
    def binary(self) -> Shaped[np.ndarray, " D"]:
        """Which numbers were 0 or 1 and nothing between: then, and only then, σ² = μ (1 - μ)."""
        within = (self.low == 0) & (self.high == 1)
        return within & np.isclose(np.square(self.std), self.mean * (1 - self.mean), atol=1e-9)


@final
class RunningStats:
    """Adds up observations.

    Sums are of differences from the first observation: of values like 1000.001 squares alone would
    lose what varies.
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
        away = rows - self._origin
        self.count += len(rows)
        self._sum = self._sum + away.sum(0)
        self._squares = self._squares + np.square(away).sum(0)
        self._low = np.minimum(self._low, rows.min(0))
        self._high = np.maximum(self._high, rows.max(0))

    def result(self) -> ObservationStats:
        """Return the scales of what was added."""
        mean = self._sum / max(self.count, 1)
        variance = np.maximum(self._squares / max(self.count, 1) - np.square(mean), 0.0)
        return ObservationStats(self._low, self._origin + mean, np.sqrt(variance), self._high)
