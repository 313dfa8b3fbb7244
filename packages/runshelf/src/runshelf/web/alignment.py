"""Aligns the values of several seeds on one grid and averages them.

If all seeds together have few distinct x values, these are the grid. Otherwise the axis is cut into
equal buckets, and a seed's value in a bucket is the mean of its values there. Between two of its
values a seed is interpolated linearly; it has no value before its first or after its last one.
Nothing is sampled at random.
"""

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.statistics import Centre, Interval, interval

BUCKETS = 160


@final
class Member(NamedTuple):
    """One seed of one run.

    Attributes:
        label: what it is called in a table.
        x: places along the axis, ascending.
        y: values there.
    """

    label: str
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]


@final
class Aligned(NamedTuple):
    """Seeds on one grid.

    Attributes:
        labels: of the seeds.
        x: the grid.
        values: of each seed at each place; NaN where it has none.
        bucketed: whether values are means of buckets rather than single values.
        left_out: how many values were NaN or infinite, or not positive on a logarithmic scale.
        left_out_at: the first few places of these.
    """

    labels: list[str]
    x: Float[np.ndarray, " places"]
    values: Float[np.ndarray, "seeds places"]
    bucketed: bool
    left_out: int
    left_out_at: list[float]


def align(members: Sequence[Member], buckets: int = BUCKETS, *, positive: bool = False) -> Aligned:
    """Return seeds on one grid.

    Args:
        members: the seeds.
        buckets: the most places there are to be.
        positive: leave out what a logarithmic scale cannot show.
    """
    kept: list[Member] = []
    left_out, places = 0, list[float]()
    for member in members:
        shown = np.isfinite(member.y) & np.isfinite(member.x)
        if positive:
            shown &= member.y > 0
        left_out += int((~shown).sum())
        places += member.x[~shown & np.isfinite(member.x)][:20].tolist()
        kept.append(Member(member.label, member.x[shown], member.y[shown]))
    grid, bucketed = _grid(kept, buckets)
    values = np.full((len(kept), len(grid)), np.nan)
    for row, member in zip(values, kept, strict=True):
        _place(member, grid, bucketed, row)
    labels = [member.label for member in members]
    return Aligned(labels, grid, values, bucketed, left_out, places[:20])


def smoothed(values: Float[np.ndarray, "seeds places"], share: float) -> np.ndarray:
    """Return centred moving means over a share of the axis; a seed's gaps stay gaps."""
    half = round(share * values.shape[1] / 2)
    if half < 1 or not values.size:
        return values
    there = np.isfinite(values)
    sums = _window(np.where(there, values, 0.0), half)
    counts = _window(there.astype(float), half)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(there, sums / counts, np.nan)


def centred(aligned: Aligned, centre: Centre, smoothing: float = 0.0) -> Interval:
    """Return the centre of aligned seeds with its interval."""
    return interval(smoothed(aligned.values, smoothing), centre)


def finals(aligned: Aligned) -> Float[np.ndarray, " seeds"]:
    """Return each seed's last value; NaN for a seed without any."""
    return np.array(
        [row[np.isfinite(row)][-1:].sum() if any_finite(row) else np.nan for row in aligned.values]
    )


def any_finite(values: np.ndarray) -> bool:
    """Return whether any value is finite."""
    return bool(np.isfinite(values).any())


def _grid(members: Sequence[Member], buckets: int) -> tuple[np.ndarray, bool]:
    """Return the grid, and whether its points are centres of buckets."""
    longest = max((len(member.x) for member in members), default=0)
    if longest <= buckets:
        distinct = np.unique(np.concatenate([np.empty(0), *(member.x for member in members)]))
        if len(distinct) <= buckets:
            return distinct, False
    low = min(member.x[0] for member in members if len(member.x))
    high = max(member.x[-1] for member in members if len(member.x))
    edges = np.linspace(low, high, buckets + 1)
    return (edges[:-1] + edges[1:]) / 2.0, True


def _place(member: Member, grid: np.ndarray, bucketed: bool, row: np.ndarray) -> None:
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
    there = np.flatnonzero(counts)
    inside = slice(there[0], there[-1] + 1)
    row[inside] = np.interp(grid[inside], grid[there], sums[there] / counts[there])


def _window(values: np.ndarray, half: int) -> np.ndarray:
    """Return sums over `half` places to either side, as far as there are any."""
    total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(axis=1)], axis=1)
    places = np.arange(values.shape[1])
    first = np.maximum(places - half, 0)
    last = np.minimum(places + half + 1, values.shape[1])
    return total[:, last] - total[:, first]
