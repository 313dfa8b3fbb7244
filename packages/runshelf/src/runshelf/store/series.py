"""Metrics as curves: names, values over an axis, and downsampling into buckets.

A metric is any numeric field of a record except the axes and the seed. Nothing is sampled randomly.

Some metrics are NaN where there was nothing to measure, as the mean return of a rollout in which no
episode ended. These are missing values. Any other NaN is a value: something is wrong.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float64, Int64

from runshelf.errors import UsageError, did_you_mean
from runshelf.store.columns import Column
from runshelf.store.metrics import SEED, read_columns

AXES = ("step", "env_steps", "updates", "episodes", "frames", "seconds", "time")
NOT_METRICS = frozenset((*AXES, SEED))

# Means over the episodes that ended, which are NaN if `episodes` is 0 or unknown.
_OF_EPISODES = re.compile(r"(^|/)(episode_(return|length)_\w+|ep_(rew|len)_mean)$")
# NaN if the returns are constant.
_OF_VARIANCES = re.compile(r"(^|/)explained_variance(_mc)?$")

# The axes to try, in order, if some record of a metric lacks the requested axis.
_FALLBACKS = {
    "step": ("step", "env_steps", "updates"),
    "time": ("time", "seconds"),
    "seconds": ("seconds", "time"),
}


class Series(NamedTuple):
    """One metric of one seed, ordered by x, then by time of recording.

    Attributes:
        x: positions on the axis.
        y: the values.
        end: the position of the newest record, which may have had nothing to measure.
    """

    x: Float64[np.ndarray, " n"]
    y: Float64[np.ndarray, " n"]
    end: float = -math.inf


@final
@dataclass(frozen=True)
class Buckets:
    """A series in buckets of equal width in x; empty buckets are left out.

    Minimum, maximum, mean and last ignore NaNs; they are NaN if all values of a bucket are.

    Attributes:
        x: the mean x of the values in a bucket.
        minimum: the smallest value.
        maximum: the largest value.
        mean: the mean value.
        last: the last value.
        count: the number of values that are not NaN.
        nans: the number of NaNs.
    """

    x: Float64[np.ndarray, " buckets"]
    minimum: Float64[np.ndarray, " buckets"]
    maximum: Float64[np.ndarray, " buckets"]
    mean: Float64[np.ndarray, " buckets"]
    last: Float64[np.ndarray, " buckets"]
    count: Int64[np.ndarray, " buckets"]
    nans: Int64[np.ndarray, " buckets"]


def metric_names(folder: Path) -> list[str]:
    """Return the sorted names of the metrics of the run in `folder`.

    Raises:
        UserFacingError: a file cannot be read.
    """
    return sorted(read_columns(folder).keys() - NOT_METRICS)


def axes(folder: Path) -> list[str]:
    """Return the axes that records of the run in `folder` have, in the order of `AXES`.

    Raises:
        UserFacingError: a file cannot be read.
    """
    columns = read_columns(folder)
    return [axis for axis in AXES if axis in columns]


def first_time(folder: Path) -> float | None:
    """Return the earliest time in the records of the run in `folder`; None without any time.

    Raises:
        UserFacingError: a file cannot be read.
    """
    return _first_time(read_columns(folder))


def read_series(
    folder: Path, metrics: Sequence[str], axis: str
) -> dict[str, dict[int | None, Series]]:
    """Return metrics over an axis, by metric and seed; the seed is None for records without one.

    If some record of a metric lacks the axis `step`, `env_steps` is used, else `updates`, else the
    position among the metric's values. `time` and `seconds` replace each other. For other axes,
    records without the axis are left out. `time` is relative to the first record of the run. If
    records repeat a seed's update after a resume, only the last is used.

    Args:
        folder: the run's folder.
        metrics: the names; a metric that the run does not have gives no series.
        axis: one of `AXES`.

    Raises:
        UsageError: the axis is unknown.
        UserFacingError: a file cannot be read.
    """
    if axis not in AXES:
        raise UsageError(f"there is no axis `{axis}`{did_you_mean(axis, AXES)}: use {AXES}")
    columns = read_columns(folder)
    return {metric: series_by_seed(columns, metric, axis) for metric in metrics}


def series_by_seed(
    columns: Mapping[str, Column], metric: str, axis: str
) -> dict[int | None, Series]:
    """Return one metric over an axis by seed; see `read_series`."""
    if metric not in columns:
        return {}
    rows, y = _measured(columns, metric)
    found = _positions(columns, rows, axis)
    x, has_x = found or (rows, np.ones(len(rows), np.bool_))
    ends = _ends(columns, columns[metric].rows, axis)
    series: dict[int | None, Series] = {}
    for seed, of_seed in _seeds(columns, rows):
        points = of_seed[has_x[of_seed]]
        if len(points):
            ordered = points[np.argsort(x[points], kind="stable")]
            at = x[ordered] if found else np.arange(len(points))
            end = max(float(at[-1]), ends.get(seed, -math.inf))
            series[seed] = Series(at.astype(np.float64), y[ordered].astype(np.float64), end)
    return series


def _ends(columns: Mapping[str, Column], rows: np.ndarray, axis: str) -> dict[int | None, float]:
    """Return the largest position of each seed's rows on an axis; empty if rows have none."""
    found = _positions(columns, rows, axis)
    if found is None:
        return {}
    x, has = found
    of_seeds = ((seed, x[of_seed[has[of_seed]]]) for seed, of_seed in _seeds(columns, rows))
    return {seed: float(np.max(at)) for seed, at in of_seeds if len(at)}


