"""How numbers, durations, sizes and times are written on a page."""

import math
from datetime import UTC, datetime

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def number(value: object) -> str:
    """Return a value to four significant digits; what is no number, as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 100_000:
        return str(value)
    if not isinstance(value, int | float):
        return "" if value is None else str(value)
    try:
        return _float(float(value))
    except OverflowError:
        return f"{str(value)[:5]}... ({len(str(abs(value)))} digits)"


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == round(value) and size < 1e15:
        text = f"{value:,.0f}" if size >= 100_000 else f"{value:.0f}"
        return text.replace(",", " ").replace("-", "−")
    return _power(f"{value:.4g}")


def brief(value: float) -> str:
    """Return a number to three significant digits."""
    if not math.isfinite(value):
        return _float(value)
    size = abs(value)
    return _power(f"{value:.0f}" if 1000 <= size < 1e5 else f"{value:.3g}")


def _power(text: str) -> str:
    """Return `1.2e−4` for `1.2e-04`."""
    digits, e, power = text.partition("e")
    return (f"{digits}e{int(power)}" if e else digits).replace("-", "−")


def short(value: float) -> str:
    """Return a number for an axis: `20 k`, `1.5 M`, `0.05`."""
    size = abs(value)
    for factor, letter in _SI:
        if size >= factor:
            return f"{value / factor:.4g} {letter}".replace("-", "−")
    if size and size < 1e-3:
        return _power(f"{value:.0e}")
    return f"{value:.4g}".replace("-", "−")


def roughly(seconds: float) -> str:
    """Return a duration that nobody should take for exact."""
    if seconds < 45:
        return "less than a minute"
    if seconds < 90 * _MINUTE:
        return f"about {max(1, round(seconds / _MINUTE))} min"
    if seconds < 48 * _HOUR:
        return f"about {round(seconds / _HOUR)} h"
    return f"about {round(seconds / _DAY)} days"


def ago(seconds: float) -> str:
    """Return how long ago something was."""
    if seconds < _MINUTE:
        return "just now"
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= unit:
            many = int(seconds // unit)
            return f"{many} {name}{'s' if many > 1 else ''} ago"
    return ""


def size(count: float | None) -> str:
    """Return a number of bytes."""
    if count is None:
        return ""
    for factor, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.1f} {name}"
    return f"{count:.0f} B"


def moment(unix: float | None) -> str:
    """Return a point in time, in UTC, to the minute."""
    try:
        return datetime.fromtimestamp(unix or 0.0, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return ""


def plural(count: int, noun: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}".replace(",", " ")
