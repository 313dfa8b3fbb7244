"""The rows and pages that the index returns."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.store.results import Result
from runshelf.store.run_ids import short_id


@final
@dataclass(frozen=True)
class RunRow:
    """One run of a table.

    Attributes:
        ulid: its id.
        name: its name, if it has one.
        group: the name of its group.
        command: `teach`, `train`, `run`, `script` or `import`.
        env: the environment's id, if it has one.
        algorithm: the algorithm's name, if it has one.
        state: running, finished, failed, interrupted, stopped or lost.
        note: the reason for the state, one line; may be empty.
        since: when the state began, ISO 8601; may be empty.
        question: the question that it is to answer.
        tags: its tags.
        seeds: its seeds.
        created: when it was created, in Unix seconds.
        seconds: its running time, over all periods.
        cost: its cost, if known.
        parent: the id of the run that it repeats.
        folder: its folder.
        values: the values of the requested columns that it has, by key.
        result: its result; None without metrics.
    """

    ulid: str
    name: str | None
    group: str
    command: str
    env: str | None
    algorithm: str | None
    state: str
    note: str
    since: str
    question: str | None
    tags: list[str]
    seeds: list[int]
    created: float
    seconds: float | None
    cost: float | None
    parent: str | None
    folder: Path
    values: dict[str, object] = field(default_factory=dict[str, object])
    result: Result | None = None

    @property
    def short(self) -> str:
        """The short form of the id, which tables and pages show."""
        return short_id(self.ulid)


_OF_THE_TABLE = [
    one.name for one in fields(RunRow) if one.name not in ("folder", "values", "result")
]
# `group` is an SQL keyword.
COLUMNS = ", ".join("grouping" if name == "group" else name for name in _OF_THE_TABLE)


def to_columns(row: RunRow) -> dict[str, Any]:
    """Return the columns of a row in the database."""
    found = {name: getattr(row, name) for name in _OF_THE_TABLE}
    found["grouping"] = found.pop("group")
    return found | {"tags": json.dumps(row.tags), "seeds": json.dumps(row.seeds)}


def from_columns(values: Sequence[Any], runs: Path, result: Result | None) -> RunRow:
    """Return the row of a run from its values in the database.

    Args:
        values: the values of `COLUMNS`, in order.
        runs: the folder that holds all runs.
        result: the run's result.
    """
    found = dict(zip(_OF_THE_TABLE, values, strict=True))
    found |= {"tags": json.loads(found["tags"]), "seeds": json.loads(found["seeds"])}
    return RunRow(**found, folder=runs / found["ulid"], result=result)


@final
@dataclass(frozen=True)
class GroupRow:
    """One group of a table; only its runs that match the filter count.

    Attributes:
        group: its name.
        runs: the number of runs.
        seeds: their seeds, each once.
        n: the number of independent samples: seeds, plus runs without seeds.
        states: the number of runs by state.
        question: the question of the newest run that has one.
        created: when its newest run was created, in Unix seconds.
        env: the environment of the newest run.
        algorithm: the algorithm of the newest run.
        values: the values of the requested columns, by key: for metrics the mean over the runs,
            for `seconds` and `cost` the sum, for settings the value, or the number of values.
        result: the mean over seeds of the result that most runs have; None without metrics.
    """

    group: str
    runs: int
    seeds: list[int]
    n: int
    states: dict[str, int]
    question: str | None
    created: float
    env: str | None
    algorithm: str | None
    values: dict[str, object] = field(default_factory=dict[str, object])
    result: Result | None = None


def _is_known(row: RunRow) -> tuple[bool, bool]:
    return row.state == "finished", row.result is not None and row.result.value is not None


def result_of_group(rows: Sequence[RunRow]) -> Result | None:
    """Return the mean over the seeds of a group's runs of the result that most of them have.

    A run of several seeds counts as many times. Of runs of the same seeds one counts: the newest
    finished one.

    Args:
        rows: the runs, newest first.
    """
    results: dict[object, RunRow] = {}
    for row in sorted(rows, key=_is_known, reverse=True):  # stable: the newest comes first
        results.setdefault(tuple(row.seeds) or row.ulid, row)
    found = [(row.result, max(len(row.seeds), 1)) for row in results.values() if row.result]
    if not found:
        return None
    names = [result.metric for result, _ in found if result.value is not None]
    names = names or [result.metric for result, _ in found]
    metric = max(dict.fromkeys(names), key=names.count)
    known = [(r.value, n) for r, n in found if r.metric == metric and r.value is not None]
    seeds = sum(n for _, n in known)
    mean = sum(value * n for value, n in known) / seeds if seeds else None
    return Result(metric, mean, seeds)


@final
class RunPage(NamedTuple):
    """A page of a table of runs, and the total number of rows."""

    rows: list[RunRow]
    total: int


@final
class GroupPage(NamedTuple):
    """A page of a table of groups, and the total number of rows."""

    rows: list[GroupRow]
    total: int


@final
class Keys(NamedTuple):
    """Keys and values that can be used in filters, sort orders and columns."""

    config: list[str]
    metrics: list[str]
    tags: list[str]
    groups: list[str]
    envs: list[str]
    states: list[str]
