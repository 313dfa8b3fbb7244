"""Fields of a run's manifest. Any program may have written it: wrong types count as missing."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from runshelf.comparison.settings import flat
from runshelf.errors import UserFacingError
from runshelf.formatting import number, size
from runshelf.index.entry import typed
from runshelf.index.identity import packages_of
from runshelf.received_json import finite
from runshelf.store import opening
from runshelf.store.run import open_run

LARGEST_ASIDE = 2**18


def is_readable_aside(folder: Path) -> bool:
    """Return whether the manifest of a run is small enough to read for the page of another."""
    return (opening.size_of(folder, "run.json") or 0) <= LARGEST_ASIDE


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """Return the manifest of the run in `folder`; empty if it cannot be read."""
    try:
        return open_run(folder).manifest
    except UserFacingError:
        return {}


def text(value: object) -> str:
    """Return a value that is text; empty text for anything else."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """Return a value that is a mapping; an empty one for anything else."""
    if not isinstance(value, Mapping):
        return {}
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def sequence(value: object) -> list[Any]:
    """Return a value that is a list; an empty one for anything else."""
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


def command_line(manifest: Mapping[str, Any]) -> str:
    """Return the command, quoted for a shell."""
    return shlex.join(str(word) for word in sequence(manifest.get("argv")))


def config(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the configuration as pairs: keys joined by dots, values as text."""
    return [(key, value_text(item)) for key, item in flat(manifest.get("config")).items()]


def value_text(value: object) -> str:
    """Return a configuration value as text."""
    if isinstance(value, list):
        return ", ".join(value_text(item) for item in cast("list[object]", value))
    return number(value)


def exact_texts(values: Sequence[object]) -> list[str]:
    """Return values as text, such that different values have different texts."""
    short = [value_text(value) for value in values]
    if len({*short}) == len({*map(repr, values)}):
        return short
    return ["" if value is None else typed(value) for value in values]


def packages(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of the packages of a run's interpreter."""
    return {name: value_text(version) for name, version in packages_of(manifest).items()}


def hardware(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields about the machine, with labels."""
    fields = mapping(manifest.get("hardware"))
    lines = [
        ("processor", text(fields.get("cpu"))),
        ("cores", number(fields.get("cores"))),
        ("memory", _size(fields.get("memory_bytes"))),
        ("machine", text(fields.get("host"))),
    ]
    for gpu in map(mapping, sequence(fields.get("gpus"))):
        memory = _size(gpu.get("memory_bytes"))
        parts = (text(gpu.get("name")), memory, f"driver {gpu.get('driver')}")
        lines.append(("GPU", ", ".join(part for part in parts if part)))
    return [(name, value) for name, value in lines if value]


def git(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields about the git repository, with labels."""
    fields = mapping(manifest.get("git"))
    if not fields:
        return []
    known = "unknown: git did not answer in time" if fields.get("dirty") is None else "clean"
    dirty = "with uncommitted changes" if fields.get("dirty") else known
    return [
        (name, value)
        for name, value in (
            ("commit", text(fields.get("commit"))),
            ("state", dirty),
            ("branch", text(fields.get("branch"))),
            ("remote", text(fields.get("remote"))),
        )
        if value
    ]


def _size(value: object) -> str:
    return size(finite(value))
