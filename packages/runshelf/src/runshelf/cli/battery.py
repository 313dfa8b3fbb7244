"""The command `battery`."""

import argparse
import math
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import add_command, add_output, home, whole
from runshelf.cli.command_line import Reported
from runshelf.cli.recording import duration
from runshelf.cli.sweeping import add_direction, add_running, run_sweep, say
from runshelf.errors import UsageError, UserFacingError
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.batteries.code_identity import Code
    from runshelf.batteries.measuring import Measured
    from runshelf.batteries.rows import BatteryRow
    from runshelf.batteries.verdicts import Verdict

_SEEDS = 10
_POLL_SECONDS = 10.0
_LOOKING = 50.0  # a look at the code takes at most one of so many seconds


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "battery",
        _battery,
        "measure fixed commands and seeds again after a change",
        "Measure the rows of a battery with the present code, and say for each of them if it is "
        "better or worse than its reference, or if that cannot be told. The exit status is 1 if a "
        "row is worse or fails.",
    )
    parser.usage = "%(prog)s FOLDER [options] [--add NAME -- CMD ...]"
    parser.add_argument("folder", metavar="FOLDER", help="a folder with one JSON file for each row")
    parser.add_argument(
        "--rows", nargs="+", default=["*"], metavar="GLOB", help="these rows only; default: all"
    )
    parser.add_argument(
        "--budget", type=duration, metavar="TIME", help="only as many cheap rows as fit into this"
    )
    parser.add_argument("--again", action="store_true", help="measure what this code has measured")
    parser.add_argument("--accept", action="store_true", help="make the scores the reference")
    parser.add_argument("--follow", action="store_true", help="again after each change of the code")
    _add_new(parser)
    add_running(parser)
    add_output(parser)


def _add_new(parser: argparse.ArgumentParser) -> None:
    new = parser.add_argument_group("a new row")
    new.add_argument("--add", metavar="NAME", help="write the row, and run nothing")
    new.add_argument("--seeds", type=whole(1, 1_000_000, 10), metavar="N", help="default: 10")
    new.add_argument("--seed", type=whole(0, 1_999_000_000, 0), metavar="FIRST")
    new.add_argument("--metric", metavar="NAME", help="default: the result of a run")
    add_direction(new)


def _battery(options: argparse.Namespace) -> "Reported | dict[str, Any] | None":
    given = [n for n in ("seeds", "seed", "metric", "minimise") if getattr(options, n) is not None]
    if options.add is not None:
        return _add(options)
    if given or options.program:
        what = f"--{given[0]}" if given else "a command"
        raise UsageError(f"{what} is for a new row; name it with --add NAME -- CMD")
    if not options.follow:
        return _one_pass(options)
    _follow(options)
    return None


def _add(options: argparse.Namespace) -> dict[str, Any]:
    from runshelf.batteries.rows import BatteryRow, add_row
    from runshelf.sweeps.template import check_template

    command, first = tuple(options.program or ()), options.seed or 0
    if not command:
        raise UsageError(
            f"--add needs a command: --add {options.add} -- python train.py --seed {{seed}}"
        )
    check_template(command, {}, names_seeds=True)
    seeds = tuple(range(first, first + (options.seeds or _SEEDS)))
    about = {"metric": options.metric, "minimise": options.minimise}
    row = BatteryRow(options.add, command, seeds, **about)
    add_row(Path(options.folder), row)
    return {"row": row.name, "command": list(command), "seeds": list(seeds)}


def _follow(options: argparse.Namespace) -> None:
    """Make a pass now, and another one after each change of the code, until Ctrl-C."""
    if options.json:
        raise UsageError("--follow prints a table after each pass: leave --json out")
    seen = ""
    while True:
        began = time.monotonic()
        code = _code(options)
        took = time.monotonic() - began
        if code.digest != seen:
            seen = code.digest
            try:
                _one_pass(options).show()
            except UserFacingError as error:  # such as a row that was just being written
                say(f"error: {error}")
            say("waits for a change of the code; Ctrl-C ends")
        time.sleep(max(_POLL_SECONDS, _LOOKING * took))


def _code(options: argparse.Namespace) -> "Code":
    from runshelf.batteries.code_identity import code_of

    return code_of(Path(options.folder), Path.cwd(), home(options))


def _one_pass(options: argparse.Namespace) -> Reported:
    from runshelf.batteries.last_pass import keep_pass
    from runshelf.batteries.measuring import with_direction
    from runshelf.batteries.verdicts import judged

    folder = Path(options.folder)
    rows, left_out = _chosen(options)
    code = _code(options)
    found = {row.name: one for row, one in _measured(options, rows, code)}
    if _code(options).digest != code.digest:
        raise UserFacingError(
            "the code changed while it was measured, so the scores belong to no state of it: "
            "start the battery again with --again"
        )
    left_out += [row.name for row in rows if row.name not in found]
    scores = {name: one.scores for name, one in found.items() if not one.failure}
    failures = {name: one.failure for name, one in found.items() if one.failure}
    directed = [with_direction(row, found[row.name]) for row in rows if row.name in found]
    verdicts = judged(directed, scores, failures)
    if options.accept:
        _accept(folder, verdicts, found, code)
    if not options.show:
        words = {o.row.name: "same" if options.accept and o.scores else o.word for o in verdicts}
        keep_pass(home(options), folder, code, words)
    options.exit_status = int(not options.accept and not all(one.holds for one in verdicts))
    fields = {
        "battery": str(folder),
        "commit": code.commit or None,
        "rows": [_fields(one) for one in verdicts],
        "left_out": left_out,
        "accepted": [one.row.name for one in verdicts if one.scores] if options.accept else [],
    }
    return Reported(fields, lambda: _print(verdicts, left_out, accepted=options.accept))


