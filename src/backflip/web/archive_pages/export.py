"""One run, group or comparison as one file that needs nothing else: no server, no script."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from backflip.archive import opening
from backflip.archive.index.rows import RunRow
from backflip.archive.run import open_run
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import code, facts, output, run_page
from backflip.web.archive_pages.compare import Comparison, compare
from backflip.web.archive_pages.figures import Subject, choose, figures
from backflip.web.archive_pages.render import render, style
from backflip.web.archive_pages.shelf import Shelf
from backflip.web.archive_pages.subjects import Runs, of_group, of_run
from backflip.web.archive_pages.view import ChartView

_MOST_CHARTS = 60
_MOST_IMAGES = 16 * 2**20
_MOST_LINES = 200


def report(
    home: Path,
    runs: Sequence[Runs],
    kinds: Sequence[str],
    view: ChartView,
    shelf: Shelf,
) -> str:
    """Return a page that stands by itself.

    Args:
        home: of the runs.
        runs: those of each thing reported.
        kinds: `run` or `group`, of each.
        view: how curves are drawn; all pages of them are.
        shelf: where what was read is kept.
    """
    subjects = [
        of_group(of) if kind == "group" else of_run(of.rows[0])
        for of, kind in zip(runs, kinds, strict=True)
    ]
    rows = [of.rows for of in runs]
    choice = choose(subjects, view, shelf)
    shown = choice.metrics[:_MOST_CHARTS]
    alone = rows[0][0] if len(subjects) == 1 and kinds[0] == "run" else None
    sheet = style()
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    return render(
        "report.html",
        title=" · ".join(subject.title for subject in subjects),
        style=Markup(sheet),  # ours; it holds nothing that ends an element
        digest=digest,
        subjects=subjects,
        rows=[row for of in rows for row in of],
        older=sum(of.left_out for of in runs),
        choice=choice,
        view=view,
        figures=figures(subjects, shown, choice.axis, view, shelf),
        left_out=len(choice.metrics) - len(shown),
        comparison=_comparison(home, subjects, rows),
        run=_run_context(alone) if alone else None,
    )


def _comparison(
    home: Path, subjects: Sequence[Subject], rows: Sequence[Sequence[RunRow]]
) -> Comparison | None:
    if len(subjects) < 2:
        return None
    return compare(home, [subject.title for subject in subjects], rows)


def _run_context(row: RunRow) -> dict[str, Any]:
    """Return what a report says of a single run beside its curves."""
    try:
        manifest = open_run(row.folder).manifest
    except BackflipError:
        manifest = {}
    patch, cut = code.patch_of(row.folder)
    end = output.page_before(row.folder)
    lines = end.lines[-_MOST_LINES:]
    pictures, left_out = _embedded_pictures(row)
    return {
        "row": row,
        "command": facts.command_line(manifest),
        "config": facts.config(manifest),
        "packages": facts.packages(manifest),
        "hardware": facts.hardware(manifest),
        "git": facts.git(manifest),
        "patch": patch,
        "patch_cut": cut,
        "output": lines,
        "output_cut": end.start > 0 or len(lines) < len(end.lines),
        "pictures": pictures,
        "pictures_left_out": left_out,
    }


def _embedded_pictures(row: RunRow) -> tuple[list[tuple[str, str, str]], int]:
    """Return key, caption and `data:` address of pictures that fit, and how many do not."""
    found: list[tuple[str, str, str]] = []
    room = _MOST_IMAGES
    gallery = run_page.pictures_of(row.ulid, row.folder, "env_steps")
    left_out = gallery.left_out + sum(of_key.left_out for of_key in gallery.keys)
    for pictures in gallery.keys:
        for picture in pictures.pictures:
            path = picture.address.partition("path=")[2]
            path = path or f"{run_page.MEDIA}/{picture.address.rpartition('/')[2]}"
            address = _data_address(row.folder, path, room)
            if address:
                room -= len(address)
                found.append((pictures.key, picture.caption, address))
            else:
                left_out += 1
    return found, left_out


def _data_address(folder: Path, path: str, room: int) -> str:
    try:
        data = opening.read(folder, path, room)
    except opening.NoFile:
        return ""
    kind = run_page.image_kind(path, data)
    if kind is None or len(data) >= room * 3 // 4:
        return ""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
