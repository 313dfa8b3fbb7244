"""Metrics as curves: their names, values over an axis, and buckets of them.

A metric is any numeric field of a record but the axes and the seed. Nothing is sampled at random.
"""

import math
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

# What stands in for an axis that some record of a metric lacks; at last its position.
_INSTEAD = {
    "step": ("step", "env_steps", "updates"),
    "time": ("time", "seconds"),
    "seconds": ("seconds", "time"),
}


class Series(NamedTuple):
    """One metric of one seed, ordered by x, then by when it was recorded.

    Attributes:
        x: where on the axis.
        y: the values.
    """

    x: Float64[np.ndarray, " n"]
    y: Float64[np.ndarray, " n"]


@final
@dataclass(frozen=True)
class Buckets:
    """A series in buckets of equal width in x; those without any value are left out.

    Attributes:
        x: mean x of the values in the bucket.
        minimum: the smallest; NaN where all are NaN, and so with the next three.
        maximum: the largest.
        mean: the mean.
        last: the last.
        count: how many values there are, not counting NaN.
        nans: how many are NaN, and no part of the above.
    """

    x: Float64[np.ndarray, " buckets"]
    minimum: Float64[np.ndarray, " buckets"]
    maximum: Float64[np.ndarray, " buckets"]
    mean: Float64[np.ndarray, " buckets"]
    last: Float64[np.ndarray, " buckets"]
    count: Int64[np.ndarray, " buckets"]
    nans: Int64[np.ndarray, " buckets"]


def metric_names(folder: Path) -> list[str]:
    """Return the names of the metrics of the run in `folder`, sorted.

    Raises:
        UserFacingError: a file cannot be read.
    """
    return sorted(read_columns(folder).keys() - NOT_METRICS)


def axes(folder: Path) -> list[str]:
    """Return which axes the records of the run in `folder` have, in the order of `AXES`.

    Raises:
        UserFacingError: a file cannot be read.
    """
    columns = read_columns(folder)
    return [axis for axis in AXES if axis in columns]


def first_time(folder: Path) -> float | None:
    """Return the time of the first record of the run in `folder`; None if no record has a time.

    Raises:
        UserFacingError: a file cannot be read.
    """
    return _first_time(read_columns(folder))


def read_series(
    folder: Path, metrics: Sequence[str], axis: str
) -> dict[str, dict[int | None, Series]]:
    """Return metrics over an axis, by metric, then by seed; None where records have no seed.

    Where some record of a metric lacks the axis `step`, `env_steps` stands in for it, else
    `updates`, else the position among the metric's values; `time` and `seconds` stand in for each
    other. Of another axis, records without it are left out. `time` counts from the first record of
    the run. Where records repeat a seed's update after a resume, the last counts.

    Args:
        folder: the run's folder.
        metrics: their names; one that the run has not has no seeds.
        axis: one of `AXES`.

    Raises:
        UsageError: there is no such axis.
        UserFacingError: a file cannot be read.
    """
    if axis not in AXES:
        raise UsageError(f"there is no axis `{axis}`{did_you_mean(axis, AXES)}: use {AXES}")
    columns = read_columns(folder)
    return {metric: over(columns, metric, axis) for metric in metrics}


def over(columns: Mapping[str, Column], metric: str, axis: str) -> dict[int | None, Series]:
    """Return one metric over an axis, by seed; see `read_series`."""
    if metric not in columns:
        return {}
    rows, y = columns[metric]
    along = _along(columns, rows, axis)
    x, has_x = along or (rows, np.ones(len(rows), np.bool_))
    series: dict[int | None, Series] = {}
    for seed, is_of_seed in _seeds(columns, rows):
        points = np.flatnonzero(has_x & is_of_seed)
        if len(points):
            ordered = points[np.argsort(x[points], kind="stable")]
            at = x[ordered] if along else np.arange(len(points))
            series[seed] = Series(at.astype(np.float64), y[ordered].astype(np.float64))
    return series


def bucket(series: Series, buckets: int) -> Buckets:
    """Return `series` in at most `buckets` buckets that divide its range of x equally.

    A value at x falls into bucket ⌊(x - x₀) / (x₁ - x₀) · buckets⌋, x₀ the least and x₁ the
    greatest x; x₁ itself falls into the last. Values at an x that is not finite are left out.
    """
    series = Series(*(column[np.isfinite(series.x)] for column in series))
    index = _bucket_of(series.x, buckets)
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    if not len(starts):
        none = np.zeros(0)
        whole = none.astype(np.int64)
        return Buckets(none, none, none, none, none, whole, whole)
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


def _along(
    columns: Mapping[str, Column], rows: np.ndarray, axis: str
) -> tuple[np.ndarray, Bool[np.ndarray, " n"]] | None:
    """Return where some rows are on an axis, and which are there; None if their position counts."""
    instead = [name for name in _INSTEAD.get(axis, (axis,)) if name in columns]
    found = {name: columns[name].at(rows) for name in instead}
    whole = [name for name in instead if found[name][1].all()]
    some = [] if axis == "step" else [name for name in instead if found[name][1].any()]
    for name in whole + some:
        x, has = found[name]
        return (x - (_first_time(columns) or 0.0) if name == "time" else x), has
    return None if axis == "step" else (rows, np.zeros(len(rows), np.bool_))


def _first_time(columns: Mapping[str, Column]) -> float | None:
    times = columns["time"].values if "time" in columns else np.zeros(0)
    known = times[np.isfinite(times)]
    return float(known.min()) if len(known) else None


def _seeds(
    columns: Mapping[str, Column], rows: np.ndarray
) -> Iterator[tuple[int | None, Bool[np.ndarray, " n"]]]:
    """Yield each seed with a mask of its rows; None for rows without a seed."""
    none = Column(np.zeros(0, np.int64), np.zeros(0))
    seed, has = columns.get(SEED, none).at(rows)
    has = has & np.isfinite(seed)  # a seed logged as NaN or infinity is no seed
    for one in np.unique(seed[has]).tolist():
        yield int(one), has & (seed == one)
    if not has.all():
        yield None, ~has


def _bucket_of(x: Float64[np.ndarray, " n"], buckets: int) -> Int64[np.ndarray, " n"]:
    if not len(x) or x[0] == x[-1]:
        return np.zeros(len(x), np.int64)
    # Halved, since the greatest float less the least is no float.
    share = (x / 2 - x[0] / 2) / (x[-1] / 2 - x[0] / 2)
    return np.minimum((share * buckets).astype(np.int64), buckets - 1)
