"""Checks runs every few seconds, and sends each alert once, outside quiet hours."""

import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UsageError, UserFacingError
from runshelf.formatting import cut
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index
from runshelf.snapshot.secrets import find_secrets
from runshelf.terminal_text import harmless
from runshelf.worklog.alerts.channels import Channel, NotSent, channel_of, send
from runshelf.worklog.alerts.history import (
    LONGEST,
    Entry,
    History,
    Unsent,
    add_to_history,
    read_history,
)
from runshelf.worklog.alerts.rules import (
    OF_LOGS,
    USUAL,
    Alert,
    Rule,
    alerts_of,
    budget_alerts,
    rule_of,
)
from runshelf.worklog.alerts.seen import Logs, seen_of_run
from runshelf.worklog.decisions import facts_of

PAUSE = 10.0  # seconds between two looks
MOST_TRIES = 3
RECENT = 86_400.0  # seconds; runs that ended earlier are no longer told of
_MOST_RUNS = 1_000
_QUIET = re.compile(r"(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)")


@final
class Quiet(NamedTuple):
    """Hours of the day in which nothing is sent: minutes after midnight, local time."""

    begin: int
    end: int

    def holds(self, unix: float) -> bool:
        """Return whether a time is within these hours."""
        now = datetime.fromtimestamp(unix)
        minute = 60 * now.hour + now.minute
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


@final
class Look(NamedTuple):
    """What one look found.

    Attributes:
        new: alerts that were never told before, and those that were held until now.
        held: the number of alerts that wait for the end of the quiet hours.
        problems: what could not be sent, and why.
        is_over: whether all named runs have ended, and nothing has to be sent again.
    """

    new: list[Alert]
    held: int
    problems: list[str]
    is_over: bool


@final
class Watch:
    """Tells alerts about the runs of a home.

    Args:
        home: the home.
        rules: rules about runs.
        channels: where to send alerts, besides what the caller does with them.
        runs: the ids of the runs to look at; without any, and without logs, all runs.
        logs: logs of other programs.
        quiet: hours in which nothing is sent.
        about_budget: whether the weekly budget is looked at, too.
    """

    def __init__(
        self,
        home: Path,
        rules: Sequence[Rule],
        channels: Sequence[Channel] = (),
        *,
        runs: Sequence[str] = (),
        logs: Sequence[Logs] = (),
        quiet: Quiet | None = None,
        about_budget: bool = False,
    ) -> None:
        self._home, self._rules, self._runs, self._logs = home, rules, runs, logs
        self._quiet, self._about_budget = quiet, about_budget
        self._channels = channels

    def look(self, index: Index, now: float | None = None) -> Look:
        """Look once, and send what is new.

        Raises:
            UserFacingError: the home cannot be read or written.
        """
        now = time.time() if now is None else now
        rows = self._rows(index, now)
        subjects = [seen_of_run(row) for row in rows]
        subjects += [seen for logs in self._logs for seen in logs.look()]
        history = read_history(self._home)
        told, held = history.told, history.held
        found = alerts_of(self._rules, subjects)
        if self._about_budget:
            found += budget_alerts(facts_of(self._home, index))
        fresh = {a.key: _clean(a) for a in found if a.key not in told and a.key not in held}
        is_running = any(row.state == "running" for row in rows)
        has_ended = bool(self._runs) and not self._logs and not is_running
        if self._quiet and self._quiet.holds(now):
            add_to_history(self._home, [Entry(alert, "held") for alert in fresh.values()])
            return Look([], len(held) + len(fresh), [], has_ended)
        new = [*held.values(), *fresh.values()]
        sent, problems = self._send(new, history)
        add_to_history(self._home, [*(Entry(alert, "told") for alert in new), *sent])
        is_sent = all(entry.how != "unsent" for entry in sent)
        return Look(new, 0, problems, has_ended and is_sent)

    def _rows(self, index: Index, now: float) -> list[RunRow]:
        if self._runs or self._logs:
            return [row for ulid in self._runs if (row := index.run(ulid))]
        rows = index.runs(limit=_MOST_RUNS).rows
        return [row for row in rows if row.state == "running" or _ended(row) > now - RECENT]

    def _send(self, new: Sequence[Alert], history: History) -> tuple[list[Entry], list[str]]:
        """Send alerts by all channels; return what happened to them, and the problems.

        A channel that fails is tried again at the next looks, also of another process.
        """
        entries: list[Entry] = []
        problems: list[str] = []
        for channel in self._channels:
            key = channel.key or channel.name
            before = list(history.unsent.get(key, {}).values())
            waiting = before + [Unsent(alert, 0) for alert in new]
            if not waiting:
                continue
            try:
                send(channel, [one.alert.text for one in waiting])
            except NotSent as error:
                tried = [_tried(one, key) for one in waiting]
                gives_up = any(entry.how == "gave up" for entry in tried)
                problems.append(f"not sent by {error}" + ("; gave up" if gives_up else ""))
                entries += tried
            else:
                entries += [Entry(one.alert, "sent", key) for one in before]
        return entries, problems


