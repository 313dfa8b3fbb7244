"""Charts as SVG, drawn here: axes with units, bands, lines, single seeds; no script is needed.

The picture stretches with the page while its text does not: curves are drawn in a box of 1000 by
1000 units that is stretched to whatever room there is, and ticks are placed around it by per cent.
What the crosshair says of a place is carried along in `data-curves`.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from markupsafe import Markup

from backflip.archive.durations import duration
from backflip.web.archive_pages.colours import Look
from backflip.web.archive_pages.words import short

BOX = 1000
TIMES = ("seconds", "time")
UNITS = {
    "env_steps": "env steps",
    "updates": "updates",
    "episodes": "episodes",
    "frames": "frames",
    "step": "steps as logged",
    "seconds": "wall-clock since the run began",
    "time": "wall-clock since the first record",
}
_TICKS = 5
_MARK_PLACES = 60  # along the axis: closer ones would cover each other
_MOST_SAID = 3  # of those at one place
_MARGIN = 0.05


@final
@dataclass(frozen=True)
class Line:
    """One curve with what surrounds it; every array has one entry per place of `x`.

    Attributes:
        label: what it is called.
        look: its colour and dash.
        x: the grid.
        y: the centre, or the only seed.
        low: the lower end of the band, if there is one.
        high: the upper end.
        seeds: single seeds, drawn thin while somebody points at the chart.
        raw: what `y` was before smoothing, drawn thin under it.
        odd: places at which values are NaN or infinite.
    """

    label: str
    look: Look
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    seeds: Sequence[np.ndarray] = ()
    raw: np.ndarray | None = None
    odd: Sequence[float] = field(default_factory=list[float])


@final
@dataclass(frozen=True)
class Mark:
    """Something that was made at a place along the axis: a clip, an image.

    Attributes:
        x: the place.
        address: where it leads.
        label: what it is, and where.
    """

    x: float
    address: str
    label: str


@final
@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic way from values to places in the box."""

    low: float
    high: float
    log: bool = False

    def place(self, values: np.ndarray) -> np.ndarray:
        """Return where values are, from 0 to 1."""
        if self.log:
            with np.errstate(invalid="ignore", divide="ignore"):
                return (np.log10(values) - math.log10(self.low)) / self._decades()
        return (values - self.low) / (self.high - self.low)

    def at(self, value: float) -> float:
        """Return where one value is, from 0 to 1."""
        return float(self.place(np.array([value]))[0])

    def _decades(self) -> float:
        return math.log10(self.high) - math.log10(self.low)

    def ticks(self, count: int = _TICKS) -> list[float]:
        """Return round values within, few enough to be read."""
        if self.log and self._decades() >= 1:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high))
            step = max(1, math.ceil((last - first + 1) / count))
            return [10.0**power for power in range(first, last + 1, step)]
        step = _round_step((self.high - self.low) / count)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]


def draw(
    title: str, lines: Sequence[Line], axis: str, *, log: bool = False, marks: Sequence[Mark] = ()
) -> Markup:
    """Return one chart: an element with an `svg` in it.

    Args:
        title: read out to those who cannot see it.
        lines: the curves; without any value the chart says so.
        axis: what is along the x-axis, one of `UNITS`.
        log: whether the y-axis is logarithmic.
        marks: drawn on the x-axis, each a link.
    """
    across, up = _scale_x(lines, marks), _scale_y(lines, log)
    if across is None or up is None:
        return _empty(title, log)
    parts = [
        _grid_x(across, axis),
        _grid_y(up),
        Markup('<svg class="curves" viewBox="0 0 1000 1000" preserveAspectRatio="none">'),
        *(_curve(line, across, up) for line in lines),
        Markup("</svg>"),
        Markup('<line class="cross" y1="0" y2="100%" x1="0" x2="0" visibility="hidden"/>'),
        *_marks(marks, across),
    ]
    # What is an image to those who cannot see has no links in it.
    role = "group" if marks else "img"
    return _frame(title, Markup("").join(parts), _readings(lines, across, axis), role)


def _frame(title: str, inner: Markup, readings: str, role: str = "img") -> Markup:
    head = Markup('<div class="chart" role="{}" aria-label="{}" data-curves="{}">')
    plot = Markup('<svg class="plot">{}</svg></div>')
    return Markup("").join([head.format(role, title, readings), plot.format(inner)])


