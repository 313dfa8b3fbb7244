"""Ranks configurations by their metric, with intervals, and finds runs that are identical."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from runshelf.comparison.analysis import better_direction
from runshelf.formatting import plural
from runshelf.statistics.intervals import mean_interval
from runshelf.sweeps.blocks import Purpose
from runshelf.sweeps.definition import Definition
from runshelf.sweeps.results import BlockResult
from runshelf.sweeps.space import Values


@final
@dataclass(frozen=True)
class Standing:
    """A configuration with its scores.

    Attributes:
        configuration: its number.
        values: its values.
        scores: the metric by seed; NaN for a seed that failed.
        mean: the mean over the seeds that did not fail; NaN without any.
        low: the lower end of the 95 % interval of the mean; NaN with fewer than two seeds.
        high: the upper end.
        failed: the number of seeds that failed.
        seconds: how long its runs took.
        env_steps: env steps of its runs; None if a run does not say.
        runs: the ids of its runs.
    """

    configuration: int
    values: Values
    scores: Mapping[int, float]
    mean: float
    low: float
    high: float
    failed: int
    seconds: float
    env_steps: int | None
    runs: tuple[str, ...]

    @property
    def seeds(self) -> int:
        """The number of seeds, failed ones included."""
        return len(self.scores)


def is_minimised(definition: Definition, results: Iterable[BlockResult]) -> bool:
    """Return whether smaller scores are better: as the user says, else as usual for the metric."""
    if definition.minimise is not None:
        return definition.minimise
    measured = next((one.metric for one in results if one.metric), "")
    return better_direction(definition.metric or measured) == "lower"


def ranked(
    definition: Definition, results: Collection[BlockResult], purpose: Purpose
) -> list[Standing]:
    """Return the configurations, the best first; one with failed seeds comes after all others.

    With halving, a configuration that got more seeds comes before one that was stopped.
    """
    by_number: dict[int, list[BlockResult]] = defaultdict(list)
    for one in results:
        if one.purpose == purpose:
            by_number[one.configuration].append(one)
    found = [_standing(number, blocks) for number, blocks in by_number.items()]
    sign = 1.0 if is_minimised(definition, results) else -1.0

    def order(one: Standing) -> tuple[float, float, float, int]:
        mean = math.inf if math.isnan(one.mean) else sign * one.mean
        stopped = -one.seeds if definition.halving else 0
        return one.failed / max(one.seeds, 1), stopped, mean, one.configuration

    return sorted(found, key=order)


def _standing(number: int, blocks: Sequence[BlockResult]) -> Standing:
    scores = {
        seed: one.score_of(seed)
        for one in sorted(blocks, key=lambda one: one.first_seed)
        for seed in range(one.first_seed, one.first_seed + one.seeds)
    }
    values = np.array(list(scores.values()), float)
    there = values[np.isfinite(values)]
    found = mean_interval(there[:, None]) if len(there) else None
    mean, low, high = (
        (float(found.centre[0]), float(found.low[0]), float(found.high[0]))
        if found
        else (math.nan,) * 3
    )
    steps = [one.env_steps for one in blocks]
    return Standing(
        configuration=number,
        values=blocks[0].values,
        scores=scores,
        mean=mean,
        low=low,
        high=high,
        failed=len(values) - len(there),
        seconds=sum(one.seconds for one in blocks),
        env_steps=None if None in steps else sum(one for one in steps if one is not None),
        runs=tuple(one.run for one in blocks if one.run),
    )


def identical_runs(results: Iterable[BlockResult]) -> list[str]:
    """Return a sentence for each way in which runs that should differ are identical.

    Two runs are identical if everything they measured is, apart from times. A single constant
    number, such as a perfect score, may be so by chance, and the sentences say so.
    """
    seeds: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    same_seed: dict[tuple[int, str], set[int]] = defaultdict(set)
    values: dict[int, Values] = {}
    for one in results:
        values[one.configuration] = one.values
        for seed, digest in one.digests.items():
            seeds[one.configuration][digest].append(seed)
            same_seed[seed, digest].add(one.configuration)
    found = _over_seeds(seeds)
    pairs = {tuple(sorted(found)) for found in same_seed.values() if len(found) > 1}
    return found + [_over_values(group, values) for group in sorted(pairs)[:3]]


def _over_seeds(seeds: Mapping[int, Mapping[str, Sequence[int]]]) -> list[str]:
    repeated = [
        (number, same)
        for number, digests in seeds.items()
        for same in digests.values()
        if len(same) > 1
    ]
    if not repeated:
        return []
    number, same = repeated[0]
    return [
        f"identical runs: seeds {', '.join(map(str, sorted(same)[:4]))} of configuration {number} "
        f"measured exactly the same ({plural(len(repeated), 'such group')}): does the program use "
        "its seed? If not, these seeds are not independent, and the intervals are too narrow"
    ]


def _over_values(group: Sequence[int], values: Mapping[int, Values]) -> str:
    first = values[group[0]]
    names = [n for n in first if any(values[one][n] != first[n] for one in group[1:])]
    return (
        f"identical runs: configurations {', '.join(map(str, group[:4]))} measured exactly the "
        f"same on the same seeds, although `{'`, `'.join(names)}` differ: does the program use "
        "them?"
    )
