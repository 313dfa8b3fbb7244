"""The loop of a run of `teach`.

The first queries show clips of a random policy. Then each phase

1. waits for answers and fits the reward model to all labels,
2. trains the algorithm on the learned reward,
3. makes queries about the last rollouts, and
4. saves a checkpoint.

Queries and labels are saved in `labels.sqlite` before they are used. A killed run continues from
its last checkpoint and repeats no query. `backflip.training.teaching.assembly` makes the parts.

Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2. There the three processes run side by
side; here one after the other, while people answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np

from backflip.core.types import Transition
from backflip.drivers.driver import Learner
from backflip.preferences.answer_source import Answers
from backflip.training.queries.fresh_checks import health_of_checks
from backflip.training.queries.planned_rounds import PlannedRounds
from backflip.training.queries.query_rounds import QueryRounds
from backflip.training.result import Result
from backflip.training.reward_learning.learned_reward import LearnedReward
from backflip.training.reward_learning.reward_notes import collapse_shown
from backflip.training.teaching.announcements import Announcements
from backflip.training.teaching.checkpoint import Begun, TeachCheckpoint
from backflip.training.teaching.end import EndOfTeaching
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.phase_training import PhaseTraining
from backflip.training.teaching.plan import TeachPlan


@final
@dataclass(frozen=True, kw_only=True)
class TeachRun:
    """The loop of one session of `teach`.

    Attributes:
        inputs: what the session is given.
        answers: the open answer source.
        planned: how many queries each round has.
        rounds: makes the queries.
        learned: the learned reward.
        training: trains on it.
        announcements: says what the user should know.
        checkpoint: saves the state.
        end: what is left at the end.
    """

    inputs: TeachInputs
    answers: Answers
    planned: PlannedRounds
    rounds: QueryRounds
    learned: LearnedReward
    training: PhaseTraining
    announcements: Announcements
    checkpoint: TeachCheckpoint
    end: EndOfTeaching

    @property
    def plan(self) -> TeachPlan:
        """The plan now; only its queries change."""
        return self.planned.plan

    def carry_out(self, begun: Begun) -> Result:
        """Complete the run from where it begins, and return its result."""
        learners, reward, phases_done = begun
        env_steps = self.plan.env_steps(phases_done)
        self.answers.set_status("setting up", phase=phases_done, env_steps=env_steps)
        self.training.prepare()
        self.inputs.session.clock.book("setup")
        for phase in range(phases_done, len(self.plan.phases)):
            if phase == 0 and not self.plan.before.updates:
                self._make_queries(None, reward, 0)
                learners = self.training.warm_up(learners)
            if phase == phases_done:
                self._compile_ahead(learners, reward)
                self.inputs.session.clock.book("setup")
            explored = self.training.exploring.now
            reward = self._fit_reward(phase, reward)
            learners = self.training.start_again(phase, learners, explored)
            learners = self._train(phase, learners, reward)
        return self.end.finish(learners)

    def _make_queries(self, record: Transition | None, reward: Any, phases_done: int) -> None:
        """Make the queries after `phases_done` phases about their last record, if there is one."""
        self.announcements.say_why_not_drawn()
        self.rounds.make(record, reward, phases_done)

    def _compile_ahead(self, learners: Learner, reward: Any) -> None:
        """Compile all programs while people watch the first clips."""
        if not self.inputs.source.needs_films or not self.inputs.driver.runs_compiled:
            return
        self.answers.set_status("setting up")
        self.training.compile_ahead(learners, reward)
        self.learned.fits.compile_ahead(reward)

    def _fit_reward(self, phase: int, reward: Any) -> Any:
        """Wait for answers; return the reward parameters, fitted again if there are new labels.

        If a process is killed between making queries and saving, the store has queries, and maybe
        answers, of a later round. They are used when the resumed run reaches that round.
        """
        last = phase + 1 == len(self.plan.phases)  # answers after this are never used
        self.answers.wait_for_labels(0 if last else self.planned.due_after(phase))
        self.answers.set_status("learning", phase=phase)
        env_steps = self.plan.env_steps(phase)
        if not self.learned.fits.has_new_labels(env_steps):
            return reward
        reward = self.learned.fit(reward, env_steps)
        self.training.exploring.follow(self.learned.fits.comparisons)
        return reward

    def _train(self, phase: int, learners: Learner, reward: Any) -> Learner:
        """Train for a phase, make queries and save; return the learners."""
        self.answers.set_status("learning", phase=phase, env_steps=self.plan.env_steps(phase))
        learners, measured = self.training.train(phase, learners, reward)
        checked = self.learned.check()
        record = jax.tree.map(np.asarray, measured.record)
        health = self.inputs.session.log_phase(
            self.inputs.built,
            measured,
            learners,
            done=self.plan.updates_before(phase),
            updates=self.plan.phases[phase],
            learns_own_reward=False,
            extra=self.learned.metrics(reward, record, checked),
        )
        self._make_queries(record, reward, phase + 1)
        self.learned.unlabelled.follow(record, self.plan.env_steps(phase + 1))
        self.end.show(phase, record, reward)
        self.checkpoint.save(learners, reward, phase + 1)
        self._report_phase(phase + 1, health, health_of_checks(checked))
        return learners

    def _report_phase(
        self, phases_done: int, health: Mapping[str, float], checked: Mapping[str, float]
    ) -> None:
        """Report the progress after a phase, with the health of learning and teaching."""
        labels = self.inputs.store.counts().labels / len(self.inputs.seeds)
        shown = {**health, "labels": labels, **checked}
        shown |= self.announcements.say_who_is_careless()
        shown |= collapse_shown(self.learned.fits.metrics)
        self.inputs.session.reporter.phase_done(
            phases_done,
            len(self.plan.phases),
            self.plan.env_steps(phases_done),
            shown,
            self.answers.remaining_seconds(self.planned.due_later(phases_done)),
        )
