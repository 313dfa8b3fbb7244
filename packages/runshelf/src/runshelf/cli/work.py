"""The commands `now`, `hours` and `digest`."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import add_command, add_output, home
from runshelf.cli.tables import moment_of, print_table
from runshelf.durations import duration
from runshelf.errors import UsageError, did_you_mean
from runshelf.formatting import plural, roughly
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.worklog.decisions import Now, Upcoming
    from runshelf.worklog.hours import Forecast

    Outcome = dict[str, Any] | None

_ACTIONS = {
    "start": "hours start debugging",
    "stop": "hours stop",
    "plan": "hours plan debugging 10h",
    "add": "hours add debugging 2h",
    "done": "hours done debugging",
}


def add(commands: Any) -> None:
    """Add the commands."""
    about = "say what may be decided now, and when the next run ends"
    add_output(add_command(commands, "now", _now, about))
    parser = add_command(
        commands,
        "hours",
        _hours,
        "plan and record hours of work by stage",
        "Without an action, print planned and spent hours of all stages, a forecast, compute and "
        "money. `start STAGE` begins a stage and stops the one before, `stop` ends it, "
        "`plan STAGE TIME` plans it, `add STAGE TIME` adds work, `done STAGE` finishes it.",
    )
    parser.add_argument(
        "words", nargs="*", metavar="ACTION", help="start, stop, plan, add or done, and a stage"
    )
    parser.add_argument(
        "--worked",
        metavar="TIME",
        help="with stop: how much of the time counts; without a running stage, of the last one",
    )
    add_output(parser)
    about = "print the digest of this week: questions, runs, hours, confusions"
    parser = add_command(commands, "digest", _digest, about)
    parser.add_argument(
        "--since", default="week", metavar="TIME", help="week (default), today, 7d, 2w or a date"
    )
    parser.add_argument("--save", metavar="FILE", help="also write it to FILE, which ends in .md")
    add_output(parser)


def _now(options: argparse.Namespace) -> "Outcome":
    from runshelf.index.run_index import open_index
    from runshelf.worklog.decisions import facts_of, look_at

    with open_index(home(options)) as index:
        index.refresh()
        found = look_at(facts_of(home(options), index))
    if options.json:
        return _now_fields(found)
    program = options.program_name
    for decision in found.decisions:
        put(f"{decision.kind:<10} {' '.join(decision.text.split())}")
        put(f"{'':<10}   {program} {decision.command}" if decision.command else "")
    if not found.decisions:
        put("There is nothing to decide.")
    for one in found.upcoming:
        put(f"running    {_upcoming_words(one)}")
    put(_next_words(found))
    return None


def _upcoming_words(one: "Upcoming") -> str:
    share, left = one.progress.share, one.progress.seconds_left
    done = "" if share is None else f", {share:.0%} done"
    ends = "" if left is None else f", {roughly(left)} left"
    what = one.row.question or one.row.name or one.row.group
    alarms = "".join(f"; {alarm}" for alarm in one.progress.alarms)
    return f"{one.row.short} {' '.join(what.split())[:160]}{done}{ends}{alarms}"


def _next_words(found: "Now") -> str:
    seconds = found.seconds_to_next
    if not found.upcoming:
        return "Nothing is running."
    if seconds is None:
        return f"{plural(len(found.upcoming), 'run')} running; no end can be estimated."
    return f"The next run ends in {roughly(seconds)}, at {moment_of(time.time() + seconds)}."


def _now_fields(found: "Now") -> dict[str, Any]:
    seconds = found.seconds_to_next
    running = [
        {
            "run": one.row.ulid,
            "question": one.row.question,
            "share": one.progress.share,
            "seconds_left": one.progress.seconds_left,
            "alarms": one.progress.alarms,
        }
        for one in found.upcoming
    ]
    return {
        "decisions": [decision._asdict() for decision in found.decisions],
        "running": running,
        "seconds_to_next": seconds,
        "next": None if seconds is None else time.time() + seconds,
    }


def _hours(options: argparse.Namespace) -> "Outcome":
    if not options.words:
        if options.worked is not None:
            raise UsageError("`--worked` is an option of stop; try hours stop --worked 3h")
        return _print_hours(options)
    said = _act(options)
    if options.json:
        return _hours_fields(options) | {"said": said}
    put("\n".join(said))
    return None


def _act(options: argparse.Namespace) -> list[str]:
    from runshelf.worklog import hours

    action, *rest = options.words
    if action not in _ACTIONS:
        hint = did_you_mean(action, _ACTIONS)
        raise UsageError(f"hours has no `{action}`{hint} (expected {', '.join(_ACTIONS)})")
    if len(rest) != {"stop": 0, "start": 1, "done": 1}.get(action, 2):
        raise UsageError(f"`hours {' '.join(options.words)}` is incomplete; try {_ACTIONS[action]}")
    if options.worked is not None and action != "stop":
        raise UsageError("`--worked` is an option of stop; try hours stop --worked 3h")
    place, now = home(options), time.time()
    if action == "start":
        return hours.start(place, rest[0], now)
    if action == "stop":
        worked = None if options.worked is None else _seconds("--worked", options.worked)
        return hours.stop(place, now, worked)
    if action == "done":
        hours.finish(place, rest[0], now)
        return [f"{rest[0]} is done"]
    seconds = _seconds(f"hours {action} {rest[0]}", rest[1])
    if action == "plan":
        hours.plan(place, rest[0], seconds)
        return [f"{rest[0]}: {duration(seconds)} planned"]
    hours.add(place, rest[0], seconds, now)
    return [f"{rest[0]}: {duration(seconds)} added"]


def _seconds(what: str, text: str) -> float:
    from runshelf.cli.recording import duration as seconds_of

    if text.isdecimal():  # elsewhere these are seconds; here a person may mean hours
        raise UsageError(f"`{what}`: `{text}` has no unit; try {text}h or {text}m")
    try:
        return seconds_of(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"`{what}` {error}") from error


def _hours_fields(options: argparse.Namespace) -> dict[str, Any]:
    from runshelf.worklog import hours

    ledger, now = hours.read_ledger(home(options)), time.time()
    found = hours.forecast(ledger, now)
    running = hours.open_stage(home(options), now)
    return {
        "stages": [row._asdict() for row in found.rows],
        "running": running._asdict() if running else None,
        "ratio": found.ratio,
        "remaining": found.remaining,
        "weekly": found.weekly,
        "weeks": found.weeks,
    } | _compute(options, now)


def _compute(options: argparse.Namespace, now: float) -> dict[str, Any]:
    """Return the seconds and the cost of runs, and the inferred hours of work."""
    from runshelf.index.run_index import open_index
    from runshelf.recorder.budget import week_start
    from runshelf.worklog.decisions import all_facts_of
    from runshelf.worklog.week import digest_of

    with open_index(home(options)) as index:
        index.refresh()
        facts = all_facts_of(home(options), index)
    found = digest_of(facts, week_start(now), now)
    return {
        "inferred_this_week": found.inferred,
        "run_seconds_this_week": found.run_seconds,
        "run_seconds": sum(row.seconds or 0.0 for row in facts.rows),
        "cost": sum(row.cost or 0.0 for row in facts.rows),
        "cost_this_week": found.spent_this_week,
        "weekly_budget": found.weekly,
    }


def _print_hours(options: argparse.Namespace) -> "Outcome":
    from runshelf.worklog import hours

    fields = _hours_fields(options)
    if options.json:
        return fields
    found = hours.forecast(hours.read_ledger(home(options)), time.time())
    if found.rows:
        print_table(
            {
                "stage": [row.stage for row in found.rows],
                "planned": [duration(row.planned) for row in found.rows],
                "spent": [duration(row.spent) for row in found.rows],
                "expected": [duration(row.expected) for row in found.rows],
                "": ["done" if row.is_done else "" for row in found.rows],
            },
            right=("planned", "spent", "expected"),
        )
    else:
        put("no stages yet: hours plan reading 5h, hours start reading")
    put("\n".join(_lines(found, fields, options)))
    return None


def _lines(found: "Forecast", fields: dict[str, Any], options: argparse.Namespace) -> list[str]:
    from runshelf.worklog.hours import HOUR, LONGEST, open_stage

    lines: list[str] = []
    running = open_stage(home(options), time.time())
    if running and running.passed > LONGEST:
        lines.append(f"{running.in_words}: hours stop --worked 2h")
    elif running:
        lines.append(f"running: {running.stage}, {duration(running.passed)}")
    if found.remaining:
        by = (
            "as planned" if found.ratio is None else f"done stages took {found.ratio:.2g} x planned"
        )
        weeks = "" if found.weeks is None else f", {found.weeks:.2g} weeks at the present pace"
        lines.append(f"forecast: {duration(found.remaining)} more{weeks} ({by})")
    if fields["inferred_this_week"]:
        lines.append(f"inferred this week: {duration(fields['inferred_this_week'])} not recorded")
    week, total = fields["run_seconds_this_week"] / HOUR, fields["run_seconds"] / HOUR
    lines.append(f"compute: {week:.2f} h of runs this week, {total:.2f} h in all")
    budget = fields["weekly_budget"]
    of = "" if budget is None else f" of {budget:g}"
    lines.append(
        f"money: {fields['cost_this_week']:.2f}{of} this week, {fields['cost']:.2f} in all"
    )
    return [harmless(line) for line in lines]


def _digest(options: argparse.Namespace) -> "Outcome":
    from pathlib import Path

    from runshelf.index.run_index import open_index
    from runshelf.store.writing import write_whole
    from runshelf.worklog.decisions import all_facts_of
    from runshelf.worklog.week import as_markdown, begin_of, digest_of

    now = time.time()
    since = begin_of(options.since, now)
    if options.save is not None and not options.save.lower().endswith(".md"):
        raise UsageError(f"`{options.save}` must end in .md; try week.md")
    with open_index(home(options)) as index:
        index.refresh()
        found = digest_of(all_facts_of(home(options), index), since, now)
    text = as_markdown(found)
    if options.save is not None:
        write_whole(Path(options.save), text.encode("utf-8", "replace"))
    if options.json:
        return _digest_fields(found)
    put(text, end="")
    return None


def _digest_fields(found: Any) -> dict[str, Any]:
    def questions(of: Any) -> list[dict[str, Any]]:
        return [
            {
                "question": one.text,
                "runs": [row.ulid for row in one.runs],
                "answers": [note._asdict() for note in one.answers],
            }
            for one in of
        ]

    fields = found._asdict()
    for name in ("answered", "open", "running"):
        fields[name] = questions(fields[name])
    for name in ("confusions", "ideas", "work", "expected"):
        fields[name] = [note._asdict() for note in fields[name]]
    results = [(row, row.result) for row in found.runs]
    fields["runs"] = [
        {
            "run": row.ulid,
            "state": row.state,
            "seconds": row.seconds,
            "cost": row.cost,
            "metric": result.metric if result else None,
            "result": result.value if result else None,
        }
        for row, result in results
    ]
    return fields
