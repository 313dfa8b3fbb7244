"""The one chart that can be zoomed into, by Plotly.js out of the `plotly` wheel."""

import html
import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backflip.web.archive_pages.charts import UNITS
from backflip.web.archive_pages.colours import looks_of
from backflip.web.archive_pages.curves import any_finite, centred, smoothed
from backflip.web.archive_pages.figures import Subject, aligned_members
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.view import ChartView

BUCKETS = 1_000
MOST_SEEDS = 50
INSTALL = "pip install 'backflip[charts]'"


def plotly_script() -> Path | None:
    """Return where Plotly.js is; None if the extra is not installed. Nothing of it is imported."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    return path if path.is_file() else None


def interactive_fields(
    subjects: Sequence[Subject], metric: str, axis: str, view: ChartView
) -> dict[str, Any]:
    """Return what the interactive chart draws: per subject its centre, interval and seeds."""
    looks = looks_of([subject.group for subject in subjects])
    return {
        "title": _harmless(metric),
        "axis": UNITS.get(axis, axis),
        "log": view.log,
        "lines": [
            _line(subject, look.colour, metric, axis, view)
            for subject, look in zip(subjects, looks, strict=True)
        ],
    }


def _line(subject: Subject, colour: int, metric: str, axis: str, view: ChartView) -> dict[str, Any]:
    aligned = aligned_members(subject, metric, axis, BUCKETS, positive=view.log)
    band = centred(aligned, view.centre, view.share)
    seeds = smoothed(aligned.values, view.share)
    return {
        "label": _harmless(subject.title),
        "colour": colour,
        "x": _plain(aligned.x),
        "y": _plain(band.centre),
        "low": _plain(band.low),
        "high": _plain(band.high),
        "seeds": [
            {"label": _harmless(label), "y": _plain(values)}
            for label, values in zip(aligned.labels, seeds, strict=True)
            if any_finite(values) and len(seeds) > 1
        ][:MOST_SEEDS],
    }


def _harmless(text: str) -> str:
    """Return text that Plotly shows as it is: of its own it understands some HTML."""
    return html.escape(shown(text, 120))


def _plain(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]
