"""Two runs side by side: configuration first, then what else can explain a difference."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast, final

from backflip.archive.comparing.code import CodeDiff, diff_code
from backflip.archive.comparing.metrics import MetricsDiff, diff_metrics
from backflip.archive.run import Run


@final
class Change(NamedTuple):
    """One thing that differs; None where a run has it not."""

    key: str
    one: object
    other: object


@final
class Comparison(NamedTuple):
    """What differs between two runs.

    Attributes:
        one: the id of the first.
        other: the id of the second.
        config: keys of the configuration, nested ones with dots.
        command: command, arguments, seeds, environment, algorithm.
        code: the archived code, file by file.
        git: commit, branch and remote.
        packages: Python and its packages.
        hardware: the machine.
        metrics: the metrics.
    """

    one: str
    other: str
    config: list[Change]
    command: list[Change]
    code: CodeDiff
    git: list[Change]
    packages: list[Change]
    hardware: list[Change]
    metrics: MetricsDiff


def compare(home: Path, one: Run, other: Run) -> Comparison:
    """Return what differs between two runs.

    Raises:
        BackflipError: a file of theirs cannot be read.
    """
    a, b = one.manifest, other.manifest
    return Comparison(
        one.ulid,
        other.ulid,
        changes(one.config, other.config),
        changes(_of_command(a), _of_command(b)),
        diff_code(home, one.folder, other.folder),
        changes(a.get("git"), b.get("git")),
        changes(_packages(a), _packages(b)),
        changes(a.get("hardware"), b.get("hardware")),
        diff_metrics(one.folder, other.folder),
    )


def changes(one: object, other: object) -> list[Change]:
    """Return the keys whose values differ between two mappings, nested ones with dots."""
    ours, theirs = dict(_flat(one, "")), dict(_flat(other, ""))
    return [
        Change(key, ours.get(key), theirs.get(key))
        for key in dict.fromkeys([*ours, *theirs])
        if (key in ours, repr(ours.get(key))) != (key in theirs, repr(theirs.get(key)))
    ]


def _flat(value: object, prefix: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and (value or not prefix):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield prefix, value


def _of_command(manifest: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("command", "argv", "cwd", "seeds", "env", "algorithm", "environment")
    return {key: manifest[key] for key in keys if manifest.get(key) is not None}


def _packages(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Return versions by name: of the program's Python, else of what ran it."""
    python = manifest.get("python")
    if not isinstance(python, dict):
        versions = manifest.get("versions")
        return cast("dict[str, object]", versions) if isinstance(versions, dict) else {}
    fields = cast("dict[str, Any]", python)
    packages = fields.get("packages")
    named = cast("dict[str, object]", packages) if isinstance(packages, dict) else {}
    return {"python": fields.get("version"), **named}
