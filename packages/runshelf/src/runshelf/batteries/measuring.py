"""The rows of a battery as sweeps: a row is measured once for each state of the code.

So everything that holds for sweeps holds here: a killed row goes on where it was, several processes
share the work, and what was measured is not measured again.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, final

from runshelf.batteries.code_identity import Code
from runshelf.batteries.rows import BatteryRow
from runshelf.comparison.analysis import better_direction
from runshelf.errors import UserFacingError
from runshelf.sweeps.blocks import ReportPlan, usual_block_seeds
from runshelf.sweeps.definition import MOST_SEEDS, SWEEP, Definition, Sweep, to_json
from runshelf.sweeps.making import folder_of, make_sweep
from runshelf.sweeps.state import State, write_report
from runshelf.sweeps.template import takes_many_seeds, takes_one_seed

_UNKNOWN_SECONDS = 600.0  # assumed for a row without a time


@final
class Measured(NamedTuple):
    """What measuring a row gave.

    Attributes:
        scores: one for each seed, NaN for a seed that failed; empty if the command failed.
        failure: why the command failed; empty if it did not.
        seconds: how long its blocks took together.
        metric: the metric of the scores; empty if the command failed.
    """

    scores: tuple[float, ...]
    failure: str
    seconds: float
    metric: str = ""


def cheap_first(rows: Sequence[BatteryRow], seconds: float) -> list[BatteryRow]:
    """Return the rows in the order of their times, as many as fit into so many seconds."""
    chosen: list[BatteryRow] = []
    for row in sorted(rows, key=_cost):
        seconds -= _cost(row)
        if seconds < 0:
            break
        chosen.append(row)
    return chosen


def seconds_of(rows: Sequence[BatteryRow]) -> float:
    """Return how long rows are expected to take."""
    return sum(map(_cost, rows))


def _cost(row: BatteryRow) -> float:
    return _UNKNOWN_SECONDS if row.seconds is None else row.seconds


def sweep_of(row: BatteryRow, home: Path, code: Code, *, again: bool = False) -> Sweep:
    """Make the sweep that measures a row with this code, or return the newest one of them.

    Args:
        row: the row.
        home: the home that gets the runs.
        code: the code that is measured.
        again: make another one, though the row was measured with this code.

    Raises:
        UsageError: the command cannot run.
        UserFacingError: the folder cannot be written.
    """
    definition = _definition(row, home, code)
    folders = _folders(row, home, code)
    newest, following = next(folders), next(folders)
    while (following / SWEEP).is_file():
        newest, following = following, next(folders)
    if again and (newest / SWEEP).is_file():
        newest = following
    sweep = make_sweep(newest, home, definition)
    write_report(sweep, ReportPlan((0,), len(row.seeds)))
    return sweep


def is_known(row: BatteryRow, home: Path, code: Code) -> bool:
    """Return whether a row was measured with this code, at least in part."""
    return (next(_folders(row, home, code)) / SWEEP).is_file()


def _folders(row: BatteryRow, home: Path, code: Code) -> Iterator[Path]:
    """Yield the folders of the sweeps of a row with this code, the first one first."""
    definition = _definition(row, home, code)
    key = hashlib.sha256((code.digest + json.dumps(to_json(definition))).encode()).hexdigest()[:10]
    for number in itertools.count(1):
        yield folder_of(home, _numbered(f"battery-{row.name}-{key}", number))


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _definition(row: BatteryRow, home: Path, code: Code) -> Definition:
    many = len(row.seeds)
    by_block = usual_block_seeds(row.command, many)
    takes_seeds = takes_many_seeds(row.command) or takes_one_seed(row.command)
    return Definition(
        command=row.command,
        cwd=str(code.root / row.folder),
        home=str(home.absolute()),
        space={},
        search="grid",
        configurations=1,
        listed=({},),
        seeds=0,
        block_seeds=by_block if takes_seeds else many,
        tuning_seed=row.seeds[0] + MOST_SEEDS,
        report_seed=row.seeds[0],
        metric=row.metric,
        minimise=bool(row.minimise),  # one configuration has no order
    )


def measured(row: BatteryRow, state: State) -> Measured:
    """Return the scores of a row whose sweep has ended.

    Raises:
        UserFacingError: blocks are open: the sweep was stopped.
    """
    if state.hopeless:
        return Measured((), state.hopeless, state.spent_seconds)
    if state.open:
        raise UserFacingError(
            f"row `{row.name}` was stopped; what is finished is kept: start the battery again"
        )
    if all(one.state == "failed" for one in state.done):
        return Measured((), state.done[0].error, state.spent_seconds)
    (standing,) = state.reported()
    scores = tuple(standing.scores[seed] for seed in row.seeds)
    metric = next((one.metric for one in state.done if one.metric), "")
    return Measured(scores, "", state.spent_seconds, metric)


def with_direction(row: BatteryRow, found: Measured) -> BatteryRow:
    """Return a row that says if smaller is better: the usual for its metric if it does not."""
    if row.minimise is not None:
        return row
    return replace(row, minimise=better_direction(row.metric or found.metric) == "lower")
