"""The summary of a run's metrics: five numbers each, written to `summary.json` when it ended."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from runshelf.store.files import disk_errors, write_whole
from runshelf.store.metrics import BrokenLine, read_columns
from runshelf.store.records import from_json, to_line
from runshelf.store.series import NOT_METRICS, Series, over

SUMMARY = "summary.json"


@final
@dataclass(frozen=True)
class Summary:
    """One metric of a run in five numbers.

    Attributes:
        last: the value recorded last, the mean over seeds where there are several.
        minimum: the smallest but NaN; NaN where all are, and so with the next two.
        maximum: the largest.
        mean: the mean.
        count: how many there are, NaN included.
    """

    last: float
    minimum: float
    maximum: float
    mean: float
    count: int


def summarise(folder: Path) -> dict[str, Summary]:
    """Return the summary of every metric, as written when the run ended if nothing came after.

    Raises:
        UserFacingError: a file cannot be read.
    """
    return _written_summary(folder) or _summary(folder)


def write_summary(folder: Path, kept: Sequence[BrokenLine] = ()) -> None:
    """Write the summary, with the sizes of the files it was made from.

    Args:
        folder: the run's folder.
        kept: of each file that stays lines because of one, that line.

    Raises:
        UserFacingError: a file cannot be read, or the disk is full.
    """
    metrics = {
        name: dict(zip(("last", "min", "max", "mean", "n"), astuple(summary), strict=True))
        for name, summary in _summary(folder).items()
    }
    lines = {broken.path.name: broken.line for broken in kept}
    about = {"files": _sizes(folder), **({"kept": lines} if kept else {})}
    fields = {**about, "metrics": metrics}
    write_whole(folder / SUMMARY, to_line(fields) + b"\n")


def kept_as_lines(folder: Path) -> list[BrokenLine]:
    """Return what `compact` returned, if nothing came after.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    try:
        fields: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
        if fields["files"] != _sizes(folder):
            return []
        kept: dict[str, int] = fields.get("kept", {})
        names = [name for name in kept if name in fields["files"]]
        return [BrokenLine(folder / name, int(kept[name])) for name in names]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _summary(folder: Path) -> dict[str, Summary]:
    columns = read_columns(folder)
    names = sorted(columns.keys() - NOT_METRICS)
    return {name: _summary_of(list(over(columns, name, "step").values())) for name in names}


def _summary_of(seeds: Sequence[Series]) -> Summary:
    values = np.concatenate([series.y for series in seeds])
    known = values[~np.isnan(values)]
    last = np.array([series.y[-1] for series in seeds])
    with np.errstate(all="ignore"):
        of_known = (known.min(), known.max(), known.mean()) if len(known) else [math.nan] * 3
        return Summary(float(last.mean()), *map(float, of_known), count=len(values))


def _written_summary(folder: Path) -> dict[str, Summary] | None:
    """Return the summary on disk; None if there is none or the metrics have changed since."""
    try:
        fields: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
        if fields["files"] != _sizes(folder):
            return None
        metrics: dict[str, Any] = from_json(fields["metrics"])
        return {
            name: Summary(m["last"], m["min"], m["max"], m["mean"], m["n"])
            for name, m in metrics.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    with disk_errors(folder):
        return {
            entry.name: entry.stat().st_size
            for entry in os.scandir(folder)
            if entry.name.startswith("metrics-") and entry.name.endswith((".jsonl", ".npz"))
        }
