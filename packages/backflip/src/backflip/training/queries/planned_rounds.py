"""How many queries each round of a run has: as planned, as made so far, or as people wish."""

from typing import final

from backflip.preferences.fresh_pairs import fresh_answers
from backflip.training.queries.optimism import Optimism
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.plan import TeachPlan


@final
class PlannedRounds:
    """The plan of a run, in which queries may come sooner than they were planned.

    Args:
        inputs: what the session is given.
        plan: the plan of a new run.
        optimism: follows the queries of all rounds.

    Attributes:
        plan: the plan now.
    """

    def __init__(self, inputs: TeachInputs, plan: TeachPlan, optimism: Optimism) -> None:
        self.plan = plan
        self._seeds, self._store, self._optimism = inputs.seeds, inputs.store, optimism
        self._unit = inputs.config.queries_at_once

    def due_after(self, phases_done: int) -> int:
        """Return the queries of all seeds after `phases_done` phases."""
        return self.plan.due_after(phases_done) * len(self._seeds)

    def due_later(self, phases_done: int) -> int:
        """Return the queries of all seeds in the rounds that follow that of `phases_done`."""
        return sum(self.plan.due.every[phases_done + 1 :]) * len(self._seeds)

    def follow_made(self, phases_done: int) -> None:
        """Plan a round of an earlier session with the queries that it made."""
        self._plan_round(phases_done, 0, max(self._made(seed, phases_done) for seed in self._seeds))

    def ask_sooner(self, phases_done: int, wanted: int) -> None:
        """Let a round have more queries if people would wait for the next ones.

        Args:
            phases_done: finished phases, which are the number of the round.
            wanted: more queries, of all seeds together.
        """
        wanted = -(-wanted // len(self._seeds))
        begun = max(self._begun(seed, phases_done) for seed in self._seeds)
        self._plan_round(phases_done, wanted, begun)

    def _plan_round(self, phases_done: int, wanted: int, asked: int) -> None:
        self.plan = self.plan.sooner(phases_done, wanted, asked, self._unit)
        self._optimism.follow(self.plan.due.others)

    def _made(self, seed: int, phases_done: int) -> int:
        """Return the queries that were made after `phases_done` phases."""
        return self._store.count_queries(seed, self.plan.env_steps(phases_done))

    def _begun(self, seed: int, phases_done: int) -> int:
        """Return the queries of a round of which a stopped process made some.

        Fresh pairs are made last. If there are more queries than planned, those that are missing
        still belong to the round.
        """
        made, planned = self._made(seed, phases_done), self.plan.fresh_after(phases_done)
        if made <= self.plan.due_after(phases_done):
            return made
        env_steps = self.plan.env_steps(phases_done)
        fresh = sum(one.env_steps == env_steps for one in fresh_answers(self._store, seed))
        return made + max(0, len(planned) - fresh)
