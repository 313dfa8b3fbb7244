"""The command `compare`: groups of runs, with every seed, intervals, tests and a conclusion."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import add_command, add_output, home, whole
from runshelf.cli.command_line import Reported
from runshelf.cli.finding import fresh_index
from runshelf.cli.progress import ProgressLine
from runshelf.errors import UsageError
from runshelf.store.paths import is_folder
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.comparison.analysis import Question
    from runshelf.comparison.document import Document, Table
    from runshelf.comparison.result import ComparisonResult
    from runshelf.comparison.sequential import Verdict
    from runshelf.comparison.sides import Side
    from runshelf.registrations.kept import Kept

SIDE = "a group, a filter as for `runs`, a run, or a folder or file of logs"
_ENDINGS = {"csv": ".csv", "latex": ".tex", "markdown": ".md", "html": ".html"}
# Not of a sequential test: it follows its registration, and its answer is a few lines.
_FIXED_ONLY = (
    *("metric", "window", "better", "threshold", "low", "high", "references", "test", "alpha"),
    *_ENDINGS,
)


def add(commands: Any) -> None:
    """Add `compare`."""
    parser = add_command(
        commands,
        "compare",
        _compare,
        "compare groups of runs over their seeds",
        "Compare groups over their seeds: every seed, means with intervals, worst seeds, tests of "
        "the differences, and what may be concluded.",
    )
    parser.add_argument("names", metavar="GROUP", nargs="*", help=SIDE)
    _add_values(parser)
    _add_tests(parser)
    _add_files(parser)
    add_output(parser)


def _add_values(parser: argparse.ArgumentParser) -> None:
    values = parser.add_argument_group("the value of a seed")
    values.add_argument("--metric", metavar="NAME", help="default: the result of the runs")
    values.add_argument(
        "--window",
        type=whole(1, 100, 10),
        metavar="PERCENT",
        help="mean over the last part of the curve; default 10",
    )
    values.add_argument(
        "--better",
        choices=("higher", "lower"),
        help="whether higher or lower values are better; default: lower for losses and errors",
    )
    values.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="X",
        help="count the seeds that reach this value; ENV=X for one environment; repeatable",
    )
    values.add_argument(
        "--low", action="append", default=[], metavar="ENV=X", help="score 0; repeatable"
    )
    values.add_argument(
        "--high", action="append", default=[], metavar="ENV=X", help="score 1; repeatable"
    )
    values.add_argument(
        "--references", metavar="FILE", help='scores 0 and 1: {"ENV": {"low": X, "high": Y}}'
    )


def _add_tests(parser: argparse.ArgumentParser) -> None:
    tests = parser.add_argument_group("tests")
    tests.add_argument(
        "--test", choices=("permutation", "welch"), help="test of a difference; default permutation"
    )
    tests.add_argument("--alpha", type=_level, metavar="P", help="level of the tests; default 0.05")
    tests.add_argument(
        "--registered",
        metavar="NAME",
        help="the registration to follow; default: the one that the runs carry; `none` for none",
    )
    tests.add_argument(
        "--allow-tuning-seeds",
        action="store_true",
        help="also compare seeds on which settings were chosen; the output says so",
    )
    tests.add_argument(
        "--sequential",
        action="store_true",
        help="say whether more seeds are needed, after the looks that are registered (AdaStop)",
    )
    tests.add_argument(
        "--start", action="store_true", help="with --sequential, run the next batch of seeds"
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--csv", metavar="FILE", help="one row for each group and environment")
    files.add_argument("--latex", metavar="FILE", help="the tables as LaTeX")
    files.add_argument("--markdown", metavar="FILE", help="everything as Markdown")
    files.add_argument("--html", metavar="FILE", help="one self-contained page with pictures")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got `{text}`; try 475") from None


def _level(text: str) -> float:
    number = _number(text)
    if not 0.0 < number < 0.5:
        raise argparse.ArgumentTypeError(f"must be above 0 and below 0.5, got `{text}`; try 0.05")
    return number


def _compare(options: argparse.Namespace) -> Reported:
    from runshelf.comparison.sides import opened_sides

    files = _files(options)
    if options.start and not options.sequential:
        raise UsageError("--start needs --sequential")
    if options.sequential:
        _check_sequential(options)
    names = options.names or _registered_groups(options)
    if not names:
        raise UsageError("name the groups: runshelf compare A B; runshelf runs --groups lists them")
    with (
        fresh_index(home(options)) as index,
        opened_sides(
            index, names, options.argv, _say, may_be_empty=_registered_groups(options)
        ) as sides,
    ):
        if options.sequential:
            return _sequential(options, sides, _registration_of(options, sides))
        return _fixed(options, sides, files)


def _check_sequential(options: argparse.Namespace) -> None:
    """Refuse options that a sequential test would ignore."""
    for name in _FIXED_ONLY:
        if getattr(options, name) not in (None, []):
            raise UsageError(
                f"--{name} and --sequential exclude each other: a sequential test follows its "
                "registration and writes no files; leave one of them out"
            )


def _registered_groups(options: argparse.Namespace) -> list[str]:
    """Return the groups that a registration names; only a sequential test starts without runs."""
    from runshelf.registrations.kept import find

    if not options.sequential or not options.registered:
        return []
    return list(find(home(options), options.registered).registration.commands)


def _fixed(
    options: argparse.Namespace, sides: "Sequence[Side]", files: dict[str, Path]
) -> Reported:
    from runshelf.comparison.analysis import compare_sides
    from runshelf.comparison.fields import fields
    from runshelf.comparison.sections import document

    show = ProgressLine("reading")
    results = compare_sides(home(options), sides, _question(options), show)
    made = document(results)
    for kind, path in files.items():
        _write(path, _text(kind, results, made))
    about = {"files": {kind: str(path) for kind, path in files.items()}} if files else {}
    return Reported(fields(results) | about, lambda: _show(made, files))


def _sequential(options: argparse.Namespace, sides: "Sequence[Side]", kept: "Kept") -> Reported:
    from runshelf.comparison.next_batch import commands_of, start
    from runshelf.comparison.sequential import verdict

    if len(sides) < 2:
        raise UsageError("a sequential test needs at least two groups")
    found = verdict(home(options), kept, sides, allow_tuning=options.allow_tuning_seeds)
    started = None
    if options.start and found.next_seeds:
        commands = commands_of(kept, found.next_seeds)
        _show_verdict(found, sys.stderr)
        started = start(home(options), kept, commands, _say)
        if started < len(commands):
            options.exit_status = 1
    fields = _verdict_fields(found) | ({"started": started or 0} if options.start else {})
    return Reported(fields, lambda: _show_end(found, started))


def _registration_of(options: argparse.Namespace, sides: "Sequence[Side]") -> "Kept":
    """Return the registration of a sequential test: named, or the one that the runs carry."""
    from runshelf.comparison.registered import registration_names
    from runshelf.registrations.kept import find

    name = options.registered or next(iter(registration_names(sides)), None)
    if name is None:
        raise UsageError(
            "a sequential test needs a registration of its looks, n and alpha before the first "
            "run: runshelf register NAME --n 25 --looks 5 ..., then add --registered NAME"
        )
    return find(home(options), name)


def _verdict_fields(found: "Verdict") -> dict[str, Any]:
    return {
        "registered": {
            **found.registered.kept.carried(),
            "deviations": found.registered.deviations,
        },
        "environment": found.env,
        "verdict": "go on" if found.goes_on else "stop",
        "looks_done": found.state.looks_done,
        "pairs": [
            {"one": a, "other": b, "decision": decision, "look": found.state.decided_at.get((a, b))}
            for (a, b), decision in found.state.decisions.items()
        ],
        "undecided": [list(pair) for pair in found.undecided],
        "next_seeds": found.next_seeds,
        "running_seeds": found.running,
        "sentences": found.sentences,
        "notes": found.notes,
    }


def _show_verdict(found: "Verdict", file: Any = None) -> None:
    kept, departures = found.registered
    one = kept.registration
    put(f"{kept.name}: {one.question}", file=file)
    put(
        f"  {one.metric}, {one.stopping}, alpha {one.alpha:g}, SHA-256 {kept.sha256[:12]}",
        file=file,
    )
    lines = [*found.sentences, *(f"departure: {text}" for text in departures), *found.notes]
    for line in lines:
        put(f"  {line}", file=file)


def _show_end(found: "Verdict", started: int | None) -> None:
    if started is None:
        _show_verdict(found)
        return
    put(f"{started} commands ended with success; type the same command again for the next look")


def _question(options: argparse.Namespace) -> "Question":
    from runshelf.comparison.analysis import Question

    return Question(
        metric=options.metric,
        window=options.window,
        better=options.better,
        threshold=tuple(options.threshold),
        test=options.test,
        alpha=options.alpha,
        low=tuple(options.low),
        high=tuple(options.high),
        references=None if options.references is None else Path(options.references),
        registered=options.registered,
        allow_tuning=options.allow_tuning_seeds,
    )


def _files(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files to write; check them before anything is read."""
    found: dict[str, Path] = {}
    for kind, ending in _ENDINGS.items():
        name = getattr(options, kind)
        if name is None:
            continue
        path = Path(name)
        if path.suffix.lower() != ending:
            raise UsageError(f"`--{kind}` must name a file that ends in {ending}, got `{name}`")
        if not is_folder(path.parent):
            raise UsageError(f"there is no folder `{path.parent}` for `{name}`")
        found[kind] = path
    return found


