"""The rows and pages that the index returns."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, final

from runshelf.store.results import Result
from runshelf.store.run_ids import is_ulid, short_id

T = TypeVar("T")


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
        state: running, finished, failed, interrupted, stopped, lost or imported.
        note: the reason for the state, one line; may be empty.
        since: when the state began, ISO 8601; may be empty.
        question: the question that it is to answer.
        tags: its tags.
        seeds: its seeds.
        created: when it was created, in Unix seconds.
        seconds: its running time, over all periods.
        cost: its cost, if known.
        parent: the id of the run that it repeats.
        source: the folder that it was imported from; None for other runs.
        code: a digest of its code; empty if its code is unknown.
        content: a digest of its metrics, without measured times; empty without metrics.
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
    source: str | None
    code: str
    content: str
    folder: Path
    values: dict[str, object] = field(default_factory=dict[str, object])
    result: Result | None = None

    @property
    def short(self) -> str:
        """The short form of the id, which tables and pages show."""
        return short_id(self.ulid)


class DamagedRow(Exception):
    """A row of the index has a value that was never written to it."""


_OF_THE_TABLE = [
    one.name for one in fields(RunRow) if one.name not in ("folder", "values", "result")
]
# `group` is an SQL keyword.
_OPTIONAL = str | None
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("name", "env", "algorithm", "question", "parent", "source"), _OPTIONAL),
    **dict.fromkeys(("seconds", "cost"), float | None),
    "created": float,
}
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

    Raises:
        DamagedRow: a value is not one that `to_columns` returns.
    """
    found = dict(zip(_OF_THE_TABLE, values, strict=True))
    for name, value in found.items():
        if not isinstance(value, _KINDS.get(name, str)):
            raise DamagedRow(f"the column `{name}` has {type(value).__name__}")
    if not is_ulid(found["ulid"]):  # also the name of its folder
        raise DamagedRow("a run has no id")
    found |= {"tags": list_of(str, found["tags"]), "seeds": list_of(int, found["seeds"])}
    return RunRow(**found, folder=runs / found["ulid"], result=result)


def list_of(kind: type[T], text: str) -> list[T]:
    """Return a list from its JSON.

    Raises:
        DamagedRow: it is not one, or not of such values.
    """
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise DamagedRow("a list is not JSON") from error
    if not isinstance(found, list):
        raise DamagedRow("a list is not one")
    items = cast("list[Any]", found)
    if any(type(item) is not kind for item in items):
        raise DamagedRow(f"a list is not one of {kind.__name__}")
    return items


@final
@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over the independent samples of a group.

    Attributes:
        n: the number of samples that have the metric.
        mean: the mean of their values.
        low: the lower end of its 95 % interval (Student's t); None with fewer than two samples, and
            if a value is NaN or infinite.
        high: the upper end.
    """

    n: int
    mean: float
    low: float | None
    high: float | None


@final
@dataclass(frozen=True)
class Repeat:
    """A seed of a run that is not counted, since another run has it.

    Attributes:
        run: the id of the run.
        seed: the seed; None for a run without seeds.
        of: the id of the run that is counted.
        why: `seed`, `source` (imported from the same folder) or `values` (identical values).
    """

    run: str
    seed: int | None
    of: str
    why: str


@final
@dataclass(frozen=True)
class GroupRow:
    """One group of a table; only its runs that match the filter count.

    Attributes:
        group: its name.
        runs: the number of runs.
        seeds: the seeds of its samples.
        n: the number of independent samples: seeds, and runs without seeds.
        repeats: the seeds of runs that are not counted.
        states: the number of runs by state.
        question: the question of the newest run that has one.
        created: when its newest run was created, in Unix seconds.
        env: the environment of the newest run.
        algorithm: the algorithm of the newest run.
        values: the values of the requested columns, by key: for metrics the mean over the samples,
            for `seconds` and `cost` the sum over all runs, for settings the value, or the number of
            values.
        estimates: the mean of each requested metric with its interval, by key.
        result: the mean over the samples of the result that most of them have; None without
            metrics.
    """

    group: str
    runs: int
    seeds: list[int]
    n: int
    repeats: list[Repeat]
    states: dict[str, int]
    question: str | None
    created: float
    env: str | None
    algorithm: str | None
    values: dict[str, object] = field(default_factory=dict[str, object])
    estimates: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    result: Result | None = None


@final
class Outline(NamedTuple):
    """What the index knows of a run without reading its seeds and its result.

    Attributes:
        folder: its folder.
        state: its state.
        note: the reason for the state.
        created: when it was created, in Unix seconds.
        parent: the id of the run that it repeats.
    """

    folder: Path
    state: str
    note: str
    created: float
    parent: str | None


def outline_of(values: Sequence[Any], runs: Path) -> Outline:
    """Return the outline of a run from its id and the fields of `Outline` after the folder.

    Raises:
        DamagedRow: a value is not one that was written.
    """
    ulid, *rest = values
    kinds = (str, str, str, float, _OPTIONAL)
    if not all(map(isinstance, values, kinds)) or not is_ulid(ulid):
        raise DamagedRow("a run has a wrong value")
    return Outline(runs / ulid, *rest)


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
