"""What the page of a run says: what was asked, how it stands, its pictures, files and relatives."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from backflip.archive import series
from backflip.archive.durations import duration
from backflip.archive.gallery import Media, media
from backflip.archive.index.rows import RunRow
from backflip.archive.index.run_index import Index
from backflip.archive.metrics import broken_lines
from backflip.archive.run import open_run
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import facts, files
from backflip.web.archive_pages.charts import TIMES, UNITS, Mark
from backflip.web.archive_pages.colours import colour_of
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.progress import Progress, progress_of
from backflip.web.archive_pages.shelf import Shelf
from backflip.web.archive_pages.table import group_address, run_title
from backflip.web.archive_pages.view import addressed
from backflip.web.archive_pages.words import number, roughly

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
        address: where it is served.
        caption: at which step it was made, and of which seed.
        anchor: what its place on the page is called; empty if nothing leads there.
        at: where along the axis it was made; None if that is not known.
    """

    address: str
    caption: str
    anchor: str
    at: float | None


@final
class Pictures(NamedTuple):
    """All pictures of one key, in the order of the axis."""

    key: str
    pictures: list[Picture]
    left_out: int


@final
class Gallery(NamedTuple):
    """The pictures of a run.

    Attributes:
        keys: by what they were logged as.
        left_out: how many pictures of other keys there are.
    """

    keys: list[Pictures]
    left_out: int


NO_PICTURES = Gallery([], 0)


@final
class Broken(NamedTuple):
    """Lines of metrics files that are no records.

    Attributes:
        first: the file's name and the line's number of the first few.
        total: how many there are.
    """

    first: list[tuple[str, int]]
    total: int


@final
class Relative(NamedTuple):
    """A run that this one repeats, or that repeats this one."""

    how: str
    address: str
    title: str


@final
class RunFacts(NamedTuple):
    """What stands on every page of a run.

    Attributes:
        row: the run, from the index.
        manifest: what its `run.json` says.
        title: what it is called.
        group: its group, fit to be shown.
        group_address: of its group's page.
        colour: its group's.
        command: what was typed.
        progress: how far it has come; None if it does not go on.
        left: how long it will take, in words.
        relatives: runs it repeats or that repeat it.
    """

    row: RunRow
    manifest: Mapping[str, Any]
    title: str
    group: str
    group_address: str
    colour: int
    command: str
    progress: Progress | None
    left: str
    relatives: list[Relative]


def read_facts(row: RunRow, relatives: Sequence[Relative]) -> RunFacts:
    """Return what stands on every page of a run, files read.

    Raises:
        BackflipError: its manifest cannot be read.
    """
    manifest = open_run(row.folder).manifest
    progress = None
    if row.state == "running":
        progress = progress_of(row.folder, manifest, time.time() - row.created)
    left = progress.seconds_left if progress else None
    return RunFacts(
        row=row,
        manifest=manifest,
        title=shown(run_title(row), 200),
        group=shown(row.group, 200),
        group_address=group_address(row.group),
        colour=colour_of(row.group),
        command=shown(facts.command_line(manifest)),
        progress=progress,
        left="" if left is None else roughly(left),
        relatives=list(relatives),
    )


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


def pictures_of(ulid: str, folder: Path, axis: str) -> Gallery:
    """Return the images and clips of a run by key, each with where along the axis it was made."""
    by_key: dict[str, list[tuple[float, Picture]]] = {}
    every = _media(folder)
    begin = (
        series.first_time(folder)
        if axis in TIMES and any("time" in one.x for one in every)
        else None
    )
    for place, one in enumerate(every):
        at = _place(one, axis, begin)
        address = f"/runs/{ulid}/{MEDIA}/{one.path.name}"
        picture = Picture(address, _caption(one, axis, at), f"{MEDIA}-{place}", at)
        by_key.setdefault(one.key, []).append((math.inf if at is None else at, picture))
    own, left_out = own_pictures(ulid, folder)
    found = [_spread(shown(key, 200), placed) for key, placed in [*by_key.items()][:_MOST_KEYS]]
    return Gallery(own + found, left_out + sum(map(len, [*by_key.values()][_MOST_KEYS:])))