def _chosen(options: argparse.Namespace) -> "tuple[list[BatteryRow], list[str]]":
    """Return the rows to measure, the cheap ones first, and the names of those left out."""
    from runshelf.batteries.measuring import cheap_first
    from runshelf.batteries.rows import read_rows

    known = read_rows(Path(options.folder))
    named = [r for r in known if any(fnmatchcase(r.name, glob) for glob in options.rows)]
    if not named:
        names = ", ".join(row.name for row in known[:8])
        raise UsageError(f"no row is called {' '.join(options.rows)} (there are {names})")
    budget = math.inf if options.budget is None else options.budget
    rows = cheap_first([row for row in named if not row.by_hand], budget)
    return rows, [row.name for row in named if row not in rows]


def _measured(
    options: argparse.Namespace, rows: "Sequence[BatteryRow]", code: "Code"
) -> "list[tuple[BatteryRow, Measured]]":
    from runshelf.batteries.measuring import is_known, measured, seconds_of, sweep_of
    from runshelf.durations import duration as in_words
    from runshelf.sweeps.state import state_of_sweep

    found: list[tuple[BatteryRow, Measured]] = []
    for place, row in enumerate(rows):
        if options.show and not is_known(row, home(options), code):
            continue  # and makes no folder
        sweep = sweep_of(row, home(options), code, again=options.again)
        state = state_of_sweep(sweep)
        if options.show and state.open:
            continue
        if state.open:
            left = in_words(seconds_of(rows[place:]))
            say(f"{row.name}: row {place + 1} of {len(rows)}, about {left} left")
        try:
            found.append((row, measured(row, run_sweep(options, sweep))))
        except UserFacingError:
            state = state_of_sweep(sweep)
            if not state.hopeless:
                raise
            found.append((row, measured(row, state)))
    return found


def _accept(
    folder: Path, verdicts: "Sequence[Verdict]", found: "dict[str, Measured]", code: "Code"
) -> None:
    from runshelf.batteries.rows import accept

    for one in verdicts:
        if one.scores:
            about = {"commit": code.commit, "seconds": round(found[one.row.name].seconds, 1)}
            accept(folder, one.row, one.scores, about)


def _fields(one: "Verdict") -> dict[str, Any]:
    change = one.difference
    return {
        "row": one.row.name,
        "verdict": one.word,
        "seeds": list(one.row.seeds),
        "scores": _finite(one.scores),
        "reference": _finite(one.row.scores),
        "change": None if change is None else change.means._asdict(),
        "p": one.p,
        "note": one.note,
    }


def _finite(scores: "Sequence[float]") -> list[float | None]:
    return [x if math.isfinite(x) else None for x in scores]


def _print(verdicts: "Sequence[Verdict]", left_out: Sequence[str], *, accepted: bool) -> None:
    from runshelf.cli.tables import plain, print_table
    from runshelf.formatting import number, plural

    order = ("worse", "failed", "better", "cannot tell", "new", "same")
    shown = sorted(verdicts, key=lambda one: order.index(one.word))
    print_table(
        {
            "row": [one.row.name for one in shown],
            "verdict": [one.word for one in shown],
            "n": [len(one.row.seeds) for one in shown],
            "reference": [_mean(one.row.scores) for one in shown],
            "now": [_mean(one.scores) for one in shown],
            "change, 95 %": [_change(one) for one in shown],
            "p (Holm)": ["" if one.p is None else plain(number(one.p)) for one in shown],
            "note": [harmless(one.note) for one in shown],
        },
        right=("n", "reference", "now"),
    )
    counts = {word: sum(one.word == word for one in shown) for word in order}
    put(", ".join(f"{many} {word}" for word, many in counts.items() if many) or "nothing measured")
    if left_out:
        put(f"left out: {', '.join(left_out)}")
    if accepted:
        many = plural(sum(bool(one.scores) for one in shown), "row")
        put(f"accepted as the reference: the scores of {many}")


def _mean(scores: Sequence[float]) -> str:
    from runshelf.cli.tables import plain
    from runshelf.formatting import number

    finite = [x for x in scores if math.isfinite(x)]
    failed = len(scores) - len(finite)
    mean = plain(number(sum(finite) / len(finite))) if finite else ""
    return f"{mean} ({failed} failed)" if failed else mean


def _change(one: "Verdict") -> str:
    from runshelf.cli.tables import plain
    from runshelf.formatting import number

    if one.difference is None:
        return ""
    means = one.difference.means
    value = plain(number(means.value))
    if not means.has_interval:
        return value
    return f"{value} ({plain(number(means.low))} to {plain(number(means.high))})"
