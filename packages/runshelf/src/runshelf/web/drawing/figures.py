"""Charts of groups and runs with their tables: reads, aligns, averages and draws curves."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from markupsafe import Markup

from runshelf.charts.plot import Line
from runshelf.formatting import plural, shortened
from runshelf.statistics.estimate import CONFIDENCE
from runshelf.statistics.intervals import interval
from runshelf.store import series
from runshelf.store.metrics import stamp
from runshelf.web import run_files
from runshelf.web.cache import Cache
from runshelf.web.drawing.alignment import (
    Aligned,
    Member,
    align,
    any_finite,
    centred,
    finals,
    smoothed,
)
from runshelf.web.drawing.charts import TIMES, UNITS, Mark, chart
from runshelf.web.drawing.colours import LineStyle, line_styles
from runshelf.web.drawing.seed_ends import SeedEnd, early_ends, ends_note, fewer_seeds
from runshelf.web.parameters import ChartView
from runshelf.web.sanitize import clean
from runshelf.web.subjects import Part, Subject

MOST_SEEDS = 1_000  # of one run in a chart
_MOST_LINES = 200  # of single seeds
_SPARSE = 80
_OTHER_AXES = ("seconds", "updates", "step")  # in place of an axis that a metric lacks
_LONGEST_LABEL = 36
_MOST_ENDS = 3
_TABLE_POINTS = 1_000  # upper limit for the table on the page of one chart


@final
class CurveSummary(NamedTuple):
    """The last values of a curve: one row of the table under a chart.

    Attributes:
        label: name of the group or run, shortened where it is like the others.
        title: its whole name.
        style: colour and dash pattern.
        seeds: number of seeds with values.
        of: number of seeds.
        centre: mean or interquartile mean of the seeds' last values.
        low: lower end of its interval; NaN below two seeds.
        high: upper end of its interval.
        least: smallest of the last values.
        least_of: the seed with the smallest value.
        ends: what to say about seeds that end before the others; may be empty.
    """

    label: str
    title: str
    style: LineStyle
    seeds: int
    of: int
    centre: float
    low: float
    high: float
    least: float
    least_of: str
    ends: str = ""


@final
class Figure(NamedTuple):
    """One chart with its table and legend.

    Attributes:
        metric: name of the metric.
        svg: the chart.
        curves: a table row for each curve.
        band: description of the band.
        notes: other remarks for the legend.
        axis: the x-axis: the wanted one, or another if the metric has no values along it.
    """

    metric: str
    svg: Markup
    curves: list[CurveSummary]
    band: str
    notes: list[str]
    axis: str


def figures(
    subjects: Sequence[Subject],
    metrics: Sequence[str],
    axis: str,
    view: ChartView,
    cache: Cache,
    marks: tuple[Mark, ...] = (),
) -> list[Figure]:
    """Return a chart for each metric, with a curve for each subject.

    If a run has no value of a metric along the axis, the chart has an axis that all its runs have,
    and says so. Marks and zoom, which are places on the wanted axis, do not apply to it.

    Args:
        subjects: groups and runs.
        metrics: names of the metrics.
        axis: the x-axis.
        view: how curves are drawn.
        cache: caches the charts.
        marks: links on the x-axis of each chart.
    """
    stamps = tuple((part.folder, stamp(part.folder)) for s in subjects for part in s.parts)
    low, high = view.bounds
    marks = tuple(mark for mark in marks if low <= mark.x <= high)
    options = (axis, view._replace(find="", page=1), marks)
    names = tuple((s.kind, s.key, s.title, s.left_out) for s in subjects)
    keys = {metric: ("figure", metric, options, names, stamps) for metric in metrics}
    found = {metric: cache.get(key) for metric, key in keys.items()}
    missing = [metric for metric in metrics if found[metric] is None]
    others = _other_axes(subjects, missing, axis)
    usual = [metric for metric in missing if metric not in others]
    drawn = _figures_along(subjects, usual, axis, view, marks)
    for along in {*others.values()}:
        rest = [metric for metric, other in others.items() if other == along]
        note = _axis_note(subjects, along, axis)
        drawn |= _figures_along(subjects, rest, along, view._replace(start="", end=""), (), note)
    for metric, figure in drawn.items():
        found[metric] = cache.put(keys[metric], figure, size=len(figure.svg) * 2)
    return [figure for metric in metrics if isinstance(figure := found[metric], Figure)]


def _figures_along(
    subjects: Sequence[Subject],
    metrics: Sequence[str],
    axis: str,
    view: ChartView,
    marks: Sequence[Mark],
    note: str = "",
) -> dict[str, Figure]:
    """Return the charts of metrics that have values along an axis, with a note for each legend."""
    read = [_read(subject, metrics, axis, view) for subject in subjects] if metrics else []
    found: dict[str, Figure] = {}
    for metric in metrics:
        figure = _figure(subjects, metric, [per[metric] for per in read], axis, view, marks)
        found[metric] = figure._replace(notes=[note, *figure.notes]) if note else figure
    return found


def _other_axes(subjects: Sequence[Subject], metrics: Sequence[str], axis: str) -> dict[str, str]:
    """Return the axis of each metric that some run has, but not along the wanted axis."""
    lacking: dict[str, list[list[str]]] = {}
    folders = [part.folder for subject in subjects for part in subject.parts]
    for folder in folders if metrics else ():
        read = functools.partial(series.axes_instead, metrics=metrics, axis=axis)
        for metric, instead in run_files.read_metrics(folder, read, {}).items():
            lacking.setdefault(metric, []).append(instead)
    found: dict[str, str] = {}
    for metric, every in lacking.items():
        able = [other for other in _OTHER_AXES if all(other in one for one in every)]
        found[metric] = next(other for other in able if _all_have(folders, metric, other))
    return found


def _all_have(folders: Sequence[Path], metric: str, axis: str) -> bool:
    read = functools.partial(series.axes_instead, metrics=[metric], axis=axis)
    return not any(run_files.read_metrics(folder, read, {}) for folder in folders)


def _axis_note(subjects: Sequence[Subject], axis: str, wanted: str) -> str:
    lacking = UNITS.get(wanted, wanted).partition(" since")[0]
    here = UNITS.get(axis, axis).partition(" since")[0]
    several = sum(len(subject.parts) for subject in subjects) > 1
    who = "some runs" if several else "the run"
    return f"drawn over {here}: {who} logged it without {lacking}"


def point_tables(
    subjects: Sequence[Subject], metric: str, axis: str, view: ChartView
) -> list[tuple[str, Sequence[tuple[float, ...]]]]:
    """Return the title of each subject with rows of x, seeds, centre, low and high."""
    found: list[tuple[str, Sequence[tuple[float, ...]]]] = []
    for subject in subjects:
        members = _read(subject, [metric], axis, view)[metric]
        aligned = align(members, _TABLE_POINTS, positive=view.log)
        band = centred(aligned, view.centre, view.share)
        columns = (aligned.x, band.seeds, band.centre, band.low, band.high)
        rows = [tuple(map(float, row)) for row in zip(*columns, strict=True)]
        found.append((subject.title, rows))
    return found


def _read(
    subject: Subject, metrics: Sequence[str], axis: str, view: ChartView
) -> dict[str, list[Member]]:
    """Return the curves of all seeds of a subject by metric; without values a curve is empty."""
    members: dict[str, list[Member]] = {metric: [] for metric in metrics}
    for part in subject.parts:
        found = run_files.read_metrics(
            part.folder, lambda folder: series.read_series(folder, metrics, axis), {}
        )
        seeds = _counted(part, {seed for per in found.values() for seed in per})
        for metric in metrics:
            for seed in seeds:
                curve = found.get(metric, {}).get(seed)
                members[metric].append(_member(subject, part, seed, curve, view))
    return members


def _counted(part: Part, logged: set[int | None]) -> list[int | None]:
    """Return the seeds of a run that count, of those that were logged; at least one."""
    counted = logged if part.seeds is None else logged & (part.seeds | {None})
    return sorted(counted or logged or {None}, key=str)[:MOST_SEEDS]


def _member(
    subject: Subject, part: Part, seed: int | None, curve: series.Series | None, view: ChartView
) -> Member:
    counted = [one for one in part.seeds or () if one is not None]
    known = counted[0] if seed is None and len(counted) == 1 else seed
    label = part.name if known is None else f"seed {known}"
    if known is not None and len(subject.parts) > 1:
        label = f"{part.name} seed {known}"
    if curve is None:
        return Member(label, np.empty(0), np.empty(0))
    low, high = view.bounds
    inside = (curve.x >= low) & (curve.x <= high)
    return Member(label, curve.x[inside], curve.y[inside], min(curve.end, high))


def _figure(
    subjects: Sequence[Subject],
    metric: str,
    members: Sequence[Sequence[Member]],
    axis: str,
    view: ChartView,
    marks: Sequence[Mark],
) -> Figure:
    buckets = 160 if len(subjects) < 4 else _SPARSE
    aligned = [align(seeds, buckets, positive=view.log) for seeds in members]
    labels = shortened([clean(subject.title, 400) for subject in subjects], _LONGEST_LABEL)
    styles = line_styles([subject.group for subject in subjects])
    lines = [
        _line(subject, style, seeds, one, view, alone=len(subjects) == 1)
        for subject, style, seeds, one in zip(subjects, styles, members, aligned, strict=True)
    ]
    rows = [
        _summary(subject, label, style, one, view)
        for subject, label, style, one in zip(subjects, labels, styles, aligned, strict=True)
    ]
    ends = [early_ends(seeds) for seeds in members]
    rows = [row._replace(ends=_ends(early)) for row, early in zip(rows, ends, strict=True)]
    svg = chart(clean(metric, 200), lines, axis, log=view.log, marks=marks)
    most = max((row.seeds for row in rows), default=0)
    bucketed = any(one.bucketed for one in aligned)
    band = _band_text(view, most, bucketed=bucketed)
    notes = _notes(subjects, aligned, axis, view) + _ends_notes(labels, members)
    if any(len(seeds) >= MOST_SEEDS for seeds in members):
        notes.append(f"at most {MOST_SEEDS} seeds of a run are drawn")
    notes += [
        (f"{row.label}: " if len(rows) > 1 else "")
        + ends_note(early, row.seeds, clock=axis in TIMES)
        for row, early in zip(rows, ends, strict=True)
        if early
    ]
    return Figure(metric, svg, rows, band, notes, axis)


def _ends(early: Sequence[SeedEnd]) -> str:
    """Return `1 ends early`."""
    return f"{len(early)} {'ends' if len(early) == 1 else 'end'} early" if early else ""


def _line(
    subject: Subject,
    style: LineStyle,
    members: Sequence[Member],
    aligned: Aligned,
    view: ChartView,
    *,
    alone: bool,
) -> Line:
    band = centred(aligned, view.centre, view.share)
    raw = centred(aligned, view.centre).centre if view.share else None
    seeds = [row for row in smoothed(aligned.values, view.share) if any_finite(row)]
    low, high = (band.low, band.high) if len(seeds) > 1 else _spread(members, aligned)
    return Line(
        label=clean(subject.title, 80),
        colour=style.colour,
        dash=style.dash,
        x=aligned.x,
        y=band.centre,
        low=low,
        high=high,
        seeds=seeds[:_MOST_LINES] if alone and len(seeds) > 1 else (),
        raw=raw,
        fewer=fewer_seeds(aligned) if early_ends(members) else None,
        invalid=aligned.left_out_at,
        dots=len(aligned.x) == 1,
    )


def _spread(members: Sequence[Member], aligned: Aligned) -> tuple[np.ndarray | None, ...]:
    """Return lower and upper ends of each bucket of a single seed; None without buckets."""
    member = next((m for m in members if np.isfinite(m.y).any()), None)
    if member is None or not aligned.bucketed:
        return None, None
    finite = np.isfinite(member.y)
    kept = series.Series(member.x[finite], member.y[finite])
    buckets = series.bucket(kept, len(aligned.x))
    low = np.interp(aligned.x, buckets.x, buckets.minimum)
    return low, np.interp(aligned.x, buckets.x, buckets.maximum)


def _summary(
    subject: Subject, label: str, style: LineStyle, aligned: Aligned, view: ChartView
) -> CurveSummary:
    last = finals(aligned)
    valid = np.isfinite(last)
    title = clean(subject.title, 400)
    if not valid.any():
        return CurveSummary(
            label=label,
            title=title,
            style=style,
            seeds=0,
            of=len(last),
            centre=np.nan,
            low=np.nan,
            high=np.nan,
            least=np.nan,
            least_of="",
        )
    final = interval(last[:, None], view.centre)
    least = int(np.nanargmin(last))
    return CurveSummary(
        label,
        title,
        style,
        seeds=int(valid.sum()),
        of=len(last),
        centre=float(final.centre[0]),
        low=float(final.low[0]),
        high=float(final.high[0]),
        least=float(last[least]),
        least_of=clean(aligned.labels[least], 60),
    )


def _band_text(view: ChartView, most: int, *, bucketed: bool) -> str:
    centre = "mean" if view.centre == "mean" else "interquartile mean"
    if most < 2:
        spread = ", band: lowest to highest value within a bucket" if bucketed else ""
        return f"one seed{spread}"
    how = "Student t" if view.centre == "mean" else "percentile bootstrap over seeds"
    return f"{centre} over seeds, band: {100 * CONFIDENCE:.0f} % interval ({how})"


def _notes(
    subjects: Sequence[Subject], aligned: Sequence[Aligned], axis: str, view: ChartView
) -> list[str]:
    notes = [
        f"{clean(subject.title, 80)}: only the newest {subject.read} of"
        f" {subject.read + subject.left_out} runs are drawn"
        for subject in subjects
        if subject.left_out
    ]
    repeats = sum(subject.repeats for subject in subjects)
    if repeats:
        notes.append(f"{plural(repeats, 'repeat')} of a seed not counted")
    buckets = max((len(one.x) for one in aligned if one.bucketed), default=0)
    if buckets:
        along = UNITS.get(axis, axis).partition(" since")[0]
        notes.append(f"averaged within {buckets} equal buckets of {along}")
    if view.share:
        notes.append(f"moving mean over {100 * view.share:.0f} % of the axis, thin line without it")
    left_out = sum(one.left_out for one in aligned)
    if left_out:
        why = "NaN, infinite or not positive" if view.log else "NaN or infinite"
        are = "is" if left_out == 1 else "are"
        notes.append(f"{plural(left_out, 'value')} {are} {why}, the first marked red on the x-axis")
    return notes


def _ends_notes(labels: Sequence[str], members: Sequence[Sequence[Member]]) -> list[str]:
    """Return remarks on curves whose last value is not finite."""
    ends = [
        f"{label} {member.label}" if len(labels) > 1 else member.label
        for label, of in zip(labels, members, strict=True)
        for member in of
        if len(member.y) and not np.isfinite(member.y[-1])
    ]
    if not ends:
        return []
    shown = ", ".join(clean(end, 60) for end in ends[:_MOST_ENDS])
    more = f" and {len(ends) - _MOST_ENDS} more" if len(ends) > _MOST_ENDS else ""
    return [f"ends with NaN or infinity: {shown}{more}; the table has the last finite value"]
