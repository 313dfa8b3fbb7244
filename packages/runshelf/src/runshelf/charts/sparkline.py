"""A curve as one line of text."""

import numpy as np
from jaxtyping import Float

_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Float[np.ndarray, " L"], low: float, high: float, width: int) -> str:
    """Return values as at most `width` bars on a scale from `low` to `high`."""
    width = min(width, len(values))
    size = max(abs(low), abs(high), 1.0)  # sums and the span of numbers near 1e308 would overflow
    low, high = low / size, high / size
    means = [part.mean() for part in np.array_split(values / size, width)]
    share = [(mean - low) / (high - low) if high > low else 0.5 for mean in means]
    return "".join(_LEVELS[min(max(int(s * len(_LEVELS)), 0), len(_LEVELS) - 1)] for s in share)
