"""The checkpoint of a run of `teach`: its learners, its learned reward, and who explores."""

from typing import Any, NamedTuple, final

from backflip.drivers.driver import Learner
from backflip.preferences.kept_labels import LabelHash
from backflip.training.policy import refuse_changed
from backflip.training.queries.initial_labels import import_initial_labels, initial_reward
from backflip.training.queries.planned_rounds import PlannedRounds
from backflip.training.queries.unlabelled import Pairs
from backflip.training.reward_learning.learned_reward import LearnedReward
from backflip.training.teaching.exploring import Exploring
from backflip.training.teaching.inputs import TeachInputs


class Taught(NamedTuple):
    """The state in a checkpoint of `teach`."""

    learners: Learner
    reward: Any
    unlabelled: Pairs = ()


class Begun(NamedTuple):
    """Where a session begins.

    Attributes:
        learners: of all seeds.
        reward: the reward model's parameters.
        phases_done: finished phases.
    """

    learners: Learner
    reward: Any
    phases_done: int


@final
class TeachCheckpoint:
    """Saves the state of a run, and restores it into the parts that have some.

    Args:
        inputs: what the session is given.
        planned: follows the queries that were made.
        learned: its last fit and its unlabelled pairs are saved.
        exploring: which seeds explore is saved.
    """

    def __init__(
        self,
        inputs: TeachInputs,
        planned: PlannedRounds,
        learned: LearnedReward,
        exploring: Exploring,
    ) -> None:
        self._inputs, self._planned, self._exploring = inputs, planned, exploring
        self._fits, self._unlabelled = learned.fits, learned.unlabelled
        self._label_hash = LabelHash(inputs.store.file)

    def restore(self) -> Begun:
        """Return the state of the newest checkpoint, or that of a new run."""
        driver, model, seeds = self._inputs.driver, self._inputs.model, self._inputs.seeds
        reward = model.initial(len(seeds))
        blank = Taught(driver.start(seeds), reward, self._unlabelled.pairs)
        refuse_changed(self._inputs.run, driver.spec)
        restored = self._inputs.session.restore(blank)
        learners, reward, self._unlabelled.pairs = restored.state
        if not restored.begun:
            import_initial_labels(self._inputs.start, self._inputs.store, seeds)
            reward = initial_reward(self._inputs.start, model, driver.spec.id, len(seeds))
        rounds_made = restored.phases + (1 if restored.begun else 0)
        for phases_done in range(rounds_made):
            self._planned.follow_made(phases_done)
        self._fits.restore(restored.extra)
        self._exploring.now = restored.extra.get("explores", self._exploring.now)
        return Begun(learners, reward, restored.phases)

    def save(self, learners: Learner, reward: Any, phases_done: int) -> None:
        """Save a checkpoint after `phases_done` phases, with the labels that it counts."""
        kept = self._label_hash.first()
        self._inputs.store.file.merge_log()  # then the file alone has all that is counted
        self._inputs.session.save(
            self._inputs.built,
            Taught(learners, reward, self._unlabelled.pairs),
            learners,
            phases=phases_done,
            extra=self._fits.saved | {"explores": self._exploring.now},
            labels=kept,
        )
