"""Joins log folders of one training run: SB3 writes CSV, monitor and event files into several.

Two neighbouring folders belong together if they hold different kinds of logs whose values agree:
equal values at equal steps, or episodes of a monitor whose means are the logged `ep_rew_mean`.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.errors import UserFacingError
from runshelf.interop.log_folders import LogFolder, read_table
from runshelf.interop.log_survey import entries_of

# Folders with a common ancestor this many levels above each of them are neighbours.
_FARTHEST = 2
_STEPS = "time/total_timesteps"
_MEAN = "rollout/ep_rew_mean"
_WINDOW = 100  # episodes in the mean
_CLOSE = 1e-4  # relative; event files have 32-bit numbers
_LEAST = 3  # values in common
_AGREEING = 0.9


@final
class _Logs(NamedTuple):
    """What a folder logged.

    Attributes:
        source: the folder.
        kinds: the kinds of its files.
        values: the values of tags by tag and step.
        returns: the returns of a monitor's episodes in the order of time.
    """

    source: LogFolder
    kinds: frozenset[str]
    values: dict[tuple[str, int], float]
    returns: Float[np.ndarray, " episodes"]


def joined(sources: Sequence[LogFolder]) -> list[LogFolder]:
    """Return the log folders, with those of one training run joined into one."""
    kinds = {kind for source in sources for kind in _kinds(source)}
    if len(sources) < 2 or len(kinds) < 2:
        return list(sources)
    groups: list[list[_Logs]] = []
    for logs in map(_read, sources):
        of = next((group for group in groups if all(_is_same(logs, one) for one in group)), None)
        if of is None:
            groups.append([logs])
        else:
            of.append(logs)
    return [_join([logs.source for logs in group]) for group in groups]


def _kinds(source: LogFolder) -> Iterator[str]:
    if source.events:
        yield "events"
    if source.progress:
        yield "progress"
    if source.monitors:
        yield "monitors"


def _read(source: LogFolder) -> _Logs:
    values: dict[tuple[str, int], float] = {}
    for path in source.events:
        try:
            for entry in entries_of(path, []):
                if isinstance(entry.content, float):
                    values[entry.tag, entry.step] = entry.content
        except UserFacingError:
            continue
    values |= _of_progress(source)
    return _Logs(source, frozenset(_kinds(source)), values, _of_monitors(source))


def _of_progress(source: LogFolder) -> dict[tuple[str, int], float]:
    values: dict[tuple[str, int], float] = {}
    for row in _rows([source.progress] if source.progress else []):
        steps = row.get(_STEPS)
        if isinstance(steps, int):
            found = {name: value for name, value in row.items() if not isinstance(value, str)}
            values |= {(name, steps): float(value) for name, value in found.items()}
    return values


def _of_monitors(source: LogFolder) -> Float[np.ndarray, " episodes"]:
    rows = [(float(row["t"]), float(row["r"])) for row in _rows(source.monitors)]
    return np.array([reward for time, reward in sorted(rows) if np.isfinite(time + reward)])


def _rows(paths: Sequence[Path]) -> Iterator[dict[str, int | float | str]]:
    for path in paths:
        try:
            yield from read_table(path).rows
        except UserFacingError:
            continue


def _is_same(one: _Logs, other: _Logs) -> bool:
    """Return whether two folders hold different kinds of logs of one training run."""
    if one.kinds & other.kinds or not _are_neighbours(one.source.folder, other.source.folder):
        return False
    if one.values and other.values:
        return _are_equal(one, other)
    monitor, reported = (one, other) if len(one.returns) else (other, one)
    return _are_means(monitor.returns, _means(reported))


def _are_neighbours(one: Path, other: Path) -> bool:
    common = Path(os.path.commonpath([one.absolute(), other.absolute()]))
    levels = [len(path.absolute().relative_to(common).parts) for path in (one, other)]
    return max(levels) <= _FARTHEST


def _are_equal(one: _Logs, other: _Logs) -> bool:
    """Return whether all common values are equal, some of them by more than a schedule."""
    common = sorted(one.values.keys() & other.values.keys())
    ours, theirs = ([logs.values[key] for key in common] for logs in (one, other))
    if not np.isclose(ours, theirs, rtol=_CLOSE, atol=_CLOSE, equal_nan=True).all():
        return False
    by_tag: dict[str, list[float]] = {}
    for (tag, _), value in zip(common, ours, strict=True):
        by_tag.setdefault(tag, []).append(value)
    return any(_is_irregular(values) for values in by_tag.values())


def _is_irregular(values: Sequence[float]) -> bool:
    """Return whether values in the order of steps lie on no line, as those of a schedule do."""
    bends = np.diff([value for value in values if np.isfinite(value)], 2)
    return len(values) >= _LEAST and bool((abs(bends) > _CLOSE * np.abs(values).max()).any())


def _means(logs: _Logs) -> list[float]:
    steps = sorted(step for tag, step in logs.values if tag == _MEAN)
    return [logs.values[_MEAN, step] for step in steps]


def _are_means(returns: Float[np.ndarray, " episodes"], means: Sequence[float]) -> bool:
    """Return whether nearly all of `means` are means of the last episodes at some time, in order.

    The episode at which a mean was logged is unknown with several environments, so it is searched.
    """
    if len(means) < _LEAST or not len(returns):
        return False
    total = np.concatenate([[0.0], returns.cumsum()])
    ends = np.arange(1, len(total))
    starts = np.maximum(ends - _WINDOW, 0)
    running = (total[ends] - total[starts]) / (ends - starts)
    at, found = 0, 0
    for mean in means:
        places = np.flatnonzero(np.isclose(running[at:], mean, rtol=_CLOSE, atol=_CLOSE))
        if len(places):
            at += int(places[0])
            found += 1
    return found >= max(_LEAST, _AGREEING * len(means))


def _join(sources: Sequence[LogFolder]) -> LogFolder:
    """Return one log folder: the one above the others, else the one with event files."""
    main = min(sources, key=lambda source: (not _is_above(source, sources), not source.events))
    files = [
        name if source is main else os.path.relpath(source.folder / name, main.folder)
        for source in sources
        for name in source.files
    ]
    return replace(main, files=sorted(files))


def _is_above(source: LogFolder, others: Sequence[LogFolder]) -> bool:
    return all(other.folder.is_relative_to(source.folder) for other in others)
