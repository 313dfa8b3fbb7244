"""The commands `run`, `rerun` and `budget`."""

import argparse
import dataclasses
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import (
    RUN,
    add_about,
    add_command,
    add_cost,
    add_output,
    home,
    run_info,
)
from runshelf.cli.run_alerts import add_alerts, watching
from runshelf.errors import UsageError
from runshelf.store.run_ids import short_id
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.recorder.ending import Ending
    from runshelf.store.run import RunInfo

RUNS_A_PROGRAM = ("run",)
_PROGRAM_AFTER_DASHES = ("battery", "sweep")  # what comes before `--` is not the program

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add(commands: Any) -> None:
    """Add the commands."""
    about = "run any program and record its code, output and output files"
    parser = add_command(commands, "run", _run, about)
    parser.usage = "%(prog)s [options] -- CMD ..."
    add_about(parser)
    _add_limits(parser)
    add_alerts(parser)
    add_output(parser)
    about = "run the archived code of a run again in a clean folder, with the same command"
    parser = add_command(commands, "rerun", _rerun, about)
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="change one setting of the command, as in --set lr=0.001; repeatable",
    )
    add_about(parser)
    _add_limits(parser)
    add_output(parser)
    about = "show the cost of this week's runs, or set a weekly budget"
    parser = add_command(commands, "budget", _budget, about)
    parser.add_argument("--weekly", type=weekly, metavar="N", help="the budget of a week, or none")
    add_output(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--budget", type=duration, metavar="TIME", help="stop after this time: 90s, 30m, 2h, 1d"
    )
    limits.add_argument(
        "--grace",
        type=duration,
        default=30.0,
        metavar="TIME",
        help="time between SIGTERM at the end of the budget and SIGKILL; default 30s",
    )
    add_cost(limits)


def duration(text: str) -> float:
    """Read a duration: seconds, or a number with `s`, `m`, `h` or `d`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else math.nan
    if not 0.0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a time, got `{text}`; try 90s, 30m, 2h or 1d")
    return seconds


def weekly(text: str) -> float:
    """Read the budget of a week; infinity for `none`."""
    found = re.fullmatch(r"\d+(?:\.\d+)?", text)
    if text != "none" and not (found and math.isfinite(float(text))):
        raise argparse.ArgumentTypeError(f"must be a number or none, got `{text}`; try 20")
    return float(text) if found else math.inf


def _run(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.recorder.run_command import record, recording_of

    recording = recording_of(
        home(options), options.program, _run_info(options), say, grace_seconds=options.grace
    )
    with watching(options, say):
        ending = record(recording, say)
    return _ended(ending, options)


def _run_info(options: argparse.Namespace) -> "RunInfo":
    return dataclasses.replace(run_info(options), budget_seconds=options.budget)


def _rerun(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.recorder.rerun import records_itself, rerun, rerun_self_recorded
    from runshelf.recorder.setting_changes import parse_changes
    from runshelf.store.finding import find_run, list_runs
    from runshelf.store.state import state_of

    run, changes = find_run(home(options), options.run), parse_changes(options.changes)
    if not records_itself(run):
        ending = rerun(home(options), run, changes, _run_info(options), say, options.grace)
        return _ended(ending, options)
    if options.budget is not None or options.cost is not None:
        raise UsageError("--budget and --cost are only for programs that `runshelf run` started")
    before = set(list_runs(home(options)))
    options.exit_status = rerun_self_recorded(home(options), run, changes, _words(options), say)
    if not options.json:
        return None
    made = [ulid for ulid in list_runs(home(options)) if ulid not in before]
    children = [find_run(home(options), ulid) for ulid in made]
    child = next((one for one in children if one.manifest.get("parent") == run.ulid), None)
    ended = {"parent": run.ulid, "exit_status": options.exit_status}
    if child is None:
        return {"run": None} | ended
    return {"run": child.ulid, "folder": str(child.folder)} | ended | state_of(child)._asdict()


def _words(options: argparse.Namespace) -> list[str]:
    """Return the options that describe a run, as words of a command line."""
    about = {"--name": options.name, "--group": options.group, "--question": options.question}
    about |= {"--registered": options.registered}
    words = [word for name, text in about.items() if text for word in (name, text)]
    return words + [word for tag in options.tags for word in ("--tag", tag)]


def _budget(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.recorder.budget import read_weekly, spent_this_week, write_weekly

    if options.weekly is not None:
        write_weekly(home(options), None if math.isinf(options.weekly) else options.weekly)
    limit, runs = read_weekly(home(options)), spent_this_week(home(options))
    spent = sum(one.cost for one in runs)
    left = None if limit is None else limit - spent
    if options.json:
        named = [one._asdict() for one in runs]
        return {"weekly": limit, "spent": spent, "left": left, "runs": named}
    of = "no weekly budget" if left is None else f"of {limit:g}, {left:.2f} left"
    put(f"{spent:.2f} spent this week, {of}")
    for one in runs:
        took = f"{one.seconds / 3600:.2f} h"
        run = short_id(one.run)
        put(f"{one.cost:10.2f}  {took:>9}  {one.state:<11}  {run}  {one.name}".rstrip())
    return None


def _ended(ending: "Ending", options: argparse.Namespace) -> dict[str, Any] | None:
    """Report how a program ended, and take over its exit status."""
    options.exit_status = ending.exit_status
    if options.json:
        return ending._asdict()
    how = "" if ending.state == "finished" else f" (exit status {ending.exit_status})"
    cost = "" if ending.cost is None else f", cost {ending.cost:.2f}"
    say(f"run {short_id(ending.run)} {ending.state}{how} after {ending.seconds:.1f} s{cost}")
    return None


def split_program(
    argv: Sequence[str], commands: Mapping[str, argparse.ArgumentParser]
) -> tuple[list[str], list[str]]:
    """Split a command line into our part and the command line of the program to run.

    The program begins after `--`, or with the first word that is neither one of our options nor the
    value of one.
    """
    if argv and argv[0] in _PROGRAM_AFTER_DASHES and "--" in argv:
        index = list(argv).index("--")
        return list(argv[:index]), list(argv[index + 1 :])
    if not argv or argv[0] not in RUNS_A_PROGRAM:
        return list(argv), []
    options = commands[argv[0]]._option_string_actions
    index = 1
    while index < len(argv) and argv[index] != "--":
        if not argv[index].startswith("-"):
            return list(argv[:index]), list(argv[index:])
        takes_value = argv[index] in options and options[argv[index]].nargs is None
        index += 2 if takes_value else 1
    return list(argv[:index]), list(argv[index + 1 :])


def say(line: str) -> None:
    """Print one line of the recorder on stderr, also while its terminal is in raw mode."""
    put(f"runshelf: {line}", file=sys.stderr, end="\r\n" if sys.stderr.isatty() else "\n")
