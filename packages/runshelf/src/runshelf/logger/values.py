"""Values of a row as JSON: numbers of any library, texts, and the words for NaN and infinities."""

import json
import math
from collections.abc import Callable
from typing import Any, final

from runshelf.logger.problems import Refused

LONGEST_TEXT = 10_000


@final
class NotPlain(Exception):
    """A row holds a value that JSON cannot represent."""


def checked_text(value: str) -> str:
    """Return a text that is short enough to be logged."""
    if len(value) > LONGEST_TEXT:
        raise Refused(
            f"a text of {len(value)} characters is too long: use at most {LONGEST_TEXT}", "text"
        )
    return str(value)


def scalar(value: Any) -> bool | int | float | None:
    """Return a single number as a Python number; None if `value` is not a single number."""
    if isinstance(value, bool | int | float):
        if type(value) in (bool, int, float):
            return value
        return float(value) if isinstance(value, float) else int(value)  # of a subclass
    shape = getattr(value, "shape", None)
    if type(value).__module__.startswith("numpy.ma") and value.mask.any():
        return None
    if shape is not None:
        item = value.item() if tuple(shape) == () and hasattr(value, "item") else None
        return item if isinstance(item, bool | int | float) else _as_float(item)
    return _as_float(value)


def _as_float(value: Any) -> float | None:
    """Return a decimal, a fraction or a low-precision number as a float; None for anything else."""
    return float(value) if hasattr(type(value), "__float__") else None


def finite_or_word(number: int | float) -> int | float | str:
    """Return a number as JSON can hold it: NaN and infinities as words.

    Raises:
        ValueError: an integer has too many digits for Python to write it.
    """
    if isinstance(number, int):
        str(number)
        return number
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")


def _default(value: Any) -> Any:
    """Return a scalar of another library as a Python number, for the JSON encoder."""
    number = scalar(value)
    if number is None:
        raise NotPlain
    return number


def _make_encoder() -> Callable[[Any, int], Any]:
    """Return a function from a row to pieces of JSON, in C where Python provides it."""
    fast: Any = getattr(json.encoder, "c_make_encoder", None)
    if fast is None:
        slow = json.JSONEncoder(default=_default, allow_nan=False)
        return lambda row, _: slow.iterencode(row)
    text: Any = json.encoder.encode_basestring_ascii
    return fast(None, _default, text, None, ": ", ", ", False, False, False)


encode = _make_encoder()
