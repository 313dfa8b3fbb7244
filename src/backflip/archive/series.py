"""Metrics as curves: what there is, values over an axis, buckets of them, and a summary.

A metric is any numeric field of a record but the axes and the seed. Everything here comes from the
metric files of one run; nothing is sampled at random.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float64, Int64

from backflip.archive.checkpoint import disk_errors, write_whole
from backflip.archive.columns import ONCE, BrokenLine, read_batches, writers
from backflip.archive.metrics import from_json, to_json
from backflip.archive.tables import Batch, Record, Table
from backflip.core.errors import UsageError, did_you_mean

AXES = ("step", "env_steps", "updates", "episodes", "frames", "seconds", "time")
SEED = "seed"
SUMMARY = "summary.json"

# What stands in for an axis that some record of a metric lacks; at last its position.
_INSTEAD = {
    "step": ("step", "env_steps", "updates"),
    "time": ("time", "seconds"),
    "seconds": ("seconds", "time"),
}
_NOT_METRICS = frozenset((*AXES, SEED))
_MEDIA_FILE = re.compile(r"media/[0-9a-f]{64}\.(?:png|webp)")


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


@final
@dataclass(frozen=True)
class Summary:
    """One metric of a run in five numbers.

    Attributes:
        last: the value recorded last, the mean over seeds where there are several.
        minimum: the smallest but NaN; NaN where all are, and so with the next two.
        maximum: the largest.
        mean: the mean.
        count: how many there are, NaN included.
    """

    last: float
    minimum: float
    maximum: float
    mean: float
    count: int


class Media(NamedTuple):
    """An image or a clip of a run.

    Attributes:
        key: what it was logged as.
        kind: which of the two.
        path: the file; it need not exist.
        x: the axes of its record.
        seed: whose it is, if the record says so.
    """

    key: str
    kind: Literal["image", "clip"]
    path: Path
    x: dict[str, float]
    seed: int | None


def metric_names(folder: Path) -> list[str]:
    """Return the names of the metrics of the run in `folder`, sorted.

    Raises:
        BackflipError: a file cannot be read.
    """
    return _metrics(_parts(folder))


def axes(folder: Path) -> list[str]:
    """Return which axes the records of the run in `folder` have, in the order of `AXES`.

    Raises:
        BackflipError: a file cannot be read.
    """
    found = {name for part in _parts(folder) for name in part.names}
    return [axis for axis in AXES if axis in found]


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
        BackflipError: a file cannot be read.
    """
    if axis not in AXES:
        raise UsageError(f"there is no axis `{axis}`{did_you_mean(axis, AXES)}: use {AXES}")
    parts = _parts(folder)
    return {metric: _over(parts, metric, axis) for metric in metrics}


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


def summarise(folder: Path) -> dict[str, Summary]:
    """Return the summary of every metric, as written when the run ended if nothing came after.

    Raises:
        BackflipError: a file cannot be read.
    """
    return _written_summary(folder) or _summary(folder)


def write_summary(folder: Path, kept: Sequence[BrokenLine] = ()) -> None:
    """Write the summary, with the sizes of the files it was made from.

    Args:
        folder: the run's folder.
        kept: of each file that stays lines because of one, that line.

    Raises:
        BackflipError: a file cannot be read, or the disk is full.
    """
    metrics = {
        name: dict(zip(("last", "min", "max", "mean", "n"), astuple(summary), strict=True))
        for name, summary in _summary(folder).items()
    }
    lines = {broken.path.name: broken.line for broken in kept}
    about = {"files": _sizes(folder), **({"kept": lines} if kept else {})}
    fields = to_json({**about, "metrics": metrics})
    write_whole(folder / SUMMARY, json.dumps(fields, allow_nan=False).encode() + b"\n")


def kept_as_lines(folder: Path) -> list[BrokenLine]:
    """Return what `columns.compact` returned, if nothing came after.

    Raises:
        BackflipError: the folder cannot be read.
    """
    try:
        fields: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
        if fields["files"] != _sizes(folder):
            return []
        kept: dict[str, int] = fields.get("kept", {})
        names = [name for name in kept if name in fields["files"]]
        return [BrokenLine(folder / name, int(kept[name])) for name in names]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def media(folder: Path) -> list[Media]:
    """Return the images and clips of the run in `folder`, in the order recorded.

    A path that leads out of the run's `media/` is left out.

    Raises:
        BackflipError: a file cannot be read.
    """
    batches = (batch for writer in writers(folder) for batch in read_batches(folder, writer))
    others = (record for batch in batches for record in batch.others if record)
    return [found for record in others for found in _media_of(folder, record)]


