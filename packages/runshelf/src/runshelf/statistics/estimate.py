"""One number with its interval."""

import math
from typing import NamedTuple, final

# Every interval is meant to hold in 95 of 100 cases unless a caller says otherwise.
CONFIDENCE = 0.95


@final
class Estimate(NamedTuple):
    """A number estimated from runs, with the ends of its interval.

    Attributes:
        value: the estimate; NaN without any run.
        low: the lower end; NaN if so few runs have no interval.
        high: the upper end; NaN if so few runs have no interval.
        n: the number of runs.
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def has_interval(self) -> bool:
        """Whether there are enough runs for an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    @property
    def has_width(self) -> bool:
        """Whether the ends differ; runs that are all equal give an interval without width."""
        return self.has_interval and self.high > self.low
