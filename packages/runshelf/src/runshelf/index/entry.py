"""Reads one run folder as a row of the index.

Folders are untrusted: every value is checked, only regular files are read, and invalid content is
left out or raises an error. No file can make the reader hang or execute code.
"""

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast, final

from runshelf.errors import DamagedFile
from runshelf.index.database import folded
from runshelf.index.grouping import group_of
from runshelf.index.identity import identity_of, seeds_of, source_of
from runshelf.index.rows import RunRow
from runshelf.received_json import finite, list_of
from runshelf.store.liveness import HEARTBEAT, heartbeat_time
from runshelf.store.periods import periods_of
from runshelf.store.run import Run, open_run
from runshelf.store.state import State, state_of
from runshelf.store.times import seconds_of

LARGEST_MANIFEST = 64 * 2**20
MOST_SETTINGS = 2_000
MOST_SEEDS = 1_000  # of one run, as in its charts
LONGEST_TEXT = 2_000
DEEPEST = 12
# File system clocks are coarse: a file may change again without a new time stamp.
SETTLED_SECONDS = 2.0
_READ = ("run.json", "events.jsonl", HEARTBEAT, "lock", "summary.json")

Number = int | float | None


@final
class Setting(NamedTuple):
    """One setting of a configuration.

    Attributes:
        key: its name; for a nested setting, all names joined by dots.
        number: its value, if that is a number or a boolean.
        text: its value as typed on a command line.
    """

    key: str
    number: Number
    text: str


@final
class RunStatus(NamedTuple):
    """The properties of a run that may change while its manifest stays the same.

    Attributes:
        state: its state.
        seconds: its running time, over all periods.
        cost: its cost, if known.
        beat: time of its last heartbeat, in nanoseconds.
    """

    state: State
    seconds: float | None
    cost: float | None
    beat: int


@final
class Entry(NamedTuple):
    """The content of one run in the index, except its metrics.

    Attributes:
        row: its row.
        words: the text in which words of a filter are searched.
        settings: its configuration.
        beat: time of its last heartbeat, in nanoseconds.
    """

    row: RunRow
    words: str
    settings: list[Setting]
    beat: int


def read_entry(folder: Path) -> Entry:
    """Return the index entry of the run in `folder`.

    Raises:
        UserFacingError: the folder is not a run's folder, or is damaged; the message says why.
        Exception: hostile content can cause any error.
    """
    check_files(folder)
    run = open_run(folder)
    manifest = run.manifest
    if run.ulid != folder.name:
        raise DamagedFile(f"`{folder}` is a copy of run {clean(run.ulid):.40}: give it its own id")
    texts = {key: _text(manifest.get(key)) for key in ("name", "env", "algorithm", "question")}
    tags = [clean(tag) for tag in list_of(manifest.get("tags")) if isinstance(tag, str)]
    identity = identity_of(folder, manifest)
    group = clean(group_of(manifest, identity))
    source = _text(source_of(manifest))
    searched = [run.ulid, group, *texts.values(), *tags, source]
    status = read_status(run)
    row = RunRow(
        ulid=run.ulid,
        name=texts["name"],
        group=group,
        command=clean(manifest["command"]),
        env=texts["env"],
        algorithm=texts["algorithm"],
        state=status.state.name,
        note=status.state.note,
        since=status.state.since,
        question=texts["question"],
        tags=tags,
        seeds=seeds_of(manifest)[:MOST_SEEDS],
        parent=_text(manifest.get("parent")),
        source=source,
        code=identity.code,
        content="",
        created=seconds_of(manifest["created"]) or 0.0,
        seconds=status.seconds,
        cost=status.cost,
        folder=folder,
    )
    words = folded("\n".join(text for text in searched if text))
    return Entry(row, words, list(_settings(run.config)), status.beat)


def read_status(run: Run) -> RunStatus:
    """Return the current status of a run.

    Raises:
        UserFacingError: its events cannot be read.
    """
    beat = heartbeat_time(run.folder)
    state = state_of(run)
    found = periods_of(run, state.name)
    rate = finite(run.manifest.get("cost_per_hour"))
    costs = [
        one.seconds / 3600 * rate if one.cost is None and rate is not None else one.cost
        for one in found
    ]
    known = [cost for cost in costs if cost is not None]
    return RunStatus(
        state._replace(note=clean(state.note), since=clean(state.since)),
        sum(one.seconds for one in found) if found else None,
        sum(known) if known else None,
        beat,
    )


def check_files(folder: Path) -> None:
    """Check that the files to be read are regular files and `run.json` is not too large.

    Raises:
        DamagedFile: one is not.
    """
    for name in _READ:
        path = folder / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise DamagedFile(f"`{path}` is not a regular file: remove it")
        if name == "run.json" and found.st_size > LARGEST_MANIFEST:
            raise DamagedFile(f"`{path}` has {found.st_size:_} bytes: that is too large")


def metrics_stamp(folder: Path) -> str:
    """Return a text that changes when the files of the run's metrics change.

    Raises:
        DamagedFile: one of the files is not a regular file.
    """
    parts: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("metrics-") or entry.name == "summary.json":
                found = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode):
                    raise DamagedFile(f"`{entry.path}` is not a regular file: remove it")
                parts.append(f"{entry.name} {found.st_size} {found.st_mtime_ns}")
    return clean("\n".join(sorted(parts)))


def clean(text: str) -> str:
    """Return text that SQLite can store: lone surrogates, which JSON allows, are replaced."""
    return text.encode(errors="replace").decode()


def _settings(config: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield the first settings of a configuration, at most `MOST_SETTINGS`."""
    for count, (key, value) in enumerate(_flat(config, "", 0)):
        if count == MOST_SETTINGS:
            return
        text = clean(typed(value))[:LONGEST_TEXT]
        yield Setting(clean(key)[:LONGEST_TEXT], _number(value), text)


def _flat(value: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and depth < DEEPEST:
        for key, item in cast("dict[str, Any]", value).items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else key, depth + 1)
    else:
        yield prefix, value


def typed(value: object) -> str:
    """Return a value as typed on a command line: `0.001`, `true`, `64,64`, text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "NaN" if value != value else f"{value}"
    if isinstance(value, list):
        items = cast("list[object]", value)
        if all(isinstance(item, str | int | float) for item in items):
            return ",".join(typed(item) for item in items)
    return json.dumps(value, ensure_ascii=False)


def _number(value: object) -> Number:
    """Return a number as SQLite can store it: integers beyond 64 bits as floats; else None."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if not isinstance(value, int):
        return None
    if abs(value) < 2**63:
        return int(value)  # of a boolean, 0 or 1
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(value: object) -> str | None:
    return clean(value)[:LONGEST_TEXT] if isinstance(value, str) and value else None
