"""The state of a sweep as a table, and as the fields of `--json`."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from runshelf.cli.tables import plain, print_table
from runshelf.durations import duration
from runshelf.formatting import number, plural
from runshelf.sweeps.blocks import rounds
from runshelf.sweeps.definition import Definition
from runshelf.sweeps.driver import progress_of
from runshelf.sweeps.ranking import Standing, identical_runs, is_minimised
from runshelf.sweeps.space import text_of
from runshelf.sweeps.state import State
from runshelf.terminal_text import harmless, put

_MOST_ROWS = 30
Budgets = Sequence[Mapping[str, Any]]


def fields_of(state: State, program: str, budgets: Budgets | None = None) -> dict[str, Any]:
    """Return a state as JSON values; `program` is what the user typed, for its commands."""
    sweep, definition, progress = state.sweep, state.sweep.definition, progress_of(state)
    best = next((one for one in state.standings() if not one.failed), None)
    fields = {
        "sweep": sweep.name,
        "id": sweep.ulid,
        "folder": str(sweep.folder),
        "search": "list" if definition.listed is not None else definition.search,
        "tried": definition.configurations,
        "complete": not state.open and state.is_tuned,
        "blocks": {
            "done": progress.done,
            "failed": progress.failed,
            "running": progress.running,
            "known": progress.blocks,
        },
        "seconds": round(state.spent_seconds, 3),
        "cost": progress.cost,
        "metric": metric_of(state),
        "minimise": is_minimised(definition, state.done),
        "seeds": {
            "each": definition.seeds,
            "tuning": definition.tuning_seed,
            "report": definition.report_seed,
        },
        "best": None if best is None else _standing(best),
        "configurations": [_standing(one) for one in state.standings()],
        "report": [_standing(one) for one in state.reported()],
        "dropped": {str(at): list(numbers) for at, numbers in state.dropped.items()},
        "notes": notes(state, program),
    }
    return fields | ({} if budgets is None else {"budgets": list(budgets)})


def _standing(one: Standing) -> dict[str, Any]:
    return {
        "configuration": one.configuration,
        "values": dict(one.values),
        "n": one.seeds,
        "failed": one.failed,
        "mean": one.mean,
        "low": one.low,
        "high": one.high,
        "scores": {str(seed): score for seed, score in one.scores.items()},
        "seconds": one.seconds,
        "env_steps": one.env_steps,
        "runs": list(one.runs),
    }


def metric_of(state: State) -> str | None:
    """Return the metric that ranks the configurations, as far as it is known."""
    named = [one.metric for one in state.done if one.metric]
    return state.sweep.definition.metric or next(iter(named), None)


def print_state(state: State, program: str, budgets: Budgets | None = None) -> None:
    """Print the configurations with their intervals, and what to know about them."""
    definition, standings = state.sweep.definition, state.standings()
    metric = metric_of(state) or "metric"
    if standings:
        tuned = f"tuning seeds from {definition.tuning_seed}"
        order = ", lower is better" if is_minimised(definition, state.done) else ""
        put(f"{metric}{order}, {tuned}; mean with its 95 % interval, the best first")
        print_standings(definition, standings)
    if reported := state.reported():
        put(f"\n{metric}, report on fresh seeds from {definition.report_seed}")
        print_standings(definition, reported)
    if budgets is not None:
        put("\nbudgets of tuning")
        print_table({name: [row[name] for row in budgets] for name in _BUDGET})
        put(_verdict(budgets))
    for note in notes(state, program):
        put(f"note: {harmless(note)}")


def print_standings(definition: Definition, standings: Sequence[Standing]) -> None:
    """Print configurations as a table."""
    shown = standings[:_MOST_ROWS]
    columns: dict[str, list[object]] = {"no.": [one.configuration for one in shown]}
    if definition.fixed:
        columns["what"] = [definition.fixed[one.configuration] for one in shown]
    else:
        for name in definition.space:
            columns[name] = [text_of(one.values[name]) for one in shown]
    columns["n"] = [one.seeds for one in shown]
    columns["mean"] = [plain(number(one.mean)) for one in shown]
    columns["95 % interval"] = [_interval(one) for one in shown]
    if any(one.failed for one in shown):
        columns["failed"] = [one.failed for one in shown]
    print_table(columns, right=("no.", "n", "mean", "failed"))
    if len(standings) > len(shown):
        put(f"and {len(standings) - len(shown)} more; --json has all")


def _interval(one: Standing) -> str:
    if math.isnan(one.low):
        return "unknown"
    return f"{plain(number(one.low))} to {plain(number(one.high))}"


def notes(state: State, program: str) -> list[str]:
    """Return what to know about the results, in sentences."""
    found = [*_halving(state), *identical_runs(state.done), *_unfinished(state)]
    failed = [one for one in state.done if one.state == "failed"]
    if failed:
        found.append(
            f"{plural(len(failed), 'block')} failed, and the seeds count as failures; the last: "
            f"{failed[-1].error}; run them again with --retry-failed"
        )
    metrics = sorted({one.metric for one in state.done if one.metric})
    if len(metrics) > 1:
        found.append(f"runs have different results ({', '.join(metrics)}): name one with --metric")
    standings = state.standings()
    if len(standings) > 1 and not state.open and not state.reported():
        found.append(
            f"configuration {standings[0].configuration} is the best of {len(standings)} on the "
            "seeds that chose it, so its mean is too good; measure it on fresh seeds: "
            f"{program} sweep {shlex.quote(state.sweep.name)} --report"
        )
    return found


def _halving(state: State) -> list[str]:
    ends = rounds(state.sweep.definition)
    said = [
        f"halving: after {plural(ends[at - 1], 'seed')}, {len(dropped)} of "
        f"{len(dropped) + _left(state, at)} configurations got no more seeds"
        for at, dropped in state.dropped.items()
    ]
    counts = {one.seeds for one in state.standings()}
    if state.dropped and len(counts) > 1:
        said.append(
            f"budgets are unequal: configurations have {min(counts)} to {max(counts)} seeds, "
            "because halving stopped the others"
        )
    return said


def _left(state: State, number: int) -> int:
    gone = sum(len(dropped) for at, dropped in state.dropped.items() if at <= number)
    return state.sweep.definition.configurations - gone


def _unfinished(state: State) -> list[str]:
    if not state.open:
        return []
    blocks = plural(len(state.open), "block")
    if state.is_over_budget:
        spent = duration(state.spent_seconds)
        return [f"the budget is used up ({spent} of running time); not run: {blocks}"]
    return [f"not finished: {blocks}"]


_BUDGET = ("sweep", "search", "configurations", "seeds", "env steps", "seconds")


def compared_budgets(states: Sequence[State]) -> list[dict[str, Any]]:
    """Return what each sweep spent on tuning."""
    return [_budget(state) for state in states]


def _budget(state: State) -> dict[str, Any]:
    standings = state.standings()
    steps = [one.env_steps for one in standings]
    return {
        "sweep": state.sweep.name,
        "search": state.sweep.definition.search,
        "configurations": len(standings),
        "seeds": sum(one.seeds for one in standings),
        "env steps": None if None in steps else sum(step for step in steps if step is not None),
        "seconds": round(sum(one.seconds for one in standings), 1),
    }


def _verdict(budgets: Budgets) -> str:
    """Return a sentence that says whether all methods had the same budget."""
    different = [name for name in _BUDGET[1:5] if len({str(row[name]) for row in budgets}) > 1]
    if not different:
        return "the budgets are equal: the same search, configurations, seeds and env steps"
    return (
        f"the budgets are unequal ({', '.join(different)} differ): the method with more tuning has "
        "an advantage that is not its own"
    )
