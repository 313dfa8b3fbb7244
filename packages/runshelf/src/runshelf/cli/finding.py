"""The commands `runs`, `show`, `diff`, `rm`, `restore`, `gc`, `du` and `reindex`."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home, whole
from runshelf.cli.tables import moment_of, print_table, result_text, size_of
from runshelf.durations import duration
from runshelf.errors import UsageError, did_you_mean
from runshelf.formatting import plural
from runshelf.store.run_ids import short_id
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.index.refresh import Progress
    from runshelf.index.rows import GroupRow, RunRow
    from runshelf.index.run_index import Index

    Outcome = dict[str, Any] | None

_SHOWN_PROBLEMS = 1
# A longer command prints its progress.
_PATIENCE_SECONDS = 1.0


def add(commands: Any) -> None:
    """Add the commands."""
    _add_runs(commands)
    _add_show(commands)
    parser = _add(commands, "diff", "show the differences between two runs", _diff)
    parser.add_argument("run", metavar="A", help=RUN)
    parser.add_argument("other", metavar="B", help="the other run")
    parser.add_argument("--code", action="store_true", help="show all lines of code that differ")
    parser = _add(commands, "rm", "move runs to the trash", _rm)
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN)
    parser = _add(commands, "restore", "move runs back from the trash", _restore)
    parser.add_argument("run", nargs="*", metavar="RUN", help="the beginning or end of a run's id")
    _add_gc(commands)
    parser = _add(commands, "du", "show how much disk space runs take", _du)
    parser.add_argument(
        "--limit", type=whole(1, 1_000_000, 50), default=20, metavar="N", help="most rows to show"
    )
    _add(commands, "reindex", "build the index again from the run folders", _reindex)


def _add(commands: Any, name: str, about: str, act: Callable[..., "Outcome"]) -> Any:
    parser = add_command(commands, name, act, about)
    add_output(parser)
    return parser


def _add_runs(commands: Any) -> None:
    parser = _add(commands, "runs", "list runs, newest first", _runs)
    parser.add_argument(
        "filter",
        nargs="*",
        metavar="FILTER",
        help="such as state=lost 'lr<0.01' 'loss.min<2' word",
    )
    parser.add_argument(
        "--sort", default="", metavar="KEYS", help="such as --sort=-loss,lr; `-` for largest first"
    )
    parser.add_argument(
        "--columns", default="", metavar="KEYS", help="settings and metrics to show: lr,loss"
    )
    parser.add_argument(
        "--limit", type=whole(1, 1_000_000, 50), default=20, metavar="N", help="most rows to show"
    )
    parser.add_argument("--all", action="store_true", help="show all rows")
    parser.add_argument("--groups", action="store_true", help="list groups instead of runs")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="from now on, the metric that all tables and pages of this home show first as the "
        "result; `none` for the usual one",
    )


def _add_show(commands: Any) -> None:
    parser = _add(commands, "show", "show one run", _show)
    parser.add_argument("run", nargs="?", default="latest", metavar="RUN", help=RUN)
    parser.add_argument("--output", action="store_true", help="print its whole output")
    parser.add_argument("--code", action="store_true", help="list the files of its code")
    parser.add_argument("--packages", action="store_true", help="list its packages")


def _add_gc(commands: Any) -> None:
    parser = _add(commands, "gc", "list unneeded files, and remove them with --yes", _gc)
    parser.add_argument("--yes", action="store_true", help="remove the files")
    parser.add_argument(
        "--trash",
        type=whole(0, 36_500, 30),
        default=30,
        metavar="DAYS",
        help="delete runs that have been in the trash for this many days",
    )


def _runs(options: argparse.Namespace) -> "Outcome":
    limit = 2**31 if options.all else options.limit
    columns = [key.strip() for key in options.columns.split(",") if key.strip()]
    with fresh_index(home(options)) as index:
        if options.metric is not None:
            _name_metric(index, options.metric)
        query = index.groups if options.groups else index.runs
        page = query(" ".join(options.filter), options.sort, columns, limit)
    if options.json:
        kind = "groups" if options.groups else "runs"
        return {kind: [_row_fields(row) for row in page.rows], "total": page.total}
    if not page.total:
        what = "no runs match the filter" if options.filter else "there are no runs"
        put(f"{what} in `{harmless(home(options) / 'runs')}`")
        return None
    rows: Any = page.rows
    table = _group_columns(rows) if options.groups else _run_columns(rows)
    table |= {key: [row.values.get(key) for row in rows] for key in columns}
    print_table(table, right=("runs", "n", "took", "cost", list(table)[1], *columns))
    if len(rows) < page.total:
        put(f"{len(rows)} of {page.total}; --all shows all", file=sys.stderr)
    return None


def _name_metric(index: "Index", metric: str) -> None:
    """Name the result of the runs of a home, once for all commands and pages.

    Raises:
        UsageError: no run has the metric.
    """
    from runshelf.store.results import name_metric, usual_first

    if metric == "none":
        name_metric(index.home, None)
    else:
        known = usual_first(index.keys().metrics)
        if metric not in known:
            hint = did_you_mean(metric, known) or f": known are {', '.join(known[:10]) or 'none'}"
            raise UsageError(f"no run has a metric `{metric}`{hint}")
        name_metric(index.home, metric)
    index.refresh()


def _row_fields(row: "RunRow | GroupRow") -> dict[str, Any]:
    """Return the JSON fields of a row."""
    from dataclasses import asdict

    return {
        "run" if name == "ulid" else name: str(value) if isinstance(value, Path) else value
        for name, value in asdict(row).items()
    }


def _run_columns(rows: Sequence["RunRow"]) -> dict[str, Sequence[object]]:
    columns: dict[str, Sequence[object]] = {
        "run": [row.short for row in rows],
        **_result_column(rows),
        "created": [moment_of(row.created) for row in rows],
        "state": [row.state for row in rows],
        "took": [duration(row.seconds) for row in rows],
        "question": [row.question for row in rows],
        "name": [row.name for row in rows],
        "group": [row.group for row in rows],
        "seeds": [_listed(row.seeds) for row in rows],
        "cost": [None if row.cost is None else round(row.cost, 2) for row in rows],
        "tags": [row.tags for row in rows],
    }
    always = (*list(columns)[:2], "created", "state", "took", "group")
    return {name: cells for name, cells in columns.items() if name in always or any(cells)}


def _group_columns(rows: Sequence["GroupRow"]) -> dict[str, Sequence[object]]:
    return {
        "group": [row.group for row in rows],
        **_result_column(rows),
        "runs": [row.runs for row in rows],
        "n": [row.n for row in rows],
        "created": [moment_of(row.created) for row in rows],
        "states": [", ".join(f"{n} {state}" for state, n in row.states.items()) for row in rows],
        **({"question": [row.question for row in rows]} if any(r.question for r in rows) else {}),
    }


def _result_column(rows: "Sequence[RunRow | GroupRow]") -> dict[str, list[str]]:
    """Return the column of results; its heading is the metric if all rows have the same one."""
    metrics = {row.result.metric for row in rows if row.result}
    results = [row.result for row in rows]
    if len(metrics) == 1:
        return {metrics.pop(): [result_text(result) for result in results]}
    return {"result": [result_text(result, named=True) for result in results]}


def _listed(seeds: Sequence[int]) -> str:
    """Return seeds in short form: `0-9` for consecutive seeds."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds[:5])) + (",..." if len(seeds) > 5 else "")


