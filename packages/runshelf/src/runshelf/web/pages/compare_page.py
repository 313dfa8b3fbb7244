"""Comparison of runs and groups: configuration, packages, code, metrics."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.comparison.code import CodeDiff
from runshelf.comparison.metrics import MetricsDiff, diff_metrics
from runshelf.comparison.settings import Row, flat, side_by_side
from runshelf.formatting import shortened
from runshelf.index.identity import argv_without_seeds, is_seed_key, packages_of
from runshelf.index.rows import RunRow
from runshelf.store.results import Result
from runshelf.web import manifest, run_files
from runshelf.web.pages import code_page
from runshelf.web.sanitize import clean

MOST_ROWS = 500
_MOST_METRICS = 200
_MOST_READ = 20
_LONGEST_LABEL = 60


@final
class Comparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        labels: the titles, shortened where they are alike.
        results: the result of each subject.
        different: configuration keys that differ.
        same: configuration keys that do not differ.
        packages: packages whose versions differ.
        code: code diff of the first two subjects with code; None if there are fewer.
        code_of: the titles of these two.
        metrics: differences of each later subject's metrics from the first subject's; None for
            groups, and if they cannot be compared.
        notes: what was not compared.
        most: upper limit of table rows.
    """

    labels: list[str]
    results: list[Result | None]
    different: list[Row]
    same: list[Row]
    packages: list[Row]
    code: CodeDiff | None
    code_of: list[str]
    metrics: list[MetricsDiff | None]
    notes: list[str]
    most: int = MOST_ROWS


def compare(
    home: Path,
    titles: Sequence[str],
    rows: Sequence[Sequence[RunRow]],
    results: Sequence[Result | None],
) -> Comparison:
    """Compare subjects, each given by its title, its runs, newest first, and its result."""
    manifests = [[manifest.read_manifest(row.folder) for row in runs[:_MOST_READ]] for runs in rows]
    different, same = side_by_side([_configuration(of) for of in manifests])
    packages, _ = side_by_side([packages_of(of[0]) for of in manifests])
    labels = shortened([clean(title, 400) for title in titles], _LONGEST_LABEL)
    with_code = [
        (label, runs[0].folder)
        for label, runs in zip(labels, rows, strict=True)
        if code_page.has_code(runs[0].folder)
    ][:2]
    folders = [folder for _, folder in with_code]
    return Comparison(
        labels=labels,
        results=list(results),
        different=_as_text(different),
        same=_as_text(same),
        packages=_as_text(packages),
        code=code_page.difference(home, *folders) if len(folders) == 2 else None,
        code_of=[label for label, _ in with_code],
        metrics=[_metrics(rows[0], other) for other in rows[1:]],
        notes=_notes(labels, rows),
    )


def _metrics(one: Sequence[RunRow], other: Sequence[RunRow]) -> MetricsDiff | None:
    if len(one) != 1 or len(other) != 1 or not run_files.has_only_plain_metrics(other[0].folder):
        return None
    found = run_files.read_metrics(
        one[0].folder, lambda folder: diff_metrics(folder, other[0].folder, _MOST_METRICS), None
    )
    return found if found and found.metrics else None


def _configuration(manifests: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the configuration of a run or group; varying values are replaced by their number."""
    every = [flat(one.get("config")) for one in manifests]
    # The runs of a group always differ in their seeds.
    of_group = len(manifests) > 1
    every_key = dict.fromkeys(key for config in every for key in config)
    keys = [key for key in every_key if not (of_group and is_seed_key(key))]
    found: dict[str, object] = {}
    for key in keys:
        # A run without the setting has another value than those with it.
        values = {repr(config.get(key)): config.get(key) for config in every}
        found[key] = values.popitem()[1] if len(values) == 1 else f"{len(values)} values"
    for name in ("env", "algorithm"):
        if manifests and (value := manifest.text(manifests[0].get(name))):
            found.setdefault(name, value)
    if manifests and not manifests[0].get("env"):
        found["command line"] = " ".join(argv_without_seeds(manifests[0]))
    return found


def _notes(labels: Sequence[str], rows: Sequence[Sequence[RunRow]]) -> list[str]:
    return [
        f"{label}: only the settings of its newest {_MOST_READ} runs are compared"
        for label, runs in zip(labels, rows, strict=True)
        if len(runs) > _MOST_READ
    ]


def _as_text(rows: Sequence[Row]) -> list[Row]:
    """Return rows sorted by key with their values as text."""
    rows = sorted(rows, key=lambda row: row.key)
    return [Row(row.key, [*manifest.exact_texts(row.values)]) for row in rows]
