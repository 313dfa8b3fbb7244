"""What a run of `teach` leaves at its end: pictures, measures of its reward, and its result."""

from dataclasses import dataclass
from typing import Any, final

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.drivers.driver import Learner
from backflip.preferences.answer_source import Answers
from backflip.preferences.careless import careless_people
from backflip.preferences.clips import episode_start
from backflip.preferences.drawer import Drawer
from backflip.training.build import env_args_of
from backflip.training.finished import with_more
from backflip.training.queries.label_pictures import write_label_pictures
from backflip.training.queries.random_policy import FirstClips
from backflip.training.result import Result
from backflip.training.reward_learning.learned_reward import LearnedReward
from backflip.training.reward_learning.reward_measures import (
    RewardMeasures,
    read_measures,
    summary_of,
)
from backflip.training.reward_learning.reward_picture import PICTURE as REWARD_PICTURE
from backflip.training.reward_learning.reward_picture import reward_picture
from backflip.training.teaching.announcements import Announcements
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.picture import DURING_SHARE, draw_clips, keep_during
from backflip.training.teaching.plan import TeachPlan
from runshelf.errors import UserFacingError
from runshelf.store.writing import replace_file


@final
@dataclass(frozen=True, kw_only=True)
class EndOfTeaching:
    """Draws, measures and evaluates what was learned.

    Attributes:
        inputs: what the session is given.
        plan: the phases.
        learned: the learned reward.
        announcements: who teaches, and what is wrong with the answers.
        drawer: draws clips.
        first_clips: clips of what was before teaching.
        answers: shows people what is done.
    """

    inputs: TeachInputs
    plan: TeachPlan
    learned: LearnedReward
    announcements: Announcements
    drawer: Drawer
    first_clips: FirstClips
    answers: Answers

    def show(self, phase: int, record: Transition, reward: Any) -> None:
        """Keep a clip during teaching; after the last phase, draw clips and measure the reward.

        Args:
            phase: the phase that has ended, from 0.
            record: its newest transitions, of all seeds.
            reward: the reward model's parameters.
        """
        if phase + 1 == len(self.plan.phases):
            self._draw_clips(row_of(record, 0))
            self._measure_reward(record, reward)
        elif phase == len(self.plan.phases) // DURING_SHARE:
            length = self.inputs.config.clip_length
            keep_during(self.inputs.session.folder, row_of(record, 0), length)

    def finish(self, learners: Learner) -> Result:
        """Evaluate the final policies; return the result."""
        phases, session = len(self.plan.phases), self.inputs.session
        driver = self.inputs.driver
        self.answers.set_status("evaluating", phase=phases)
        episodes = session.run.config["evaluation_episodes"]
        evaluation = driver.evaluate(
            learners,
            self.inputs.seeds,
            episodes=episodes,
            on_progress=session.reporter.evaluating(episodes, driver.spec.longest_episode),
        )
        self.announcements.say_if_nothing_is_preferred()
        measures = read_measures(session.folder)
        result = session.finish(
            evaluation,
            updates=self.plan.updates_before(phases),
            env_steps=self.plan.env_steps(phases),
            labels=self._labels_of_each_seed(),
            teacher=self.announcements.teacher(),
            reward_alarm=self.learned.fresh_checks.result(),
            careless=careless_people(self.inputs.store) or None,
            reward_measures=None if measures is None else summary_of(measures),
        )
        result = with_more(result, session.run)
        self.answers.set_status("finished", result=result.summary(), more=result.more)
        return result

    def _labels_of_each_seed(self) -> int:
        """Return how many there are; people may stop before the budget."""
        return self.inputs.store.counts().labels // len(self.inputs.seeds)

    def _draw_clips(self, after: Transition) -> None:
        """Draw clips of the first seed before, during and after teaching."""
        before = self.first_clips.policy.first
        now = episode_start(after, self.inputs.config.clip_length)
        labels = self._labels_of_each_seed()
        if before is not None and now is not None:
            draw_clips(self.inputs.session.folder, self.drawer, before, now, labels)

    def _measure_reward(self, record: Transition, reward: Any) -> None:
        """Write the measures of the learned reward and their picture into the run's folder."""
        run, seeds, folder = self.inputs.run, self.inputs.seeds, self.inputs.session.folder
        model, store, length = self.inputs.model, self.inputs.store, self.inputs.config.clip_length
        measures = RewardMeasures(run.manifest["env"], env_args_of(run), model, store, length)
        first_clips = [self.first_clips.shown(row) for row in range(len(seeds))]
        fit_metrics = self.learned.fits.metrics
        try:
            about = self.learned.notes.record(reward, fit_metrics)
            found = measures.write(folder, seeds, record, reward, first_clips, about, fit_metrics)
        except UserFacingError as error:  # the policy is trained, and must not be lost
            self.inputs.say(f"the learned reward is not measured: {error}")
            return
        if found is not None:
            picture = reward_picture(found, summary_of(found))
            replace_file(folder, REWARD_PICTURE, picture.encode())
            write_label_pictures(folder, found, store, self.drawer)