def axes_instead(folder: Path, metrics: Sequence[str], axis: str) -> dict[str, list[str]]:
    """Return the metrics that have values, but none along an axis, with the axes that they have.

    `step` is always one of them: it falls back to the order of the values.

    Raises:
        UserFacingError: a file cannot be read.
    """
    columns = read_columns(folder)
    found: dict[str, list[str]] = {}
    for metric in metrics:
        rows = _measured(columns, metric).rows if metric in columns else np.zeros(0)
        if len(rows) and not _lies_along(columns, rows, axis):
            found[metric] = [each for each in AXES if _lies_along(columns, rows, each)]
    return found


def bucket(series: Series, buckets: int) -> Buckets:
    """Return `series` in at most `buckets` buckets that divide its range of x equally.

    A value at x belongs to bucket ⌊(x - x₀) / (x₁ - x₀) · buckets⌋, with x₀ the smallest and x₁ the
    largest x; x₁ itself belongs to the last bucket. Values with non-finite x are left out.
    """
    known = np.isfinite(series.x)
    series = Series(series.x[known], series.y[known])
    index = _bucket_of(series.x, buckets)
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    if not len(starts):
        none = np.zeros(0)
        whole = none.astype(np.int64)
        return Buckets(
            x=none, minimum=none, maximum=none, mean=none, last=none, count=whole, nans=whole
        )
    is_nan = np.isnan(series.y)
    count = np.add.reduceat((~is_nan).astype(np.int64), starts)
    size = np.diff(starts, append=len(index))
    at = np.maximum.reduceat(np.where(is_nan, -1, np.arange(len(index))), starts)
    with np.errstate(all="ignore"):
        total = np.add.reduceat(np.where(is_nan, 0.0, series.y), starts)
        return Buckets(
            x=np.add.reduceat(series.x / np.repeat(size, size), starts),
            minimum=np.fmin.reduceat(series.y, starts),
            maximum=np.fmax.reduceat(series.y, starts),
            mean=np.where(count > 0, total / count, math.nan),
            last=np.where(at >= 0, series.y[at], math.nan),
            count=count,
            nans=size - count,
        )


def _measured(columns: Mapping[str, Column], metric: str) -> Column:
    """Return the rows and values of a metric, without NaNs where there was nothing to measure."""
    rows, y = columns[metric]
    missing = np.isnan(y)
    if not missing.any():
        return Column(rows, y)
    if _OF_EPISODES.search(metric):
        if "episodes" in columns:
            episodes, known = columns["episodes"].at(rows)
            missing &= ~known | (episodes == 0)
    elif not _OF_VARIANCES.search(metric):
        return Column(rows, y)
    return Column(rows[~missing], y[~missing])


def _lies_along(columns: Mapping[str, Column], rows: np.ndarray, axis: str) -> bool:
    found = _positions(columns, rows, axis)
    return found is None or bool(found[1].any())


def _positions(
    columns: Mapping[str, Column], rows: np.ndarray, axis: str
) -> tuple[np.ndarray, Bool[np.ndarray, " n"]] | None:
    """Return positions of rows on an axis and a mask of valid ones; None to use their order."""
    names = [name for name in _FALLBACKS.get(axis, (axis,)) if name in columns]
    found = {name: columns[name].at(rows) for name in names}
    complete = [name for name in names if found[name][1].all()]
    partial = [] if axis == "step" else [name for name in names if found[name][1].any()]
    for name in complete + partial:
        x, has = found[name]
        return (x - (_first_time(columns) or 0.0) if name == "time" else x), has
    return None if axis == "step" else (rows, np.zeros(len(rows), np.bool_))


def _first_time(columns: Mapping[str, Column]) -> float | None:
    times = columns["time"].values if "time" in columns else np.zeros(0)
    known = times[np.isfinite(times)]
    return float(known.min()) if len(known) else None


def _seeds(
    columns: Mapping[str, Column], rows: np.ndarray
) -> Iterator[tuple[int | None, Int64[np.ndarray, " m"]]]:
    """Yield each seed and the positions of its rows; None stands for rows without a seed."""
    none = Column(np.zeros(0, np.int64), np.zeros(0))
    seed, has = columns.get(SEED, none).at(rows)
    has = has & np.isfinite(seed)  # a seed logged as NaN or infinity is not a seed
    seeded = np.flatnonzero(has)
    ordered = seeded[np.argsort(seed[seeded], kind="stable")]
    starts = np.flatnonzero(np.diff(seed[ordered])) + 1
    for of_seed in np.split(ordered, starts) if len(ordered) else ():
        yield int(seed[of_seed[0]]), of_seed
    if not has.all():
        yield None, np.flatnonzero(~has)


def _bucket_of(x: Float64[np.ndarray, " n"], buckets: int) -> Int64[np.ndarray, " n"]:
    if not len(x) or x[0] == x[-1]:
        return np.zeros(len(x), np.int64)
    # Halved, since the difference of the largest and the smallest float overflows.
    share = (x / 2 - x[0] / 2) / (x[-1] / 2 - x[0] / 2)
    return np.minimum((share * buckets).astype(np.int64), buckets - 1)
