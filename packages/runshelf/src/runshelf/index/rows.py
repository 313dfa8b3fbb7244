"""What the index answers with."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, final


@final
@dataclass(frozen=True)
class RunRow:
    """One run of a table.

    Attributes:
        ulid: its id.
        name: what it was called, if it was.
        group: the runs it belongs to.
        command: `teach`, `train`, `run`, `script` or `import`.
        env: the environment's id, if there is one.
        algorithm: the algorithm's name, if there is one.
        state: how it stands: running, finished, failed, interrupted, stopped or lost.
        note: one line on why; may be empty.
        since: when that began, ISO 8601; may be empty.
        question: what it is to answer.
        tags: words to find it by.
        seeds: its seeds.
        created: when it was made, in Unix seconds.
        seconds: how long it has run, over all its periods of execution.
        cost: what that has cost, if it is known.
        parent: the id of the run it repeats.
        folder: where it is.
        values: the columns asked for that it has, by name.
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


_OF_THE_TABLE = [one.name for one in fields(RunRow) if one.name not in ("folder", "values")]
# `group` is a word of SQL.
COLUMNS = ", ".join("grouping" if name == "group" else name for name in _OF_THE_TABLE)


def to_columns(row: RunRow) -> dict[str, Any]:
    """Return a row as the database has it."""
    found = {name: getattr(row, name) for name in _OF_THE_TABLE}
    found["grouping"] = found.pop("group")
    return found | {"tags": json.dumps(row.tags), "seeds": json.dumps(row.seeds)}


def from_columns(values: Sequence[Any], runs: Path) -> RunRow:
    """Return the row that the database has as `COLUMNS`.

    Args:
        values: of the columns, in order.
        runs: the folder that holds all runs.
    """
    found = dict(zip(_OF_THE_TABLE, values, strict=True))
    found |= {"tags": json.loads(found["tags"]), "seeds": json.loads(found["seeds"])}
    return RunRow(**found, folder=runs / found["ulid"])


@final
@dataclass(frozen=True)
class GroupRow:
    """One group of a table: those of its runs that the filter lets through.

    Attributes:
        group: its name.
        runs: how many runs.
        seeds: their seeds, each once.
        n: how many independent samples these are: seeds, and runs that name no seed.
        states: how many runs are in each state.
        question: that of its newest run that has one.
        created: when its newest run was made, in Unix seconds.
        env: that of its newest run.
        algorithm: that of its newest run.
        values: the columns asked for: of metrics the mean over the runs, of a configuration's key
            the value, or how many there are; of `seconds` and `cost` the sum.
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


@final
class RunPage(NamedTuple):
    """Some rows of a table of runs, and how many there are in all."""

    rows: list[RunRow]
    total: int


@final
class GroupPage(NamedTuple):
    """Some rows of a table of groups, and how many there are in all."""

    rows: list[GroupRow]
    total: int


@final
class Keys(NamedTuple):
    """What can be filtered by, sorted by and shown."""

    config: list[str]
    metrics: list[str]
    tags: list[str]
    groups: list[str]
    envs: list[str]
    states: list[str]
