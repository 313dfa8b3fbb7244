"""A report: runs and groups in one self-contained HTML file without scripts."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from runshelf.index.rows import RunRow
from runshelf.store import opening
from runshelf.web import manifest
from runshelf.web.cache import Cache
from runshelf.web.drawing.figures import figures
from runshelf.web.drawing.metric_choice import choose
from runshelf.web.pages import code_page, output_page, run_page
from runshelf.web.pages.compare_page import compare
from runshelf.web.parameters import ChartView
from runshelf.web.subjects import Runs, subjects_of
from runshelf.web.templates import render, style

_MOST_CHARTS = 60
_MOST_IMAGES = 16 * 2**20
_MOST_LINES = 200


def report(
    home: Path, runs: Sequence[Runs], kinds: Sequence[str], view: ChartView, cache: Cache
) -> str:
    """Return the HTML of the report.

    Args:
        home: the home of the runs.
        runs: the runs of each subject.
        kinds: the kind of each subject, `run` or `group`.
        view: how curves are drawn; the page number is ignored.
        cache: caches file contents and charts.
    """
    subjects = subjects_of(kinds, runs)
    titles, rows = [subject.title for subject in subjects], [of.rows for of in runs]
    choice = choose(subjects, view, cache)
    shown = choice.metrics[:_MOST_CHARTS]
    is_run = len(subjects) == 1 and kinds[0] == "run"
    sheet = style()
    return render(
        "report.html",
        title=" · ".join(titles),
        style=Markup(sheet),  # trusted, contains no `</style>`
        digest=base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode(),
        subjects=subjects,
        rows=[row for of in rows for row in of],
        older=sum(of.left_out for of in runs),
        choice=choice,
        view=view,
        figures=figures(subjects, shown, choice.axis, view, cache),
        left_out=len(choice.metrics) - len(shown),
        comparison=compare(home, titles, rows, [of.result for of in runs])
        if len(subjects) > 1
        else None,
        run=_run_fields(rows[0][0]) if is_run else None,
    )


def _run_fields(row: RunRow) -> dict[str, Any]:
    """Return the template variables of a report on a single run, except the curves."""
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
    """Return key, caption and `data:` address of the pictures that fit, and the number left out."""
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
