"""Charts of groups and runs with their numbers: what was read, aligned, averaged and drawn."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from markupsafe import Markup

from backflip.archive import series
from backflip.archive.statistics import CONFIDENCE, interval
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import files
from backflip.web.archive_pages.charts import UNITS, Line, Mark, draw
from backflip.web.archive_pages.colours import Look, looks_of
from backflip.web.archive_pages.curves import (
    Aligned,
    Member,
    align,
    any_finite,
    centred,
    finals,
    smoothed,
)
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.shelf import Shelf
from backflip.web.archive_pages.view import CHARTS, ChartView

MOST_NAMES = 5_000
FEW, SOME = 3, 10
_SPARSE = 80
# Which metrics come first: what one trains for, then what one minimises, then the rest; what the
# recorder measures of the machine comes last.
_ORDER = (
    r"^(eval|test)?.*(episode_)?returns?(_mean)?$",
    r"(success|accuracy|score|win_rate)",
    r"return|reward_mean|reward$",
    r"episode_length_mean|^loss$|_loss$|/loss$|^loss/",
    r"entropy$|kl|explained_variance|grad_norm",
)
_LAST = re.compile(r"^system[/.]|memory|_per_second$")


@final
@dataclass(frozen=True)
class Part:
    """One run of a subject: where it is and what it is called there."""

    folder: Path
    name: str


@final
@dataclass(frozen=True)
class Subject:
    """What has one curve in a chart: a group, or a run.

    Attributes:
        kind: `group` or `run`.
        key: the group's name, or the run's id.
        title: what it is called.
        group: the name that its colour comes from.
        parts: its runs.
        left_out: how many more runs it has, older ones, which are not drawn.
    """

    kind: str
    key: str
    title: str
    group: str
    parts: tuple[Part, ...]
    left_out: int = 0


@final
class Numbers(NamedTuple):
    """A curve in numbers: a row of the table under its chart.

    Attributes:
        label: whose.
        look: how it is drawn.
        seeds: how many seeds have values.
        of: how many seeds there are.
        centre: the mean or interquartile mean of the seeds' last values.
        low: the lower end of its interval; NaN below two seeds.
        high: the upper end.
        least: the smallest of the last values.
        least_of: the seed that has it.
        most: the greatest.
        left_out: how many values were no numbers, or not positive under a logarithm.
    """

    label: str
    look: Look
    seeds: int
    of: int
    centre: float
    low: float
    high: float
    least: float
    least_of: str
    most: float
    left_out: int


@final
class Figure(NamedTuple):
    """One chart with what is said under it.

    Attributes:
        metric: whose.
        svg: the chart.
        numbers: a row for each curve.
        band: what the band is, for the legend.
        notes: what else is to be known.
    """

    metric: str
    svg: Markup
    numbers: list[Numbers]
    band: str
    notes: list[str]


@final
class Choice(NamedTuple):
    """What can be drawn of some subjects.

    Attributes:
        axes: the axes that their records have.
        axis: the one that is drawn.
        metrics: all metrics that were looked for, the most telling first.
        shown: those on this page.
        pages: how many pages there are.
        more: there are more metrics than can be listed.
    """

    axes: list[str]
    axis: str
    metrics: list[str]
    shown: list[str]
    pages: int
    more: bool


def choose(subjects: Sequence[Subject], view: ChartView, shelf: Shelf) -> Choice:
    """Return what can be drawn of subjects in a view."""
    axes: dict[str, None] = {}
    names: dict[str, None] = {}
    for subject in subjects:
        for part in subject.parts:
            found = _kept_names(part, shelf)
            axes.update(dict.fromkeys(found[0]))
            names.update(dict.fromkeys(found[1]))
    offered = [axis for axis in ("env_steps", "seconds", "updates") if axis in axes]
    offered = offered or ["step", *(axis for axis in ("time", "seconds") if axis in axes)][:2]
    wanted = view.find.casefold()
    matching = [name for name in names if wanted in name.casefold()]
    ordered = sorted(matching[:MOST_NAMES], key=lambda name: (rank(name), name))
    pages = max(1, -(-len(ordered) // CHARTS))
    page = min(view.page, pages)
    axis = view.axis if view.axis in offered else offered[0]
    on_page = ordered[(page - 1) * CHARTS : page * CHARTS]
    return Choice(offered, axis, ordered, on_page, pages, len(matching) > MOST_NAMES)


def rank(metric: str) -> int:
    """Return how late a metric comes among others."""
    if _LAST.search(metric):
        return len(_ORDER) + 1
    found = (place for place, pattern in enumerate(_ORDER) if re.search(pattern, metric))
    return next(found, len(_ORDER))


def figures(
    subjects: Sequence[Subject],
    metrics: Sequence[str],
    axis: str,
    view: ChartView,
    shelf: Shelf,
    marks: tuple[Mark, ...] = (),
) -> list[Figure]:
    """Return a chart for each metric, with a curve for each subject.

    Args:
        subjects: groups and runs.
        metrics: which.
        axis: along which axis.
        view: how they are drawn.
        shelf: where what was read is kept for the next time.
        marks: drawn on the x-axis of each.
    """
    stamps = tuple((part.folder, files.stamp(part.folder)) for s in subjects for part in s.parts)
    drawn = (axis, view.centre, view.smoothing, view.log, marks)
    said = tuple((s.kind, s.key, s.title, s.left_out) for s in subjects)
    keys = {metric: ("figure", metric, drawn, said, stamps) for metric in metrics}
    found = {metric: shelf.get(key) for metric, key in keys.items()}
    missing = [metric for metric in metrics if found[metric] is None]
    read = [_read(subject, missing, axis) for subject in subjects] if missing else []
    for metric in missing:
        figure = _figure(subjects, metric, [per[metric] for per in read], axis, view, marks)
        found[metric] = shelf.put(keys[metric], figure, size=len(figure.svg) * 2)
    return [figure for metric in metrics if isinstance(figure := found[metric], Figure)]


def aligned_members(
    subject: Subject, metric: str, axis: str, buckets: int, *, positive: bool = False
) -> Aligned:
    """Return the seeds of a subject on one grid."""
    return align(_read(subject, [metric], axis)[metric], buckets, positive=positive)


def _kept_names(part: Part, shelf: Shelf) -> tuple[list[str], list[str]]:
    key = ("names", part.folder, files.stamp(part.folder))
    found = shelf.get(key)
    if found is None:
        names = _names_of(part)
        found = shelf.put(key, names, size=sum(map(len, names[1])) + 64 * len(names[1]))
    return found


def _names_of(part: Part) -> tuple[list[str], list[str]]:
    if not files.has_only_plain_metrics(part.folder):
        return [], []
    try:
        return series.axes(part.folder), series.metric_names(part.folder)[: 4 * MOST_NAMES]
    except BackflipError:
        return [], []


def _read(subject: Subject, metrics: Sequence[str], axis: str) -> dict[str, list[Member]]:
    """Return the seeds of a subject by metric; a seed without values is there, and empty."""
    members: dict[str, list[Member]] = {metric: [] for metric in metrics}
    for part in subject.parts:
        found = _series_of(part, metrics, axis)
        seeds = sorted({seed for per in found.values() for seed in per}, key=str) or [None]
        for metric in metrics:
            for seed in seeds:
                curve = found.get(metric, {}).get(seed)
                members[metric].append(_member(subject, part, seed, curve))
    return members


def _series_of(
    part: Part, metrics: Sequence[str], axis: str
) -> Mapping[str, Mapping[int | None, series.Series]]:
    if not files.has_only_plain_metrics(part.folder):
        return {}
    try:
        return series.read_series(part.folder, metrics, axis)
    except BackflipError:
        return {}


def _member(subject: Subject, part: Part, seed: int | None, curve: series.Series | None) -> Member:
    label = part.name if seed is None else f"seed {seed}"
    if seed is not None and len(subject.parts) > 1:
        label = f"{part.name} seed {seed}"
    if curve is None:
        return Member(label, np.empty(0), np.empty(0))
    return Member(label, curve.x, curve.y)


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
    looks = looks_of([subject.group for subject in subjects])
    lines = [
        _line(subject, look, seeds, one, view, alone=len(subjects) == 1)
        for subject, look, seeds, one in zip(subjects, looks, members, aligned, strict=True)
    ]
    numbers = [
        _numbers(subject, look, one, view)
        for subject, look, one in zip(subjects, looks, aligned, strict=True)
    ]
    svg = draw(shown(metric, 200), lines, axis, log=view.log, marks=marks)
    most = max((row.seeds for row in numbers), default=0)
    bucketed = any(one.bucketed for one in aligned)
    band = _band_words(view, most, bucketed=bucketed)
    return Figure(metric, svg, numbers, band, _notes(subjects, aligned, axis, view))


def _line(
    subject: Subject,
    look: Look,
    members: Sequence[Member],
    aligned: Aligned,
    view: ChartView,
    *,
    alone: bool,
) -> Line:
    band = centred(aligned, view.centre, view.share)
    raw = centred(aligned, view.centre).centre if view.share else None
    many = sum(any_finite(row) for row in aligned.values) > 1
    if many:
        seeds = [row for row in smoothed(aligned.values, view.share) if any_finite(row)]
        low, high = band.low, band.high
    else:
        seeds, (low, high) = [], _spread(members, aligned)
    return Line(
        label=shown(subject.title, 80),
        look=look,
        x=aligned.x,
        y=band.centre,
        low=low,
        high=high,
        seeds=seeds if alone else (),
        raw=raw,
        odd=aligned.left_out_at,
    )


def _spread(members: Sequence[Member], aligned: Aligned) -> tuple[np.ndarray | None, ...]:
    """Return the least and greatest value of each bucket of the only seed, if it is in buckets."""
    member = next((m for m in members if np.isfinite(m.y).any()), None)
    if member is None or not aligned.bucketed:
        return None, None
    finite = np.isfinite(member.y)
    kept = series.Series(member.x[finite], member.y[finite])
    buckets = series.bucket(kept, len(aligned.x))
    low = np.interp(aligned.x, buckets.x, buckets.minimum)
    return low, np.interp(aligned.x, buckets.x, buckets.maximum)


def _numbers(subject: Subject, look: Look, aligned: Aligned, view: ChartView) -> Numbers:
    last = finals(aligned)
    there = np.isfinite(last)
    final = interval(last[:, None], view.centre) if len(last) else None
    least = int(np.nanargmin(last)) if there.any() else 0
    return Numbers(
        label=shown(subject.title, 80),
        look=look,
        seeds=int(there.sum()),
        of=len(last),
        centre=float(final.centre[0]) if final and there.any() else float("nan"),
        low=float(final.low[0]) if final else float("nan"),
        high=float(final.high[0]) if final else float("nan"),
        least=float(last[least]) if there.any() else float("nan"),
        least_of=shown(aligned.labels[least], 60) if there.any() else "",
        most=float(np.nanmax(last)) if there.any() else float("nan"),
        left_out=aligned.left_out,
    )


def _band_words(view: ChartView, most: int, *, bucketed: bool) -> str:
    centre = "mean" if view.centre == "mean" else "interquartile mean"
    if most < 2:
        spread = ", band the least and greatest value of each bucket" if bucketed else ""
        return f"one seed{spread}"
    how = "Student t" if view.centre == "mean" else "percentile bootstrap over seeds"
    return f"{centre} over seeds, band {CONFIDENCE:.0%} interval ({how})"


def _notes(
    subjects: Sequence[Subject], aligned: Sequence[Aligned], axis: str, view: ChartView
) -> list[str]:
    notes = [
        f"of {shown(subject.title, 80)} the newest {len(subject.parts)} of"
        f" {len(subject.parts) + subject.left_out} runs are drawn"
        for subject in subjects
        if subject.left_out
    ]
    buckets = max((len(one.x) for one in aligned if one.bucketed), default=0)
    if buckets:
        along = UNITS.get(axis, axis).partition(" since")[0]
        notes.append(f"values averaged within {buckets} equal buckets of {along}")
    if view.share:
        notes.append(f"moving mean over {view.share:.0%} of the axis; the thin line is raw")
    left_out = sum(one.left_out for one in aligned)
    if left_out:
        why = "NaN, infinite or not positive" if view.log else "NaN or infinite"
        count = f"{left_out:,}".replace(",", " ")
        notes.append(f"{count} values are {why}: ticks at the bottom, at the first of them")
    return notes
