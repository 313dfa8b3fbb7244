"""Diagnoses as one HTML file, with a picture of each finding."""

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

import numpy as np

from backflip.doctor.diagnosis import Diagnosis, Measured, run_check
from backflip.doctor.report import in_words
from runshelf.charts.picture import Legend, picture
from runshelf.charts.plot import Line, x_scale, y_scale
from runshelf.formatting import cut

MOST_LETTERS = 50  # beside a picture

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap; background: #8881; padding: 1rem; border-radius: 6px }
svg { max-width: 100%; height: auto } :root { color-scheme: light dark }
.verdict { font-size: 1.2rem; font-weight: 600 }
"""


def page(diagnoses: Sequence[Diagnosis]) -> str:
    """Return a self-contained HTML page; it loads nothing."""
    head = f"<meta charset='utf-8'><title>Diagnosis</title><style>{_STYLE}</style>"
    body = "\n".join(part for one in diagnoses for part in _parts(one))
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>\n"


def _parts(one: Diagnosis) -> Iterator[str]:
    yield f"<h1>{escape(one.log.name)}</h1><p class='verdict'>{escape(one.verdict)}</p>"
    for found in (*one.findings, *one.warnings):
        yield _picture(one, found)
    yield f"<pre>{escape(in_words(one))}</pre>"


def _picture(one: Diagnosis, found: Measured) -> str:
    """Return what a check measured, its limit and where that was crossed; empty without a curve."""
    running = run_check(found.check, one.log)
    if running is None:
        return ""
    known = np.isfinite(running.value)
    x, y = running.x[known], running.value[known]
    if len(x) < 2:
        return ""
    limit = Line("limit", np.asarray([x[0], x[-1]]), np.full(2, found.limit), colour=1, dash=1)
    lines = [Line(found.check.id, x, y), limit]
    if math.isfinite(found.since):
        lines.append(Line("since", np.full(2, found.since), np.asarray([y.min(), y.max()]), 1))
    across, up = x_scale(lines), y_scale(lines)
    if across is None or up is None:
        return ""
    description = f"{found.check.measured}: {found.value:g}, limit {found.limit:g}"
    return picture(
        f"{found.check.id}: {found.check.title}",
        lines,
        (across, "env steps"),
        (up, cut(found.check.measured, MOST_LETTERS)),
        legend=[Legend("centre", "measured"), Legend("centre", "limit and first crossing", 1, 1)],
        description=description,
    )
