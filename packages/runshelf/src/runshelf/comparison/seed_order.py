"""The seeds of a sequential test in their registered order, without gaps.

A look at the seeds that happen to end first would leave out the slow ones, and the decision would
change when they end. A look therefore waits for each seed up to its last one.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

from runshelf.comparison.seed_values import SeedValue
from runshelf.comparison.sides import Side


@final
class SeedOrder(NamedTuple):
    """The seeds of one group by their numbers.

    Attributes:
        first: the first registered seed.
        ended: the values of the seeds that have ended.
        running: the seeds that still run.
    """

    first: int
    ended: dict[int, SeedValue]
    running: set[int]

    @property
    def complete(self) -> list[SeedValue]:
        """The values from the first seed up to the first one that has not ended."""
        numbers = itertools.takewhile(self.ended.__contains__, itertools.count(self.first))
        return [self.ended[number] for number in numbers]

    def awaited(self, lacking: int) -> list[int]:
        """Return the seeds that have not ended among the next `lacking` after the complete ones."""
        begin = self.first + len(self.complete)
        return [seed for seed in range(begin, begin + lacking) if seed not in self.ended]


def seed_order(side: Side, env: str, ended: Sequence[SeedValue], first: int) -> SeedOrder:
    """Return the seeds of a side from a first one on.

    Runs of unknown seeds take the free numbers, in the order in which they were created.

    Args:
        side: the side.
        env: the environment of the test; empty if no run has ended.
        ended: the values of the seeds that have ended there.
        first: the first registered seed.
    """
    known = {one.seed: one for one in ended if one.seed is not None and one.seed >= first}
    unknown: dict[str, SeedValue | None] = {
        one.folder.name: one for one in ended if one.seed is None
    }
    pending = list(_running(side, env))
    running = {seed for _, seed in pending if seed is not None} - known.keys()
    unknown |= {ulid: None for ulid, seed in pending if seed is None}
    return _with_unknown(
        SeedOrder(first, known, running), [one for _, one in sorted(unknown.items())]
    )


def _with_unknown(order: SeedOrder, unknown: Sequence[SeedValue | None]) -> SeedOrder:
    """Return an order in which runs of unknown seeds have numbers; None is one that still runs."""
    taken = order.ended.keys() | order.running
    free = (seed for seed in itertools.count(order.first) if seed not in taken)
    placed = dict(zip(free, unknown, strict=False))
    return SeedOrder(
        order.first,
        order.ended | {seed: one for seed, one in placed.items() if one is not None},
        order.running | {seed for seed, one in placed.items() if one is None},
    )


def _running(side: Side, env: str) -> Iterator[tuple[str, int | None]]:
    """Yield the id and each seed of the runs that have not ended; None for an unknown seed."""
    for row in side.rows:
        if row.state == "running" and (not env or row.env in (env, None)):
            for seed in row.seeds or [None]:
                yield row.ulid, seed


def ranges(seeds: Sequence[int]) -> list[range]:
    """Return sorted seeds as ranges of consecutive ones."""
    found: list[range] = []
    for seed in seeds:
        if found and found[-1].stop == seed:
            found[-1] = range(found[-1].start, seed + 1)
        else:
            found.append(range(seed, seed + 1))
    return found


def in_words(seeds: Sequence[int]) -> str:
    """Return sorted seeds in words: `seed 3`, `seeds 3, 5 to 9`."""
    parts = [str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in ranges(seeds)]
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(parts)}"
