"""What one run folder says, as a row of the index.

A folder may be anybody's: every value is checked before it is used, nothing is read that is no
plain file, and what cannot be understood is left out or raises; nothing hangs or runs.
"""

import json
import math
import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast, final

from runshelf.errors import DamagedFile
from runshelf.index.database import folded
from runshelf.index.grouping import group_of
from runshelf.index.rows import RunRow
from runshelf.store.liveness import HEARTBEAT
from runshelf.store.periods import finite, periods, seconds_of
from runshelf.store.run import Run, open_run
from runshelf.store.state import OVER, State, state_of

LARGEST_MANIFEST = 64 * 2**20
MOST_SETTINGS = 2_000
LONGEST_TEXT = 2_000
DEEPEST = 12
# What a time stamp says of a file that is being written is not the last word: clocks of file
# systems are coarse.
SETTLED_SECONDS = 2.0
_READ = ("run.json", "events.jsonl", HEARTBEAT, "lock", "summary.json")

Number = int | float | None


@final
class Setting(NamedTuple):
    """One key of a configuration.

    Attributes:
        key: its name; of a nested one all names, with dots between.
        number: its value if it is a number or a boolean.
        text: its value as one would type it.
    """

    key: str
    number: Number
    text: str


@final
class Standing(NamedTuple):
    """How a run stands: what may change without its manifest.

    Attributes:
        state: its state.
        seconds: how long it has run, over all its periods of execution.
        cost: what that has cost, if an hour of it has a price.
        beat: when its heartbeat was last touched, in nanoseconds.
    """

    state: State
    seconds: float | None
    cost: float | None
    beat: int


@final
class Entry(NamedTuple):
    """What the index keeps of one run.

    Attributes:
        row: its row.
        words: the text that a word of a filter is looked for in.
        settings: its configuration.
        beat: when its heartbeat was last touched, in nanoseconds.
    """

    row: RunRow
    words: str
    settings: list[Setting]
    beat: int


def read_entry(folder: Path) -> Entry:
    """Return the row of the run in `folder`.

    Raises:
        UserFacingError: it is no run's folder, or damaged; the message says how.
        Exception: whatever else a hostile folder can cause.
    """
    check_plain(folder)
    run = open_run(folder)
    manifest = run.manifest
    if run.ulid != folder.name:
        raise DamagedFile(f"`{folder}` is a copy of run {clean(run.ulid):.40}: give it its own id")
    texts = {key: _text(manifest.get(key)) for key in ("name", "env", "algorithm", "question")}
    tags = [clean(tag) for tag in _list(manifest.get("tags")) if isinstance(tag, str)]
    group = clean(group_of(manifest))
    looked_in = [run.ulid, group, *texts.values(), *tags]
    standing = read_standing(run)
    row = RunRow(
        ulid=run.ulid,
        name=texts["name"],
        group=group,
        command=clean(manifest["command"]),
        env=texts["env"],
        algorithm=texts["algorithm"],
        state=standing.state.name,
        note=standing.state.note,
        since=standing.state.since,
        question=texts["question"],
        tags=tags,
        seeds=[seed for seed in manifest["seeds"] if type(seed) is int and abs(seed) < 2**63],
        parent=_text(manifest.get("parent")),
        created=seconds_of(manifest["created"]) or 0.0,
        seconds=standing.seconds,
        cost=standing.cost,
        folder=folder,
    )
    words = folded("\n".join(text for text in looked_in if text))
    return Entry(row, words, list(_settings(run.config)), standing.beat)


def read_standing(run: Run) -> Standing:
    """Return how a run stands now.

    Raises:
        UserFacingError: its events cannot be read.
    """
    beat = heartbeat_time(run.folder)
    state = state_of(run)
    until = beat / 1e9 if state.name == "lost" and beat else time.time()
    found = periods(run.events(), until)
    rate = finite(run.manifest.get("cost_per_hour"))
    hourly = [None if rate is None else one.seconds / 3600 * rate for one in found]
    costs = [c if one.cost is None else one.cost for one, c in zip(found, hourly, strict=True)]
    known = [cost for cost in costs if cost is not None]
    return Standing(
        state._replace(note=clean(state.note), since=clean(state.since)),
        sum(one.seconds for one in found) if found else None,
        sum(known) if known else None,
        beat,
    )


def is_over(state: str) -> bool:
    """Return whether a run of a state changes no more, unless somebody resumes it."""
    return state in OVER


def heartbeat_time(folder: Path) -> int:
    """Return when the heartbeat of a run was last touched, in nanoseconds; 0 if never."""
    try:
        return (folder / HEARTBEAT).lstat().st_mtime_ns
    except OSError:
        return 0


def check_plain(folder: Path) -> None:
    """Refuse a folder in which something that is read is no plain file, or too large.

    Raises:
        DamagedFile: there is such a thing.
    """
    for name in _READ:
        path = folder / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise DamagedFile(f"`{path}` is no plain file: remove it")
        if name == "run.json" and found.st_size > LARGEST_MANIFEST:
            raise DamagedFile(f"`{path}` has {found.st_size:_} bytes: no run's has that many")


def metrics_stamp(folder: Path) -> str:
    """Return text that changes whenever the run's metrics do.

    Raises:
        DamagedFile: one of their files is no plain file.
    """
    parts: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("metrics-") or entry.name == "summary.json":
                found = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode):
                    raise DamagedFile(f"`{entry.path}` is no plain file: remove it")
                parts.append(f"{entry.name} {found.st_size} {found.st_mtime_ns}")
    return clean("\n".join(sorted(parts)))


def clean(text: str) -> str:
    """Return text that can be stored: halves of characters, as JSON may hold them, replaced."""
    return text.encode(errors="replace").decode()


def _settings(config: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield the keys of a configuration, as many as are kept."""
    for count, (key, value) in enumerate(_flat(config, "", 0)):
        if count == MOST_SETTINGS:
            return
        number = _number(value)
        yield Setting(clean(key)[:LONGEST_TEXT], number, clean(typed(value))[:LONGEST_TEXT])


def _flat(value: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and depth < DEEPEST:
        for key, item in cast("dict[str, Any]", value).items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else key, depth + 1)
    else:
        yield prefix, value


def typed(value: object) -> str:
    """Return a value as it is typed on a command line: `0.001`, `true`, `64,64`, text."""
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
    """Return what is stored of a number; whole ones beyond 64 bits as they are rounded."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) < 2**63 else _rounded(value)
    return value if isinstance(value, float) and not math.isnan(value) else None


def _rounded(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(value: object) -> str | None:
    return clean(value)[:LONGEST_TEXT] if isinstance(value, str) and value else None


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
