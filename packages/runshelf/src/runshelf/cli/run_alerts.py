"""The options `--alert` and `--to` of commands that record a run."""

import argparse
import contextlib
from collections.abc import Callable, Sequence

from runshelf.cli.arguments import home

_OPTIONS = ("--alert", "--to")


def add_alerts(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    alerts = parser.add_argument_group("alerts")
    alerts.add_argument(
        "--alert",
        action="append",
        default=[],
        metavar="RULE",
        dest="alerts",
        help="send an alert when this rule holds, see `alerts --help`: 'loss > 100', "
        "'stall 10m', failure or end; repeatable",
    )
    alerts.add_argument(
        "--to",
        action="append",
        default=[],
        metavar="WHERE",
        dest="alerts_to",
        help="tell it here, too: desktop, command:PROGRAM, smtp://..., https://... or env:NAME, as "
        "of `alerts`; repeatable; without --alert, the usual rules",
    )


def watching(
    options: argparse.Namespace, show: Callable[[str], object], run: str | None = None
) -> contextlib.AbstractContextManager[None]:
    """Return a context in which the run that this process records is watched, if that is asked.

    Args:
        options: the options of the command.
        show: shows one line to the user.
        run: the id of the run if it is resumed.

    Raises:
        UsageError: a rule or a channel is wrong.
    """
    if not options.alerts and not options.alerts_to:
        return contextlib.nullcontext()
    from runshelf.worklog.alerts.companion import watched
    from runshelf.worklog.alerts.watching import watch_of

    watch_of(home(options), options.alerts, options.alerts_to)  # refuses what is wrong
    return watched(home(options), options.alerts, options.alerts_to, show, run)


def without_alerts(argv: Sequence[str]) -> list[str]:
    """Return a command line without these options: addresses of webhooks are secrets.

    A run that is repeated is not watched again.
    """
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in _OPTIONS:
            next(words, None)
        elif word.partition("=")[0] not in _OPTIONS:
            kept.append(word)
    return kept
