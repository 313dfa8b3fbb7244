"""The templates: everything that others wrote is escaped, and made plain before that."""

import functools
import hashlib
import time
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from backflip.archive.durations import duration
from backflip.web.archive_pages import words
from backflip.web.archive_pages.charts import UNITS
from backflip.web.archive_pages.code import diff_lines, shown_path
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.view import addressed


@functools.cache
def templates() -> Environment:
    """Return what renders templates."""
    environment = Environment(
        loader=PackageLoader("backflip.web", "templates/archive"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "shown": shown,
        "shown_path": shown_path,
        "diff_lines": diff_lines,
        "number": words.number,
        "duration": duration,
        "ago": _ago,
        "since": _since,
        "brief": words.brief,
        "size": words.size,
        "moment": words.moment,
        "count": _count,
        "plural": words.plural,
    }
    environment.filters.update(filters)
    static = f"/static/{static_version()}"
    given: dict[str, Any] = {"addressed": addressed, "units": UNITS, "static": static}
    environment.globals.update(given)
    return environment


def render(template: str, **context: Any) -> str:
    """Return a template filled in."""
    return templates().get_template(template).render(**context)


def _ago(unix: float) -> str:
    return words.ago(time.time() - unix)


def _since(unix: float) -> str:
    return duration(time.time() - unix)


def _count(many: int) -> str:
    return f"{many:,}".replace(",", " ")


@functools.cache
def static_files() -> dict[str, bytes]:
    """Return scripts, style sheets and the icon by name."""
    folder = resources.files("backflip.web") / "static"
    own = {item.name: item.read_bytes() for item in (folder / "archive").iterdir()}
    return own | {"icon.svg": (folder / "icon.svg").read_bytes()}


@functools.cache
def static_version() -> str:
    """Return what differs once one of them has changed; browsers may keep those of a version."""
    digest = hashlib.sha256()
    for name, data in sorted(static_files().items()):
        digest.update(name.encode() + data)
    return digest.hexdigest()[:12]


def style() -> str:
    """Return the style sheet, for pages that carry it with them."""
    return static_files()["archive.css"].decode()
