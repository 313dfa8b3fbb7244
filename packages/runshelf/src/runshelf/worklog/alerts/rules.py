"""Rules: what a run must do for an alert."""

import functools
import math
import operator
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, final

from runshelf.durations import duration
from runshelf.errors import UsageError, UserFacingError, did_you_mean
from runshelf.formatting import cut, number
from runshelf.received_json import finite
from runshelf.recorder.budget import week_start
from runshelf.store.diagnosis import read_diagnosis
from runshelf.store.results import is_return
from runshelf.store.run import open_run
from runshelf.worklog.alerts.seen import Seen
from runshelf.worklog.decisions import budget_state
from runshelf.worklog.facts import Facts

RETURN = "return"  # stands for the return of the run, whatever its name
AXES = ("env_steps", "updates", "episodes", "seconds")
USUAL = ("nan", "stall 10m", "failure", "end", "finding", "budget")
OF_LOGS = ("nan", "stall 10m")  # the usual rules for logs of other programs
_FAILED = ("failed", "lost")
_ENDED = ("finished", "stopped", "interrupted")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NUMBER = r"[-+]?(?:\d+(?:_\d+)*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?"
_LIMIT = re.compile(
    rf"(?P<metric>[^<>=\s]+)\s*(?P<sign><=|>=|<|>)\s*(?P<value>{_NUMBER})"
    rf"(?:\s+after\s+(?P<after>{_NUMBER})\s+(?P<axis>\w+))?",
    re.IGNORECASE,
)
_STALL = re.compile(r"stall(?:\s+(?P<time>\d+(?:\.\d+)?)\s*(?P<unit>[smh]))?")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@final
class Alert(NamedTuple):
    """Something to tell.

    Attributes:
        key: what it is told as, once.
        text: it in one line.
        run: the id of its run; empty without one.
        time: when it was noticed, in Unix seconds.
    """

    key: str
    text: str
    run: str
    time: float


@final
class Rule(NamedTuple):
    """A rule: its text, and a function that returns why a run is to be told of.

    The function returns the reason and what tells it from a later one of the same run; None if
    there is nothing to tell.
    """

    text: str
    why: Callable[[Seen], tuple[str, str] | None]

    @property
    def needs_run(self) -> bool:
        """Whether it is about a recorded run, and not about a log of another program."""
        return self.text in ("failure", "end", "finding")


def rule_of(text: str) -> Rule | None:
    """Return the rule with a text; None for `budget`, which is about no single run.

    Raises:
        UsageError: it is not a rule.
    """
    said = " ".join(text.split())
    simple = {"nan": _nan, "failure": _failure, "end": _end, "finding": _finding}
    if said.casefold() in simple:
        return Rule(said.casefold(), simple[said.casefold()])
    if said.casefold() == "budget":
        return None
    if found := _STALL.fullmatch(said.casefold()):
        seconds = float(found["time"] or 10) * _UNITS[found["unit"] or "m"]
        return Rule(said, functools.partial(_stall, seconds=seconds))
    if found := _LIMIT.fullmatch(said):
        return Rule(said, _limit(found))
    hint = did_you_mean(said, (*simple, "budget", "stall 10m"))
    raise UsageError(
        f"`{said[:80]}` is not a rule{hint} (expected nan, stall 10m, failure, end, finding, "
        "budget, or as in 'return < 10 after 100000 env_steps')"
    )


def alerts_of(rules: Sequence[Rule], subjects: Sequence[Seen]) -> list[Alert]:
    """Return what the rules find in runs and logs."""
    found: list[Alert] = []
    for seen in subjects:
        for rule in rules:
            if reason := rule.why(seen):
                text, which = reason
                key = f"{seen.key} {rule.text} {which}"
                run = seen.row.ulid if seen.row else ""
                found.append(Alert(key, f"{seen.title}: {text}", run, time.time()))
    return found


