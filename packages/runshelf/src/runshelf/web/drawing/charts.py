"""Charts of pages: scalable SVG with links to clips, and data for the crosshair."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

from markupsafe import Markup, escape

from runshelf.charts.plot import Line, digits, plot, x_scale, y_scale
from runshelf.charts.scales import Scale

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
_MARK_SLOTS = 60  # along the axis: marks in one slot share a triangle, others do not overlap
_MOST_NAMED = 3  # marks of one slot


@final
class Mark(NamedTuple):
    """A link to a clip or an image at a position on the x-axis."""

    x: float
    address: str
    label: str


def chart(
    title: str, lines: Sequence[Line], axis: str, *, log: bool = False, marks: Sequence[Mark] = ()
) -> Markup:
    """Return a chart as an HTML element that contains an `svg`.

    Args:
        title: the text alternative.
        lines: the curves; if they have no values, the chart contains a message.
        axis: the x-axis, one of `UNITS`.
        log: whether the y-axis is logarithmic.
        marks: links on the x-axis.
    """
    more = [mark.x for mark in marks] + [x for line in lines for x in line.invalid]
    across = x_scale(lines, more, clock=axis in TIMES)
    up = y_scale(lines, log=log)
    if across is None or up is None:
        why = "no positive values for a logarithmic scale" if log else "no values along this axis"
        return _frame(title, f'<text class="nothing" x="50%" y="50%">{why}</text>', "")
    inner = "".join(
        [
            plot(lines, across, up),
            f'<text class="unit" x="100%" y="100%" dy="29">{escape(UNITS.get(axis, axis))}</text>',
            '<line class="cross" y1="0" y2="100%" x1="0" x2="0" visibility="hidden"/>',
            *_marks(marks, across),
        ]
    )
    # The role `img` would hide links from screen readers.
    return _frame(title, inner, _curve_data(lines, across, axis), "group" if marks else "img")


def _frame(title: str, inner: str, curve_data: str, role: str = "img") -> Markup:
    head = Markup('<div class="chart" role="{}" aria-label="{}" data-curves="{}">')
    # `inner` contains only numbers, constants and escaped text.
    return head.format(role, title, curve_data) + Markup(f'<svg class="plot">{inner}</svg></div>')


def _marks(marks: Sequence[Mark], across: Scale) -> Iterator[str]:
    """Yield one triangle on the x-axis for each slot with marks; it links to the first mark."""
    by_slot: dict[int, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.x):
        by_slot.setdefault(round(_MARK_SLOTS * across.at(mark.x)), []).append(mark)
    for here in by_slot.values():
        label = "; ".join(mark.label for mark in here[:_MOST_NAMED])
        more = f" and {len(here) - _MOST_NAMED} more" if len(here) > _MOST_NAMED else ""
        text = escape(label + more)
        yield (
            f'<a class="mark" href="{escape(here[0].address)}" aria-label="{text}">'
            f'<title>{text}</title><svg x="{100 * across.at(here[0].x):.2f}%" y="100%" '
            'overflow="visible"><path d="M-5 0h10l-5-9z"/></svg></a>'
        )


def _curve_data(lines: Sequence[Line], across: Scale, axis: str) -> str:
    """Return the curves as JSON for the crosshair."""
    drawn = [_line(line) for line in lines]
    fields = {"low": across.low, "high": across.high, "axis": axis, "lines": drawn}
    return json.dumps(fields, separators=(",", ":"))


def _line(line: Line) -> dict[str, Any]:
    band = {"low": line.low, "high": line.high}
    points = {"x": line.x, "y": line.y} | {k: v for k, v in band.items() if v is not None}
    return {name: digits(values) for name, values in points.items()}
