"""Axes of a chart: positions of values, round ticks and their labels."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from runshelf.durations import duration
from runshelf.formatting import short

LARGEST = 1e300  # larger values lie beyond the end of a scale
NARROWEST = 1e-12  # the least width of a scale, relative to its values
_TICKS = 5
_CLOCK_STEPS = sorted(
    [s * u for u in (1.0, 60.0, 3600.0) for s in (1, 2, 5, 10, 15, 30)]
    + [86_400.0 * s for s in (0.5, 1, 2, 5, 10, 20, 50, 100)]
)


@final
@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from values to the interval 0 to 1.

    Scales that numbers cannot resolve are made wider, and those beyond `LARGEST` shorter.

    Attributes:
        low: the value at 0.
        high: the value at 1.
        log: whether the scale is logarithmic.
        clock: whether values are seconds, with ticks at whole minutes, hours and days.
    """

    low: float
    high: float
    log: bool = False
    clock: bool = False

    def __post_init__(self) -> None:
        """Keep the width of the scale, and its ticks, within what numbers resolve."""
        least = 1.0 / LARGEST if self.log else -LARGEST
        low, high = (min(max(end, least), LARGEST) for end in (self.low, self.high))
        narrowest = NARROWEST * max(abs(low), abs(high)) + 1.0 / LARGEST
        if high - low < narrowest:
            low, high = low - narrowest / 2 * (not self.log), high + narrowest
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def place(self, values: np.ndarray) -> np.ndarray:
        """Return the positions of values."""
        if self.log:
            with np.errstate(invalid="ignore", divide="ignore"):
                return (np.log10(values) - math.log10(self.low)) / self._decades()
        with np.errstate(over="ignore"):
            return (values - self.low) / (self.high - self.low)

    def at(self, value: float) -> float:
        """Return the position of one value."""
        return float(self.place(np.array([value]))[0])

    def ticks(self, count: int = _TICKS) -> list[float]:
        """Return about `count` round values on the scale, or fewer."""
        if self.log and self._decades() >= 1:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high))
            step = max(1, math.ceil((last - first + 1) / count))
            return [10.0**power for power in range(first, last + 1, step)]
        wanted = (self.high - self.low) / count
        step = _clock_step(wanted) if self.clock else _round_step(wanted)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]

    def labels(self, count: int = _TICKS) -> list[tuple[float, str]]:
        """Return the position of each tick from 0 to 1, and its text.

        On a scale so narrow that all texts are the same, only the middle tick has one.
        """
        text: Callable[[float], str] = _clock_text if self.clock else short
        found = [(self.at(tick), text(tick)) for tick in self.ticks(count)]
        if len(found) > 1 and len({words for _, words in found}) == 1:
            return [found[len(found) // 2]]
        return found

    def _decades(self) -> float:
        return math.log10(self.high) - math.log10(self.low)


def _round_step(wanted: float) -> float:
    """Return `wanted` rounded up to 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= wanted * (1 - 1e-9))


def _clock_step(wanted: float) -> float:
    step = next((s for s in _CLOCK_STEPS if s >= wanted), None)
    return _round_step(wanted) if step is None or wanted < 0.5 else step


def _clock_text(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit and seconds % (unit / 2) == 0:
            return f"{seconds / unit:.3g} {name}"
    return duration(seconds)
