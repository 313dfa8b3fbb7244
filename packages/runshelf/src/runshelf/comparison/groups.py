"""What separates runs: the settings, files and packages in which they differ."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

from runshelf.comparison.settings import flat, side_by_side
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


@final
class Difference(NamedTuple):
    """A part in which runs differ.

    Attributes:
        kind: `settings`, `code`, `packages`, `other files` or `other packages`.
        names: the settings, files or packages that differ, with short values where there are any.
        separates: whether runs that differ in it are in different groups, unless the user pools
            them.
    """

    kind: str
    names: list[str]
    separates: bool

    def __str__(self) -> str:
        """Return a phrase: `settings: lr (0.1, 0.2)`."""
        more = len(self.names) - _MOST_NAMED
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
    return [one for one in found if one.names]


def _settings(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings that differ; the command line only if they do not tell the difference."""
    sources = {source_of(manifest) for manifest in manifests}
    every = [configuration_of(manifest) for manifest in manifests]
    if len(sources) > 1 and any(one.get("source") for one in every):
        return ["unknown: the logs hold none"]
    config = [flat(one.pop("config", {})) for one in every]
    named = _changed(config)
    if named:
        every = [{k: v for k, v in one.items() if k != "argv"} for one in every]
    lines = [{**one, "argv": _line(one.get("argv"))} if "argv" in one else one for one in every]
    return named + _changed(lines, {"argv": "command line", "folder": "working folder"})


def _line(argv: object) -> str:
    return " ".join(map(str, argv)) if isinstance(argv, list) else ""


def _code(runs: Sequence[Run]) -> list[str]:
    files = [code_of(run.folder) for run in runs]
    known = [one for one in files if one is not None]
    unknown = len(files) - len(known)
    if unknown and known:
        return [f"unknown of {unknown} of {len(files)} runs"]
    return [row.key for row in side_by_side(known)[0]]


def _other_files(runs: Sequence[Run]) -> list[str]:
    known = [files for run in runs if (files := files_of(run.folder)) is not None]
    return [row.key for row in side_by_side(known)[0] if not is_code(row.key)]


def _versions(packages: Sequence[Mapping[str, object]]) -> list[str]:
    unknown = sum(not one for one in packages)
    if 0 < unknown < len(packages):
        return [f"unknown of {unknown} of {len(packages)} runs"]
    return _changed(packages)


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
) -> list[str]:
    """Return the keys whose values differ, with the values: `lr (0.1, 0.2)`."""
    rows, _ = side_by_side(of_each)
    return [f"{(titles or {}).get(row.key, row.key)} ({_values(row.values)})" for row in rows]


def _values(values: Iterable[object]) -> str:
    texts = list(dict.fromkeys("none" if value is None else typed(value) for value in values))
    shown = [text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}" for text in texts]
    rest = f" and {len(shown) - _MOST_VALUES} more" if len(shown) > _MOST_VALUES else ""
    return ", ".join(shown[:_MOST_VALUES]) + rest
