"""Whether more seeds are needed: the looks of a registration, and the next batch of seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from runshelf.comparison.analysis import plan_of
from runshelf.comparison.fairness import check_tuning, notes_on
from runshelf.comparison.references import Better
from runshelf.comparison.registered import Registered, beside_registration
from runshelf.comparison.seed_order import SeedOrder, in_words, seed_order
from runshelf.comparison.seed_values import SeedValue, SideValues, values_of
from runshelf.comparison.sides import Side
from runshelf.errors import UsageError
from runshelf.formatting import plural
from runshelf.registrations.kept import Kept
from runshelf.registrations.registration import Registration
from runshelf.statistics.sequential import Pair, SequentialPlan, SequentialState, decide


@final
class Verdict(NamedTuple):
    """What the looks so far say.

    Attributes:
        registered: the registration, with the departures from it.
        env: the environment; empty without runs.
        state: the decisions, and how many seeds are needed.
        next_seeds: the seeds to run next, by group.
        running: the seeds that still run and that the next look waits for, by group.
        sentences: the verdict in words.
        notes: what a reader must know about the seeds.
    """

    registered: Registered
    env: str
    state: SequentialState
    next_seeds: dict[str, list[int]]
    running: dict[str, list[int]]
    sentences: list[str]
    notes: list[str]

    @property
    def goes_on(self) -> bool:
        """Whether more seeds are needed."""
        return not self.state.finished

    @property
    def undecided(self) -> list[Pair]:
        """The pairs without a shown difference."""
        return [
            pair
            for pair, decision in self.state.decisions.items()
            if decision in ("undecided", "equal")
        ]


def verdict(home: Path, kept: Kept, sides: Sequence[Side], *, allow_tuning: bool) -> Verdict:
    """Return what the looks so far say.

    Args:
        home: the home that keeps the registration.
        kept: the registration.
        sides: the groups; one without runs has no rows.
        allow_tuning: whether seeds on which settings were chosen may be used.

    Raises:
        UsageError: the registration has no looks, or the groups have several environments.
    """
    one = kept.registration
    if one.looks < 2:
        raise UsageError(
            f"`{kept.name}` registers one look at {one.n} seeds, no sequential test: register "
            "--looks 2 or more for --sequential"
        )
    with_ended = [side for side in sides if any(row.state != "running" for row in side.rows)]
    values = values_of(with_ended, one.metric, one.window) if with_ended else []
    notes = check_tuning(values, allowed=allow_tuning) + notes_on(values, one.metric)
    env = _environment(values)
    ended = {of.side.label: of.values.get(env, []) for of in values}
    orders = {
        side.label: seed_order(side, env, ended.get(side.label, []), one.first_seed)
        for side in sides
    }
    complete = {label: order.complete for label, order in orders.items()}
    state = decide(_plan(one), _scores(kept, complete))
    registered = beside_registration(home, kept.name, values, version=kept.version, sequential=True)
    next_seeds, running = _awaited(orders, state)
    lines = _sentences(state, one, plan_of(one).better)
    lines += _waiting(state, next_seeds, running)
    return Verdict(registered, env, state, next_seeds, running, lines, notes)


def _plan(one: Registration) -> SequentialPlan:
    return SequentialPlan(one.looks, one.seeds_per_look, one.alpha, one.failure_value)


def _scores(kept: Kept, seeds: Mapping[str, Sequence[SeedValue]]) -> dict[str, np.ndarray]:
    """Return the values of each group, NaN for failures.

    Raises:
        UsageError: a seed failed, and it is not registered what failures count as.
    """
    failed = [f"{label} {one.name}" for label, of in seeds.items() for one in of if one.failure]
    if failed and kept.registration.failure_value is None:
        raise UsageError(
            f"{failed[0]} failed, and `{kept.name}` does not register what a failure counts as: a "
            "value taken from the seeds could change earlier looks; supersede it with "
            "--failure-value X, such as the return of a random policy"
        )
    return {
        label: np.array([np.nan if one.failure else one.value for one in of], float)
        for label, of in seeds.items()
    }


def _environment(values: Sequence[SideValues]) -> str:
    envs = list(dict.fromkeys(env for one in values for env in one.values))
    if len(envs) > 1:
        raise UsageError(
            f"a sequential test is about one environment, the groups have {', '.join(envs)}: name "
            "filters such as 'group=A env=CartPole-v1'"
        )
    return envs[0] if envs else ""


def _awaited(
    orders: Mapping[str, SeedOrder], state: SequentialState
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the seeds that the next look lacks, by group: those to start, and those that run."""
    to_start: dict[str, list[int]] = {}
    running: dict[str, list[int]] = {}
    for label, lacking in state.needed.items():
        order = orders[label]
        for seed in order.awaited(lacking):
            kind = running if seed in order.running else to_start
            kind.setdefault(label, []).append(seed)
    return to_start, running


def _waiting(
    state: SequentialState,
    next_seeds: Mapping[str, Sequence[int]],
    running: Mapping[str, Sequence[int]],
) -> list[str]:
    """Return for each group which seeds the next look waits for, in words."""
    found: list[str] = []
    for label in state.needed:
        parts: list[str] = []
        if of := running.get(label):
            parts.append(f"{in_words(of)} still run{'s' if len(of) == 1 else ''}")
        if of := next_seeds.get(label):
            parts.append(f"{in_words(of)} {'has' if len(of) == 1 else 'have'} no run")
        found.append(f"look {state.looks_done + 1} waits for {label}: {'; '.join(parts)}")
    return found


def _sentences(state: SequentialState, one: Registration, better: Better) -> list[str]:
    found: list[str] = []
    for pair, decision in state.decisions.items():
        if decision in ("better", "worse"):
            is_first = (decision == "better") == (better == "higher")
            best, rest = pair if is_first else pair[::-1]
            look = state.decided_at[pair]
            found.append(
                f"look {look}, {look * one.seeds_per_look} seeds: {best} is better than {rest}"
            )
    open_pairs = [p for p, d in state.decisions.items() if d in ("undecided", "equal")]
    pairs = ", ".join(f"{a} and {b}" for a, b in open_pairs)
    if not state.finished:
        done = f"after {plural(state.looks_done, 'look')} of {one.looks}"
        done = done if state.looks_done else "no look yet"
        found.append(f"go on: {done}, no difference is shown between {pairs}")
    elif open_pairs:
        found.append(
            f"stop: after all {plural(one.looks, 'look')}, no difference is shown between {pairs}. "
            "That does not show that they are equal"
        )
    else:
        found.append("stop: every difference is shown")
    first = _plan(one).first_decisive_look
    if first is None or state.looks_done < first:
        when = "at no look" if first is None else f"from look {first} on"
        found.append(f"with {one.seeds_per_look} seeds a look, a difference can be shown {when}")
    return found
