"""Contents of a run's page: progress, pictures, invalid lines of metrics, related runs."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.durations import duration
from runshelf.errors import UserFacingError
from runshelf.formatting import number, roughly
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index
from runshelf.store import series
from runshelf.store.logged_media import Media, media
from runshelf.store.metrics import broken_lines, stamp
from runshelf.store.progress import Progress, progress_of
from runshelf.store.results import result_of
from runshelf.store.run import open_run
from runshelf.web import run_files
from runshelf.web.cache import Cache
from runshelf.web.drawing.charts import TIMES, UNITS, Mark
from runshelf.web.manifest import is_readable_aside
from runshelf.web.pages.runs_table import run_title
from runshelf.web.parameters import with_query
from runshelf.web.sanitize import clean

MEDIA = "media"
# File extension -> media type and first bytes.
IMAGES = {
    "png": ("image/png", b"\x89PNG\r\n\x1a\n"),
    "webp": ("image/webp", b"RIFF"),
    "jpg": ("image/jpeg", b"\xff\xd8\xff"),
    "jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    "gif": ("image/gif", b"GIF8"),
}
_PER_KEY = 12
_MOST_KEYS = 24
_MOST_RELATED = 20
_MOST_BROKEN = 5
_STEPS = ("step", "env_steps", "updates", "episodes", "frames")
_TOP_PICTURES = re.compile(r"[A-Za-z0-9_.-]{1,80}\.(png|webp|jpg|jpeg|gif|svg)")


@final
class Picture(NamedTuple):
    """An image or a clip.

    Attributes:
        path: relative to the run's folder.
        caption: step and seed.
        anchor: id of the HTML element; empty if nothing links to it.
        at: position along the axis; None if unknown.
    """

    path: str
    caption: str
    anchor: str
    at: float | None


@final
class Pictures(NamedTuple):
    """The pictures of one key in the order of the axis, and the number left out."""

    key: str
    pictures: list[Picture]
    left_out: int


@final
class Gallery(NamedTuple):
    """The pictures of a run by key, and the number of pictures of other keys, left out."""

    keys: list[Pictures]
    left_out: int


@final
class Broken(NamedTuple):
    """Invalid lines of metrics files: file and line number of the first few, and their total."""

    first: list[tuple[str, int]]
    total: int


@final
class Relative(NamedTuple):
    """A link to a run that this run repeats or carries on, or that does so to this run."""

    how: str
    address: str
    title: str


@final
class RunHead(NamedTuple):
    """The top of every page of a run.

    Attributes:
        manifest: the content of `run.json`.
        progress: progress of a running run; otherwise None.
        left: estimated remaining time in words.
        relatives: runs that it repeats or that repeat it.
        spread: seeds, interval and lowest value of its result, as text; empty for a single seed.
        alarms: those that the run has recorded; of a running run, also those of its progress.
    """

    manifest: Mapping[str, Any]
    progress: Progress | None
    left: str
    relatives: Sequence[Relative]
    spread: str
    alarms: Sequence[str] = ()


def read_head(row: RunRow, relatives: Sequence[Relative]) -> RunHead:
    """Return the top of every page of a run.

    Raises:
        UserFacingError: the manifest cannot be read.
    """
    run, spread = open_run(row.folder), _spread_of(row)
    manifest = run.manifest
    if row.state != "running":
        return RunHead(manifest, None, "", relatives, spread, run.alarms())
    progress = progress_of(row.folder, manifest, time.time() - row.created)
    left = "" if progress.seconds_left is None else roughly(progress.seconds_left)
    return RunHead(manifest, progress, left, relatives, spread, progress.alarms)


def _spread_of(row: RunRow) -> str:
    metric = row.result.metric if row.result and row.result.value is not None else None
    if metric is None:
        return ""
    found = run_files.read_metrics(row.folder, lambda folder: result_of(folder, metric), None)
    return found.spread if found else ""


def relatives_of(index: Index, row: RunRow) -> list[Relative]:
    """Return the run that this run repeats or carries on, and the runs that do so to this run."""
    found: list[Relative] = []
    parent = index.run(row.parent) if row.parent else None
    if parent:
        found.append(_relative("carries on" if _carries_on(row, parent) else "repeats", parent))
    filter_ = f"parent={row.ulid}"
    children = index.runs(filter_, limit=_MOST_RELATED)
    found += [
        _relative("carried on by" if _carries_on(child, row) else "repeated by", child)
        for child in children.rows
    ]
    more = children.total - len(children.rows)
    if more > 0:
        address = with_query("/", [("show", "runs"), ("filter", filter_)])
        found.append(Relative("child runs", address, f"{more} more"))
    return found


def pictures_of(folder: Path, axis: str) -> Gallery:
    """Return the images and clips of a run by key, each with its position along the axis."""
    by_key: dict[str, list[tuple[float, Picture]]] = {}
    every = run_files.read_metrics(folder, media, [])
    timed = axis in TIMES and any("time" in one.x for one in every)
    begin = run_files.read_metrics(folder, series.first_time, None) if timed else None
    for place, one in enumerate(every):
        at = _place(one, axis, begin)
        picture = Picture(
            f"{MEDIA}/{one.path.name}", _caption(one, axis, at), f"{MEDIA}-{place}", at
        )
        by_key.setdefault(one.key, []).append((math.inf if at is None else at, picture))
    top, left_out = _top_pictures(folder)
    found = [_spread(clean(key, 200), placed) for key, placed in [*by_key.items()][:_MOST_KEYS]]
    return Gallery(top + found, left_out + sum(map(len, [*by_key.values()][_MOST_KEYS:])))


def marks_of(gallery: Gallery, page: str = "") -> tuple[Mark, ...]:
    """Return the pictures with a position along the axis as marks.

    Args:
        gallery: the pictures.
        page: the address of the page that shows them; empty for the same page.
    """
    return tuple(
        Mark(picture.at, f"{page}#{picture.anchor}", f"{of_key.key}, {picture.caption}")
        for of_key in gallery.keys
        for picture in of_key.pictures
        if picture.at is not None
    )


def _top_pictures(folder: Path) -> tuple[list[Pictures], int]:
    """Return the pictures at the top of a run's folder, and the number left out."""
    names = [
        item.path
        for item in run_files.listed(folder)[0]
        if item.kind == "file" and _TOP_PICTURES.fullmatch(item.path)
    ]
    found = [Pictures(name, [Picture(name, "", "", None)], 0) for name in names[:_MOST_KEYS]]
    return found, len(names) - len(found)


