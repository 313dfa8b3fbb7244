"""Formats durations as text."""

import math

_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(seconds: int | float | None) -> str:
    """Return a duration in its two largest units: `4.5 s`, `45 s`, `1 min 30 s`, `2 h`, `3 d 4 h`.

    None and non-finite values give an empty string; negative values count as 0.
    """
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s".replace(".0 ", " ")
    whole = round(seconds)
    for large, name, small, smaller in _UNITS:
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
