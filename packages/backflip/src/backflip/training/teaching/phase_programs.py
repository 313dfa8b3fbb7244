"""The programs that train for a phase of `teach`: one for each length, and others that explore."""

from collections.abc import Iterable
from typing import Any, final

import jax
import numpy as np

from backflip.drivers.driver import (
    Driver,
    Learner,
    OnEnvSteps,
    OnUpdate,
    Phase,
    RewardFunction,
    RunPhase,
)
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.exploring import Exploring


@final
class PhasePrograms:
    """Trains for a phase: seeds that explore on the exploration reward, others on the learned one.

    Args:
        driver: of the environment and the algorithm.
        config: the settings of teaching.
        learned: the learned reward.
        exploring: which seeds explore.
        pictures: most pictures of each seed in the record of a phase.
    """

    def __init__(
        self,
        driver: Driver,
        config: TeachConfig,
        learned: RewardFunction,
        exploring: Exploring,
        pictures: int,
    ) -> None:
        self._driver, self._config = driver, config
        self._learned, self._exploring, self._pictures = learned, exploring, pictures
        self._programs: dict[tuple[int, bool], RunPhase] = {}  # by updates, and if a seed explores

    def prepare(self, lengths: Iterable[int]) -> None:
        """Make the programs of phases of these numbers of updates, without exploring."""
        for updates in set(lengths):
            self._program(updates, explores=False)

    def compile_ahead(self, learners: Learner, reward: Any) -> None:
        """Compile the programs that were prepared, by running each; results are discarded."""
        for program in self._programs.values():
            jax.block_until_ready(program(jax.tree.map(np.array, learners), reward))

    def run(
        self,
        updates: int,
        learners: Learner,
        reward: Any,
        on_progress: OnEnvSteps,
        on_update: OnUpdate,
    ) -> tuple[Learner, Phase]:
        """Return the learners after a phase of `updates` updates, and what it measured.

        Args:
            updates: of the phase.
            learners: of all seeds; they may be overwritten.
            reward: parameters of the learned reward.
            on_progress: as in `RunPhase`.
            on_update: as in `RunPhase`.
        """
        explores = any(self._exploring.now)
        program = self._program(updates, explores=explores)
        parameters = self._exploring.parameters(reward) if explores else reward
        return program(learners, parameters, on_progress, on_update)

    def _program(self, updates: int, *, explores: bool) -> RunPhase:
        if (updates, explores) not in self._programs:
            self._programs[updates, explores] = self._driver.phase(
                updates,
                reward=self._exploring.reward if explores else self._learned,
                record_rollouts=min(self._config.clip_rollouts, updates),
                record_envs=self._config.clip_envs,
                pictures=self._pictures,
            )
        return self._programs[updates, explores]