def _show(options: argparse.Namespace) -> "Outcome":
    from runshelf.cli.showing import about, print_code, print_output, print_packages, print_run
    from runshelf.store.finding import find_run

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
    from runshelf.store.finding import find_run

    one, other = (find_run(home(options), name) for name in (options.run, options.other))
    found = compare(home(options), one, other)
    if options.json:
        return comparison_fields(found)
    print_comparison(one, other, found, all_code=options.code)
    return None


def _rm(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.trash import remove
    from runshelf.store.finding import find_run

    # Find all runs before moving the first one: a mistyped name must change nothing.
    found = [find_run(home(options), name) for name in options.run]
    runs = {run.ulid: run for run in found}
    for run in runs.values():
        remove(home(options), run)
        put(f"run {run.short} is in the trash; runshelf restore {run.short} brings it back")
    return {"removed": list(runs)} if options.json else None


def _restore(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.trash import restore, trashed

    if not options.run:
        known = trashed(home(options))
        if options.json:
            return {"trash": known}
        put("\n".join(map(short_id, known)) or "the trash is empty")
        return None
    runs = [restore(home(options), name) for name in options.run]
    for run in runs:
        put(f"run {run.short} is back in {harmless(run.folder)}")
    return {"restored": [run.ulid for run in runs]} if options.json else None


def _gc(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.garbage import collect, find_garbage

    failed: list[str] = []
    if options.yes:
        show = ProgressLine("compacting")
        garbage = collect(home(options), float(options.trash), show, failed.append)
    else:
        garbage = find_garbage(home(options), float(options.trash))
    if failed:
        options.exit_status = 1
        _print_failures(failed)
    if options.json:
        return {
            "done": options.yes and not failed,
            "failed": failed,
            "objects": len(garbage.objects),
            "object_bytes": garbage.object_bytes,
            "trashed": garbage.trashed,
            "trashed_bytes": garbage.trashed_bytes,
            "leftovers": garbage.leftovers,
            "reruns": [folder.name for folder in garbage.reruns],
            "compactable": garbage.compactable,
            "lines_bytes": garbage.lines_bytes,
            "old_index": [str(path) for path in garbage.old_index],
            "kept": [{"file": str(one.path), "line": one.line} for one in garbage.kept],
        }
    lines = [
        (len(garbage.trashed), "old run", "in the trash", size_of(garbage.trashed_bytes)),
        (len(garbage.objects), "code file", "without a run", size_of(garbage.object_bytes)),
        (len(garbage.leftovers), "folder", "of runs that never started", ""),
        (len(garbage.reruns), "folder", "of reruns that were killed", ""),
        (len(garbage.old_index), "file", "of an index that is no longer used", ""),
        (
            *(len(garbage.compactable), "run", "with metrics to compact"),
            f"{size_of(garbage.lines_bytes)} now",
        ),
    ]
    for count, what, which, size in lines:
        if count:
            put(f"  {plural(count, what)} {which}{f', {size}' if size else ''}")
    for one in garbage.kept:
        put(f"{harmless(str(one.path))} is not compacted: line {one.line} is not a metric record")
    if not any(count for count, *_ in lines):
        put("nothing was removed" if failed else "there is nothing to remove")
    elif options.yes:
        put("removed and compacted")
    else:
        put("nothing has been changed; runshelf gc --yes does it and cannot be undone")
    return None


def _print_failures(failed: Sequence[str]) -> None:
    for message in failed[:_SHOWN_PROBLEMS]:
        put(f"runshelf: {harmless(message)}", file=sys.stderr)
    if len(failed) > _SHOWN_PROBLEMS:
        put(f"runshelf: and {len(failed) - _SHOWN_PROBLEMS} more", file=sys.stderr)


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
            "run": [short_id(row.run) for row in rows],
            "own": [size_of(row.bytes) for row in rows],
            "code, shared": [size_of(row.code_bytes) for row in rows],
            "": ["in the trash" if row.is_trashed else "" for row in rows],
        }
        print_table(columns, right=("own", "code, shared"))
    if len(rows) < len(usage.runs):
        put(f"{len(rows)} of {len(usage.runs)}; --limit shows more", file=sys.stderr)
    names = {"objects": "code of all runs, each file once", "runs": "files of runs"}
    for name, count in sums.items():
        put(f"{size_of(count):>10}  {names.get(name, name)}")
    return None


def _reindex(options: argparse.Namespace) -> "Outcome":
    from runshelf.index.run_index import open_index

    began = time.monotonic()
    with open_index(home(options)) as index:
        problems = index.rebuild(_reading_report())
        total = index.runs(limit=0).total
        path = index.path
    seconds = time.monotonic() - began
    for problem in problems:
        put(f"runshelf: skipped: {harmless(problem.message)}", file=sys.stderr)
    if options.json:
        skipped = [{"folder": str(p.folder), "message": p.message} for p in problems]
        return {"runs": total, "index": path and str(path), "skipped": skipped, "seconds": seconds}
    where = f"`{harmless(path)}`" if path else "memory: no place is writable"
    skipped = f", {plural(len(problems), 'folder')} skipped" if problems else ""
    put(f"{plural(total, 'run')} in {where}{skipped}, {duration(seconds)}")
    return None


def fresh_index(place: Path) -> "Index":
    """Return the updated index of a home; print notes on skipped folders."""
    from runshelf.index.run_index import open_index

    index = open_index(place)
    problems = index.refresh(_reading_report())
    for problem in problems[-_SHOWN_PROBLEMS:]:
        put(f"runshelf: note: {harmless(problem.message)}", file=sys.stderr)
    others = len(problems) - _SHOWN_PROBLEMS
    if others > 0:
        put(f"runshelf: note: and {others} more; runshelf reindex lists all", file=sys.stderr)
    return index


class ProgressLine:
    """Prints the progress of a long operation on stderr."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._next = time.monotonic() + _PATIENCE_SECONDS

    def __call__(self, done: int, total: int, to_go: float = 0.0) -> None:
        """On a terminal, replace the previous line; elsewhere, print a line every few seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (0.2 if sys.stderr.isatty() else 3.0)
        left = f", {duration(to_go)} to go" if to_go else ""
        text = f"{self._activity} {done:,} of {total:,} runs{left}"
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            put(text if done < total else "", end="", file=sys.stderr, flush=True)
        elif done < total:
            put(text, file=sys.stderr)


def _reading_report() -> Callable[["Progress"], None]:
    """Return a function that prints the progress of reading run folders."""
    show = ProgressLine("reading")
    return lambda progress: show(progress.done, progress.total, progress.to_go)
