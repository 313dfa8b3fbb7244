"""Compares the metrics of two runs: the step until which they are bit-identical, and summaries."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from runshelf.store.machine_metrics import is_of_machine
from runshelf.store.series import Series, metric_names, read_series
from runshelf.store.summary import Summary, summarise

AXIS = "step"
_NO_SUMMARY = Summary(math.nan, math.nan, math.nan, math.nan, 0)  # if `summary.json` lacks a metric


@final
class MetricDiff(NamedTuple):
    """The difference of one metric between two runs.

    Attributes:
        name: the metric.
        identical_until: the last step until which both runs have the same values for all seeds;
            None if the first values differ.
        differs: whether a value differs; False if the runs only differ in length, or not at all.
        counts: the number of values of each run.
        last: the last value of each run.
        mean: the mean value of each run.
    """

    name: str
    identical_until: float | None
    differs: bool
    counts: tuple[int, int]
    last: tuple[float, float]
    mean: tuple[float, float]


@final
class MetricsDiff(NamedTuple):
    """The differences between the metrics of two runs.

    Attributes:
        metrics: the metrics that both runs have, by name.
        only: the names of metrics that only the first and only the second run has.
        identical_until: the last step until which all metrics are identical, not counting those in
            `from_the_start`; None if no metric ever is.
        never_differed: whether no value differs at all.
        from_the_start: the names of metrics whose first values differ; mostly measured times.
        left_out: the number of common metrics that were not compared, because of the limit.
        of_machine: the number of metrics of the machine and of speed, which are not compared.
    """

    metrics: list[MetricDiff]
    only: tuple[list[str], list[str]]
    identical_until: float | None
    never_differed: bool
    from_the_start: list[str]
    left_out: int
    of_machine: int = 0

    @property
    def first_apart(self) -> list[str]:
        """The names of metrics that differ right after `identical_until`."""
        return [
            metric.name
            for metric in self.metrics
            if metric.differs and metric.identical_until == self.identical_until is not None
        ]


def diff_metrics(one: Path, other: Path, most: int | None = None) -> MetricsDiff:
    """Compare the metrics of two runs, except those of the machine and of speed.

    Args:
        one: the folder of the first run.
        other: the folder of the second run.
        most: the maximum number of metrics to compare, in the order of their names; default all.

    Raises:
        UserFacingError: a file cannot be read.
    """
    names = [set(metric_names(folder)) for folder in (one, other)]
    measured = {name for name in set[str]().union(*names) if is_of_machine(name)}
    ours, theirs = (found - measured for found in names)
    shared = sorted(ours & theirs)
    common = shared[:most]
    both = summarise(one), summarise(other)
    one_series, other_series = read_series(one, common, AXIS), read_series(other, common, AXIS)
    metrics = [
        _diff(name, one_series[name], other_series[name], [s.get(name, _NO_SUMMARY) for s in both])
        for name in common
    ]
    began_alike = [metric for metric in metrics if metric.identical_until is not None]
    return MetricsDiff(
        metrics=metrics,
        only=(sorted(ours - theirs), sorted(theirs - ours)),
        identical_until=_until_all(began_alike),
        never_differed=bool(metrics) and not any(metric.differs for metric in metrics),
        from_the_start=[metric.name for metric in metrics if metric.identical_until is None],
        left_out=len(shared) - len(common),
        of_machine=len(measured),
    )


def _until_all(metrics: list[MetricDiff]) -> float | None:
    """Return the last step until which all metrics are identical."""
    ends = [(m.identical_until, m.differs) for m in metrics if m.identical_until is not None]
    differing = [end for end, differs in ends if differs]
    return min(differing, default=max((end for end, _ in ends), default=None))


def _diff(
    name: str,
    one: Mapping[int | None, Series],
    other: Mapping[int | None, Series],
    summaries: Sequence[Summary],
) -> MetricDiff:
    seeds = [seed for seed in one if seed in other]
    common = [_common(one[seed], other[seed]) for seed in seeds]
    differs = not seeds or any(differ for _, differ in common)
    ends = [end for end, differ in common if differ == differs]
    known = [end for end in ends if end is not None]
    first, last = min(known, default=None), max(known, default=None)
    until = None if len(known) < len(ends) else first if differs else last
    ours, theirs = summaries
    return MetricDiff(
        name,
        until,
        differs,
        counts=(ours.count, theirs.count),
        last=(ours.last, theirs.last),
        mean=(ours.mean, theirs.mean),
    )


def _common(one: Series, other: Series) -> tuple[float | None, bool]:
    """Return the last x until which two series are identical, and whether a later value differs."""
    length = min(len(one.x), len(other.x))
    same = np.ones(length, bool)
    for ours, theirs in ((one.x, other.x), (one.y, other.y)):
        a, b = ours[:length], theirs[:length]
        same &= a.view(np.int64) == b.view(np.int64)
    differing = np.flatnonzero(~same)
    alike = int(differing[0]) if len(differing) else length
    return (float(one.x[alike - 1]) if alike else None), bool(len(differing))
