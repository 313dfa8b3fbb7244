"""The summary of a run's metrics: five numbers per metric, in `summary.json` when it has ended."""

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.columns import EXACT
from runshelf.store.metrics import BrokenLine, metric_sizes, read_columns
from runshelf.store.opening import read_whole
from runshelf.store.outlines import write_outlines
from runshelf.store.records import from_json, to_line
from runshelf.store.series import NOT_METRICS, Series, series_by_seed
from runshelf.store.writing import replace_file

SUMMARY = "summary.json"
_FORMAT = 3  # older summaries lack the seeds, or count means over no episodes; computed again
_INVALID = (UserFacingError, OSError, ValueError, TypeError, KeyError, AttributeError)


@final
@dataclass(frozen=True)
class Summary:
    """One metric of a run in five numbers.

    Minimum, maximum and mean ignore NaNs; they are NaN if all values are. A metric that was never
    measured, as a return if no episode has ended, has NaNs and a count of 0.

    Attributes:
        last: the last value, averaged over seeds.
        minimum: the smallest value.
        maximum: the largest value.
        mean: the mean value.
        count: the number of values, NaNs included.
        seeds: the summary of each seed.
    """

    last: float
    minimum: float
    maximum: float
    mean: float
    count: int
    seeds: Mapping[int, "Summary"] = field(default_factory=dict[int, "Summary"], compare=False)


def summarise(folder: Path, most: int | None = None) -> dict[str, Summary]:
    """Return the summary of every metric, from `summary.json` if it is up to date.

    Args:
        folder: the run's folder.
        most: the largest number of metrics, in the order of their names; None for all.

    Raises:
        UserFacingError: a file cannot be read.
    """
    written = _written_summary(folder)
    return dict(itertools.islice(written.items(), most)) if written else _summary(folder, most)


def write_summary(folder: Path, kept: Sequence[BrokenLine] = ()) -> None:
    """Write the summary, with the sizes of the files it was computed from, and the outlines.

    Args:
        folder: the run's folder.
        kept: the broken lines because of which `compact` left a file unchanged.

    Raises:
        UserFacingError: a file cannot be read, or the disk is full.
    """
    metrics = {name: _to_fields(summary) for name, summary in _summary(folder).items()}
    lines = {broken.path.name: broken.line for broken in kept}
    about = {"format": _FORMAT, "files": metric_sizes(folder), **({"kept": lines} if kept else {})}
    fields = {**about, "metrics": metrics}
    replace_file(folder, SUMMARY, to_line(fields) + b"\n")
    write_outlines(folder)


def kept_as_lines(folder: Path) -> list[BrokenLine]:
    """Return the broken lines that `compact` found; nothing if the metrics changed since then.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    with suppress(*_INVALID):
        fields = _fields(folder)
        kept: dict[str, int] = fields.get("kept", {})
        names = [name for name in kept if name in fields["files"]]
        return [BrokenLine(folder / name, int(kept[name])) for name in names]
    return []


def _summary(folder: Path, most: int | None = None) -> dict[str, Summary]:
    columns = read_columns(folder)
    names = sorted(columns.keys() - NOT_METRICS)[:most]
    return {name: _of_seeds(series_by_seed(columns, name, "step")) for name in names}


def _of_seeds(series: Mapping[int | None, Series]) -> Summary:
    whole = _summary_of(list(series.values()))
    seeds = {seed: _summary_of([one]) for seed, one in series.items() if seed is not None}
    return replace(whole, seeds=seeds)


def _summary_of(seeds: Sequence[Series]) -> Summary:
    if not seeds:
        return Summary(*[math.nan] * 4, count=0)
    values = np.concatenate([series.y for series in seeds])
    known = values[~np.isnan(values)]
    last = np.array([series.y[-1] for series in seeds])
    with np.errstate(all="ignore"):
        of_known = (known.min(), known.max(), known.mean()) if len(known) else [math.nan] * 3
        return Summary(float(last.mean()), *map(float, of_known), count=len(values))


def _written_summary(folder: Path) -> dict[str, Summary] | None:
    """Return the summary on disk; None if it is missing, invalid or out of date."""
    with suppress(*_INVALID):
        metrics: dict[str, Any] = from_json(_fields(folder)["metrics"])
        return {name: _from_fields(one) for name, one in metrics.items()}
    return None


def _to_fields(summary: Summary) -> dict[str, Any]:
    fields = {
        "last": summary.last,
        "min": summary.minimum,
        "max": summary.maximum,
        "mean": summary.mean,
        "n": summary.count,
    }
    seeds = {str(seed): _to_fields(one) for seed, one in summary.seeds.items()}
    return fields | ({"seeds": seeds} if seeds else {})


def _from_fields(fields: Mapping[str, Any]) -> Summary:
    seeds = {int(seed): _from_fields(one) for seed, one in fields.get("seeds", {}).items()}
    numbers = [fields[name] for name in ("last", "min", "max", "mean")]
    count = fields["n"]
    if not all(type(number) in (int, float) for number in numbers) or type(count) is not int:
        raise ValueError("not numbers")
    if not 0 <= count <= EXACT:
        raise ValueError("not a number of values")
    return Summary(*map(float, numbers), count=count, seeds=seeds)


def _fields(folder: Path) -> dict[str, Any]:
    """Return the content of `summary.json`.

    Raises:
        ValueError: it is out of date. An invalid file raises any of `_INVALID`.
    """
    fields = parse_record(read_whole(folder, SUMMARY) or b"")
    if fields.get("format") != _FORMAT or fields["files"] != metric_sizes(folder):
        raise ValueError("out of date")
    return fields
