"""Renders templates and reads static files. Templates escape HTML in all texts of runs."""

import functools
import hashlib
import time
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from runshelf import formatting
from runshelf.durations import duration
from runshelf.web.drawing.charts import UNITS
from runshelf.web.drawing.colours import colour_of
from runshelf.web.pages.code_page import clean_path, diff_lines
from runshelf.web.pages.runs_table import group_address, ordered_states, run_title
from runshelf.web.parameters import with_query
from runshelf.web.sanitize import clean


@functools.cache
def templates() -> Environment:
    """Return the Jinja environment with filters and globals."""
    environment = Environment(
        loader=PackageLoader("runshelf.web"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    formats = ("number", "brief", "short", "size", "moment", "count", "plural")
    filters: dict[str, Any] = {name: getattr(formatting, name) for name in formats}
    filters |= {
        "clean": clean,
        "duration": duration,
        "clean_path": clean_path,
        "diff_lines": diff_lines,
        "ago": _ago,
        "since": _since,
        "colour": colour_of,
        "group_address": group_address,
        "run_title": run_title,
        "ordered": ordered_states,
    }
    environment.filters.update(filters)
    static = f"/static/{static_version()}"
    variables: dict[str, Any] = {"with_query": with_query, "units": UNITS, "static": static}
    environment.globals.update(variables)
    return environment


def _ago(unix: float) -> str:
    return formatting.ago(time.time() - unix)


def _since(unix: float) -> str:
    return duration(time.time() - unix)


def render(template: str, **context: Any) -> str:
    """Return a template rendered with a context."""
    return templates().get_template(template).render(**context)


@functools.cache
def static_files() -> dict[str, bytes]:
    """Return the scripts, the style sheet and the icon by file name."""
    folder = resources.files("runshelf.web") / "static"
    return {item.name: item.read_bytes() for item in folder.iterdir()}


@functools.cache
def static_version() -> str:
    """Return a digest of the static files, part of their addresses, so that browsers can cache."""
    digest = hashlib.sha256()
    for name, data in sorted(static_files().items()):
        digest.update(name.encode() + data)
    return digest.hexdigest()[:12]


def style() -> str:
    """Return the style sheet, to be embedded in a page."""
    return static_files()["style.css"].decode()