def marks_of(gallery: Gallery, page: str = "") -> tuple[Mark, ...]:
    """Return the pictures that are at a place of the axis as marks on it.

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


def own_pictures(ulid: str, folder: Path) -> tuple[list[Pictures], int]:
    """Return the pictures that training leaves in a run's folder, and how many more there are."""
    names = [
        item.path
        for item in files.listed(folder)[0]
        if item.kind == "file" and _OWN_PICTURES.fullmatch(item.path)
    ]
    found = [
        Pictures(name, [Picture(f"/runs/{ulid}/file?path={name}", "", "", None)], 0)
        for name in names[:_MOST_KEYS]
    ]
    return found, len(names) - len(found)


def _place(one: Media, axis: str, begin: float | None) -> float | None:
    """Return where along an axis something was made, as curves have it; None if nobody knows."""
    at = one.x.get("seconds" if axis in TIMES else axis)
    if axis in TIMES and "time" in one.x and begin is not None and (axis == "time" or at is None):
        at = one.x["time"] - begin
    return at if at is not None and math.isfinite(at) else None


def _caption(one: Media, axis: str, at: float | None) -> str:
    """Return at which step something was made, where on the axis, and of which seed."""
    step = next((name for name in _STEPS if name in one.x), None)
    said = [_step(step, one.x[step])] if step else []
    if at is not None and axis != step:
        said.append(f"after {duration(at)}" if axis in TIMES else _step(axis, at))
    return ", ".join(said + ([] if one.seed is None else [f"seed {one.seed}"]))


def _step(axis: str, at: float) -> str:
    return f"step {number(at)}" if axis == "step" else f"{number(at)} {UNITS[axis]}"


def broken_of(folder: Path, shelf: Shelf) -> Broken:
    """Return the lines of a run's metrics that are no records."""
    key = ("broken", folder, files.stamp(folder))
    found: Broken | None = shelf.get(key)
    if found is None:
        found = shelf.put(key, _broken_of(folder), size=0)
    return found


def _broken_of(folder: Path) -> Broken:
    if not files.has_only_plain_metrics(folder):
        return Broken([], 0)
    try:
        every = broken_lines(folder)
    except BackflipError:
        return Broken([], 0)
    return Broken([(one.path.name, one.line) for one in every[:_MOST_BROKEN]], len(every))


def image_kind(name: str, data: bytes) -> str | None:
    """Return the media type of a picture that may be shown in a page; None for all else.

    Both its name and its first bytes must say so.
    """
    ending = name.rpartition(".")[2].lower()
    if ending not in IMAGES or not data.startswith(_MAGIC[ending]):
        return None
    return IMAGES[ending] if ending != "webp" or data[8:12] == b"WEBP" else None


def _media(folder: Path) -> list[Media]:
    if not files.has_only_plain_metrics(folder):
        return []
    try:
        return media(folder)
    except BackflipError:
        return []


def _spread(key: str, placed: Sequence[tuple[float, Picture]]) -> Pictures:
    """Return at most a dozen pictures of a key, first and last among them, evenly between."""
    ordered = [picture for _, picture in sorted(placed, key=lambda one: one[0])]
    if len(ordered) <= _PER_KEY:
        return Pictures(key, ordered, 0)
    step = (len(ordered) - 1) / (_PER_KEY - 1)
    kept = [ordered[round(place * step)] for place in range(_PER_KEY)]
    return Pictures(key, kept, len(ordered) - _PER_KEY)


def _relative(how: str, row: RunRow) -> Relative:
    return Relative(how, f"/runs/{row.ulid}", shown(run_title(row), 120))
