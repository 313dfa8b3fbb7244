"""The sides of a comparison: each is a group, a filter, a run, or a folder or file of logs."""

import contextlib
import re
import shlex
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from runshelf.errors import UsageError, did_you_mean
from runshelf.formatting import plural
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index, open_index
from runshelf.interop.any_logs import read_logs
from runshelf.interop.log_folders import Say
from runshelf.store.home import has_runs
from runshelf.store.paths import exists, is_file

MOST_RUNS = 20_000  # of one side

_MANIFEST = "run.json"
_OPERATOR = re.compile(r"[=<>~]")


@final
@dataclass(frozen=True)
class Side:
    """The runs of one side.

    Attributes:
        label: its name in tables; no two sides have the same one.
        kind: `group`, `filter`, `run`, `home` or `logs`.
        rows: its runs, newest first.
        notes: what was skipped.
    """

    label: str
    kind: str
    rows: list[RunRow]
    notes: list[str] = field(default_factory=list[str])


@contextlib.contextmanager
def opened_sides(
    index: Index,
    names: Sequence[str],
    argv: Sequence[str],
    say: Say,
    may_be_empty: Sequence[str] = (),
) -> Generator[list[Side], None, None]:
    """Yield the sides with these names; logs are read into a temporary home during the block.

    A name is that of a group; else a folder of a run, of a home or of logs, or a file of logs; else
    a filter if it has an operator; else a run; else a filter of words.

    Args:
        index: the index of the home.
        names: the names.
        argv: the command line.
        say: called with one line for each log that cannot be read.
        may_be_empty: groups that need not have runs yet.

    Raises:
        UsageError: a name means nothing, a filter matches no run, or a name is given twice.
        UserFacingError: a file cannot be read.
    """
    with ExitStack() as stack:
        sides = [
            Side(name, "group", index.members(name))
            if name in may_be_empty
            else _side(index, name, argv, say, stack)
            for name in names
        ]
        yield distinct(sides)


def _side(index: Index, name: str, argv: Sequence[str], say: Say, stack: ExitStack) -> Side:
    if not name.strip():
        raise UsageError("a side of a comparison cannot be empty: name a group, a run or logs")
    if rows := index.members(name):
        return Side(name, "group", rows)
    path = Path(name)
    if exists(path):
        return _at_path(index, path, argv, say, stack)
    if _OPERATOR.search(name):
        return Side(name, "filter", _matching(index, name))
    with contextlib.suppress(UsageError):
        row = index.find(name)
        return Side(row.name or row.short, "run", [row])
    rows = index.runs(name, limit=MOST_RUNS).rows
    if not rows:
        known = index.keys().groups
        hint = did_you_mean(name, known) or "; runshelf runs --groups lists the groups"
        raise UsageError(f"there is no group, run, filter or folder `{name}`{hint}")
    return Side(name, "filter", rows)


def _at_path(index: Index, path: Path, argv: Sequence[str], say: Say, stack: ExitStack) -> Side:
    if is_file(path / _MANIFEST):
        row = index.find(str(path))
        return Side(row.name or row.short, "run", [row])
    if path.is_dir() and has_runs(path):
        other = stack.enter_context(open_index(path))
        other.refresh()
        return Side(_label(path), "home", _matching(other, ""))
    return _of_logs(path, argv, say, stack)


def _matching(index: Index, filter_: str) -> list[RunRow]:
    page = index.runs(filter_, limit=MOST_RUNS)
    if not page.rows:
        raise UsageError(
            f"no run matches the filter `{filter_}`: runshelf runs {shlex.quote(filter_)} shows "
            "what matches"
        )
    if page.total > len(page.rows):
        raise UsageError(f"`{filter_}` matches {page.total:_} runs, the limit is {MOST_RUNS:_}")
    return page.rows


def _of_logs(path: Path, argv: Sequence[str], say: Say, stack: ExitStack) -> Side:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="runshelf-logs-"))
    home = Path(folder)
    notes = read_logs(home, path, argv)
    for note in notes:
        say(note)
    logs = stack.enter_context(open_index(home))
    logs.refresh()
    return Side(_label(path), "logs", logs.runs(limit=MOST_RUNS).rows, notes)


def _label(path: Path) -> str:
    return path.resolve().name or str(path)


def distinct(sides: Sequence[Side]) -> list[Side]:
    """Check that no run is on two sides, and give all sides different labels.

    Raises:
        UsageError: a run is on two sides.
    """
    owner: dict[Path, Side] = {}
    for side in sides:
        for row in side.rows:
            other = owner.setdefault(row.folder, side)
            if other is not side:
                raise _shared(other, side, row)
    found: list[Side] = []
    for side in sides:
        label, taken = side.label, {one.label for one in found}
        number = 2
        while label in taken:
            label = f"{side.label} ({number})"
            number += 1
        found.append(Side(label, side.kind, side.rows, side.notes))
    return found


def _shared(one: Side, other: Side, row: RunRow) -> UsageError:
    if {r.folder for r in one.rows} == {r.folder for r in other.rows}:
        what = f"`{one.label}` and `{other.label}` are the same {plural(len(one.rows), 'run')}"
        return UsageError(f"{what}: a group cannot be compared with itself")
    return UsageError(
        f"run {row.short} is in both `{one.label}` and `{other.label}`: the two sides must have no "
        "run in common; make the filters exclude each other"
    )
