"""The commands that find, compare and keep runs: runs, show, diff, rm, restore, gc, du, reindex."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_output, home, sentence, whole
from runshelf.cli.plain import harmless, moment_of, print_table, size_of

if TYPE_CHECKING:
    from runshelf.index.refresh import Problem, Progress
    from runshelf.index.rows import GroupRow, RunRow
    from runshelf.index.run_index import Index

    Outcome = dict[str, Any] | None

_SHOWN_PROBLEMS = 1
# A command that takes longer than this says how far it is.
_PATIENCE_SECONDS = 1.0


def add(commands: Any) -> None:
    """Add the commands to the parser's."""
    _add_runs(commands)
    _add_show(commands)
    _add_diff(commands)
    _add_rm(commands)
    _add_restore(commands)
    _add_gc(commands)
    _add_du(commands)
    _add_reindex(commands)


def _add(commands: Any, name: str, about: str, act: Callable[..., "Outcome"]) -> Any:
    parser = commands.add_parser(name, help=about, description=sentence(about))
    parser.set_defaults(act=act)
    return parser


def _add_runs(commands: Any) -> None:
    parser = _add(commands, "runs", "list runs, newest first", _runs)
    parser.add_argument(
        "filter", nargs="*", metavar="FILTER", help="as in: state=lost lr<0.01 'loss.min<2' word"
    )
    parser.add_argument(
        "--sort", default="", metavar="KEYS", help="as in --sort=-loss,lr; `-` for largest first"
    )
    parser.add_argument(
        "--columns", default="", metavar="KEYS", help="keys of configurations, metrics: lr,loss"
    )
    parser.add_argument(
        "--limit", type=whole(1, 1_000_000, 50), default=20, metavar="N", help="at most so many"
    )
    parser.add_argument("--all", action="store_true", help="however many there are")
    parser.add_argument("--groups", action="store_true", help="groups of runs, in place of runs")
    add_output(parser)


def _add_show(commands: Any) -> None:
    parser = _add(commands, "show", "show everything about a run", _show)
    parser.add_argument("run", nargs="?", default="latest", metavar="RUN", help=RUN)
    parser.add_argument("--output", action="store_true", help="all that it printed")
    parser.add_argument("--code", action="store_true", help="the files of its code")
    parser.add_argument("--packages", action="store_true", help="the packages it ran with")
    add_output(parser)


def _add_diff(commands: Any) -> None:
    parser = _add(commands, "diff", "say what differs between two runs", _diff)
    parser.add_argument("run", metavar="A", help=RUN)
    parser.add_argument("other", metavar="B", help="another")
    parser.add_argument("--code", action="store_true", help="all lines of code that differ")
    add_output(parser)


def _add_rm(commands: Any) -> None:
    parser = _add(commands, "rm", "move runs to the trash", _rm)
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN)
    add_output(parser)


def _add_restore(commands: Any) -> None:
    parser = _add(commands, "restore", "move runs back from the trash", _restore)
    parser.add_argument("run", nargs="*", metavar="RUN", help="its id or the beginning of its id")
    add_output(parser)


def _add_gc(commands: Any) -> None:
    parser = _add(commands, "gc", "say what nobody needs, and with --yes remove it", _gc)
    parser.add_argument("--yes", action="store_true", help="do it")
    parser.add_argument(
        "--trash",
        type=whole(0, 36_500, 30),
        default=30,
        metavar="DAYS",
        help="empty the trash of runs removed so many days ago",
    )
    add_output(parser)


def _add_du(commands: Any) -> None:
    parser = _add(commands, "du", "say how much runs take on disk", _du)
    parser.add_argument(
        "--limit", type=whole(1, 1_000_000, 50), default=20, metavar="N", help="at most so many"
    )
    add_output(parser)


def _add_reindex(commands: Any) -> None:
    parser = _add(commands, "reindex", "build the index again from the run folders", _reindex)
    add_output(parser)


def _runs(options: argparse.Namespace) -> "Outcome":
    limit = 2**31 if options.all else options.limit
    columns = [key.strip() for key in options.columns.split(",") if key.strip()]
    with _fresh_index(home(options)) as index:
        ask = index.groups if options.groups else index.runs
        page = ask(" ".join(options.filter), options.sort, columns, limit)
    if options.json:
        kind = "groups" if options.groups else "runs"
        return {kind: [row_fields(row) for row in page.rows], "total": page.total}
    if not page.total:
        what = "no run is like that" if options.filter else "there are no runs"
        print(f"{what} in `{harmless(home(options) / 'runs')}`")
        return None
    rows: Any = page.rows
    table = _group_columns(rows) if options.groups else _run_columns(rows)
    table |= {key: [row.values.get(key) for row in rows] for key in columns}
    print_table(table, right=("runs", "n", "took", "cost", *columns))
    if len(rows) < page.total:
        print(f"{len(rows)} of {page.total}; --all shows all", file=sys.stderr)
    return None


