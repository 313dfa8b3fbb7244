"""A comparison as one self-contained HTML file without scripts: sentences, pictures, tables."""

import base64
import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple, final

from markupsafe import Markup

from runshelf.charts.intervals import ROW, Row, row_scale, rows_plot
from runshelf.charts.plot import Line
from runshelf.comparison.document import Document, Section
from runshelf.comparison.result import (
    AcrossResult,
    ComparisonResult,
    EnvironmentResult,
    SideResult,
)
from runshelf.comparison.sections import ACROSS
from runshelf.web.drawing.alignment import Member, align, centred
from runshelf.web.drawing.charts import chart
from runshelf.web.drawing.colours import LineStyle, line_styles
from runshelf.web.sanitize import clean
from runshelf.web.templates import render, style

_MOST_LINES = 12  # curves of one chart
_MOST_ROWS = 60
_BUCKETS = 100


@final
class Picture(NamedTuple):
    """A picture with its caption, and the colours of its lines if it has a legend."""

    svg: Markup
    caption: str
    legend: list[tuple[str, LineStyle]]
    note: str = ""


@final
class Part(NamedTuple):
    """A section with its pictures."""

    section: Section
    pictures: list[Picture]


def comparison_file(results: Sequence[ComparisonResult], document: Document) -> str:
    """Return the HTML of a comparison.

    Args:
        results: the analyses.
        document: the same as sections.
    """
    sheet = style()
    return render(
        "comparison_file.html",
        title=document.title,
        style=Markup(sheet),  # trusted, contains no `</style>`
        digest=base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode(),
        parts=[Part(one, pictures_of(results, one)) for one in document.sections],
    )


def pictures_of(results: Sequence[ComparisonResult], section: Section) -> list[Picture]:
    """Return the pictures of a section."""
    if section.pictures is None:
        return []
    place, name = section.pictures
    result = results[place]
    if name == ACROSS:
        return [] if result.across is None else _across(result.across, result.labels)
    env = next(one for one in result.environments if one.env == name)
    curves = [_curves(result, env)] if env.has_curves else []
    return [*curves, _seeds(result, env), *_differences(env)]


def styles_of(labels: Sequence[str]) -> dict[str, LineStyle]:
    """Return the line of each group, in the colour that it has on every page."""
    return dict(zip(labels, line_styles(labels), strict=True))


def _curves(result: ComparisonResult, env: EnvironmentResult) -> Picture:
    styles = styles_of(result.labels)
    drawn = env.sides[:_MOST_LINES]
    lines = [_line(side, styles[side.label]) for side in drawn]
    axis = result.axis
    svg = chart(clean(f"{result.metric} in {env.env}", 200), lines, axis)
    note = "thick: mean over seeds, band: 95 % interval (Student t), thin: seeds"
    if len(env.sides) > len(drawn):
        note += f"; the first {len(drawn)} of {len(env.sides)} groups are drawn"
    legend = [(side.label, styles[side.label]) for side in drawn]
    return Picture(svg, f"{result.metric} along {axis.replace('_', ' ')}", legend, note)


def _line(side: SideResult, look: LineStyle) -> Line:
    """Return the mean curve of a side with the interval of the mean."""
    outlines = [seed.outline for seed in side.seeds if seed.outline]
    members: list[Member] = []
    for one in outlines:
        there = one.n > 0
        x, y = one.x[there] / one.n[there], one.y[there] / one.n[there]
        members.append(Member("", x, y))
    aligned = align(members, _BUCKETS)
    band = centred(aligned, "mean")
    several = len(members) > 1
    return Line(
        label=clean(side.label, 80),
        colour=look.colour,
        dash=look.dash,
        x=aligned.x,
        y=band.centre,
        low=band.low if several else None,
        high=band.high if several else None,
        seeds=list(aligned.values) if several else (),
        invalid=aligned.left_out_at,
        dots=len(aligned.x) == 1,
    )


def _seeds(result: ComparisonResult, env: EnvironmentResult) -> Picture:
    styles = styles_of(result.labels)
    rows = [
        Row(
            label=f"{clean(side.label, 80)}, n = {len(side.seeds)}",
            points=side.counted,
            centre=side.mean.value,
            low=side.mean.low,
            high=side.mean.high,
            colour=styles[side.label].colour,
            failed=[bool(seed.failure) for seed in side.seeds],
        )
        for side in env.sides[:_MOST_ROWS]
    ]
    note = "a dot is a seed, a cross a failure; the bar is the mean, the line its 95 % interval"
    more = [] if env.threshold is None else [env.threshold]
    caption = f"every seed: final {result.metric}"
    return Picture(_rows(rows, caption, env.threshold, more), caption, [], note)


def _differences(env: EnvironmentResult) -> list[Picture]:
    if not env.pairs:
        return []
    rows = [
        Row(f"{clean(pair.one, 40)} − {clean(pair.other, 40)}", [], *pair.difference[:3])
        for pair in env.pairs[:_MOST_ROWS]
    ]
    caption = "differences of the means"
    note = "the line is the 95 % interval (Welch); it crosses 0 if no difference is shown"
    if len(env.pairs) > len(rows):
        note += f"; the first {len(rows)} of {len(env.pairs)} pairs are drawn"
    return [Picture(_rows(rows, caption, 0.0, [0.0]), caption, [], note)]


def _across(one: AcrossResult, labels: Sequence[str]) -> list[Picture]:
    styles = styles_of(labels)
    rows = [
        Row(clean(label, 80), [], *iqm[:3], colour=styles[label].colour)
        for label, iqm in zip(one.labels, one.iqm, strict=True)
    ]
    caption = "interquartile mean of normalised scores"
    found = [Picture(_rows(rows, caption, None, []), caption, [], "the line is the 95 % interval")]
    lines = [
        Line(
            label=clean(label, 80),
            colour=styles[label].colour,
            dash=styles[label].dash,
            x=profile.thresholds,
            y=profile.share,
            low=profile.low,
            high=profile.high,
        )
        for label, profile in zip(one.labels, one.profiles, strict=True)
    ][:_MOST_LINES]
    svg = chart("performance profiles", lines, "normalised score")
    legend = [(label, styles[label]) for label in one.labels[:_MOST_LINES]]
    note = "share of runs with a score above each value; band: 95 % bootstrap by environment"
    return [*found, Picture(svg, "performance profiles", legend, note)]


def _rows(rows: Sequence[Row], title: str, mark: float | None, more: Sequence[float]) -> Markup:
    scale = row_scale(rows, [value for value in more if math.isfinite(value)])
    head = Markup('<div class="row-chart" role="img" aria-label="{}">').format(title)
    if scale is None:
        return head + Markup("<p>no values</p></div>")
    # The content has only numbers, constants and escaped text.
    inner = rows_plot(rows, scale, mark=mark)
    return head + Markup(f'<svg class="rows-of" height="{ROW * len(rows)}">{inner}</svg></div>')
