"""Outlines: every curve of a run in 100 parts, so that a comparison need not read a million points.

An outline holds the sum and the number of the values in each hundredth of the curve's range. From
these follow, exactly, the mean over the last w per cent for each whole w, and a curve to draw.

A run with many values keeps its outlines in `outlines.bin` when it has ended: a line of JSON, then
numbers of 8 bytes. It is a cache: if it is missing, damaged or out of date, the outlines are
computed from the metrics.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast, final

import numpy as np
from jaxtyping import Float64

from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.columns import Column
from runshelf.store.machine_metrics import is_of_machine
from runshelf.store.metrics import metric_sizes, read_columns
from runshelf.store.opening import read_whole
from runshelf.store.series import NOT_METRICS, Series, series_by_seed
from runshelf.store.writing import replace_file

PARTS = 100
FILE = "outlines.bin"

_FORMAT = 1
MANY = 20_000  # values of a run; fewer are read from the metrics in some milliseconds
_MOST_CURVES = 2_000
_AXES = ("env_steps", "step")
_ROW = 3 * PARTS


@final
class Outline(NamedTuple):
    """The curve of one metric of one seed in `PARTS` parts of equal width.

    Attributes:
        axis: `env_steps`, or `step` where a record lacks these.
        begin: the position of the first value.
        end: the position of the last value.
        values: the number of values.
        invalid: how many of them are NaN or infinite.
        area: the area under the curve by the trapezoid rule, divided by its width: its mean height,
            in the unit of the metric. NaN if a value is invalid.
        x: the sum of the positions in each part.
        y: the sum of the values in each part; NaN if one of them is NaN.
        n: the number of values in each part.
    """

    axis: str
    begin: float
    end: float
    values: int
    invalid: int
    area: float
    x: Float64[np.ndarray, " parts"]
    y: Float64[np.ndarray, " parts"]
    n: Float64[np.ndarray, " parts"]

    def last(self, window: int) -> float:
        """Return the mean of the values in the last `window` per cent of the range.

        NaN if one of the values is NaN; infinite or NaN if one is infinite.

        Args:
            window: from 1 to 100.
        """
        return float(self.y[-window:].sum()) / float(self.n[-window:].sum())


def outline(series: Series, axis: str) -> Outline | None:
    """Return the outline of a curve; None if it has no value at a finite position.

    A value at x belongs to part ⌊(x - x₀) / (x₁ - x₀) · 100⌋, with x₀ the first and x₁ the last
    position; x₁ itself belongs to the last part, and so does a single value.
    """
    known = np.isfinite(series.x)
    x, y = series.x[known], series.y[known]
    if not len(x):
        return None
    part = _parts(x)
    with np.errstate(invalid="ignore"):  # of opposite infinities
        return Outline(
            axis=axis,
            begin=float(x[0]),
            end=float(x[-1]),
            values=len(x),
            invalid=int((~np.isfinite(y)).sum()),
            area=_mean_height(x, y),
            x=np.bincount(part, x, PARTS),
            y=np.bincount(part, y, PARTS),
            n=np.bincount(part, minlength=PARTS).astype(np.float64),
        )


def read_outlines(folder: Path, metric: str) -> dict[int | None, Outline]:
    """Return the outline of a metric for each seed; the seed is None for records without one.

    Args:
        folder: the run's folder.
        metric: the metric; one that the run does not have has no outlines.

    Raises:
        UserFacingError: a file cannot be read.
    """
    with suppress(UserFacingError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return _written(folder, metric)
    columns = read_columns(folder)
    return _outlines_of(columns, metric) if metric in columns else {}


def write_outlines(folder: Path) -> bool:
    """Write the outlines of a run if it has many values; return whether it has.

    Raises:
        UserFacingError: a file cannot be read, or the disk is full.
    """
    columns = read_columns(folder)
    names = [name for name in columns if name not in NOT_METRICS and not is_of_machine(name)]
    if sum(len(columns[name].rows) for name in names) < MANY:
        return False
    curves: list[dict[str, Any]] = []
    rows: list[np.ndarray] = []
    for name in names:
        for seed, one in _outlines_of(columns, name).items():
            curves.append({"metric": name, "seed": seed, **_numbers(one)})
            rows.append(np.concatenate([one.x, one.y, one.n]))
    if len(curves) > _MOST_CURVES:
        return False
    about = {"format": _FORMAT, "files": metric_sizes(folder), "curves": curves}
    data = json.dumps(about).encode() + b"\n" + np.concatenate(rows).astype("<f8").tobytes()
    replace_file(folder, FILE, data, synced=False)
    return True


def is_outlined(folder: Path) -> bool:
    """Return whether the outlines of a run are written and up to date."""
    with suppress(UserFacingError, OSError, ValueError, KeyError, TypeError, AttributeError):
        _read(folder)
        return True
    return False


def _outlines_of(columns: Mapping[str, Column], metric: str) -> dict[int | None, Outline]:
    axis = next((axis for axis in _AXES[:1] if _has_all(columns, metric, axis)), _AXES[-1])
    found = series_by_seed(columns, metric, axis)
    outlines = {seed: outline(series, axis) for seed, series in found.items()}
    return {seed: one for seed, one in outlines.items() if one is not None}


def _has_all(columns: Mapping[str, Column], metric: str, axis: str) -> bool:
    return axis in columns and bool(columns[axis].at(columns[metric].rows)[1].all())


def _parts(x: Float64[np.ndarray, " n"]) -> np.ndarray:
    if x[0] == x[-1]:
        return np.full(len(x), PARTS - 1)
    # Halved, since the difference of the largest and the smallest float overflows.
    share = (x / 2 - x[0] / 2) / (x[-1] / 2 - x[0] / 2)
    return np.minimum((share * PARTS).astype(np.int64), PARTS - 1)


def _mean_height(x: Float64[np.ndarray, " n"], y: Float64[np.ndarray, " n"]) -> float:
    """Return Σ (x_{i+1} - x_i) (y_i + y_{i+1}) / 2, divided by x₁ - x₀; the mean if these agree."""
    if not np.isfinite(y).all():
        return math.nan
    if x[0] == x[-1]:
        return float(y.mean())
    return float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum() / (x[-1] - x[0]))


def _numbers(one: Outline) -> dict[str, Any]:
    area = one.area if math.isfinite(one.area) else None
    about = {"axis": one.axis, "begin": one.begin, "end": one.end}
    return about | {"count": one.values, "invalid": one.invalid, "area": area}


def _written(folder: Path, metric: str) -> dict[int | None, Outline]:
    """Return the outlines on disk. Any error means that there are none."""
    curves, rows = _read(folder)
    found: dict[int | None, Outline] = {}
    for curve, row in zip(curves, rows, strict=True):
        if curve["metric"] == metric:
            found[_seed(curve["seed"])] = _from_numbers(curve, row)
    return found


def _read(folder: Path) -> tuple[Sequence[Mapping[str, Any]], np.ndarray]:
    head, newline, body = (read_whole(folder, FILE) or b"").partition(b"\n")
    about = parse_record(head)
    if not newline or about["format"] != _FORMAT or about["files"] != metric_sizes(folder):
        raise ValueError("out of date")
    curves = cast("list[Mapping[str, Any]]", about["curves"])
    return curves, np.frombuffer(body, "<f8").reshape(len(curves), _ROW)


def _from_numbers(curve: Mapping[str, Any], row: np.ndarray) -> Outline:
    area = math.nan if curve["area"] is None else float(curve["area"])
    axis = _AXES[_AXES.index(curve["axis"])]
    x, y, n = row.astype(np.float64).reshape(3, PARTS)
    ends = float(curve["begin"]), float(curve["end"])
    return Outline(axis, *ends, int(curve["count"]), int(curve["invalid"]), area, x, y, n)


def _seed(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise ValueError("not a seed")
    return value
