"""Runs and groups in one HTML file that needs nothing else: no server, no script."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from runshelf.index.rows import RunRow
from runshelf.store import opening
from runshelf.web import code_page, manifest, output_page, run_page
from runshelf.web.cache import Cache
from runshelf.web.compare_page import compare
from runshelf.web.figures import choose, figures
from runshelf.web.parameters import ChartView
from runshelf.web.subjects import Runs, subject_of
from runshelf.web.templates import render, style

_MOST_CHARTS = 60
_MOST_IMAGES = 16 * 2**20
_MOST_LINES = 200


def report(
    home: Path, runs: Sequence[Runs], kinds: Sequence[str], view: ChartView, cache: Cache
) -> str:
    """Return the text of the file.

    Args:
        home: the home of the runs.
        runs: the runs of each subject.
        kinds: `run` or `group`, of each subject.
        view: how curves are drawn; all pages of them are.
        cache: the cache of what was read.
    """
    subjects = [subject_of(kind, of) for of, kind in zip(runs, kinds, strict=True)]
    titles, rows = [subject.title for subject in subjects], [of.rows for of in runs]
    choice = choose(subjects, view, cache)
    shown = choice.metrics[:_MOST_CHARTS]
    is_run = len(subjects) == 1 and kinds[0] == "run"
    sheet = style()
    return render(
        "report.html",
        title=" · ".join(titles),
        style=Markup(sheet),  # ours; nothing in it ends the element
        digest=base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode(),
        subjects=subjects,
        rows=[row for of in rows for row in of],
        older=sum(of.left_out for of in runs),
        choice=choice,
        view=view,
        figures=figures(subjects, shown, choice.axis, view, cache),
        left_out=len(choice.metrics) - len(shown),
        comparison=compare(home, titles, rows) if len(subjects) > 1 else None,
        run=_run_fields(rows[0][0]) if is_run else None,
    )


def _run_fields(row: RunRow) -> dict[str, Any]:
    """Return what the report of a single run has besides its curves."""
    fields = manifest.read_manifest(row.folder)
    patch, patch_cut = code_page.patch_of(row.folder)
    end = output_page.page_before(row.folder)
    lines = end.lines[-_MOST_LINES:]
    pictures, left_out = _embedded_pictures(row)
    return {
        "row": row,
        "command": manifest.command_line(fields),
        "config": manifest.config(fields),
        "packages": manifest.packages(fields),
        "hardware": manifest.hardware(fields),
        "git": manifest.git(fields),
        "patch": patch,
        "patch_cut": patch_cut,
        "output": lines,
        "output_cut": end.start > 0 or len(lines) < len(end.lines),
        "pictures": pictures,
        "pictures_left_out": left_out,
    }


def _embedded_pictures(row: RunRow) -> tuple[list[tuple[str, str, str]], int]:
    """Return key, caption and `data:` address of pictures that fit, and how many do not."""
    found: list[tuple[str, str, str]] = []
    room = _MOST_IMAGES
    gallery = run_page.pictures_of(row.folder, "env_steps")
    left_out = gallery.left_out + sum(of_key.left_out for of_key in gallery.keys)
    for pictures in gallery.keys:
        for picture in pictures.pictures:
            if address := _data_address(row.folder, picture.path, room):
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
