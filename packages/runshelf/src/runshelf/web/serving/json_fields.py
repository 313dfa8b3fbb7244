"""Typed access to the fields of a JSON request body, with errors that name the field."""

import json
from collections.abc import Mapping
from typing import Any, cast, final

from starlette.exceptions import HTTPException

from runshelf.errors import UsageError

_LARGEST = 2**63 - 1  # the largest integer of SQLite
_MOST_ITEMS = 1000


@final
class InvalidField(UsageError):
    """A field of a request is missing or has the wrong type."""


@final
class Fields:
    """The fields of one JSON object.

    Raises:
        InvalidField: by every method: the field is missing or has the wrong type.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def has(self, name: str) -> bool:
        """Return whether a field exists."""
        return name in self._fields

    def text(self, name: str) -> str:
        """Return a text field."""
        value = self._get(name, str, "text")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidField(f"`{name}` is not text: it contains an unpaired surrogate")
        return value

    def boolean(self, name: str) -> bool:
        """Return a field that is true or false."""
        return self._get(name, bool, "true or false")

    def number(self, name: str) -> float:
        """Return a number field."""
        return _number(name, self._get(name, (int, float), "a number"))

    def integer(self, name: str) -> int:
        """Return an integer field, limited to the integers of SQLite."""
        return _integer(name, self._get(name, int, "a whole number"))

    def items(self, name: str) -> list[Any]:
        """Return a field that is a list of anything."""
        values = self._get(name, list, "a list")
        if len(values) > _MOST_ITEMS:
            raise InvalidField(
                f"`{name}` has {len(values)} entries, at most {_MOST_ITEMS} are allowed"
            )
        return values

    def text_or_items(self, name: str) -> str | list[Any]:
        """Return a field that is text or a list of anything."""
        self._get(name, (str, list), "text or a list")
        return self.text(name) if isinstance(self._fields[name], str) else self.items(name)

    def numbers(self, name: str) -> list[float]:
        """Return a field that is a list of numbers."""
        values = self._get(name, list, "a list of numbers")
        if len(values) > _MOST_ITEMS or any(
            isinstance(value, bool) or not isinstance(value, int | float) for value in values
        ):
            raise InvalidField(f"`{name}` must be a list of at most {_MOST_ITEMS} numbers")
        return [_number(name, value) for value in values]

    def integers(self, name: str) -> list[int]:
        """Return a field that is a list of integers; empty if the field is missing."""
        values = self._get(name, list, "a list of whole numbers") if self.has(name) else []
        if len(values) > _MOST_ITEMS:
            raise InvalidField(
                f"`{name}` has {len(values)} entries, at most {_MOST_ITEMS} are allowed"
            )
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise InvalidField(f"`{name}` must be a list of whole numbers")
        return [_integer(name, value) for value in values]

    def _get(self, name: str, kind: type | tuple[type, ...], expected: str) -> Any:
        if name not in self._fields:
            raise InvalidField(f"`{name}` is missing: expected {expected}")
        value = self._fields[name]
        # In Python, bool is a subclass of int.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidField(f"`{name}` must be {expected}")
        return value


def read_fields(body: bytes) -> Fields:
    """Return the fields of a JSON object.

    Raises:
        HTTPException: 400: the body is not a JSON object.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request's body is not JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the request's body must be a JSON object")
    return Fields(cast("dict[str, Any]", found))


def _number(name: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidField(f"`{name}` is too large a number") from None


def _integer(name: str, value: int) -> int:
    if not -_LARGEST <= value <= _LARGEST:
        raise InvalidField(f"`{name}` is too large a number")
    return value
