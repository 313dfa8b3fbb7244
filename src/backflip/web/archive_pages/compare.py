"""What differs between runs and groups: configuration first, then packages, code, and when."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from backflip.archive import series
from backflip.archive.grouping import SEED_KEYS
from backflip.archive.index.rows import RunRow
from backflip.archive.run import open_run
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import code, facts, files
from backflip.web.archive_pages.code import Changed

_MOST_METRICS = 50
_MOST_READ = 20
# What differs between any two runs.
_CLOCKS = ("seconds", "time", "_per_second", "memory", "system", "timed/")


@final
class Difference(NamedTuple):
    """One key with its value in each of the things compared; empty where it is missing."""

    key: str
    values: list[str]


@final
class Sameness(NamedTuple):
    """Up to where the metrics of two runs are identical, bit for bit.

    Attributes:
        step: the last step before any differs; None if they differ from the first on.
        whole: they are identical as far as both go.
        metric: the one that differs first.
        compared: how many metrics were compared.
    """

    step: float | None
    whole: bool
    metric: str
    compared: int


@final
class Comparison(NamedTuple):
    """What differs.

    Attributes:
        different: configuration keys that differ.
        same: those that do not.
        packages: packages whose versions differ.
        code: files that differ between the first two that have code.
        code_count: how many files do.
        code_of: the titles of these two.
        sameness: for the second and later ones, up to where they are as the first.
    """

    different: list[Difference]
    same: list[Difference]
    packages: list[Difference]
    code: list[Changed]
    code_count: int
    code_of: list[str]
    sameness: list[Sameness | None]


def compare(home: Path, titles: Sequence[str], rows: Sequence[Sequence[RunRow]]) -> Comparison:
    """Return what differs between things, each given by its runs, newest first."""
    manifests = [[_manifest(row.folder) for row in runs[:_MOST_READ]] for runs in rows]
    different, same = _by_key([_configuration(of) for of in manifests])
    packages, _ = _by_key([facts.packages(of[0]) for of in manifests])
    trees = [
        (title, tree)
        for title, runs in zip(titles, rows, strict=True)
        if (tree := code.snapshot_of(runs[0].folder)) is not None
    ]
    changed, count = code.differing(home, trees[0][1], trees[1][1]) if len(trees) > 1 else ([], 0)
    return Comparison(
        different=different,
        same=same,
        packages=packages,
        code=changed,
        code_count=count,
        code_of=[title for title, _ in trees[:2]] if len(trees) > 1 else [],
        sameness=[_sameness(rows[0], other) for other in rows[1:]],
    )


def last_identical(one: Path, other: Path) -> Sameness | None:
    """Return up to where the metrics of two runs are identical; None if they share none."""
    if not (files.has_only_plain_metrics(one) and files.has_only_plain_metrics(other)):
        return None
    try:
        shared = set(series.metric_names(one)) & set(series.metric_names(other))
        names = sorted(n for n in shared if not any(c in n for c in _CLOCKS))[:_MOST_METRICS]
        mine = series.read_series(one, names, "step")
        theirs = series.read_series(other, names, "step")
    except BackflipError:
        return None
    found = [
        (metric, _first_difference(mine[metric][seed], theirs[metric][seed]), mine[metric][seed].x)
        for metric in names
        for seed in mine[metric].keys() & theirs[metric].keys()
    ]
    if not found:
        return None
    apart = [
        (float(x[at]) if at < len(x) else np.inf, at, metric, x)
        for metric, at, x in found
        if at is not None
    ]
    if not apart:
        return Sameness(max(float(x[-1]) for _, _, x in found if len(x)), True, "", len(names))
    _, at, metric, x = min(apart, key=lambda one: (one[0], one[2]))
    return Sameness(float(x[at - 1]) if at else None, False, metric, len(names))


def _first_difference(one: series.Series, other: series.Series) -> int | None:
    """Return the position of the first difference as far as both go; None if there is none."""
    length = min(len(one.x), len(other.x))
    same = (one.y[:length] == other.y[:length]) | (
        np.isnan(one.y[:length]) & np.isnan(other.y[:length])
    )
    same &= one.x[:length] == other.x[:length]
    apart = np.flatnonzero(~same)
    return int(apart[0]) if len(apart) else None


def _sameness(one: Sequence[RunRow], other: Sequence[RunRow]) -> Sameness | None:
    if len(one) != 1 or len(other) != 1:
        return None
    return last_identical(one[0].folder, other[0].folder)


def _manifest(folder: Path) -> Mapping[str, Any]:
    try:
        return open_run(folder).manifest
    except BackflipError:
        return {}


def _configuration(manifests: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the configuration of a run, or what the runs of a group have in common."""
    every = [facts.flat(manifest.get("config")) for manifest in manifests]
    # Within a group seeds differ: that is what it is.
    own = SEED_KEYS if len(manifests) > 1 else frozenset[str]()
    keys = dict.fromkeys(key for config in every for key in config if key not in own)
    found: dict[str, str] = {}
    for key in keys:
        values = {facts.value_text(config[key]) for config in every if key in config}
        found[key] = values.pop() if len(values) == 1 else f"{len(values)} values"
    for name in ("env", "algorithm"):
        if manifests and (said := facts.text(manifests[0].get(name))):
            found.setdefault(name, said)
    return found


def _by_key(of_each: Sequence[Mapping[str, str]]) -> tuple[list[Difference], list[Difference]]:
    """Return keys whose values differ, and keys whose values do not."""
    keys = sorted({key for one in of_each for key in one})
    rows = [Difference(key, [one.get(key, "") for one in of_each]) for key in keys]
    present = [row for row in rows if len({*row.values}) > 1]
    return present, [row for row in rows if len({*row.values}) == 1]
