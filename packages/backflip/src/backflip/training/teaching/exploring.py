"""Seeds of a run of `teach` whose labels say nothing yet, which learn to explore.

A seed explores before its first labels, if the run pretrains, and while all its answers are ties.
Which seeds explore is an input of the compiled program. In phases in which no seed explores, a
program without exploring runs, so that its results are the same to the bit.
"""

from collections.abc import Sequence
from typing import Any, final

import jax
import numpy as np

from backflip.core.trees import stack_rows
from backflip.core.types import Transition
from backflip.drivers.driver import Driver, Learner, RewardFunction
from backflip.rewards.exploring import MayExplore, exploring_reward
from backflip.rewards.interface import TIE, LabelledComparison
from backflip.training.restart import in_schedules_of


@final
class Exploring:
    """Which seeds explore, the reward that they learn from, and what they forget at the end.

    Args:
        driver: of the environment and the algorithm.
        learned: the reward of the seeds that do not explore.
        seeds: the seeds of the run.
        before_labels: whether all seeds explore until their first labels.

    Attributes:
        now: whether each seed explores.
    """

    def __init__(
        self,
        driver: Driver,
        learned: RewardFunction,
        seeds: Sequence[int],
        *,
        before_labels: bool,
    ) -> None:
        self._driver, self._learned, self._seeds = driver, learned, seeds
        self.now = [before_labels] * len(seeds)

    def follow(self, comparisons: Sequence[Sequence[LabelledComparison]]) -> None:
        """Let the seeds explore, from now on, that have no labels or whose labels are all ties."""
        self.now = [all(one.left_preferred == TIE for one in of_seed) for of_seed in comparisons]

    def parameters(self, reward: Any) -> MayExplore:
        """Return the parameters of `reward`, from those of `learned`."""
        return MayExplore(reward, np.array(self.now))

    def reward(self, parameters: MayExplore, batch: Transition) -> Any:
        """Return the reward of exploring if a seed explores, else that of `learned`."""
        return jax.lax.cond(
            parameters.explores,
            lambda: exploring_reward(self._driver.spec, batch),
            lambda: self._learned(parameters.model, batch),
        )

    def restarted(self, learners: Learner, before: Sequence[bool]) -> Learner:
        """Return the learners, with new networks for the seeds that have just ended exploring.

        Only algorithms with a replay get new networks: action values that were learned from another
        reward are far off, and change slowly. The replay and the place in the schedules are kept.
        On-policy algorithms correct their values with every rollout.

        Args:
            learners: of all seeds.
            before: whether each seed explored until now.
        """
        ended = np.array(before) & ~np.array(self.now)
        algorithm = self._driver.algorithm
        if algorithm.replay is None or not ended.any():
            return learners
        blank = stack_rows([algorithm.init(seed) for seed in self._seeds])
        fresh = in_schedules_of(learners.algorithm, blank)

        def choose(new: np.ndarray, old: Any) -> np.ndarray:
            return np.where(ended.reshape(-1, *(1,) * (new.ndim - 1)), new, np.asarray(old))

        return learners._replace(algorithm=jax.tree.map(choose, fresh, learners.algorithm))
