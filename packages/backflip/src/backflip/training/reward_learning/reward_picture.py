"""The picture of a learned reward: returns, calibration, one episode, and a table of numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from runshelf.charts.plot import Line, plot, x_scale, y_scale
from runshelf.charts.scales import Scale

PICTURE = "learned-reward.svg"
_BOX = (400, 230)
_COLUMN, _ROW = 490, 330
_LEFT, _TOP = 62, 52
_TICKS = 5
_STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2328 } .tx, .ty { fill: #59636e }
.grid { stroke: #d8dee4 } .axis { stroke: #818b98 } .c0 { color: #0b62c4 } .c1 { color: #a8480b }
.c0, .c1 { fill: currentColor } .centre, .dots { fill: none; stroke: currentColor }
.centre { stroke-width: 2 } .dots { stroke-width: 7; stroke-linecap: round }
.band { fill: currentColor; fill-opacity: .18 } .curves { overflow: hidden }
.ideal { stroke: #818b98; stroke-dasharray: 4 4; fill: none }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
.title { font-size: 14px; font-weight: 600 } .tx, .middle { text-anchor: middle }
.ty { text-anchor: end }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .tx, .ty { fill: #9198a1 }
.grid { stroke: #262c36 } .axis { stroke: #656c76 } .c0 { color: #6cb6ff } .c1 { color: #f0a35e }
}
"""


def reward_picture(measures: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Return the picture of the first seed's learned reward as the text of an SVG file.

    Args:
        measures: what `backflip.training.reward_learning.reward_measures` wrote.
        summary: its summary over seeds.
    """
    first = measures["seeds"][0]
    panels = [
        ("Return of clips, seed " + str(first["seed"]), _returns(first["clips"])),
        ("Calibration of P(left)", _calibration(first)),
        ("Reward along an episode", _episode(first["episode"])),
        ("In numbers", _numbers(first, summary)),
    ]
    width, height = 2 * _COLUMN, 2 * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title desc">',
        '<title id="title">The learned reward</title>',
        f'<desc id="desc">{escape(summary["in_words"])}</desc>',
        f'<style>{_STYLE}</style><rect class="paper" width="{width}" height="{height}"/>',
    ]
    for place, (title, content) in enumerate(panels):
        left, top = place % 2 * _COLUMN, place // 2 * _ROW
        parts.append(f'<svg x="{left}" y="{top}" overflow="visible">')
        parts.append(f'<text class="title ink" x="{_LEFT}" y="22">{escape(title)}</text>')
        parts += [*content, "</svg>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _returns(clips: Mapping[str, Any]) -> Iterator[str]:
    """Yield a scatter of true against learned return of clips."""
    groups = [np.array([clips[name][of] for of in ("true", "learned")]) for name in _GROUPS]
    groups = [group[:, np.isfinite(group).all(0)] for group in groups]
    both = np.concatenate(groups, axis=1)
    if not both.size:
        return
    scales = [_scale(values) for values in both]
    yield from _legend([("newest behaviour", 0), ("random policy", 1)])
    dots = [_dots(group, scales, colour) for colour, group in enumerate(groups)]
    yield from _axes([], scales[0], scales[1], "true return", "learned return", dots)


def _calibration(seed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the share of answers `left` against the predicted probability."""
    unit = Scale(0.0, 1.0)
    lines: list[Line] = []
    legend: list[tuple[str, int]] = []
    for colour, (name, text) in enumerate((("fresh", "fresh pairs"), ("labels", "all labels"))):
        bins = [one for one in seed[name]["bins"] if one["answers"]]
        x, y = (np.array([one[of] for one in bins], float) for of in ("predicted", "observed"))
        lines.append(Line(text, x, y, colour, dots=True))
        legend.append((f"{text} ({seed[name]['answers']})", colour))
    ideal = f'<path class="ideal" d="M0 {_BOX[1]}L{_BOX[0]} 0"/>'
    yield from _legend(legend)
    yield from _axes(lines, unit, unit, "predicted P(left)", "answered left", [ideal])


def _episode(episode: Mapping[str, Any]) -> Iterator[str]:
    """Yield the learned reward of each step with the members' spread, and the true reward."""
    learned, spread, true = (np.array(episode[x], float) for x in ("learned", "spread", "true"))
    true = np.where(np.isfinite(true), true, 0.0)
    size = true.std() or 1.0
    steps = np.arange(len(learned), dtype=float)
    shown = Line("learned", steps, learned, 0, low=learned - spread, high=learned + spread)
    scaled = (true - true.mean()) / size * (learned.std() or 1.0) + learned.mean()
    lines = [shown, Line("true", steps, scaled, 1)]
    across, down = x_scale(lines), y_scale(lines)
    if across is None or down is None:
        return
    yield from _legend([("learned, ± members' spread", 0), ("true, to the same scale", 1)])
    yield from _axes(lines, across, down, "env step", "reward", [])


def _numbers(seed: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of the summary, then the labels that the model is most wrong about."""
    names = {
        "spearman_clips": "Spearman, clips",
        "spearman_episodes": "Spearman, episodes",
        "calibration_error": "calibration error, all labels",
        "fresh_calibration_error": "calibration error, fresh pairs",
        "epic": "EPIC distance to the true reward",
        "dard": "DARD distance to the true reward",
    }
    rows = [
        (text, "unknown" if summary[name] is None else f"{summary[name]:.3f}")
        for name, text in names.items()
    ]
    for key, text in (("most_wrong", "most wrong"), ("most_unsure", "most unsure")):
        for one in seed[key][:3]:
            said = f"{one['answer']}, P(left) {one['left']:.2f} ± {one['spread']:.2f}"
            rows.append((f"{text}: query {one['query']}", said))
    for place, (name, value) in enumerate(rows):
        down = _TOP + 18 * place
        yield f'<text class="ink" x="{_LEFT}" y="{down}">{escape(name)}</text>'
        yield f'<text class="ink" x="{_LEFT + 235}" y="{down}">{escape(value)}</text>'


_GROUPS = ("newest", "random")


def _scale(values: np.ndarray) -> Scale:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 0.5
    return Scale(low - margin, high + margin)


def _dots(group: np.ndarray, scales: Sequence[Scale], colour: int) -> str:
    across, up = (scale.place(values) for scale, values in zip(scales, group, strict=True))
    dots = "".join(
        f'<circle cx="{_BOX[0] * x:.1f}" cy="{_BOX[1] * (1 - y):.1f}" r="2.5" fill-opacity=".6"/>'
        for x, y in zip(across, up, strict=True)
    )
    return f'<g class="c{colour}">{dots}</g>'


def _axes(
    lines: Sequence[Line], x: Scale, y: Scale, across: str, up: str, more: Sequence[str]
) -> Iterator[str]:
    width, height = _BOX
    yield f'<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" overflow="visible">'
    yield plot(lines, x, y, _BOX, _TICKS)
    yield from more
    yield "</svg>"
    centre, middle = _LEFT + width / 2, _TOP + height / 2
    yield f'<text class="ink middle" x="{centre}" y="{_TOP + height + 34}">{across}</text>'
    yield f'<text class="ink middle" transform="translate(14 {middle}) rotate(-90)">{up}</text>'


def _legend(entries: Sequence[tuple[str, int]]) -> Iterator[str]:
    for place, (text, colour) in enumerate(entries):
        left = _LEFT + 205 * place
        yield f'<circle class="c{colour}" cx="{left + 5}" cy="38" r="4"/>'
        yield f'<text class="ink" x="{left + 14}" y="42">{escape(text)}</text>'
