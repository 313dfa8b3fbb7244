"""The plot area of a chart as SVG: grid, ticks, bands and curves, without title or style sheet.

Ticks are placed in per cent and curves in a nested SVG element, so that a page can stretch a chart
without stretching its text. A style sheet sets colours and line widths: each curve is a group with
the classes `cN` (colour) and `dN` (dash).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from runshelf.charts.scales import Scale

STRETCHED = (1000, 1000)  # the box of a chart that a page stretches
_MARGIN = 0.05


@final
@dataclass(frozen=True)
class Line:
    """One curve; every array has one entry per point of `x`.

    Attributes:
        label: its name.
        x: positions along the axis, ascending.
        y: the mean over seeds, or the only seed.
        colour: one of eight colours, 0 to 7.
        dash: one of four dash patterns; 0 is a solid line.
        low: the lower end of the band, if any.
        high: the upper end of the band.
        seeds: single seeds, drawn thin.
        raw: `y` before smoothing, drawn thin.
        fewer: where `y` is the mean of fewer seeds than elsewhere: drawn thin, from a tick on.
        invalid: positions of NaNs and infinities.
        dots: whether to mark each point.
    """

    label: str
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    colour: int = 0
    dash: int = 0
    low: Float[np.ndarray, " points"] | None = None
    high: Float[np.ndarray, " points"] | None = None
    seeds: Sequence[Float[np.ndarray, " points"]] = ()
    raw: Float[np.ndarray, " points"] | None = None
    fewer: Bool[np.ndarray, " points"] | None = None
    invalid: Sequence[float] = field(default_factory=list[float])
    dots: bool = False


def x_scale(
    lines: Sequence[Line], more: Sequence[float] = (), *, clock: bool = False
) -> Scale | None:
    """Return a scale from the first to the last point; None without points.

    Args:
        lines: the curves.
        more: further values to include.
        clock: whether values are seconds.
    """
    ends = [float(end) for line in lines if len(line.x) for end in (line.x[0], line.x[-1])]
    if not ends:
        return None
    low, high = min([*ends, *more]), max([*ends, *more])
    return Scale(low, high, clock=clock) if high > low else Scale(low - 0.5, high + 0.5)


def y_scale(lines: Sequence[Line], *, log: bool = False) -> Scale | None:
    """Return a scale that includes every curve; None without finite values.

    Bands widen the scale by at most half its height on either side: with two seeds Student's
    interval is an order of magnitude wider than the curves and would flatten them.
    """
    curves = [c for line in lines for c in (line.y, line.raw, *line.seeds) if c is not None]
    values = np.concatenate([np.empty(0), *curves])
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if log:
        return Scale(low / 1.2, high * 1.2, log=True)
    low, high = _with_bands(lines, low, high)
    margin = _MARGIN * (high - low) or 0.5 * abs(high) or 0.5
    return Scale(low - margin, high + margin)


def _with_bands(lines: Sequence[Line], low: float, high: float) -> tuple[float, float]:
    most = 0.5 * (high - low)
    lows = [np.nanmin(b.low) for b in lines if b.low is not None and np.isfinite(b.low).any()]
    highs = [np.nanmax(b.high) for b in lines if b.high is not None and np.isfinite(b.high).any()]
    lowest, highest = float(min([low, *lows])), float(max([high, *highs]))
    return max(lowest, low - most), min(highest, high + most)


def plot(
    lines: Sequence[Line], x: Scale, y: Scale, box: tuple[int, int] = STRETCHED, ticks: int = 5
) -> str:
    """Return grid, ticks and curves, for an `svg` element of the chart's size.

    Args:
        lines: the curves.
        x: the horizontal scale.
        y: the vertical scale.
        box: width and height of the element in pixels, if fixed.
        ticks: the approximate maximum number of ticks per axis.
    """
    curves = "".join(_curve(line, x, y, box) for line in lines)
    return (
        f"{''.join(_grid(x, y, ticks))}"
        f'<svg class="curves" viewBox="0 0 {box[0]} {box[1]}" preserveAspectRatio="none">'
        f"{curves}</svg>"
    )


def _grid(x: Scale, y: Scale, ticks: int) -> Iterator[str]:
    for place, text in y.labels(ticks):
        down = f"{100 - 100 * place:.2f}%"
        yield f'<line class="grid" x1="0" x2="100%" y1="{down}" y2="{down}"/>'
        yield f'<text class="ty" x="-6" y="{down}" dy="4">{text}</text>'
    yield '<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>'
    for place, text in x.labels(ticks):
        end = (
            ' text-anchor="end"' if place > 0.96 else ' text-anchor="start"' if place < 0.04 else ""
        )
        yield (
            f'<svg x="{100 * place:.2f}%" y="100%" overflow="visible">'
            f'<path class="axis" d="M0 0v4"/><text class="tx" y="15"{end}>{text}</text></svg>'
        )


def _curve(line: Line, x: Scale, y: Scale, box: tuple[int, int]) -> str:
    at = x.place(line.x)
    parts = [f'<g class="c{line.colour} d{line.dash}">']
    if line.low is not None and line.high is not None:
        low = np.where(line.low > 0, line.low, y.low / 10) if y.log else line.low
        parts.append(f'<path class="band" d="{_band(at, y.place(low), y.place(line.high), box)}"/>')
    # One element for all seeds, since hundreds of elements render slowly.
    if seeds := "".join(_path(at, y.place(values), box) for values in line.seeds):
        parts.append(f'<path class="seed" d="{seeds}"/>')
    if line.raw is not None:
        parts.append(f'<path class="raw" d="{_path(at, y.place(line.raw), box)}"/>')
    parts.append(_centre(line, at, y.place(line.y), box))
    if line.dots:
        dots = "".join(_path(at[[n]], y.place(line.y[[n]]), box) for n in range(len(at)))
        parts.append(f'<path class="dots" d="{dots}"/>')
    if len(line.invalid):
        places = x.place(np.array(line.invalid)).tolist()
        marks = "".join(f"M{round(box[0] * at)} {box[1]}v{-box[1] // 25}" for at in places)
        parts.append(f'<path class="invalid" d="{marks}"/>')
    return "".join([*parts, "</g>"])


def _centre(line: Line, x: np.ndarray, y: np.ndarray, box: tuple[int, int]) -> str:
    """Return the mean; where it is over fewer seeds, as a thin line with ticks at its ends."""
    if line.fewer is None or not line.fewer.any():
        return f'<path class="centre" d="{_path(x, y, box)}"/>'
    # The thin line begins at the last point of the thick one.
    beside = np.convolve(line.fewer, [1, 1, 1], "same") > 0
    ends = np.flatnonzero(beside & ~line.fewer & np.isfinite(y))
    ticks = "".join(
        f"M{round(box[0] * x[n])} {round(box[1] * (1 - y[n]) - box[1] / 30)}v{box[1] // 15}"
        for n in ends.tolist()
    )
    return (
        f'<path class="centre" d="{_path(x, np.where(line.fewer, np.nan, y), box)}"/>'
        f'<path class="fewer" d="{_path(x, np.where(beside, y, np.nan), box)}"/>'
        f'<path class="end" d="{ticks}"/>'
    )


def _path(x: np.ndarray, y: np.ndarray, box: tuple[int, int]) -> str:
    """Return a path through the points, interrupted at missing values."""
    there = np.flatnonzero(np.isfinite(y))
    if not len(there):
        return ""
    across = np.rint(box[0] * x[there]).astype(int)
    down = np.rint(box[1] * (1 - y[there].clip(-9, 10))).astype(int)
    starts = np.diff(there, prepend=-2) > 1
    last_x, last_y = 0, 0
    steps: list[str] = []
    for start, at, below in zip(starts.tolist(), across.tolist(), down.tolist(), strict=True):
        steps.append(f"M{at} {below}" if start else f"l{at - last_x} {below - last_y}")
        last_x, last_y = at, below
    # A round line cap turns a line of length 0 into a dot.
    return "".join(steps) + ("h0" if len(there) == 1 else "")


def _band(x: np.ndarray, low: np.ndarray, high: np.ndarray, box: tuple[int, int]) -> str:
    """Return the closed shapes between two curves, one per stretch where both have values."""
    there = np.isfinite(low) & np.isfinite(high)
    bounds = np.flatnonzero(np.diff(there, prepend=False, append=False))
    shapes: list[str] = []
    for first, last in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
        upper = _path(x[first:last], high[first:last], box)
        lower = _path(x[first:last][::-1], low[first:last][::-1], box)
        shapes.append(f"{upper}L{lower[1:]}z")
    return "".join(shapes)


def digits(values: Float[np.ndarray, " points"]) -> list[float | None]:
    """Return values with four significant digits for JSON; None for non-finite values."""
    return [float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist()]
