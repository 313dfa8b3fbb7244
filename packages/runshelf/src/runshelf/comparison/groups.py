"""What separates runs: the settings, files and packages in which they differ."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from runshelf.comparison.settings import Row, flat, side_by_side
from runshelf.index.entry import typed
from runshelf.index.identity import (
    code_of,
    computing,
    configuration_of,
    files_of,
    is_code,
    packages_of,
    source_of,
)
from runshelf.store.run import Run

_MOST_NAMED = 4
_MOST_VALUES = 3
_OF_FILES = ("code", "other files")  # the values are digests, which say nothing in a sentence


@final
class Difference(NamedTuple):
    """A part in which runs differ.

    Attributes:
        kind: `settings`, `code`, `packages`, `other files` or `other packages`.
        rows: the settings, files or packages that differ, each with a text for each run; a row
            without values says what is unknown.
        separates: whether runs that differ in it are in different groups, unless the user pools
            them.
    """

    kind: str
    rows: list[Row]
    separates: bool

    @property
    def names(self) -> list[str]:
        """What differs, with the different values where these say something: `lr (0.1, 0.2)`."""
        return [
            row.key
            if not row.values or self.kind in _OF_FILES
            else f"{row.key} ({_different(row.values)})"
            for row in self.rows
        ]

    def __str__(self) -> str:
        """Return a phrase: `settings: lr (0.1, 0.2)`."""
        more = len(self.rows) - _MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f"{self.kind}: {', '.join(self.names[:_MOST_NAMED])}{rest}"


def differences(runs: Sequence[Run]) -> list[Difference]:
    """Return the parts in which runs differ, those that separate groups first."""
    manifests = [run.manifest for run in runs]
    packages = [packages_of(manifest) for manifest in manifests]
    found = [
        Difference("settings", _settings(manifests), separates=True),
        Difference("code", _code(runs), separates=True),
        Difference("packages", _versions([computing(one) for one in packages]), separates=True),
        Difference("other files", _other_files(runs), separates=False),
        Difference("other packages", _changed(_others(packages)), separates=False),
    ]
    return [one for one in found if one.rows]


def _settings(manifests: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the settings that differ; the command line only if they do not tell the difference."""
    sources = {source_of(manifest) for manifest in manifests}
    every = [configuration_of(manifest) for manifest in manifests]
    if len(sources) > 1 and any(one.get("source") for one in every):
        return [Row("unknown: the logs hold none", [])]
    config = [flat(one.pop("config", {})) for one in every]
    named = _changed(config)
    if named:
        every = [{k: v for k, v in one.items() if k != "argv"} for one in every]
    lines = [{**one, "argv": _line(one.get("argv"))} if "argv" in one else one for one in every]
    return named + _changed(lines, {"argv": "command line", "folder": "working folder"})


def _line(argv: object) -> str:
    return " ".join(map(str, argv)) if isinstance(argv, list) else ""


def _code(runs: Sequence[Run]) -> list[Row]:
    files = [code_of(run.folder) for run in runs]
    unknown = sum(one is None for one in files)
    if 0 < unknown < len(files):
        return [_unknown(unknown, len(files))]
    return _digests([one for one in files if one is not None])


def _other_files(runs: Sequence[Run]) -> list[Row]:
    files = [files_of(run.folder) for run in runs]
    known = [one for one in files if one is not None]
    rows = [row for row in _digests(known) if not is_code(row.key)]
    return rows if len(known) == len(files) else [Row(row.key, []) for row in rows]


def _digests(files: Sequence[Mapping[str, object]]) -> list[Row]:
    """Return the files that differ, each with the beginnings of its digests."""
    return [
        Row(row.key, ["none" if one is None else str(one)[:8] for one in row.values])
        for row in side_by_side(files)[0]
    ]


def _versions(packages: Sequence[Mapping[str, object]]) -> list[Row]:
    unknown = sum(not one for one in packages)
    if 0 < unknown < len(packages):
        return [_unknown(unknown, len(packages))]
    return _changed(packages)


def _unknown(unknown: int, of: int) -> Row:
    return Row(f"unknown of {unknown} of {of} runs", [])


def _others(packages: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the packages that compute no results; nothing if those of a run are unknown."""
    if not all(packages):
        return []
    return [
        {name: version for name, version in one.items() if not computing({name: version})}
        for one in packages
    ]


def _changed(
    of_each: Sequence[Mapping[str, object]], titles: Mapping[str, str] | None = None
) -> list[Row]:
    """Return the keys whose values differ, with the values as texts."""
    rows, _ = side_by_side(of_each)
    return [
        Row(
            (titles or {}).get(row.key, row.key),
            ["none" if value is None else typed(value) for value in row.values],
        )
        for row in rows
    ]


def _different(values: Sequence[object]) -> str:
    """Return the different values of a row: `0.1, 0.2`; a few of them, shortened."""
    shown = [shortest(str(text)) for text in dict.fromkeys(values)]
    rest = f" and {len(shown) - _MOST_VALUES} more" if len(shown) > _MOST_VALUES else ""
    return ", ".join(shown[:_MOST_VALUES]) + rest


def shortest(text: str) -> str:
    """Return a value that is short enough for a table: a long one without its middle."""
    return text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}"
