"""The rounds of queries of a run of `teach`, one before the first phase and one after each."""

from dataclasses import dataclass
from typing import Any, final

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.preferences.answer_source import Answers
from backflip.preferences.drawer import Drawer
from backflip.training.queries.demonstrations import Demonstrations
from backflip.training.queries.planned_rounds import PlannedRounds
from backflip.training.queries.query_choice import Known
from backflip.training.queries.query_maker import QueryMaker
from backflip.training.queries.random_policy import FirstClips
from backflip.training.reward_learning.reward_fits import RewardFits
from backflip.training.teaching.inputs import TeachInputs


@final
@dataclass(frozen=True, kw_only=True)
class QueryRounds:
    """Makes the queries of all seeds, and labels of demonstrations with them.

    Attributes:
        inputs: what the session is given.
        planned: how many queries each round has.
        fits: the last fit of the reward.
        maker: makes the queries of one seed.
        demonstrations: add labels to each round.
        first_clips: clips of the first queries.
        answers: people may end labelling, and see what is drawn.
        drawer: draws the agent's latest episode, if people answer.
    """

    inputs: TeachInputs
    planned: PlannedRounds
    fits: RewardFits
    maker: QueryMaker
    demonstrations: Demonstrations
    first_clips: FirstClips
    answers: Answers
    drawer: Drawer

    def make(self, record: Transition | None, reward: Any, phases_done: int) -> None:
        """Make the queries after `phases_done` phases; there are none after the last.

        Args:
            record: the newest transitions of all seeds; None before the first phase.
            reward: the reward model's parameters.
            phases_done: finished phases.
        """
        self.planned.ask_sooner(phases_done, self.answers.queries_wanted())
        count = self.planned.plan.due_after(phases_done)
        env_steps = self.planned.plan.env_steps(phases_done)
        asks = bool(count) and not self.answers.enough()
        # also without queries: the page counts phases to know which answers training waits for
        doing = "drawing" if asks or not count else "waiting"
        self.answers.set_status(doing, phase=phases_done, env_steps=env_steps)
        if asks:
            for row in range(len(self.inputs.seeds)):
                self._make_of_seed(row, record, reward, phases_done)
        if self.inputs.source.needs_films and record is not None:
            episode = self.drawer.latest(row_of(record, 0))
            self.answers.set_status("drawing", episode=episode, episode_env_steps=env_steps)

    def _make_of_seed(
        self, row: int, record: Transition | None, reward: Any, phases_done: int
    ) -> None:
        """Make the queries of one seed, then the labels of demonstrations."""
        plan, seed = self.planned.plan, self.inputs.seeds[row]
        seen = None if record is None else row_of(record, row)
        env_steps = plan.env_steps(phases_done)
        self.maker.add_queries(
            seed,
            self.first_clips.shown(row),
            seen,
            self._known(row, reward, phases_done),
            plan.due_after(phases_done),
            env_steps,
            plan.fresh_after(phases_done),
        )
        self.demonstrations.add_labels(
            plan.due.every, phases_done, seed, self.first_clips.random(row), seen, env_steps
        )

    def _known(self, row: int, reward: Any, phases_done: int) -> Known:
        """Return what is known about one seed's reward, which the phase before was trained on."""
        fitted_to = ()
        if phases_done:
            before = self.planned.plan.env_steps(phases_done - 1)
            fitted_to = self.fits.comparisons_of(self.inputs.seeds[row], before)
        return Known(row, row_of(reward, row), fitted_to, self.fits.tie_width(row))
