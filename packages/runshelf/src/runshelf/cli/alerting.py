"""The command `alerts`: tell what happens to runs, instead of watching them."""

import argparse
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.worklog.alerts.watching import Look

_FAILED = 1  # exit status if an alert could not be sent


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "alerts",
        _alerts,
        "tell when runs end, fail, stall or break a rule",
        "Look at the running and recently ended runs, or at logs of other programs, and tell what "
        "is new; each alert is told once. With --follow, go on until the named runs end, or until "
        "Ctrl-C.",
    )
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN|LOGS",
        help=f"{RUN}, or a folder or file of logs; default: all runs",
    )
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="RULE",
        dest="rules",
        help="nan, 'stall 10m', failure, end, finding, budget (default: all of these), or as in "
        "'return < 10 after 100000 env_steps'; repeatable",
    )
    parser.add_argument(
        "--to",
        action="append",
        default=[],
        metavar="WHERE",
        help="besides the terminal: desktop, command:PROGRAM, smtp://USER@HOST:PORT?to=ADDRESS, "
        "https://HOST/PATH, or env:NAME for what this variable holds; repeatable",
    )
    parser.add_argument(
        "--quiet", metavar="SPAN", help="hold alerts back in these hours: 22:00-07:00"
    )
    parser.add_argument("--follow", action="store_true", help="look every ten seconds")
    add_output(parser)


def _alerts(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.index.run_index import open_index
    from runshelf.store.finding import find_run
    from runshelf.worklog.alerts.seen import is_log
    from runshelf.worklog.alerts.watching import Look, follow, watch_of

    logs = [name for name in options.runs if is_log(name)]
    runs = [find_run(home(options), name).ulid for name in options.runs if name not in logs]
    watch = watch_of(
        home(options), options.rules, options.to, runs=runs, logs=logs, quiet=options.quiet
    )
    looks = list[Look]()

    def report(look: Look) -> None:
        looks.append(look)
        _show(look, options)

    with open_index(home(options)) as index:
        if options.follow:
            with contextlib.suppress(KeyboardInterrupt):
                follow(watch, index, report)
        else:
            index.refresh()
            report(watch.look(index))
    problems = [problem for look in looks for problem in look.problems]
    options.exit_status = _FAILED if problems else 0
    held = looks[-1].held if looks else 0
    alerts = [alert._asdict() for look in looks for alert in look.new]
    if options.json:
        return {"alerts": alerts, "held": held, "problems": problems}
    if not alerts and not options.follow:
        put(f"{held} held back until the quiet hours end" if held else "nothing new")
    return None


def _show(look: "Look", options: argparse.Namespace) -> None:
    for alert in look.new:
        put(alert.text, flush=True, file=sys.stderr if options.json else sys.stdout)
    for problem in look.problems:
        put(f"runshelf: {problem}", file=sys.stderr, flush=True)
