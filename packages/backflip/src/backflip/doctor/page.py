"""Diagnoses as one HTML file, with a picture of each finding."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final
from xml.sax.saxutils import escape

import numpy as np

from backflip.doctor.diagnosis import Diagnosis, Measured, run_check, signal_of
from backflip.doctor.log import Values
from backflip.doctor.report import in_words
from runshelf.charts.picture import Legend, picture
from runshelf.charts.plot import Line, x_scale, y_scale
from runshelf.formatting import cut

MOST_LETTERS = 44  # beside a picture
MOST_IN_FULL = 4  # diagnoses
MOST_DRAWN = 6  # findings of each

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2, li, pre, figcaption { overflow-wrap: anywhere }
pre { white-space: pre-wrap; background: #8881; padding: 1rem; border-radius: 6px }
svg { max-width: 100%; height: auto }
figure { margin: 0 }
figcaption { font-size: 0.85rem; padding: 0 1rem 1rem }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(24rem, 100%), 1fr)) }
:root { color-scheme: light dark }
.verdict { font-size: 1.2rem; font-weight: 600 }
"""


@final
class Drawn(NamedTuple):
    """Curves of a finding.

    Attributes:
        title: what they are.
        lines: the curve, and dashed the limit and where it was first crossed; none without a curve.
        y: what the y-axis is.
        legend: a sentence about them.
    """

    title: str
    lines: list[Line]
    y: str
    legend: str


Draw = Callable[[Drawn], str]


def page(diagnoses: Sequence[Diagnosis]) -> str:
    """Return a self-contained HTML page; it loads nothing."""
    view = "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    head = f"<meta charset='utf-8'>{view}<title>Diagnosis</title><style>{_STYLE}</style>"
    body = content(diagnoses, _figure)
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>\n"


def content(diagnoses: Sequence[Diagnosis], draw: Draw) -> str:
    """Return the content of a page.

    Of several diagnoses, each gets a line. The worst one is shown in full, and others with findings
    or warnings.

    Args:
        diagnoses: the diagnoses.
        draw: returns curves as HTML.
    """
    worst = sorted(diagnoses, key=lambda one: (-len(one.findings), -len(one.warnings)))
    in_full = [*worst[:1], *(one for one in worst[1:] if one.findings or one.warnings)]
    lines = list[str]()
    if len(diagnoses) > 1:
        each = (f"<li>{escape(one.log.name)}: {escape(one.verdict)}</li>" for one in diagnoses)
        lines = ["<ul>", *each, "</ul>"]
    return "\n".join(
        [*lines, *(part for one in in_full[:MOST_IN_FULL] for part in _parts(one, draw))]
    )


def _parts(one: Diagnosis, draw: Draw) -> Iterator[str]:
    yield f"<h2>{escape(one.log.name)}</h2><p class='verdict'>{escape(one.verdict)}</p>"
    yield "<div class='charts'>"
    yield from map(draw, _drawn(one))
    yield "</div>"
    yield f"<pre>{escape(in_words(one))}</pre>"


def _drawn(one: Diagnosis) -> list[Drawn]:
    """Return the curves of findings; a signal that several checks need, once."""
    found = [*one.findings, *one.warnings, *one.remarks][:MOST_DRAWN]
    curves = [drawn for each in found for drawn in _curves_of(one, each)]
    first = {drawn.y: drawn for drawn in reversed(curves)}
    return [drawn for drawn in curves if first[drawn.y] is drawn]


def _curves_of(one: Diagnosis, found: Measured) -> list[Drawn]:
    """Return what a check measured against its limit, and a signal that it needs, as logged.

    What was measured is left out if it is one number: the signal says more.
    """
    measured, logged = _measured(one, found), _logged(one, found)
    if measured is not None and logged is not None and not np.ptp(measured.lines[0].y):
        measured = None
    return [drawn for drawn in (measured, logged) if drawn is not None]


def _measured(one: Diagnosis, found: Measured) -> Drawn | None:
    check = found.check
    running = run_check(check, one.log)
    curve = [] if running is None else _curve(check.id, running.x, running.value, found)
    if not curve:
        return None
    ends = np.asarray([curve[0].x[0], curve[0].x[-1]])
    lines = [*curve, Line("limit", ends, np.full(2, found.limit), colour=1, dash=1)]
    about = f"{check.quantity}; dashed: the limit, and where it was first crossed"
    return Drawn(f"{check.id}: {check.title}", lines, f"what {check.id} measures", about)


def _logged(one: Diagnosis, found: Measured) -> Drawn | None:
    check, signal = found.check, signal_of(one.log, found.check)
    if signal is None:
        return None
    curve = _curve(signal.logged_as, signal.x, signal.y, found)
    about = f"as logged; dashed: where {check.id} was first found"
    return Drawn(f"{signal.logged_as} ({check.id})", curve, signal.logged_as, about)


def _curve(name: str, x: Values, y: Values, found: Measured) -> list[Line]:
    """Return a curve and where the limit was first crossed; empty without two values."""
    known = np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < 2:
        return []
    lines = [Line(name, x, y)]
    if math.isfinite(found.since):
        lines.append(Line("since", np.full(2, found.since), np.asarray([y.min(), y.max()]), 1, 1))
    return lines


def _figure(drawn: Drawn) -> str:
    """Return curves as a picture that brings its own style, and what they are; empty without."""
    made = _picture(drawn)
    return f"<figure>{made}<figcaption>{escape(drawn.legend)}</figcaption></figure>" if made else ""


def _picture(drawn: Drawn) -> str:
    across, up = x_scale(drawn.lines), y_scale(drawn.lines)
    if across is None or up is None:
        return ""
    return picture(
        drawn.title,
        drawn.lines,
        (across, "env steps"),
        (up, cut(drawn.y, MOST_LETTERS)),
        legend=[Legend("centre", "measured"), Legend("centre", "limit, first crossing", 1, 1)],
        description=drawn.legend,
    )