def budget_alerts(facts: Facts) -> list[Alert]:
    """Return what is to be told of the weekly budget: when it is nearly spent, and when it is."""
    return [
        Alert(f"budget {week_start():.0f} {'is spent' in one.text}", one.text, "", one.since)
        for one in budget_state(facts)
    ]


def _limit(found: re.Match[str]) -> Callable[[Seen], tuple[str, str] | None]:
    """Return the function of a rule such as `loss > 10 after 1000 updates`."""
    metric, value, axis = found["metric"], float(found["value"]), found["axis"]
    after = float(found["after"]) if found["after"] else -math.inf
    if axis and axis not in AXES:
        hint = did_you_mean(axis, AXES)
        raise UsageError(f"no axis `{axis}`{hint} (expected {', '.join(AXES)})")
    holds = _SIGNS[found["sign"]]

    def why(seen: Seen) -> tuple[str, str] | None:
        newest = _newest(seen.tail.records, metric, axis or "", after)
        seeds = [seed for seed, of_seed in newest.items() if holds(of_seed, value)]
        if not seeds:
            return None
        worst = max(seeds, key=lambda seed: abs(newest[seed] - value))
        of = "" if worst is None else f" in {len(seeds)} of {len(newest)} seeds, seed {worst}"
        return f"{found[0]}: {number(newest[worst])}{of}", ""

    return why


def _newest(
    records: Sequence[Mapping[str, Any]], metric: str, axis: str, after: float
) -> dict[int | None, float]:
    """Return the newest value of each seed, from records far enough along an axis."""
    name = _name_of(records, metric)
    found: dict[int | None, float] = {}
    for record in records:
        value, place = finite(record.get(name)), finite(record.get(axis)) if axis else math.inf
        if value is not None and place is not None and place >= after:
            seed = record.get("seed")
            found[seed if isinstance(seed, int) else None] = value
    return found


def _name_of(records: Sequence[Mapping[str, Any]], metric: str) -> str:
    """Return the name under which a metric is logged; `return` stands for the run's return."""
    names = {name: None for record in records for name in record}
    if metric in names or metric != RETURN:
        return metric
    return next((name for name in names if is_return(name)), metric)


def _nan(seen: Seen) -> tuple[str, str] | None:
    bad = {
        name
        for record in seen.tail.latest
        for name, value in record.items()
        if value in ("NaN", "Infinity", "-Infinity") and _must_be_finite(name)
    }
    if not bad:
        return None
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    return f"{cut(min(bad), 80)}{more} is not finite", ""


def _must_be_finite(name: str) -> bool:
    return any(word in name.lower() for word in ("loss", "grad", "reward"))


def _stall(seen: Seen, seconds: float) -> tuple[str, str] | None:
    age = time.time() - seen.last_line
    if not seen.is_running or age <= seconds:
        return None
    # Told once for each time that it stalls.
    return f"no new line for {duration(age)}", f"{seen.last_line:.3f}"


def _failure(seen: Seen) -> tuple[str, str] | None:
    row = seen.row
    if row is None or row.state not in _FAILED:
        return None
    note = f", {cut(' '.join(row.note.split()), 200)}" if row.note else ""
    return f"{row.state}{note}", row.since


def _end(seen: Seen) -> tuple[str, str] | None:
    row = seen.row
    if row is None or row.state not in _ENDED:
        return None
    result = ""
    if row.result and row.result.value is not None:
        result = f", {row.result.metric} {number(row.result.value)}"
    return f"{row.state} after {duration(row.seconds)}{result}", row.since


def _finding(seen: Seen) -> tuple[str, str] | None:
    if seen.row is None:
        return None
    found, alarms = read_diagnosis(seen.row.folder), list[str]()
    with suppress(UserFacingError):
        alarms = open_run(seen.row.folder).alarms()
    texts = [*alarms, *([found.in_words] if found and found.findings else [])]
    if not texts:
        return None
    which = " ".join([*alarms, *sorted(found.findings if found else [])])
    return cut("; ".join(" ".join(text.split()) for text in texts), 400), which