class _Part(NamedTuple):
    """Records of one writer, by column.

    Attributes:
        order: of each record among all of the run.
        names: of the numeric fields that any of them has.
        load: returns a numeric field, and which of the records have it.
    """

    order: Int64[np.ndarray, " rows"]
    names: frozenset[str]
    load: Callable[[str], tuple[np.ndarray, Bool[np.ndarray, " rows"]]]


def _parts(folder: Path) -> list[_Part]:
    """Return the records of a run, those that were repeated after a resume once."""
    parts: list[_Part] = []
    count = 0
    for writer in writers(folder):
        of_writer: list[_Part] = []
        for batch in read_batches(folder, writer):
            of_writer += _parts_of(batch, count)
            count += len(batch.order)
        parts += of_writer if writer.startswith(ONCE) else _last_of_each(of_writer)
    return parts


def _parts_of(batch: Batch, start: int) -> Iterator[_Part]:
    for number, table in enumerate(batch.tables):
        yield _part_of_table(table, start + batch.positions(number))
    by_names: dict[tuple[str, ...], list[int]] = {}
    for index, record in enumerate(batch.others):
        names = (key for key, value in (record or {}).items() if isinstance(value, int | float))
        by_names.setdefault(tuple(names), []).append(index)
    others = start + batch.positions(-1)
    for names, indices in by_names.items():
        rows = [batch.others[index] or {} for index in indices]
        yield _part_of_records(names, rows, others[indices])


def _part_of_table(table: Table, order: Int64[np.ndarray, " rows"]) -> _Part:
    def load(key: str) -> tuple[np.ndarray, Bool[np.ndarray, " rows"]]:
        if key not in table:
            return np.zeros(table.rows), np.zeros(table.rows, np.bool_)
        return table.column(key), np.ones(table.rows, np.bool_)

    return _Part(order, frozenset(table.keys), load)


def _part_of_records(
    names: Sequence[str], rows: Sequence[Record], order: Int64[np.ndarray, " rows"]
) -> _Part:
    known = frozenset(names)

    def load(key: str) -> tuple[np.ndarray, Bool[np.ndarray, " rows"]]:
        if key not in known:
            return np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
        return _numbers([row[key] for row in rows]), np.ones(len(rows), np.bool_)

    return _Part(order, known, load)


def _numbers(values: Sequence[int | float]) -> np.ndarray:
    """Return numbers as an array: of int64 if they are such, else of float64."""
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values):
        return np.array(values, np.int64)
    return np.array([to_float(value) for value in values])


def to_float(value: int | float) -> float:
    """Return a number as a float; an integer beyond all floats is an infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _last_of_each(parts: Sequence[_Part]) -> list[_Part]:
    """Return the parts without what was repeated: of each seed's update the last record stands.

    It stands in the place of the first, as in `metrics.read_metrics`.
    """
    keyed = [_keyed(part) for part in parts if {SEED, "updates"} <= part.names]
    if not keyed:
        return list(parts)
    order, seed, updates = (np.concatenate(column) for column in zip(*keyed, strict=True))
    rank = np.lexsort((order, updates, seed))
    is_new = np.ones(len(rank), np.bool_)
    is_new[1:] = (np.diff(seed[rank]) != 0) | (np.diff(updates[rank]) != 0)
    if is_new.all():
        return list(parts)
    firsts = np.flatnonzero(is_new)
    lasts = np.append(firsts[1:], len(rank)) - 1
    place = dict(zip(order[rank[lasts]].tolist(), order[rank[firsts]].tolist(), strict=True))
    dropped = np.setdiff1d(order, order[rank[lasts]])
    return [_replaced(part, place, dropped) for part in parts]


def _keyed(part: _Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of the records that have a whole seed and update their order, seed and update."""
    (seed, has_seed), (updates, has_updates) = part.load(SEED), part.load("updates")
    has = has_seed & has_updates
    if np.float64 in (seed.dtype, updates.dtype):
        has = np.zeros_like(has)
    return part.order[has], seed[has].astype(np.int64), updates[has].astype(np.int64)


def _replaced(part: _Part, place: Mapping[int, int], dropped: Int64[np.ndarray, " n"]) -> _Part:
    """Return a part without the dropped records, the others where they belong."""
    stays = ~np.isin(part.order, dropped)
    order = np.array([place.get(at, at) for at in part.order[stays].tolist()], np.int64)

    def load(key: str) -> tuple[np.ndarray, Bool[np.ndarray, " rows"]]:
        values, has = part.load(key)
        return values[stays], has[stays]

    return _Part(order, part.names, load)


def _metrics(parts: Sequence[_Part]) -> list[str]:
    return sorted({name for part in parts for name in part.names} - _NOT_METRICS)


