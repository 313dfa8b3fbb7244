"""A chart as an SVG file with title, legend, axes, text alternative, light and dark theme."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final
from xml.sax.saxutils import escape

from runshelf.charts.plot import Line, plot
from runshelf.charts.scales import Scale
from runshelf.formatting import cut

_WIDTH, _HEIGHT = 760, 420
_LEFT, _TOP = 74, 66
_BOX = (_WIDTH - _LEFT - 24, _HEIGHT - _TOP - 56)
_LETTER, _TITLE_LETTER = 6.7, 9.0  # upper estimates of the mean width of a letter, in pixels
_TICKS = 7
_STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2328 } .tx, .ty { fill: #59636e }
.grid { stroke: #d8dee4 } .axis { stroke: #818b98 } .c0 { color: #0b62c4 } .c1 { color: #a8480b }
.centre, .seed, .dots { fill: none; stroke: currentColor; stroke-linejoin: round }
.centre { stroke-width: 2.5; stroke-linecap: round } .d1 .centre { stroke-width: 1.5 }
.d1 .centre { stroke-dasharray: 7 4; stroke-linecap: butt }
.seed { stroke-width: 1; stroke-opacity: .4 } .dots { stroke-width: 8; stroke-linecap: round }
.band { fill: currentColor; fill-opacity: .18 } .curves { overflow: visible }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
.title { font-size: 15px; font-weight: 600 } .tx, .middle { text-anchor: middle }
.ty { text-anchor: end }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .tx, .ty { fill: #9198a1 }
.grid { stroke: #262c36 } .axis { stroke: #656c76 } .c0 { color: #6cb6ff } .c1 { color: #f0a35e }
}
"""


@final
class Legend(NamedTuple):
    """An entry of the legend; `mark` is `centre`, `band` or `seed`."""

    mark: str
    text: str
    colour: int = 0
    dash: int = 0


def picture(
    title: str,
    lines: Sequence[Line],
    x: tuple[Scale, str],
    y: tuple[Scale, str],
    *,
    legend: Sequence[Legend],
    description: str,
) -> str:
    """Return a chart as the text of an SVG file.

    Args:
        title: one line; cut in the middle if it is too long.
        lines: the curves; only colours 0 and 1 have a style.
        x: the horizontal scale and what it measures.
        y: the vertical scale and what it measures, with its unit.
        legend: what the marks mean.
        description: the text alternative for readers who cannot see the picture.
    """
    width, height = _BOX
    across, down = _LEFT + width / 2, _TOP + height / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(description)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text class="title ink" x="{_LEFT}" y="24">{escape(_cut(title))}</text>',
        *_legend(legend),
        f'<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" overflow="visible">',
        plot(lines, x[0], y[0], _BOX, _TICKS),
        "</svg>",
        f'<text class="ink middle" x="{across}" y="{_HEIGHT - 14}">{escape(x[1])}</text>',
        f'<text class="ink middle" transform="translate(18 {down}) rotate(-90)">{escape(y[1])}'
        "</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend(entries: Sequence[Legend]) -> Iterator[str]:
    left = _LEFT
    for mark, text, colour, dash in entries:
        shape = f"M{left} 36h24v12h-24z" if mark == "band" else f"M{left} 42h24"
        yield f'<g class="c{colour} d{dash}"><path class="{mark}" d="{shape}"/></g>'
        yield f'<text class="ink" x="{left + 30}" y="46">{escape(text)}</text>'
        left += 50 + round(_LETTER * len(text))


def _cut(title: str) -> str:
    return cut(title, int(_BOX[0] / _TITLE_LETTER))