def _empty(title: str, log: bool) -> Markup:
    why = "nothing that a logarithmic scale can show" if log else "no values along this axis"
    text = Markup('<text class="nothing" x="50%" y="50%">{}</text>').format(why)
    return _frame(title, text, "")


def _scale_x(lines: Sequence[Line], marks: Sequence[Mark]) -> Scale | None:
    places = [line.x for line in lines if len(line.x)]
    if not places:
        return None
    low = min(float(x[0]) for x in (*places, *([mark.x] for mark in marks)))
    high = max(float(x[-1]) for x in (*places, *([mark.x] for mark in marks)))
    return Scale(low, high) if high > low else Scale(low - 0.5, high + 0.5)


def _scale_y(lines: Sequence[Line], log: bool) -> Scale | None:
    """Return the scale that shows every curve; a band may go beyond it.

    With two seeds Student's interval is wider than the curves by an order of magnitude: drawn
    whole, it would leave nothing to be seen of them.
    """
    low, high = math.inf, -math.inf
    for line in lines:
        for values in (line.y, *line.seeds, *(() if line.raw is None else (line.raw,))):
            shown = values[np.isfinite(values) & ((values > 0) | (not log))]
            if len(shown):
                low, high = min(low, float(shown.min())), max(high, float(shown.max()))
    if low > high:
        return None
    if log:
        return Scale(low / 1.2, high * 1.2, log=True)
    low, high = _with_bands(lines, low, high)
    margin = _MARGIN * (high - low) or 0.5 * abs(high) or 0.5
    return Scale(low - margin, high + margin)


def _with_bands(lines: Sequence[Line], low: float, high: float) -> tuple[float, float]:
    """Return bounds widened for bands, by no more than a half to either side."""
    most = 0.5 * (high - low)
    wanted_low, wanted_high = low, high
    for line in lines:
        if line.low is not None and line.high is not None and np.isfinite(line.low).any():
            wanted_low = min(wanted_low, float(np.nanmin(line.low)))
            wanted_high = max(wanted_high, float(np.nanmax(line.high)))
    return max(wanted_low, low - most), min(wanted_high, high + most)


def _grid_x(across: Scale, axis: str) -> Markup:
    ticks = _time_ticks(across) if axis in TIMES else across.ticks()
    told = _time_words if axis in TIMES else short
    shown = Markup('<text class="tx" x="{0}%" y="100%" dy="15"{2}>{1}</text>')
    parts: list[Markup] = []
    for tick in ticks:
        place = 100 * across.at(tick)
        edge = ' text-anchor="end"' if place > 96 else ' text-anchor="start"' if place < 4 else ""
        parts.append(shown.format(f"{place:.2f}", told(tick), Markup(edge)))
    unit = Markup('<text class="unit" x="100%" y="100%" dy="29">{}</text>')
    return Markup("").join([*parts, unit.format(UNITS.get(axis, axis))])


def _grid_y(up: Scale) -> Markup:
    shown = Markup(
        '<line class="grid" x1="0" x2="100%" y1="{0}%" y2="{0}%"/>'
        '<text class="ty" x="-6" y="{0}%" dy="4">{1}</text>'
    )
    ticks = [(100 - 100 * up.at(tick), tick) for tick in up.ticks()]
    return Markup("").join(shown.format(f"{y:.2f}", short(tick)) for y, tick in ticks)


def _curve(line: Line, across: Scale, up: Scale) -> Markup:
    x = across.place(line.x)
    parts = [f'<g class="c{line.look.colour} d{line.look.dash}">']
    if line.low is not None and line.high is not None:
        path = _band(x, up.place(_positive(line.low, up)), up.place(line.high))
        parts.append(f'<path class="band" d="{path}"/>')
    # One path for all: as many elements as a chart has seeds would be slow to paint.
    seeds = "".join(_path(x, up.place(values)) for values in line.seeds)
    parts.append(f'<path class="seed" d="{seeds}"/>' if seeds else "")
    if line.raw is not None:
        parts.append(f'<path class="raw" d="{_path(x, up.place(line.raw))}"/>')
    parts.append(f'<path class="centre" d="{_path(x, up.place(line.y))}"/>')
    if line.odd:
        marks = across.place(np.array(line.odd))
        ticks = "".join(f"M{round(BOX * at)} {BOX}v-40" for at in marks.tolist())
        parts.append(f'<path class="odd" d="{ticks}"/>')
    parts.append("</g>")
    return Markup("".join(parts))  # only numbers and our own words are in it


