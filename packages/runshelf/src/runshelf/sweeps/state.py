"""What a sweep has still to run: the blocks that are open now, from the results so far."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from runshelf.errors import DamagedFile, UsageError
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole
from runshelf.store.writing import make_folder, replace_file, write_once
from runshelf.sweeps.blocks import (
    Block,
    ReportPlan,
    report_blocks,
    rounds,
    survivors,
    tuning_blocks,
)
from runshelf.sweeps.definition import Sweep
from runshelf.sweeps.ranking import Standing, is_minimised, ranked
from runshelf.sweeps.results import BlockResult, read_results
from runshelf.sweeps.searches import Tried
from runshelf.sweeps.space import Value, Values

REPORT = "report.json"
CONFIGURATIONS = "configurations"


@final
@dataclass(frozen=True)
class State:
    """A sweep at one moment.

    Attributes:
        sweep: the sweep.
        results: the results by block.
        tuning: the blocks of tuning that are known so far.
        report: the blocks of the report.
        is_tuned: no further block of tuning will appear.
        dropped: configurations that halving gave no more seeds, by round.
    """

    sweep: Sweep
    results: Mapping[str, BlockResult]
    tuning: tuple[Block, ...]
    report: tuple[Block, ...] = ()
    is_tuned: bool = True
    dropped: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    @property
    def open(self) -> list[Block]:
        """The blocks without a result, in the order in which they should run."""
        return [b for b in (*self.tuning, *self.report) if b.name not in self.results]

    @property
    def done(self) -> list[BlockResult]:
        """The results of known blocks."""
        names = [block.name for block in (*self.tuning, *self.report)]
        return [self.results[name] for name in names if name in self.results]

    @property
    def spent_seconds(self) -> float:
        """The time that all finished blocks took together."""
        return sum(one.seconds for one in self.results.values())

    @property
    def is_over_budget(self) -> bool:
        """Whether no further block may be started."""
        budget = self.sweep.definition.budget_seconds
        return budget is not None and self.spent_seconds >= budget

    @property
    def hopeless(self) -> str:
        """Why every block fails, if the first three did and none has finished; else empty."""
        done = self.done
        if len(done) < min(3, len(self.tuning or self.report)) or any(
            one.state == "finished" for one in done
        ):
            return ""
        return done[-1].error

    def standings(self) -> list[Standing]:
        """Return the configurations with results of tuning, the best first."""
        return ranked(self.sweep.definition, self.results.values(), "tuning")

    def reported(self) -> list[Standing]:
        """Return the configurations with results of the report, the best first."""
        return ranked(self.sweep.definition, self.results.values(), "report")


def state_of_sweep(sweep: Sweep, known: dict[str, BlockResult] | None = None) -> State:
    """Return the state of a sweep.

    Args:
        sweep: the sweep.
        known: results that were read before; it is updated.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    results = read_results(sweep.folder, {} if known is None else known)
    blocks, dropped, complete = _tuning(sweep, results)
    plan = read_report(sweep)
    report = () if plan is None else tuple(report_blocks(sweep.definition, plan))
    return State(sweep, dict(results), tuple(blocks), report, complete, dropped)


def _tuning(
    sweep: Sweep, results: Mapping[str, BlockResult]
) -> tuple[list[Block], dict[int, tuple[int, ...]], bool]:
    """Return the blocks of every round that has begun, who was dropped, and if that is all."""
    definition = sweep.definition
    left = list(range(definition.configurations))
    blocks: list[Block] = []
    dropped: dict[int, tuple[int, ...]] = {}
    for number in range(len(rounds(definition))):
        if number:
            best = ranked(definition, [results[b.name] for b in blocks], "tuning")
            kept = [one.configuration for one in best if one.configuration in left]
            kept = sorted(kept[: survivors(definition, number)])
            dropped[number] = tuple(one for one in left if one not in kept)
            left = kept
        begun = list(tuning_blocks(definition, number, left))
        blocks += begun
        if any(block.name not in results for block in begun):
            return blocks, dropped, number == len(rounds(definition)) - 1
    return blocks, dropped, True


def values_of(sweep: Sweep, number: int, results: Mapping[str, BlockResult]) -> Values:
    """Return the values of a configuration; a search that learns chooses them now, once.

    Raises:
        DamagedFile: the file of the configuration is damaged.
        UserFacingError: the disk is full.
    """
    search = sweep.definition.searcher()
    if not search.learns:
        return search.choose(number, ())
    if number not in sweep.chosen:
        path = f"{CONFIGURATIONS}/{number:04}.json"
        if read_whole(sweep.folder, path) is None:
            make_folder(sweep.folder, CONFIGURATIONS)
            values = search.choose(number, _tried(sweep, results))
            write_once(sweep.folder, path, json.dumps(values).encode() + b"\n")
        sweep.chosen[number] = _read_configuration(sweep, path)
    return sweep.chosen[number]


def _read_configuration(sweep: Sweep, path: str) -> dict[str, Value]:
    try:
        values = parse_record(read_whole(sweep.folder, path) or b"")
        return {name: values[name] for name in sweep.definition.space}
    except (ValueError, KeyError):
        raise DamagedFile(
            f"`{sweep.folder / path}` is damaged: remove it, and it is chosen again"
        ) from None


def _tried(sweep: Sweep, results: Mapping[str, BlockResult]) -> list[Tried]:
    sign = -1.0 if is_minimised(sweep.definition, results.values()) else 1.0
    return [
        Tried(one.values, math.nan if one.failed else sign * one.mean)
        for one in ranked(sweep.definition, results.values(), "tuning")
    ]


def read_report(sweep: Sweep) -> ReportPlan | None:
    """Return what the report runs; None if no report was asked for.

    Raises:
        DamagedFile: the file is damaged.
    """
    data = read_whole(sweep.folder, REPORT)
    if data is None:
        return None
    try:
        fields = parse_record(data)
        return ReportPlan(tuple(map(int, fields["configurations"])), int(fields["seeds"]))
    except (ValueError, KeyError, TypeError):
        raise DamagedFile(
            f"`{sweep.folder / REPORT}` is damaged: remove it, and ask for the report again"
        ) from None


def write_report(sweep: Sweep, plan: ReportPlan) -> None:
    """Ask for a report; configurations are added to those of an earlier one.

    Raises:
        UsageError: an earlier report has another number of seeds.
        UserFacingError: the disk is full.
    """
    before = read_report(sweep) or ReportPlan((), plan.seeds)
    if before.seeds != plan.seeds:
        raise UsageError(
            f"the report of `{sweep.name}` has {before.seeds} seeds of each configuration; leave "
            "--seeds out to add configurations with as many"
        )
    numbers = list(dict.fromkeys((*before.configurations, *plan.configurations)))
    fields = {"configurations": numbers, "seeds": plan.seeds}
    replace_file(sweep.folder, REPORT, json.dumps(fields).encode() + b"\n")
