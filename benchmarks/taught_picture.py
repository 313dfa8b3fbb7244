"""The picture of what teaching reaches: every seed of each row, on a scale of its own.

0 is random actions, or the least seed where these are unknown; the line is the bar. Where a row has
the same learner on its true reward, that is 1.
"""

from collections.abc import Mapping
from xml.sax.saxutils import escape

from rows import Row

_LEFT, _RIGHT, _ROW, _TOP, _WIDTH = 310, 170, 26, 56, 960
_STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .track { stroke: #d8dee4 }
.seed { fill: #0b62c4; fill-opacity: .55 } .mean { stroke: #0b62c4; stroke-width: 3 }
.bar { stroke: #a8480b; stroke-width: 2 } text { font: 12px system-ui, -apple-system, "Segoe UI",
"DejaVu Sans", sans-serif } .title { font-size: 14px; font-weight: 600 } .right { text-anchor: end }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .soft { fill: #9198a1 } .track { stroke: #262c36 }
.seed { fill: #6cb6ff } .mean { stroke: #6cb6ff } .bar { stroke: #f0a35e } }
"""


def taught_svg(rows: Mapping[str, Row]) -> str:
    """Return the picture of the measured rows that have a bar, as the text of an SVG file."""
    shown = {name: row for name, row in rows.items() if row.bar and row.scores}
    height = _TOP + _ROW * len(shown) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="title">',
        '<title id="title">What teaching reaches, every seed of each task</title>',
        f'<style>{_STYLE}</style><rect class="paper" width="{_WIDTH}" height="{height}"/>',
        '<text class="title ink" x="14" y="24">What teaching reaches</text>',
        '<text class="soft" x="14" y="42">dot: one seed; thick: mean; thin: bar; left: random '
        "actions or the least seed; each row has its own scale</text>",
    ]
    for place, (name, row) in enumerate(shown.items()):
        parts += _strip(name, row, _TOP + _ROW * place + _ROW / 2)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _strip(name: str, row: Row, middle: float) -> list[str]:
    """Return one row: its name, its seeds, its mean and bar, and the mean in figures."""
    asked = asked_mean(row)
    least = min([row.worst, asked] if row.floor is None else [row.floor, row.worst, asked])
    most = max([*row.scores, asked] + ([] if row.full is None else [row.full]))
    width = _WIDTH - _LEFT - _RIGHT

    def across(value: float) -> float:
        return _LEFT + width * ((value - least) / (most - least) if most > least else 0.5)

    def line(kind: str, value: float, half: int) -> str:
        x = f"{across(value):.1f}"
        return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{middle - half}" y2="{middle + half}"/>'

    missed = "missed" if row.missed else "met"
    share = "" if row.share is None else f" ({row.share:z.0%})"
    return [
        f'<text class="ink right" x="{_LEFT - 12}" y="{middle + 4}">{escape(name)}</text>',
        f'<line class="track" x1="{_LEFT}" x2="{_LEFT + width}" y1="{middle}" y2="{middle}"/>',
        *(f'<circle class="seed" cx="{across(x):.1f}" cy="{middle}" r="4"/>' for x in row.scores),
        line("bar", asked, 9),
        line("mean", row.mean, 6),
        f'<text class="soft" x="{_WIDTH - _RIGHT + 8}" y="{middle + 4}">{row.mean:.4g}{share}, '
        f"{missed}</text>",
    ]


def asked_mean(row: Row) -> float:
    """Return the return that the first part of a row's bar asks for; its mean if there is none."""
    if "share" in row.bar and row.full is not None and row.floor is not None:
        return row.floor + row.bar["share"] * (row.full - row.floor)
    named = [row.bar[key] for key in ("mean", "worst", "all_but_one") if key in row.bar]
    return named[0] if named else row.mean
