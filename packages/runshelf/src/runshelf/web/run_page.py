"""The page of a run: progress, pictures, invalid lines of metrics, runs it repeats."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.durations import duration
from runshelf.formatting import number, roughly
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index
from runshelf.store import series
from runshelf.store.logged_media import Media, media
from runshelf.store.metrics import broken_lines
from runshelf.store.run import open_run
from runshelf.web import files
from runshelf.web.cache import Cache
from runshelf.web.charts import TIMES, UNITS, Mark
from runshelf.web.parameters import addressed
from runshelf.web.progress import Progress, progress_of
from runshelf.web.runs_table import run_title
from runshelf.web.sanitize import shown

MEDIA = "media"
IMAGES = {
    "png": "image/png",
    "webp": "image/webp",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
}
_MAGIC = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpg": b"\xff\xd8\xff",
    "jpeg": b"\xff\xd8\xff",
    "gif": b"GIF8",
    "webp": b"RIFF",
}
_PER_KEY = 12
_MOST_KEYS = 24
_MOST_RELATED = 20
_MOST_BROKEN = 5
_STEPS = ("step", "env_steps", "updates", "episodes", "frames")
_OWN_PICTURES = re.compile(r"[A-Za-z0-9_.-]{1,80}\.(png|webp|jpg|jpeg|gif|svg)")


@final
class Picture(NamedTuple):
    """An image or a clip.

    Attributes:
        path: its path within the run's folder.
        caption: its step and its seed.
        anchor: the id of its element; empty if nothing links to it.
        at: its position along the axis; None if that is not known.
    """

    path: str
    caption: str
    anchor: str
    at: float | None


@final
class Pictures(NamedTuple):
    """The pictures of one key in the order of the axis, and how many are left out."""

    key: str
    pictures: list[Picture]
    left_out: int


@final
class Gallery(NamedTuple):
    """The pictures of a run by key, and how many pictures of other keys there are."""

    keys: list[Pictures]
    left_out: int


@final
class Broken(NamedTuple):
    """Invalid lines of metrics files: file and number of the first few, and how many there are."""

    first: list[tuple[str, int]]
    total: int


@final
class Relative(NamedTuple):
    """A run that this one repeats, or that repeats this one."""

    how: str
    address: str
    title: str


@final
class RunHead(NamedTuple):
    """The top of every page of a run.

    Attributes:
        manifest: its `run.json`.
        progress: its progress; None if it is not running.
        left: how long it will take, in words.
        relatives: runs it repeats or that repeat it.
    """

    manifest: Mapping[str, Any]
    progress: Progress | None
    left: str
    relatives: Sequence[Relative]


def read_head(row: RunRow, relatives: Sequence[Relative]) -> RunHead:
    """Return the top of every page of a run.

    Raises:
        UserFacingError: its manifest cannot be read.
    """
    manifest = open_run(row.folder).manifest
    if row.state != "running":
        return RunHead(manifest, None, "", relatives)
    progress = progress_of(row.folder, manifest, time.time() - row.created)
    left = "" if progress.seconds_left is None else roughly(progress.seconds_left)
    return RunHead(manifest, progress, left, relatives)


def relatives_of(index: Index, row: RunRow) -> list[Relative]:
    """Return the run that a run repeats, and those that repeat it."""
    found: list[Relative] = []
    parent = index.run(row.parent) if row.parent else None
    if parent:
        found.append(_relative("repeats", parent))
    filter_ = f"parent={row.ulid}"
    children = index.runs(filter_, limit=_MOST_RELATED)
    found += [_relative("repeated by", child) for child in children.rows]
    more = children.total - len(children.rows)
    if more > 0:
        address = addressed("/", [("show", "runs"), ("filter", filter_)])
        found.append(Relative("repeated by", address, f"{more} more"))
    return found


def pictures_of(folder: Path, axis: str) -> Gallery:
    """Return the images and clips of a run by key, each with its position along the axis."""
    by_key: dict[str, list[tuple[float, Picture]]] = {}
    every = files.read_metrics(folder, media, [])
    timed = axis in TIMES and any("time" in one.x for one in every)
    begin = files.read_metrics(folder, series.first_time, None) if timed else None
    for place, one in enumerate(every):
        at = _place(one, axis, begin)
        picture = Picture(
            f"{MEDIA}/{one.path.name}", _caption(one, axis, at), f"{MEDIA}-{place}", at
        )
        by_key.setdefault(one.key, []).append((math.inf if at is None else at, picture))
    own, left_out = _own_pictures(folder)
    found = [_spread(shown(key, 200), placed) for key, placed in [*by_key.items()][:_MOST_KEYS]]
    return Gallery(own + found, left_out + sum(map(len, [*by_key.values()][_MOST_KEYS:])))


def marks_of(gallery: Gallery, page: str = "") -> tuple[Mark, ...]:
    """Return the pictures with a position along the axis as marks.

    Args:
        gallery: the pictures.
        page: the address of the page that shows them, if it is another.
    """
    return tuple(
        Mark(picture.at, f"{page}#{picture.anchor}", f"{of_key.key}, {picture.caption}")
        for of_key in gallery.keys
        for picture in of_key.pictures
        if picture.at is not None
    )


def _own_pictures(folder: Path) -> tuple[list[Pictures], int]:
    """Return the pictures that training leaves in a run's folder, and how many more there are."""
    names = [
        item.path
        for item in files.listed(folder)[0]
        if item.kind == "file" and _OWN_PICTURES.fullmatch(item.path)
    ]
    found = [Pictures(name, [Picture(name, "", "", None)], 0) for name in names[:_MOST_KEYS]]
    return found, len(names) - len(found)


def _place(one: Media, axis: str, begin: float | None) -> float | None:
    """Return the position of a picture along an axis, as in curves; None if it is not known."""
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
    """Return the lines of a run's metrics that are not records."""
    key = ("broken", folder, files.stamp(folder))
    found: Broken | None = cache.get(key)
    if found is None:
        found = cache.put(key, files.read_metrics(folder, _broken_of, Broken([], 0)), size=0)
    return found


def _broken_of(folder: Path) -> Broken:
    every = broken_lines(folder)
    return Broken([(one.path.name, one.line) for one in every[:_MOST_BROKEN]], len(every))


def image_kind(name: str, data: bytes) -> str | None:
    """Return the media type of a picture that a page may show; None for anything else.

    Both its name and its first bytes must say so.
    """
    ending = name.rpartition(".")[2].lower()
    if ending not in IMAGES or not data.startswith(_MAGIC[ending]):
        return None
    return IMAGES[ending] if ending != "webp" or data[8:12] == b"WEBP" else None


def _spread(key: str, placed: Sequence[tuple[float, Picture]]) -> Pictures:
    """Return at most a dozen pictures of a key, evenly spaced from first to last."""
    ordered = [picture for _, picture in sorted(placed, key=lambda one: one[0])]
    if len(ordered) <= _PER_KEY:
        return Pictures(key, ordered, 0)
    step = (len(ordered) - 1) / (_PER_KEY - 1)
    kept = [ordered[round(place * step)] for place in range(_PER_KEY)]
    return Pictures(key, kept, len(ordered) - _PER_KEY)


def _relative(how: str, row: RunRow) -> Relative:
    return Relative(how, f"/runs/{row.ulid}", shown(run_title(row), 120))
