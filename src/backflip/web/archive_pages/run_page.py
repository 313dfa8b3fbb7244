"""What the page of a run says: what was asked, how it stands, its pictures, files and relatives."""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from backflip.archive import series
from backflip.archive.index.index import Index
from backflip.archive.index.rows import RunRow
from backflip.archive.run import open_run
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import facts, files
from backflip.web.archive_pages.charts import UNITS
from backflip.web.archive_pages.colours import colour_of
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.progress import Progress, progress_of
from backflip.web.archive_pages.table import group_address, run_title
from backflip.web.archive_pages.words import roughly, short

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
_OWN_PICTURES = re.compile(r"[A-Za-z0-9_.-]{1,80}\.(png|webp|jpg|jpeg|gif|svg)")


@final
class Picture(NamedTuple):
    """An image or a clip.

    Attributes:
        address: where it is served.
        caption: at which place along the axis it was made, and of which seed.
    """

    address: str
    caption: str


@final
class Pictures(NamedTuple):
    """All pictures of one key, in the order of the axis."""

    key: str
    pictures: list[Picture]
    left_out: int


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
    children = index.runs(f"parent={row.ulid}", limit=_MOST_RELATED).rows
    return found + [_relative("repeated by", child) for child in children]


def pictures_of(row: RunRow, axis: str) -> list[Pictures]:
    """Return the images and clips of a run by key, each with where along the axis it was made."""
    by_key: dict[str, list[tuple[float, Picture]]] = {}
    for one in _media(row.folder):
        at = one.x.get(axis, next(iter(one.x.values()), 0.0))
        seed = "" if one.seed is None else f", seed {one.seed}"
        caption = f"{short(at)} {UNITS.get(axis, axis).partition(' ')[0]}{seed}"
        address = f"/runs/{row.ulid}/{MEDIA}/{one.path.name}"
        by_key.setdefault(one.key, []).append((at, Picture(address, caption)))
    found = [_spread(shown(key, 200), placed) for key, placed in [*by_key.items()][:_MOST_KEYS]]
    return own_pictures(row) + found


def own_pictures(row: RunRow) -> list[Pictures]:
    """Return the pictures that training leaves in a run's folder."""
    names = [
        item.path
        for item in files.listed(row.folder, 200)[0]
        if item.kind == "file" and _OWN_PICTURES.fullmatch(item.path)
    ]
    return [
        Pictures(name, [Picture(f"/runs/{row.ulid}/file?path={name}", "")], 0) for name in names
    ]


def image_kind(name: str, data: bytes) -> str | None:
    """Return the media type of a picture that may be shown in a page; None for all else.

    Both its name and its first bytes must say so.
    """
    ending = name.rpartition(".")[2].lower()
    if ending not in IMAGES or not data.startswith(_MAGIC[ending]):
        return None
    return IMAGES[ending] if ending != "webp" or data[8:12] == b"WEBP" else None


def _media(folder: Path) -> list[series.Media]:
    if not files.has_only_plain_metrics(folder):
        return []
    try:
        return series.media(folder)
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
