"""A picture of one quantity over another, both on logarithmic axes, beside a line of slope 1."""

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

import numpy as np

from backflip.web.archive_pages.charts import Scale

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 74, 24, 62, 56
STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2328 } .faint { fill: #59636e }
.grid { stroke: #d8dee4 } .measured { stroke: #0b62c4; stroke-width: 2.5 } .dot { fill: #0b62c4 }
.linear { stroke: #a8480b; stroke-width: 1.5; stroke-dasharray: 7 4 }
polyline, line { fill: none } .title { font-size: 14px; font-weight: 600 }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .faint { fill: #9198a1 }
.grid { stroke: #262c36 } .measured { stroke: #6cb6ff } .dot { fill: #6cb6ff }
.linear { stroke: #f0a35e }
}
"""


def log_log_svg(
    sizes: Sequence[float], values: Sequence[float], *, title: str, found: str, x: str, y: str
) -> str:
    """Return an SVG that follows the reader's light or dark theme and says what it shows.

    Args:
        sizes: along the horizontal axis, all above 0.
        values: along the vertical one, all above 0.
        title: what was measured.
        found: what came of it.
        x: what is along the horizontal axis.
        y: what is along the vertical one, with its unit.
    """
    linear = [values[0] * size / sizes[0] for size in sizes]
    across, up = _scale(sizes), _scale([*values, *linear])
    points, steep = _path(across, up, sizes, values), _path(across, up, sizes, linear)
    said = "; ".join(f"{a:,.6g}: {b:.4g}" for a, b in zip(sizes, values, strict=True))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(f'{y} over {x}: {said}; {found}')}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        *_grid(across, up),
        f'<polyline class="linear" points="{steep}"/>',
        f'<polyline class="measured" points="{points}"/>',
        *(_dot(*point.split(",")) for point in points.split()),
        _text(LEFT, 24, title, "ink title", "start"),
        _text(LEFT, 46, f"{found}; dashed: linear", "faint", "start"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x, "faint", "middle"),
        '<g transform="rotate(-90)">',
        _text(-(TOP + HEIGHT - BOTTOM) / 2, 18, y, "faint", "middle"),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _scale(values: Sequence[float]) -> Scale:
    """Return whole decades around the values."""
    low, high = np.floor(np.log10(min(values))), np.ceil(np.log10(max(values)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), log=True)


def _across(scale: Scale, value: float) -> float:
    return LEFT + scale.at(value) * (WIDTH - LEFT - RIGHT)


def _up(scale: Scale, value: float) -> float:
    return HEIGHT - BOTTOM - scale.at(value) * (HEIGHT - BOTTOM - TOP)


def _path(across: Scale, up: Scale, sizes: Sequence[float], values: Sequence[float]) -> str:
    pairs = zip(sizes, values, strict=True)
    return " ".join(f"{_across(across, a):.1f},{_up(up, b):.1f}" for a, b in pairs)


def _grid(across: Scale, up: Scale) -> Iterable[str]:
    """Yield a line and its number for each tick."""
    for tick in across.ticks(8):
        place = f"{_across(across, tick):.1f}"
        yield _line(place, place, str(TOP), str(HEIGHT - BOTTOM))
        yield _text(float(place), HEIGHT - BOTTOM + 18, f"{tick:,.0f}", "faint", "middle")
    for tick in up.ticks(8):
        place = f"{_up(up, tick):.1f}"
        yield _line(str(LEFT), str(WIDTH - RIGHT), place, place)
        yield _text(LEFT - 8, float(place) + 4, f"{tick:g}", "faint", "end")


def _line(x1: str, x2: str, y1: str, y2: str) -> str:
    return f'<line class="grid" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'


def _dot(x: str, y: str) -> str:
    return f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>'


def _text(x: float, y: float, text: str, look: str, anchor: str) -> str:
    return (
        f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
