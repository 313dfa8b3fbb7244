"""Dots and intervals in rows: every seed, the mean and its interval, for an `svg` of any width."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final
from xml.sax.saxutils import escape

from runshelf.charts.scales import Scale
from runshelf.formatting import cut

ROW = 30  # pixels of height
_LONGEST = 30
_JITTER = (0, -5, 5, -9, 9)  # pixels, of dots that would cover each other
_NEAR = 0.012  # of the width


@final
@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        label: its name.
        points: one value for each seed; NaN for none.
        centre: the mean; NaN for none.
        low: the lower end of its interval; NaN for none.
        high: the upper end.
        colour: one of eight colours, 0 to 7.
        failed: for each point whether the seed failed: drawn as a cross.
    """

    label: str
    points: Sequence[float]
    centre: float = math.nan
    low: float = math.nan
    high: float = math.nan
    colour: int = 0
    failed: Sequence[bool] = ()


def row_scale(rows: Sequence[Row], more: Sequence[float] = ()) -> Scale | None:
    """Return a scale with all points and centres; intervals widen it by half at most on each side.

    None without values.
    """
    values = [v for row in rows for v in (*row.points, row.centre) if math.isfinite(v)]
    values += [v for v in more if math.isfinite(v)]
    if not values:
        return None
    low, high = min(values), max(values)
    most = (high - low) / 2 or 0.5 * abs(high) or 0.5
    ends = [v for row in rows for v in (row.low, row.high) if math.isfinite(v)]
    low = max(min([low, *ends]), low - most)
    high = min(max([high, *ends]), high + most)
    margin = 0.04 * (high - low) or most
    return Scale(low - margin, high + margin)


def rows_plot(rows: Sequence[Row], x: Scale, *, mark: float | None = None, ticks: int = 5) -> str:
    """Return grid, ticks and rows; the element must be `ROW` pixels high for each row.

    Args:
        rows: the rows, from the top.
        x: the horizontal scale.
        mark: a value with a vertical line, such as 0.
        ticks: the approximate number of ticks.
    """
    parts = [*_axis(x, ticks)]
    if mark is not None and 0 <= x.at(mark) <= 1:
        at = f"{100 * x.at(mark):.2f}%"
        parts.append(f'<line class="mark-line" x1="{at}" x2="{at}" y1="0" y2="100%"/>')
    for number, row in enumerate(rows):
        parts.append(_row(row, x, ROW * number + ROW // 2))
    return "".join(parts)


def _axis(x: Scale, ticks: int) -> Iterator[str]:
    for place, text in x.labels(ticks):
        at = f"{100 * place:.2f}%"
        yield f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="100%"/>'
        yield f'<text class="tx" x="{at}" y="100%" dy="15">{text}</text>'
    yield '<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>'


def _row(row: Row, x: Scale, y: int) -> str:
    label = escape(cut(row.label, _LONGEST))
    parts = [f'<g class="row c{row.colour}"><text class="ty" x="-8" y="{y}" dy="4">{label}</text>']
    if math.isfinite(row.low) and math.isfinite(row.high):
        ends = [f"{100 * min(max(x.at(v), 0.0), 1.0):.2f}%" for v in (row.low, row.high)]
        parts.append(f'<line class="interval" x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}"/>')
    failed = [*row.failed, *[False] * (len(row.points) - len(row.failed))]
    placed = sorted(
        (x.at(v), bad) for v, bad in zip(row.points, failed, strict=True) if math.isfinite(v)
    )
    previous, step = -1.0, 0
    for at, bad in placed:
        step = step + 1 if at - previous < _NEAR else 0
        previous = at
        parts.append(_point(at, y + _JITTER[step % len(_JITTER)], failed=bad))
    if math.isfinite(row.centre):
        at = f"{100 * x.at(row.centre):.2f}%"
        parts.append(f'<line class="mean" x1="{at}" x2="{at}" y1="{y - 9}" y2="{y + 9}"/>')
    return "".join([*parts, "</g>"])


def _point(at: float, y: int, *, failed: bool) -> str:
    place = f"{100 * at:.2f}%"
    if not failed:
        return f'<circle class="point" cx="{place}" cy="{y}" r="3.5"/>'
    cross = '<path class="failed" d="M-4-4l8 8M-4 4l8-8"/>'
    return f'<svg x="{place}" y="{y}" overflow="visible">{cross}</svg>'
