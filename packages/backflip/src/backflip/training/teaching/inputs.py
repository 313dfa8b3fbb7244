"""What one session of a run of `teach` is given."""

from dataclasses import dataclass
from typing import final

from backflip.drivers.driver import Driver
from backflip.preferences.answer_source import AnswerSource
from backflip.preferences.labels import LabelStore
from backflip.rewards.interface import RewardModel
from backflip.training.build import Built
from backflip.training.queries.initial_labels import Start
from backflip.training.session import Session
from backflip.training.teaching.config import TeachConfig
from runshelf.store.run import Run


@final
@dataclass(frozen=True)
class TeachInputs:
    """What one session of a run of `teach` is given.

    Attributes:
        session: metrics, checkpoints and reports of the run.
        built: driver and settings of the algorithm.
        config: the settings of teaching.
        store: queries and labels.
        model: the reward model.
        source: who answers the queries.
    """

    session: Session
    built: Built
    config: TeachConfig
    store: LabelStore
    model: RewardModel
    source: AnswerSource

    @property
    def run(self) -> Run:
        """The run."""
        return self.session.run

    @property
    def seeds(self) -> list[int]:
        """The seeds of the run."""
        return self.session.run.seeds

    @property
    def driver(self) -> Driver:
        """The driver, with environment and algorithm."""
        return self.built.driver

    @property
    def start(self) -> Start:
        """The labels or the reward model that the run starts with."""
        return Start(**self.session.run.config.get("start", {}))

    def say(self, note: str) -> None:
        """Say something to the user."""
        self.session.reporter.say(note)
