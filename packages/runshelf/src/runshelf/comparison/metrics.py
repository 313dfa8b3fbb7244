"""The metrics of two runs: up to where they are the same, bit for bit, and their summaries."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from runshelf.store.series import Series, metric_names, read_series
from runshelf.store.summary import Summary, summarise

AXIS = "step"
# Of a metric that a summary of another hand leaves out.
_NONE = Summary(math.nan, math.nan, math.nan, math.nan, 0)


@final
class MetricDiff(NamedTuple):
    """How one metric differs.

    Attributes:
        name: the metric.
        identical_until: the last step up to which both runs have the same values for all seeds;
            None if the first ones differ already.
        differs: a value differs; False if one run only has more of them, or nothing differs.
        counts: how many values each run has.
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
    """How the metrics of two runs differ.

    Attributes:
        metrics: those that both have, by name.
        only: the names of those that one of the two has.
        identical_until: the last step at which all are the same that ever were; None if none was.
        never_differed: whether no value differs at all.
        from_the_start: the names of those whose first values differ already: measurements of time,
            as a rule.
        left_out: how many metrics that both have were not compared.
    """

    metrics: list[MetricDiff]
    only: tuple[list[str], list[str]]
    identical_until: float | None
    never_differed: bool
    from_the_start: list[str]
    left_out: int

    @property
    def first_apart(self) -> list[str]:
        """The names of those that differ right behind the last step at which all are the same."""
        return [
            metric.name
            for metric in self.metrics
            if metric.differs and metric.identical_until == self.identical_until is not None
        ]


def diff_metrics(one: Path, other: Path, most: int | None = None) -> MetricsDiff:
    """Return how the metrics of the runs in two folders differ.

    Args:
        one: the folder of the first.
        other: the folder of the second.
        most: how many metrics are compared, in the order of their names; all by default.

    Raises:
        UserFacingError: a file cannot be read.
    """
    ours, theirs = set(metric_names(one)), set(metric_names(other))
    shared = sorted(ours & theirs)
    common = shared[:most]
    summaries = summarise(one), summarise(other)
    curves = read_series(one, common, AXIS), read_series(other, common, AXIS)
    metrics = [
        _diff(
            name,
            curves[0][name],
            curves[1][name],
            summaries[0].get(name, _NONE),
            summaries[1].get(name, _NONE),
        )
        for name in common
    ]
    began_alike = [metric for metric in metrics if metric.identical_until is not None]
    return MetricsDiff(
        metrics,
        (sorted(ours - theirs), sorted(theirs - ours)),
        _until_all(began_alike),
        bool(metrics) and not any(metric.differs for metric in metrics),
        [metric.name for metric in metrics if metric.identical_until is None],
        len(shared) - len(common),
    )


def _until_all(metrics: list[MetricDiff]) -> float | None:
    """Return the last step at which all are the same: the first of those that come to differ."""
    ends = [metric.identical_until for metric in metrics if metric.identical_until is not None]
    differing = [
        metric.identical_until
        for metric in metrics
        if metric.differs and metric.identical_until is not None
    ]
    return min(differing, default=max(ends, default=None))


def _diff(
    name: str,
    one: Mapping[int | None, Series],
    other: Mapping[int | None, Series],
    ours: Summary,
    theirs: Summary,
) -> MetricDiff:
    seeds = [seed for seed in one if seed in other]
    common = [_common(one[seed], other[seed]) for seed in seeds]
    differs = not seeds or any(differ for _, differ in common)
    ends = [end for end, differ in common if differ == differs]
    known = [end for end in ends if end is not None]
    first, last = min(known, default=None), max(known, default=None)
    until = None if len(known) < len(ends) else first if differs else last
    return MetricDiff(
        name,
        until,
        differs,
        (ours.count, theirs.count),
        (ours.last, theirs.last),
        (ours.mean, theirs.mean),
    )


def _common(one: Series, other: Series) -> tuple[float | None, bool]:
    """Return up to which x two series are the same, and whether a value differs behind it."""
    length = min(len(one.x), len(other.x))
    same = np.ones(length, bool)
    for ours, theirs in ((one.x, other.x), (one.y, other.y)):
        a, b = ours[:length], theirs[:length]
        same &= a.view(np.int64) == b.view(np.int64)
    differing = np.flatnonzero(~same)
    alike = int(differing[0]) if len(differing) else length
    return (float(one.x[alike - 1]) if alike else None), bool(len(differing))
