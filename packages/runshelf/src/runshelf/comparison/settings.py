"""Settings of runs side by side: which differ, and which do not."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast, final

# Of a mapping in a mapping in a mapping: what is nested deeper counts as one value.
_DEEPEST = 20


@final
class Row(NamedTuple):
    """One key with its value in each of the things compared; None where one has it not."""

    key: str
    values: list[object]


def side_by_side(of_each: Sequence[Mapping[str, object]]) -> tuple[list[Row], list[Row]]:
    """Return the keys whose values differ between mappings, and those whose values do not.

    Args:
        of_each: the mappings, without levels.
    """
    different: list[Row] = []
    same: list[Row] = []
    for key in dict.fromkeys(key for one in of_each for key in one):
        held = {(key in one, repr(one.get(key))) for one in of_each}
        row = Row(key, [one.get(key) for one in of_each])
        (different if len(held) > 1 else same).append(row)
    return different, same


def flat(value: object) -> dict[str, object]:
    """Return a mapping without levels, nested keys joined by dots; empty for anything else."""
    return dict(_flat(value, "", 0))


def packages_of(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Return versions by name: of the program's Python, else of what ran it."""
    python = manifest.get("python")
    if not isinstance(python, dict):
        versions = manifest.get("versions")
        return cast("dict[str, object]", versions) if isinstance(versions, dict) else {}
    fields = cast("dict[str, Any]", python)
    packages = fields.get("packages")
    named = cast("dict[str, object]", packages) if isinstance(packages, dict) else {}
    return {"python": fields.get("version"), **named}


def _flat(value: object, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and (value or not prefix) and depth < _DEEPEST:
        for key, item in cast("Mapping[str, object]", value).items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif prefix:
        yield prefix, value
