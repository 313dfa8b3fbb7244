"""Compares two runs: configuration, code, packages, hardware and metrics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.comparison.code import CodeDiff, diff_code
from runshelf.comparison.metrics import MetricsDiff, diff_metrics
from runshelf.comparison.settings import flat, side_by_side
from runshelf.index.identity import packages_of
from runshelf.store.run import Run


@final
class Change(NamedTuple):
    """A key whose values differ; None stands for a missing value."""

    key: str
    one: object
    other: object


@final
class Comparison(NamedTuple):
    """The differences between two runs.

    Attributes:
        one: the id of the first run.
        other: the id of the second run.
        config: the configuration; nested keys are joined by dots.
        command: command, arguments, seeds, environment and algorithm.
        code: the archived code by file.
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
    """Return the differences between two runs.

    Raises:
        UserFacingError: a file of a run cannot be read.
    """
    a, b = one.manifest, other.manifest
    return Comparison(
        one=one.ulid,
        other=other.ulid,
        config=changes(one.config, other.config),
        command=changes(_of_command(a), _of_command(b)),
        code=diff_code(home, one.folder, other.folder),
        git=changes(a.get("git"), b.get("git")),
        packages=changes(packages_of(a), packages_of(b)),
        hardware=changes(a.get("hardware"), b.get("hardware")),
        metrics=diff_metrics(one.folder, other.folder),
    )


def changes(one: object, other: object) -> list[Change]:
    """Return the keys whose values differ between two mappings; nested keys are joined by dots."""
    different, _ = side_by_side([flat(one), flat(other)])
    return [Change(key, *values) for key, values in different]


def _of_command(manifest: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("command", "argv", "cwd", "seeds", "env", "algorithm", "environment")
    return {key: manifest[key] for key in keys if manifest.get(key) is not None}
