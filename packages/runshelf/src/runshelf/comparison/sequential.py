"""Whether more seeds are needed: the looks of a registration, and the next batch of seeds."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, final

from runshelf.comparison.adastop import Look, Pair, looks_at
from runshelf.comparison.analysis import plan_of
from runshelf.comparison.fairness import check_tuning, notes_on
from runshelf.comparison.registered import Registered, beside_registration
from runshelf.comparison.result import Better
from runshelf.comparison.seed_values import SeedValue, SideValues, values_of
from runshelf.comparison.sides import Side
from runshelf.errors import UsageError
from runshelf.formatting import number, plural
from runshelf.registrations.kept import Kept
from runshelf.registrations.registration import Registration


@final
class Verdict(NamedTuple):
    """What the looks so far say.

    Attributes:
        registered: the registration, with deviations.
        env: the environment; empty without runs.
        looks: the looks that were possible.
        undecided: the pairs without a shown difference.
        goes_on: whether more seeds are needed.
        next_seeds: the seeds to run next, by group.
        sentences: the verdict in words.
        notes: what a reader must know about the seeds.
    """

    registered: Registered
    env: str
    looks: list[Look]
    undecided: list[Pair]
    goes_on: bool
    next_seeds: dict[str, list[int]]
    sentences: list[str]
    notes: list[str]


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
    with_runs = [side for side in sides if side.rows]
    values = values_of(with_runs, one.metric, one.window) if with_runs else []
    notes = check_tuning(values, allowed=allow_tuning) + notes_on(values, one.metric)
    env = _environment(values)
    seeds = {side.label: list[SeedValue]() for side in sides}
    seeds |= {of.side.label: _ordered(of.values.get(env, []), one) for of in values}
    counted = _counted(seeds, plan_of(one).better)
    looks = looks_at(counted, looks=one.looks, seeds_per_look=one.seeds_per_look, alpha=one.alpha)
    rejected = {pair for look in looks for pair in look.rejected}
    undecided = [pair for pair in combinations(counted, 2) if pair not in rejected]
    goes_on = bool(undecided) and len(looks) < one.looks
    registered = beside_registration(home, kept.name, values, version=kept.version, sequential=True)
    return Verdict(
        registered,
        env,
        looks,
        undecided,
        goes_on,
        _next(seeds, undecided, looks, one) if goes_on else {},
        _sentences(looks, undecided, one, plan_of(one).better, goes_on=goes_on),
        notes,
    )


def _environment(values: Sequence[SideValues]) -> str:
    envs = list(dict.fromkeys(env for one in values for env in one.values))
    if len(envs) > 1:
        raise UsageError(
            f"a sequential test is about one environment, the groups have {', '.join(envs)}: name "
            "filters such as 'group=A env=CartPole-v1'"
        )
    return envs[0] if envs else ""


def _ordered(seeds: Sequence[SeedValue], one: Registration) -> list[SeedValue]:
    """Return the seeds from the first registered one on, in order: the order of the looks."""
    return [seed for seed in seeds if seed.seed is None or seed.seed >= one.first_seed]


def _counted(seeds: Mapping[str, Sequence[SeedValue]], better: Better) -> dict[str, list[float]]:
    """Return the values of the seeds; a failure has the worst value of all."""
    known = [one.value for of in seeds.values() for one in of if math.isfinite(one.value)]
    floor = (min if better == "higher" else max)(known, default=0.0)
    return {label: [floor if s.failure else s.value for s in of] for label, of in seeds.items()}


def _next(
    seeds: Mapping[str, Sequence[SeedValue]],
    undecided: Sequence[Pair],
    looks: Sequence[Look],
    one: Registration,
) -> dict[str, list[int]]:
    """Return the seeds that the next look lacks, of the groups that are still tested."""
    wanted = (len(looks) + 1) * one.seeds_per_look
    found: dict[str, list[int]] = {}
    for label in dict.fromkeys(label for pair in undecided for label in pair):
        lacking = wanted - len(seeds[label])
        taken = [seed.seed for seed in seeds[label] if seed.seed is not None]
        # A run whose seed is unknown has taken one of the numbers.
        first = max([one.first_seed + len(seeds[label]) - 1, *taken]) + 1
        if lacking > 0:
            found[label] = list(range(first, first + lacking))
    return found


def _sentences(
    looks: Sequence[Look],
    undecided: Sequence[Pair],
    one: Registration,
    better: Better,
    *,
    goes_on: bool,
) -> list[str]:
    found: list[str] = []
    for look in looks:
        for pair in look.rejected:
            gap = look.differences[pair]
            best, rest = pair if (gap > 0) == (better == "higher") else pair[::-1]
            found.append(
                f"look {look.number}, {look.seeds} seeds: {best} is better than {rest}, the means "
                f"differ by {number(abs(gap))} (more than {number(look.boundary)})"
            )
    pairs = ", ".join(f"{a} and {b}" for a, b in undecided)
    if goes_on:
        done = f"after {plural(len(looks), 'look')} of {one.looks}" if looks else "no look yet"
        found.append(f"go on: {done}, no difference is shown between {pairs}")
    elif undecided:
        found.append(
            f"stop: after all {plural(one.looks, 'look')}, no difference is shown between {pairs}. "
            "That does not show that they are equal"
        )
    else:
        found.append("stop: every difference is shown")
    return found
