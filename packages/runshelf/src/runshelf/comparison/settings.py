"""Compares the settings of several runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast, final

_DEEPEST = 20  # levels of nested mappings; a deeper mapping counts as one value


@final
class Row(NamedTuple):
    """A key with its value in each mapping; None stands for a missing value."""

    key: str
    values: list[object]


def side_by_side(of_each: Sequence[Mapping[str, object]]) -> tuple[list[Row], list[Row]]:
    """Return the keys whose values differ between flat mappings, and those whose values agree."""
    different: list[Row] = []
    same: list[Row] = []
    for key in dict.fromkeys(key for one in of_each for key in one):
        values = {(key in one, repr(one.get(key))) for one in of_each}
        row = Row(key, [one.get(key) for one in of_each])
        (different if len(values) > 1 else same).append(row)
    return different, same


def flat(value: object) -> dict[str, object]:
    """Return a flat mapping with nested keys joined by dots; empty if `value` is not a mapping."""
    return dict(_flat(value, "", 0))


def _flat(value: object, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and (value or not prefix) and depth < _DEEPEST:
        for key, item in cast("Mapping[str, object]", value).items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif prefix:
        yield prefix, value