def _marks(marks: Sequence[Mark], across: Scale) -> list[Markup]:
    """Return a triangle on the x-axis for each place that has marks; it leads to the first."""
    by_place: dict[int, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.x):
        by_place.setdefault(round(_MARK_PLACES * across.at(mark.x)), []).append(mark)
    drawn = Markup(
        '<a class="mark" href="{0}" aria-label="{1}"><title>{1}</title>'
        '<svg x="{2}%" y="100%" overflow="visible"><path d="M-5 0h10l-5-9z"/></svg></a>'
    )
    return [
        drawn.format(of[0].address, _said(of), f"{100 * across.at(of[0].x):.2f}")
        for of in by_place.values()
    ]


def _said(marks: Sequence[Mark]) -> str:
    said = "; ".join(mark.label for mark in marks[:_MOST_SAID])
    return f"{said} and {len(marks) - _MOST_SAID} more" if len(marks) > _MOST_SAID else said


def _positive(values: np.ndarray, up: Scale) -> np.ndarray:
    return np.where(values > 0, values, up.low / 10) if up.log else values


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Return a path through the places, broken where there is no value."""
    there = np.flatnonzero(np.isfinite(y))
    if not len(there):
        return ""
    across = np.rint(BOX * x[there]).astype(int)
    down = np.rint(BOX * (1 - y[there].clip(-9, 10))).astype(int)
    starts = np.diff(there, prepend=-2) > 1
    last_x, last_y = 0, 0
    steps: list[str] = []
    for start, at, below in zip(starts.tolist(), across.tolist(), down.tolist(), strict=True):
        steps.append(f"M{at} {below}" if start else f"l{at - last_x} {below - last_y}")
        last_x, last_y = at, below
    lonely = len(there) == 1
    return "".join(steps) + ("h0" if lonely else "")


def _band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Return closed shapes between two curves, one for each stretch that has both."""
    there = np.isfinite(low) & np.isfinite(high)
    bounds = np.flatnonzero(np.diff(there, prepend=False, append=False))
    shapes: list[str] = []
    for first, last in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
        upper = _path(x[first:last], high[first:last])
        lower = _path(x[first:last][::-1], low[first:last][::-1])
        shapes.append(f"{upper}L{lower[1:]}z")
    return "".join(shapes)


def _readings(lines: Sequence[Line], across: Scale, axis: str) -> str:
    """Return what the crosshair reads, as JSON: numbers of four digits."""
    return json.dumps(
        {
            "low": across.low,
            "high": across.high,
            "axis": axis,
            "lines": [
                {
                    "label": line.label,
                    "colour": line.look.colour,
                    "x": _digits(line.x),
                    "y": _digits(line.y),
                }
                | ({} if line.low is None else {"low": _digits(line.low)})
                | ({} if line.high is None else {"high": _digits(line.high)})
                for line in lines
            ],
        },
        separators=(",", ":"),
    )


def _digits(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist()]


def _round_step(wanted: float) -> float:
    """Return the next larger of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= wanted * (1 - 1e-9))


def _time_ticks(across: Scale) -> list[float]:
    """Return ticks at whole seconds, minutes, hours or days."""
    span = (across.high - across.low) / _TICKS
    nice = [s * u for u in (1, 60, 3600) for s in (1, 2, 5, 10, 15, 30)]
    nice += [86_400.0 * s for s in (0.5, 1, 2, 5, 10, 20, 50, 100)]
    step = next((s for s in sorted(nice) if s >= span), None)
    if step is None or span < 0.5:
        return across.ticks()
    return [step * n for n in range(math.ceil(across.low / step), int(across.high // step) + 1)]


def _time_words(seconds: float) -> str:
    if seconds == 0 or seconds < 60:
        return f"{seconds:.3g} s"
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit and seconds % (unit / 2) == 0:
            return f"{seconds / unit:.3g} {name}"
    return duration(seconds)
