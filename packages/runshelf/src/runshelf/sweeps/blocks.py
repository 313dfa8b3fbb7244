"""Blocks: some seeds of one configuration, run by one process; and which blocks a sweep has.

Which blocks there are depends only on `sweep.json`, on the request for a report, and on the results
so far, so every worker computes the same ones.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, final

from runshelf.sweeps.definition import MOST_BLOCK_SEEDS, Definition
from runshelf.sweeps.template import takes_many_seeds

Purpose = Literal["tuning", "report"]


@final
class Block(NamedTuple):
    """Some seeds of one configuration.

    Attributes:
        name: its name within the sweep.
        purpose: whether it tunes or reports.
        configuration: the number of the configuration.
        first_seed: the first seed.
        seeds: the number of seeds.
        round: the round of successive halving; 0 without it.
    """

    name: str
    purpose: Purpose
    configuration: int
    first_seed: int
    seeds: int
    round: int = 0


@final
class ReportPlan(NamedTuple):
    """Which configurations a report runs on fresh seeds.

    Attributes:
        configurations: their numbers.
        seeds: the seeds of each.
    """

    configurations: tuple[int, ...]
    seeds: int


def usual_block_seeds(command: Sequence[str], seeds: int) -> int:
    """Return the seeds of a block if none are named: one for each process, or up to 50."""
    return min(seeds, MOST_BLOCK_SEEDS) if takes_many_seeds(command) else 1


def rounds(definition: Definition) -> list[int]:
    """Return the seeds that a configuration has after each round.

    Without halving there is one round. With η, round k of R has ⌈seeds / η^(R - k)⌉ seeds, where R
    is the largest number with η^R ≤ min(configurations, seeds).

    Source: Jamieson & Talwalkar 2016, arXiv:1502.07943, with seeds as the budget.
    """
    if not definition.halving:
        return [definition.seeds]
    rate, most = definition.halving, min(definition.configurations, definition.seeds)
    last = 0
    while rate ** (last + 1) <= most:
        last += 1
    return [math.ceil(definition.seeds / rate ** (last - k)) for k in range(last + 1)]


def survivors(definition: Definition, number: int) -> int:
    """Return how many configurations round `number` has."""
    return max(definition.configurations // max(definition.halving, 1) ** number, 1)


def tuning_blocks(
    definition: Definition, number: int, configurations: Sequence[int]
) -> Iterator[Block]:
    """Yield the blocks of one round, the first seeds of every configuration first."""
    ends = rounds(definition)
    begin = ends[number - 1] if number else 0
    yield from _blocks("tuning", definition, configurations, (begin, ends[number]), number)


def report_blocks(definition: Definition, plan: ReportPlan) -> Iterator[Block]:
    """Yield the blocks of a report."""
    yield from _blocks("report", definition, plan.configurations, (0, plan.seeds), 0)


def _blocks(
    purpose: Purpose,
    definition: Definition,
    configurations: Sequence[int],
    seeds: tuple[int, int],
    number: int,
) -> Iterator[Block]:
    start = definition.report_seed if purpose == "report" else definition.tuning_seed
    letter = "r" if purpose == "report" else "t"
    for first in range(seeds[0], seeds[1], definition.block_seeds):
        count = min(definition.block_seeds, seeds[1] - first)
        for one in configurations:
            name = f"{letter}{one:04}-{first:04}"
            yield Block(name, purpose, one, start + first, count, number)
