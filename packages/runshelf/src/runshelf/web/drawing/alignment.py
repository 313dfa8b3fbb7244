"""Aligns the values of several seeds on one grid and averages them.

If all seeds together have few distinct x values, these are the grid. Otherwise the axis is divided
into equal buckets, and a seed's value in a bucket is the mean of its values there. A seed is
interpolated linearly between its values and has no value outside them. Nothing is random.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.statistics.intervals import Centre, Interval, interval

BUCKETS = 160


@final
class Member(NamedTuple):
    """The curve of one seed of one run; `x` is ascending.

    Attributes:
        label: the name of the seed.
        x: positions on the axis.
        y: the values.
        end: the position of the newest record, which may have had nothing to measure.
    """

    label: str
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    end: float = -math.inf


@final
class Aligned(NamedTuple):
    """Seeds on one grid.

    Attributes:
        labels: names of the seeds.
        x: the grid.
        values: value of each seed at each grid point; NaN if missing.
        bucketed: whether values are means of buckets rather than single values.
        left_out: number of values that were NaN, infinite, or not positive on a logarithmic scale.
        left_out_at: x of the first few of these.
        last: last value of each seed, not averaged within a bucket; NaN for a seed without values.
    """

    labels: list[str]
    x: Float[np.ndarray, " grid"]
    values: Float[np.ndarray, "seeds grid"]
    bucketed: bool
    left_out: int
    left_out_at: list[float]
    last: Float[np.ndarray, " seeds"]


def align(members: Sequence[Member], buckets: int = BUCKETS, *, positive: bool = False) -> Aligned:
    """Return seeds on one grid.

    Args:
        members: the seeds.
        buckets: upper limit of the number of grid points.
        positive: leave out values that a logarithmic scale cannot show.
    """
    kept: list[Member] = []
    left_out, left_out_at = 0, list[float]()
    for member in members:
        valid = np.isfinite(member.y) & np.isfinite(member.x)
        if positive:
            valid &= member.y > 0
        left_out += int((~valid).sum())
        left_out_at += member.x[~valid & np.isfinite(member.x)][:20].tolist()
        kept.append(Member(member.label, member.x[valid], member.y[valid]))
    grid, bucketed = _grid(kept, buckets)
    values = np.full((len(kept), len(grid)), np.nan)
    for row, member in zip(values, kept, strict=True):
        _fill(member, grid, bucketed, row)
    labels = [member.label for member in members]
    last = np.array([member.y[-1] if len(member.y) else np.nan for member in kept], float)
    return Aligned(
        labels=labels,
        x=grid,
        values=values,
        bucketed=bucketed,
        left_out=left_out,
        left_out_at=left_out_at[:20],
        last=last,
    )


def smoothed(
    values: Float[np.ndarray, "seeds grid"], share: float
) -> Float[np.ndarray, "seeds grid"]:
    """Return centred moving means over a fraction of the axis; gaps of a seed stay gaps."""
    half = round(share * values.shape[1] / 2)
    if half < 1 or not values.size:
        return values
    valid = np.isfinite(values)
    sums = _window_sums(np.where(valid, values, 0.0), half)
    counts = _window_sums(valid.astype(float), half)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(valid, sums / counts, np.nan)


def centred(aligned: Aligned, centre: Centre, smoothing: float = 0.0) -> Interval:
    """Return the mean or interquartile mean over aligned seeds with its interval."""
    return interval(smoothed(aligned.values, smoothing), centre)


def finals(aligned: Aligned) -> Float[np.ndarray, " seeds"]:
    """Return each seed's last value; NaN for a seed without values."""
    return aligned.last


def any_finite(values: np.ndarray) -> bool:
    """Return whether any value is finite."""
    return bool(np.isfinite(values).any())


def _grid(members: Sequence[Member], buckets: int) -> tuple[np.ndarray, bool]:
    """Return the grid, and whether its points are bucket centres."""
    longest = max((len(member.x) for member in members), default=0)
    if longest <= buckets:
        distinct = np.unique(np.concatenate([np.empty(0), *(member.x for member in members)]))
        if len(distinct) <= buckets:
            return distinct, False
    low = min(member.x[0] for member in members if len(member.x))
    high = max(member.x[-1] for member in members if len(member.x))
    edges = np.linspace(low, high, buckets + 1)
    return (edges[:-1] + edges[1:]) / 2.0, True


def _fill(member: Member, grid: np.ndarray, bucketed: bool, row: np.ndarray) -> None:
    """Write a seed's values on the grid into `row`."""
    if not len(member.x):
        return
    if bucketed:
        width = grid[1] - grid[0]
        where = ((member.x - (grid[0] - width / 2)) / width).astype(int).clip(0, len(grid) - 1)
    else:
        where = np.searchsorted(grid, member.x)
    counts = np.bincount(where, minlength=len(grid))
    sums = np.bincount(where, weights=member.y, minlength=len(grid))
    filled = np.flatnonzero(counts)
    inside = slice(filled[0], filled[-1] + 1)
    row[inside] = np.interp(grid[inside], grid[filled], sums[filled] / counts[filled])


def _window_sums(values: np.ndarray, half: int) -> np.ndarray:
    """Return sums over windows of up to `half` grid points on either side."""
    total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(axis=1)], axis=1)
    centres = np.arange(values.shape[1])
    first = np.maximum(centres - half, 0)
    last = np.minimum(centres + half + 1, values.shape[1])
    return total[:, last] - total[:, first]