def _over(parts: Sequence[_Part], metric: str, axis: str) -> dict[int | None, Series]:
    """Return one metric over an axis, by seed."""
    of_metric = [part for part in parts if metric in part.names]
    chosen = _chosen_axis(of_metric, metric, axis)
    begin = _begin(parts) if chosen == "time" else 0.0
    found: dict[int | None, list[tuple[np.ndarray, ...]]] = {}
    for part in of_metric:
        y, has = part.load(metric)
        x, has_x = part.load(chosen) if chosen else (part.order, has)
        for seed, is_of_seed in _seeds(part):
            rows = has & has_x & is_of_seed
            columns = (x[rows] - begin, y[rows], part.order[rows])
            found.setdefault(seed, []).append(columns)
    series = {seed: _ordered(columns, by_place=not chosen) for seed, columns in found.items()}
    return {seed: of_seed for seed, of_seed in series.items() if len(of_seed.x)}


def _chosen_axis(parts: Sequence[_Part], metric: str, axis: str) -> str:
    """Return the first axis that all records of a metric have; empty for their position."""
    instead = _INSTEAD.get(axis, (axis,))
    for candidate in instead:
        if all(part.load(candidate)[1][part.load(metric)[1]].all() for part in parts):
            return candidate
    if axis == "step":
        return ""
    known = (name for name in instead if any(name in part.names for part in parts))
    return next(known, axis)


def _begin(parts: Sequence[_Part]) -> float:
    """Return the time of the first record of a run."""
    times = [part.load("time") for part in parts if "time" in part.names]
    return float(min((time[has].min() for time, has in times if has.any()), default=0.0))


def _seeds(part: _Part) -> Iterator[tuple[int | None, Bool[np.ndarray, " rows"]]]:
    """Yield each seed and which records are its; None for those without one."""
    seed, has = part.load(SEED)
    for one in np.unique(seed[has]).tolist():
        yield int(one), has & (seed == one)
    if not has.all():
        yield None, ~has


def _ordered(columns: Sequence[tuple[np.ndarray, ...]], *, by_place: bool) -> Series:
    """Return points by x, those at the same x by when they were recorded."""
    x, y, order = (np.concatenate(column) for column in zip(*columns, strict=True))
    is_sorted = len(columns) == 1 and (np.diff(x) >= 0).all() and (np.diff(order) > 0).all()
    rank = np.arange(len(x)) if is_sorted else np.lexsort((order, x))
    x = np.arange(len(rank)) if by_place else x[rank]
    return Series(x.astype(np.float64), y[rank].astype(np.float64))


def _bucket_of(x: Float64[np.ndarray, " n"], buckets: int) -> Int64[np.ndarray, " n"]:
    if not len(x) or x[0] == x[-1]:
        return np.zeros(len(x), np.int64)
    # Halved, since the greatest float less the least is no float.
    share = (x / 2 - x[0] / 2) / (x[-1] / 2 - x[0] / 2)
    return np.minimum((share * buckets).astype(np.int64), buckets - 1)


def _summary(folder: Path) -> dict[str, Summary]:
    by_name: dict[str, list[_Part]] = {}  # looked up, as there may be as many names as records
    for part in _parts(folder):
        for name in part.names - _NOT_METRICS:
            by_name.setdefault(name, []).append(part)
    return {
        name: _summary_of(list(_over(by_name[name], name, "step").values()))
        for name in sorted(by_name)
    }


def _summary_of(seeds: Sequence[Series]) -> Summary:
    values = np.concatenate([series.y for series in seeds])
    known = values[~np.isnan(values)]
    last = np.array([series.y[-1] for series in seeds])
    with np.errstate(all="ignore"):
        of_known = (known.min(), known.max(), known.mean()) if len(known) else [math.nan] * 3
        return Summary(float(last.mean()), *map(float, of_known), count=len(values))


def _written_summary(folder: Path) -> dict[str, Summary] | None:
    """Return the summary on disk; None if there is none or the metrics have changed since."""
    try:
        fields: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
        if fields["files"] != _sizes(folder):
            return None
        metrics: dict[str, Any] = from_json(fields["metrics"])
        return {
            name: Summary(m["last"], m["min"], m["max"], m["mean"], m["n"])
            for name, m in metrics.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    with disk_errors(folder):
        return {
            entry.name: entry.stat().st_size
            for entry in os.scandir(folder)
            if entry.name.startswith("metrics-") and entry.name.endswith((".jsonl", ".npz"))
        }


def _media_of(folder: Path, record: Record) -> Iterator[Media]:
    x = {axis: float(record[axis]) for axis in AXES if isinstance(record.get(axis), int | float)}
    seed = record.get(SEED) if isinstance(record.get(SEED), int) else None
    for key, value in record.items():
        for kind in ("image", "clip"):
            path: Any = value.get(kind) if isinstance(value, dict) else None
            if isinstance(path, str) and _MEDIA_FILE.fullmatch(path):
                yield Media(key, kind, folder / path, x, seed)