def _place(one: Media, axis: str, begin: float | None) -> float | None:
    """Return the position of a picture along the axis of the curves; None if unknown."""
    at = one.x.get("seconds" if axis in TIMES else axis)
    if axis in TIMES and "time" in one.x and begin is not None and (axis == "time" or at is None):
        at = one.x["time"] - begin
    return at if at is not None and math.isfinite(at) else None


def _caption(one: Media, axis: str, at: float | None) -> str:
    """Return the step, position and seed of a picture."""
    step = next((name for name in _STEPS if name in one.x), None)
    parts = [_step(step, one.x[step])] if step else []
    if at is not None and axis != step:
        parts.append(f"after {duration(at)}" if axis in TIMES else _step(axis, at))
    return ", ".join(parts + ([] if one.seed is None else [f"seed {one.seed}"]))


def _step(axis: str, at: float) -> str:
    return f"step {number(at)}" if axis == "step" else f"{number(at)} {UNITS[axis]}"


def broken_of(folder: Path, cache: Cache) -> Broken:
    """Return the invalid lines of a run's metrics files."""
    key = ("broken", folder, stamp(folder))
    found: Broken | None = cache.get(key)
    if found is None:
        found = cache.put(key, run_files.read_metrics(folder, _broken_of, Broken([], 0)), size=0)
    return found


def _broken_of(folder: Path) -> Broken:
    every = broken_lines(folder)
    return Broken([(one.path.name, one.line) for one in every[:_MOST_BROKEN]], len(every))


def image_kind(name: str, data: bytes) -> str | None:
    """Return the media type of a picture; None for anything else.

    The name and the first bytes must agree.
    """
    extension = name.rpartition(".")[2].lower()
    kind, magic = IMAGES.get(extension, (None, b""))
    matches = data.startswith(magic) and (extension != "webp" or data[8:12] == b"WEBP")
    return kind if matches else None


def _spread(key: str, placed: Sequence[tuple[float, Picture]]) -> Pictures:
    """Return at most `_PER_KEY` pictures of a key, evenly spaced from first to last."""
    ordered = [picture for _, picture in sorted(placed, key=lambda one: one[0])]
    if len(ordered) <= _PER_KEY:
        return Pictures(key, ordered, 0)
    step = (len(ordered) - 1) / (_PER_KEY - 1)
    kept = [ordered[round(place * step)] for place in range(_PER_KEY)]
    return Pictures(key, kept, len(ordered) - _PER_KEY)


def _carries_on(child: RunRow, parent: RunRow) -> bool:
    """Return whether a run started from its parent's end; otherwise, it repeats the parent.

    The configuration has `continues` then. A run that repeats such a run has the same one.
    """
    if not (is_readable_aside(child.folder) and is_readable_aside(parent.folder)):
        return False
    with suppress(UserFacingError):
        of_child, of_parent = (open_run(one.folder).config for one in (child, parent))
        return of_child.get("continues") != of_parent.get("continues")
    return False


def _relative(how: str, row: RunRow) -> Relative:
    return Relative(how, f"/runs/{row.ulid}", clean(run_title(row), 120))