def row_fields(row: "RunRow | GroupRow") -> dict[str, Any]:
    """Return a row as JSON has it."""
    from dataclasses import asdict

    return {
        "run" if name == "ulid" else name: str(value) if isinstance(value, Path) else value
        for name, value in asdict(row).items()
    }


def _run_columns(rows: Sequence["RunRow"]) -> dict[str, Sequence[object]]:
    columns: dict[str, Sequence[object]] = {
        "run": [row.ulid for row in rows],
        "created": [moment_of(row.created) for row in rows],
        "state": [row.state for row in rows],
        "took": [_duration(row.seconds) for row in rows],
        "question": [row.question for row in rows],
        "name": [row.name for row in rows],
        "group": [row.group for row in rows],
        "seeds": [_listed(row.seeds) for row in rows],
        "cost": [None if row.cost is None else round(row.cost, 2) for row in rows],
        "tags": [row.tags for row in rows],
    }
    always = ("run", "created", "state", "took", "group")
    return {name: cells for name, cells in columns.items() if name in always or any(cells)}


def _group_columns(rows: Sequence["GroupRow"]) -> dict[str, Sequence[object]]:
    return {
        "group": [row.group for row in rows],
        "runs": [row.runs for row in rows],
        "n": [row.n for row in rows],
        "created": [moment_of(row.created) for row in rows],
        "states": [", ".join(f"{n} {state}" for state, n in row.states.items()) for row in rows],
        **({"question": [row.question for row in rows]} if any(r.question for r in rows) else {}),
    }


