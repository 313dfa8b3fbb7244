"""The fields of what a page sends: each of its type, or a sentence that names the field."""

import json
from collections.abc import Mapping
from typing import Any, cast, final

from starlette.exceptions import HTTPException

from runshelf.errors import UsageError

_LARGEST = 2**63 - 1  # SQLite's integers
_MANY = 1000


@final
class InvalidField(UsageError):
    """A field of a request is missing or has another type than expected."""


@final
class Fields:
    """The fields of one JSON object.

    Raises:
        InvalidField: by every method: the field is missing or of another type.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """Return a field that must be text."""
        value = self._get(name, str, "text")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidField(f"`{name}` is not text: half a character is missing in it")
        return value

    def number(self, name: str) -> float:
        """Return a field that must be a number."""
        value = self._get(name, (int, float), "a number")
        try:
            return float(value)
        except OverflowError:
            raise InvalidField(f"`{name}` is too large a number") from None

    def whole(self, name: str) -> int:
        """Return a field that must be a whole number an id can be."""
        return _checked_whole(name, self._get(name, int, "a whole number"))

    def has(self, name: str) -> bool:
        """Return whether a field is there."""
        return name in self._fields

    def numbers(self, name: str) -> list[float]:
        """Return a field that must be a list of numbers."""
        values = self._get(name, list, "a list of numbers")
        if len(values) > _MANY or any(
            isinstance(value, bool) or not isinstance(value, int | float) for value in values
        ):
            raise InvalidField(f"`{name}` must be a list of at most {_MANY} numbers")
        return [Fields({name: value}).number(name) for value in values]

    def truth(self, name: str) -> bool:
        """Return a field that must be true or false."""
        return self._get(name, bool, "true or false")

    def wholes(self, name: str) -> list[int]:
        """Return a field that must be a list of whole numbers; empty if it is not there."""
        values = self._get(name, list, "a list of whole numbers") if name in self._fields else []
        if len(values) > _MANY:
            raise InvalidField(f"`{name}` has {len(values)} entries, at most {_MANY} may be")
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidField(f"`{name}` must be a list of whole numbers")
        return [_checked_whole(name, value) for value in values]

    def _get(self, name: str, kind: type | tuple[type, ...], expected: str) -> Any:
        if name not in self._fields:
            raise InvalidField(f"`{name}` is missing: expected {expected}")
        value = self._fields[name]
        # To Python, truth is a number.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidField(f"`{name}` must be {expected}")
        return value


def read_fields(body: bytes) -> Fields:
    """Return the fields of a JSON object.

    Raises:
        HTTPException: 400: it is none.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request's body is not JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the request's body must be a JSON object")
    return Fields(cast("dict[str, Any]", found))


def _checked_whole(name: str, value: int) -> int:
    if not -_LARGEST <= value <= _LARGEST:
        raise InvalidField(f"`{name}` is too large a number")
    return value
