"""What a run of `teach` does when: its phases, their updates, and the queries after each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from backflip.algorithms.interface import Algorithm
from backflip.drivers.learning import env_steps_after
from backflip.preferences.schedule import Due, queries_due
from backflip.training.build import Built
from backflip.training.continuation import planned, pretraining_updates
from backflip.training.parents import Before, before_of
from backflip.training.restart import restart_phase
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.more import asks
from runshelf.store.run import Run


@final
@dataclass(frozen=True)
class TeachPlan:
    """The phases of a run of `teach`, and its queries.

    Attributes:
        algorithm: what learns.
        before: what the run's parents had done.
        phases: the updates of each phase.
        due: the queries of each seed before phase 1, after phase 1, ..., after the last but one.
        pretrains: whether phase 1 explores without a reward.
        restart_phase: the phase, from 0, before which the networks start again; None for no phase.
        asks: whether there are queries; a child may only train on.
    """

    algorithm: Algorithm
    before: Before
    phases: Sequence[int]
    due: Due
    pretrains: bool
    restart_phase: int | None
    asks: bool

    @property
    def queries(self) -> int:
        """The queries that each seed gets in this run, those left open by its parent included."""
        return sum(self.due.every) + self.before.open_queries

    def due_after(self, number: int) -> int:
        """Return the queries of each seed after `number` phases; 0 after the last."""
        return self.due.every[number] if number < len(self.due.every) else 0

    def fresh_after(self, number: int) -> range:
        """Return the numbers of the fresh pairs after `number` phases, counted over the run."""
        return range(sum(self.due.fresh[:number]), sum(self.due.fresh[: number + 1]))

    def sooner(self, number: int, wanted: int, asked: int, unit: int) -> "TeachPlan":
        """Return the plan in which the round after `number` phases may have more queries.

        Args:
            number: the number of phases.
            wanted: queries of each seed in this round; later rounds, the last ones first, get
                fewer.
            asked: those that a stopped process made, with the fresh pairs that it had not made yet.
            unit: queries that are asked together.
        """
        return replace(self, due=self.due.sooner(number, wanted, asked, unit))

    def updates_before(self, number: int) -> int:
        """Return the updates of the parents and of the phases before phase `number`, from 0."""
        return self.before.updates + sum(self.phases[:number])

    def env_steps(self, phases: int) -> int:
        """Return the env steps of each seed after a number of phases.

        The first phase includes the env steps before learning starts.
        """
        updates = self.updates_before(phases)
        return env_steps_after(self.algorithm, updates) if updates else 0


def teach_plan_of(run: Run, built: Built, config: TeachConfig, labels_given: int) -> TeachPlan:
    """Return the plan of a run.

    Args:
        run: the run.
        built: its algorithm and environment.
        config: how it is taught.
        labels_given: the labels of each seed that it starts with.
    """
    before = before_of(run)
    phases = planned(run, built.config)
    pretrains = pretraining_updates(run, built.config) > 0
    # A child carries its parent's networks on.
    share = 0.0 if before.updates else config.restart_at
    return TeachPlan(
        algorithm=built.driver.algorithm,
        before=before,
        phases=phases,
        due=_due(config, before, len(phases), pretrains, labels_given),
        pretrains=pretrains,
        restart_phase=restart_phase(share, len(phases)),
        asks=asks(run),
    )


def _due(
    config: TeachConfig, before: Before, phases: int, pretrains: bool, labels_given: int
) -> Due:
    """Return the queries of each round.

    A child run first learns for one phase; its first queries show clips of that phase. It also
    inherits the open queries of its parent. A run that explores first also learns for one phase
    before its first queries, but inherits none.
    """
    count = config.labels - labels_given
    if before.updates:
        count = config.labels - before.labels - before.open_queries
    return queries_due(
        count,
        phases,
        config.queries_at_once,
        config.fresh_share,
        learns_first=bool(before.updates or pretrains),
        explores_first=pretrains,
    )