def _tried(one: Unsent, channel: str) -> Entry:
    """Return what happened to an alert that a channel could not send once more."""
    return Entry(one.alert, "gave up" if one.tries + 1 >= MOST_TRIES else "unsent", channel)


def watch_of(
    home: Path,
    rules: Sequence[str],
    channels: Sequence[str],
    *,
    runs: Sequence[str] = (),
    logs: Sequence[str] = (),
    quiet: str | None = None,
) -> Watch:
    """Return the watch that is asked for in words; without rules, with the usual ones.

    Args:
        home: the home.
        rules: the rules, as of `alerts --rule`.
        channels: where to send alerts, as of `alerts --to`.
        runs: the ids of the runs to look at; without any, and without logs, all runs.
        logs: folders and files of logs of other programs.
        quiet: the quiet hours.

    Raises:
        UsageError: a text is not a rule, a channel or a span of the day, or a rule cannot be about
            logs.
    """
    only_logs = bool(logs) and not runs
    found = [rule_of(text) for text in rules or (OF_LOGS if only_logs else USUAL)]
    if only_logs and (of_runs := [rule.text for rule in found if rule and rule.needs_run]):
        raise UsageError(
            f"`{of_runs[0]}` is about runs that are recorded; of logs, alerts tell nan, stall and "
            "limits of metrics"
        )
    wanted = [channel_of(text, os.environ) for text in channels]
    return Watch(
        home,
        [rule for rule in found if rule],
        [channel for channel in wanted if channel],
        runs=runs,
        logs=[Logs(Path(name)) for name in logs],
        quiet=None if quiet is None else quiet_of(quiet),
        about_budget=None in found,
    )


def follow(
    watch: Watch,
    index: Index,
    report: Callable[[Look], None],
    wait: Callable[[float], object] = time.sleep,
    pause: float = PAUSE,
) -> None:
    """Check until all named runs have ended, or until interrupted; retry what cannot be read.

    Args:
        watch: what to look at.
        index: the index of the home.
        report: receives what each look found.
        wait: waits for so many seconds between two looks, or shorter if there is a reason to look.
        pause: seconds between two looks.
    """
    problem = ""
    while True:
        began = time.monotonic()
        try:
            index.refresh()
            found, problem = watch.look(index), ""
        except UserFacingError as error:
            is_new, problem = str(error) != problem, str(error)
            found = Look([], 0, [problem] if is_new else [], is_over=False)
        report(found)
        if found.is_over:
            return
        # Looking takes at most a sixth of the time, also at long logs.
        wait(max(pause, 5 * (time.monotonic() - began)))


def quiet_of(text: str) -> Quiet:
    """Read quiet hours: `22:00-07:00`.

    Raises:
        UsageError: the text is not a span of the day.
    """
    found = _QUIET.fullmatch(text.replace(" ", ""))
    if found:
        h1, m1, h2, m2 = map(int, found.groups())
        if max(h1, h2) < 24 and max(m1, m2) < 60 and (h1, m1) != (h2, m2):
            return Quiet(60 * h1 + m1, 60 * h2 + m2)
    raise UsageError(f"`--quiet {text[:40]}` is not a span of the day; try 22:00-07:00")


def _ended(row: RunRow) -> float:
    return row.created + (row.seconds or 0.0)


def _clean(alert: Alert) -> Alert:
    """Return an alert without control characters and without secrets of this process."""
    masked = find_secrets([], dict(os.environ)).mask(alert.text)
    return alert._replace(text=cut(harmless(" ".join(masked.split())), LONGEST))
