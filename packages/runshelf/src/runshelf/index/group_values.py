"""The values of a group: each metric as a mean over independent samples, with its interval."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from runshelf.index.rows import Estimate
from runshelf.index.sql_conditions import Field
from runshelf.statistics.intervals import mean_interval

# SQLite limits the number of parameters of a statement to some thousands.
_CHUNK = 500

Seeds = Mapping[int, Sequence[int | None]]


@final
class Wanted(NamedTuple):
    """One statistic of one metric: the metric's number, and a column of the summaries."""

    metric: int
    column: str


def sample_values(connection: sqlite3.Connection, wanted: Wanted, seeds: Seeds) -> list[float]:
    """Return one value per independent sample that has the metric; NULL, a NaN, as NaN.

    Args:
        connection: the database.
        wanted: the statistic.
        seeds: the counted seeds of each run, by the run's number.
    """
    runs = list(seeds)
    whole: dict[int, object] = dict(
        _select(connection, "run, {column} FROM summaries", wanted, runs)
    )
    by_seed: dict[int, dict[int, object]] = {}
    for run, seed, value in _select(
        connection, "run, seed, {column} FROM seed_summaries", wanted, runs
    ):
        by_seed.setdefault(run, {})[seed] = value
    found: list[object] = []
    for run, counted in seeds.items():
        own = by_seed.get(run, {})
        chosen = [own[seed] for seed in counted if seed in own]
        found += chosen or [whole[run]] if run in whole else []
    return [float("nan") if value is None else float(str(value)) for value in found]


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of samples with its 95 % interval; NaN if a value is NaN."""
    with np.errstate(invalid="ignore"):  # of opposite infinities
        mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(mean):
        return Estimate(len(values), mean, None, None)
    found = mean_interval(np.array(values)[:, None])
    return Estimate(len(values), mean, float(found.low[0]), float(found.high[0]))


def one_value(field: Field, values: Sequence[object]) -> object:
    """Return one value for the values of a group's runs: a sum, the common value, or their number.

    Of a metric, `estimate` is the value.
    """
    if field.kind == "number":
        return sum(value for value in values if isinstance(value, int | float))
    different = {json.dumps(value) for value in values}
    return values[0] if len(different) == 1 else f"{len(different)} values"


def _select(
    connection: sqlite3.Connection, select: str, wanted: Wanted, runs: Sequence[int]
) -> Iterator[Any]:
    text = f"SELECT {select.format(column=wanted.column)} WHERE metric = ? AND count > 0 AND run IN"
    for first in range(0, len(runs), _CHUNK):
        chunk = runs[first : first + _CHUNK]
        marks = ", ".join("?" * len(chunk))
        yield from connection.execute(f"{text} ({marks})", (wanted.metric, *chunk))
