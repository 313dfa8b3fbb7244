"""Parses JSON from files that another person may have written.

Whatever the text is, the result is a value that all code can handle, or a `ValueError`. No value is
nested more than `DEEPEST` levels, so that no recursion over it overflows. Integers beyond the range
of floats become infinities.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

DEEPEST = 64  # levels of lists and objects; configurations and records have a few

_TOO_DEEP = f"nested more than {DEEPEST} levels"
_MOST_DIGITS = 308  # every integer with so many digits is within the range of floats
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(data: bytes | str) -> Any:
    """Return the value of a JSON document, in time linear in its length.

    Texts may have lone surrogates, which stand for bytes of paths and arguments.

    Raises:
        ValueError: it is not JSON in UTF-8, or it is nested too deeply.
    """
    text = data if isinstance(data, str) else data.decode()
    try:
        value = _DECODE(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > DEEPEST and is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def parse_record(data: bytes | str) -> dict[str, Any]:
    """Return a JSON object, with lone surrogates replaced, which no file or terminal accepts.

    Raises:
        ValueError: it is not a JSON object in UTF-8, or it is nested too deeply.
    """
    text = data if isinstance(data, str) else data.decode()
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    record = cast("dict[str, Any]", value)
    return _without_surrogates(record) if may_have_surrogates(text) else record


def may_have_surrogates(text: str) -> bool:
    """Return whether surrogates may be in the values of a JSON document that was UTF-8."""
    return "\\u" in text and _ESCAPED_SURROGATE.search(text) is not None


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested more than `DEEPEST` levels, without recursion."""
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        level = [item for each in level for item in _items(each)]
        if not level:
            return False
    return True


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _integer(digits: str) -> int | float:
    if len(digits.lstrip("-")) <= _MOST_DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {_without_surrogates(key): _without_surrogates(item) for key, item in pairs}
    return value


_DECODE = json.JSONDecoder(parse_int=_integer).decode


def is_finite(number: int | float) -> bool:
    """Return whether a number is within the range of floats."""
    try:
        return math.isfinite(number)
    except OverflowError:  # a large integer
        return False


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return a JSON value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return a JSON value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def finite(value: object) -> float | None:
    """Return a JSON value as a float; None if it is not a number or too large."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e300 else None