def _listed(seeds: Sequence[int]) -> str:
    """Return seeds in short: `0-9` for consecutive ones."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds[:5])) + (",..." if len(seeds) > 5 else "")


def _duration(seconds: float | None) -> str:
    from runshelf.durations import duration

    return duration(seconds)


def _show(options: argparse.Namespace) -> "Outcome":
    from runshelf.cli.showing import about, print_code, print_output, print_packages, print_run
    from runshelf.store.run import find_run

    run = find_run(home(options), options.run)
    if options.json:
        return about(run)
    if options.output:
        print_output(run)
    if options.code:
        print_code(run)
    if options.packages:
        print_packages(run)
    if not (options.output or options.code or options.packages):
        print_run(run)
    return None


def _diff(options: argparse.Namespace) -> "Outcome":
    from runshelf.cli.showing import comparison_fields, print_comparison
    from runshelf.comparison.runs import compare
    from runshelf.store.run import find_run

    one, other = (find_run(home(options), name) for name in (options.run, options.other))
    found = compare(home(options), one, other)
    if options.json:
        return comparison_fields(found)
    print_comparison(found, all_code=options.code)
    return None


def _rm(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.trash import remove
    from runshelf.store.run import find_run

    # All are looked for before the first is moved: a mistyped one leaves everything as it was.
    runs = list(
        {run.ulid: run for run in (find_run(home(options), n) for n in options.run)}.values()
    )
    for run in runs:
        remove(home(options), run)
        print(f"run {run.ulid} is in the trash; runshelf restore {run.ulid} brings it back")
    return {"removed": [run.ulid for run in runs]} if options.json else None


def _restore(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.trash import restore, trashed

    if not options.run:
        known = trashed(home(options))
        if options.json:
            return {"trash": known}
        print("\n".join(known) or "the trash is empty")
        return None
    runs = [restore(home(options), name) for name in options.run]
    for run in runs:
        print(f"run {run.ulid} is back in {harmless(run.folder)}")
    return {"restored": [run.ulid for run in runs]} if options.json else None


def _gc(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.garbage import collect, find_garbage

    if options.yes:
        garbage = collect(home(options), float(options.trash), _CompactingTold())
    else:
        garbage = find_garbage(home(options), float(options.trash))
    if options.json:
        return {
            "done": options.yes,
            "objects": len(garbage.objects),
            "object_bytes": garbage.object_bytes,
            "trashed": garbage.trashed,
            "trashed_bytes": garbage.trashed_bytes,
            "leftovers": garbage.leftovers,
            "compactable": garbage.compactable,
            "lines_bytes": garbage.lines_bytes,
            "kept": [{"file": str(one.path), "line": one.line} for one in garbage.kept],
        }
    lines = [
        (len(garbage.trashed), "old runs in the trash", size_of(garbage.trashed_bytes)),
        (len(garbage.objects), "files of code no run has", size_of(garbage.object_bytes)),
        (len(garbage.leftovers), "folders of runs that never began", ""),
        (len(garbage.compactable), "runs' metrics as lines", f"{size_of(garbage.lines_bytes)} now"),
    ]
    for count, what, size in lines:
        if count:
            print(f"{count:>8,} {what}{f', {size}' if size else ''}")
    for one in garbage.kept:
        print(f"{harmless(str(one.path))} stays lines: line {one.line} is no metric record")
    if not any(count for count, *_ in lines):
        print("there is nothing to remove")
    elif options.yes:
        print("removed; metrics are columns now")
    else:
        print("nothing has been changed; runshelf gc --yes does it, and what it removes is gone")
    return None


def _du(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.garbage import disk_usage

    usage = disk_usage(home(options))
    sums = {
        "runs": usage.runs_bytes,
        "objects": usage.objects_bytes,
        "trash": usage.trash_bytes,
        "index": usage.index_bytes,
        "total": usage.total_bytes,
    }
    if options.json:
        return {"bytes": sums, "runs": [row._asdict() for row in usage.runs]}
    rows = usage.runs[: options.limit]
    if rows:
        columns = {
            "run": [row.run for row in rows],
            "own": [size_of(row.bytes) for row in rows],
            "code, shared": [size_of(row.code_bytes) for row in rows],
            "": ["in the trash" if row.is_trashed else "" for row in rows],
        }
        print_table(columns, right=("own", "code, shared"))
    if len(rows) < len(usage.runs):
        print(f"{len(rows)} of {len(usage.runs)}; --limit shows more", file=sys.stderr)
    names = {"objects": "code of all runs, each file once", "runs": "runs' own files"}
    for name, count in sums.items():
        print(f"{size_of(count):>10}  {names.get(name, name)}")
    return None


def _reindex(options: argparse.Namespace) -> "Outcome":
    from runshelf.index.run_index import open_index

    began = time.monotonic()
    with open_index(home(options)) as index:
        problems = index.rebuild(_ReadingTold())
        total = index.runs(limit=0).total
        path = index.path
    seconds = time.monotonic() - began
    for problem in problems:
        print(f"runshelf: skipped: {harmless(problem.message)}", file=sys.stderr)
    if options.json:
        skipped = [{"folder": str(p.folder), "message": p.message} for p in problems]
        return {"runs": total, "index": path and str(path), "skipped": skipped, "seconds": seconds}
    where = f"`{harmless(path)}`" if path else "memory: it can be kept nowhere"
    skipped = f", {len(problems)} folders skipped" if problems else ""
    print(f"{total:,} runs in {where}{skipped}, {_duration(seconds)}")
    return None


def _fresh_index(place: Path) -> "Index":
    """Return the index of a home, up to date; say what was skipped."""
    from runshelf.index.run_index import open_index

    index = open_index(place)
    _say_skipped(index.refresh(_ReadingTold()))
    return index


def _say_skipped(problems: Sequence["Problem"]) -> None:
    for problem in problems[-_SHOWN_PROBLEMS:]:
        print(f"runshelf: note: {harmless(problem.message)}", file=sys.stderr)
    others = len(problems) - _SHOWN_PROBLEMS
    if others > 0:
        print(f"runshelf: note: and {others} more; runshelf reindex names all", file=sys.stderr)


class _Told:
    """Says on one line of stderr how far something is that takes long."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE_SECONDS

    def say(self, text: str, *, ended: bool) -> None:
        """Say it on a terminal, in place of what was said before; elsewhere every few seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (0.2 if sys.stderr.isatty() else 3.0)
        if sys.stderr.isatty():
            print(f"\r\x1b[K{'' if ended else text}", end="", file=sys.stderr, flush=True)
        elif not ended:
            print(text, file=sys.stderr)


class _ReadingTold(_Told):
    """Says how far reading the run folders is."""

    def __call__(self, progress: "Progress") -> None:
        """Say it."""
        done, total = progress.done, progress.total
        to_go = f", {_duration(progress.to_go)} to go" if done else ""
        self.say(f"reading {done:,} of {total:,} runs{to_go}", ended=done == total)


class _CompactingTold(_Told):
    """Says how far compacting is."""

    def __call__(self, done: int, total: int) -> None:
        """Say it."""
        self.say(f"compacting {done:,} of {total:,} runs", ended=done == total)
