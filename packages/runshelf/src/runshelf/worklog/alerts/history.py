"""Which alerts were told, are held in quiet hours, or could not be sent: a file of the home.

It outlives the process that looks: from a timer, each look is a new one.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, final

from runshelf.formatting import cut
from runshelf.store.home import ALERTS, make_shared_file, shared
from runshelf.store.records import LinesWriter, read_lines
from runshelf.terminal_text import harmless
from runshelf.worklog.alerts.rules import Alert

LONGEST = 600  # characters of an alert


@final
class Unsent(NamedTuple):
    """An alert that a channel could not send so far, and how often that was tried."""

    alert: Alert
    tries: int


@final
class Entry(NamedTuple):
    """What happened to an alert.

    Attributes:
        alert: the alert.
        how: `told`, `held`, or for a channel `unsent`, `sent` or `gave up`.
        channel: the key of the channel; empty if it is about none.
    """

    alert: Alert
    how: str
    channel: str = ""


@final
class History(NamedTuple):
    """What happened to the alerts of a home.

    Attributes:
        told: the keys of the alerts that were told.
        held: alerts that wait for the end of the quiet hours, by key.
        unsent: by the key of a channel, the alerts that it is to send again, by key.
    """

    told: set[str]
    held: dict[str, Alert]
    unsent: dict[str, dict[str, Unsent]]


def read_history(home: Path) -> History:
    """Return what happened to the alerts of a home.

    Raises:
        UserFacingError: the file cannot be read.
    """
    found = History(set(), {}, {})
    for record in read_lines(shared(home, ALERTS)).records:
        key, text, run, how, channel = (
            str(record.get(name, "")) for name in ("key", "text", "run", "how", "channel")
        )
        alert = Alert(key, cut(harmless(text), LONGEST), run, 0.0)
        waiting = found.unsent.setdefault(channel, {})
        if how == "told":
            found.told.add(key)
            found.held.pop(key, None)
        elif how == "held" and key not in found.told:
            found.held[key] = alert
        elif how == "unsent":
            before = waiting.get(key)
            waiting[key] = Unsent(alert, 1 + (before.tries if before else 0))
        elif how in ("sent", "gave up"):
            waiting.pop(key, None)
    return found


def add_to_history(home: Path, entries: Iterable[Entry]) -> None:
    """Write down what happened to alerts.

    Raises:
        UserFacingError: the file cannot be written.
    """
    entries = list(entries)
    if entries:
        with LinesWriter(make_shared_file(home, ALERTS)) as file:
            for alert, how, channel in entries:
                file.write(
                    alert._asdict() | {"how": how} | ({"channel": channel} if channel else {})
                )
            file.sync()