def _text(kind: str, results: "Sequence[ComparisonResult]", made: "Document") -> str:
    from runshelf.comparison.document import latex, markdown
    from runshelf.comparison.fields import csv_of

    if kind == "html":
        from runshelf.web.pages.comparison_file import comparison_file

        return comparison_file(results, made)
    makers: dict[str, Callable[[], str]] = {
        "csv": lambda: csv_of(results),
        "latex": lambda: latex(made),
        "markdown": lambda: markdown(made),
    }
    return makers[kind]()


def _write(path: Path, text: str) -> None:
    from runshelf.store.writing import write_whole

    write_whole(path, text.encode("utf-8", "replace"))


def _show(made: "Document", files: dict[str, Path]) -> None:
    put(made.title)
    for section in made.sections:
        put(f"\n{section.title}")
        for line in section.lines:
            put(f"  {line}")
        for table in section.tables:
            _show_table(table)
    for path in files.values():
        put(f"written to {harmless(path)}")


def _show_table(table: "Table") -> None:
    from runshelf.cli.tables import plain, print_table

    put()
    put(f"  {table.title}")
    columns = {
        head: [plain(row[place]) for row in table.rows] for place, head in enumerate(table.heads)
    }
    print_table(columns, right=table.right, beside=table.beside)


def _say(line: str) -> None:
    put(f"runshelf: {line}", file=sys.stderr)
