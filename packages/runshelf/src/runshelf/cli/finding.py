"""The commands `runs`, `show`, `diff` and `reindex`."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home, whole
from runshelf.cli.progress import ProgressLine
from runshelf.cli.tables import moment_of, print_table, result_text
from runshelf.durations import duration
from runshelf.errors import UsageError, did_you_mean
from runshelf.formatting import plural
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.index.refresh import Progress
    from runshelf.index.rows import GroupRow, RunRow
    from runshelf.index.run_index import Index

    Outcome = dict[str, Any] | None

_SHOWN_PROBLEMS = 1


def add(commands: Any) -> None:
    """Add the commands."""
    _add_runs(commands)
    _add_show(commands)
    parser = _add(commands, "diff", "show the differences between two runs", _diff)
    parser.add_argument("run", metavar="A", help=RUN)
    parser.add_argument("other", metavar="B", help="the other run")
    parser.add_argument("--code", action="store_true", help="show all lines of code that differ")
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


def _reading_report() -> Callable[["Progress"], None]:
    """Return a function that prints the progress of reading run folders."""
    show = ProgressLine("reading")
    return lambda progress: show(progress.done, progress.total, progress.to_go)
