"""The learned reward along an episode, beside the true reward."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from backflip.core.spec import within
from backflip.export.learned_reward import LearnedReward, load_learned_reward
from backflip.rewards.calibration import spearman
from runshelf.store.run import Run

LEARNED, TRUE = "learned reward", "true reward"


class EpisodeSteps(NamedTuple):
    """The first L env steps of one episode, as the policy observed them.

    Attributes:
        obs: observations acted on, with all stacked frames.
        action: actions of the policy, in the form in which it learns.
        next_obs: the next observations.
        terminated: true in the last step if the task's own rule ended the episode.
        reward: true rewards.
    """

    obs: Shaped[np.ndarray, "L ..."]
    action: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    terminated: Bool[np.ndarray, " L"]
    reward: Float[np.ndarray, " L"]


class LearnedEpisode(NamedTuple):
    """The learned reward of each env step of an episode, and the true one.

    Attributes:
        learned: the newest learned reward.
        spread: the standard deviation over the model's members.
        true: the environment's reward.
    """

    learned: Float[np.ndarray, " L"]
    spread: Float[np.ndarray, " L"]
    true: Float[np.ndarray, " L"]

    @property
    def spearman(self) -> float | None:
        """Spearman's correlation of both rewards over the steps; None if one is constant."""
        return spearman(self.true, self.learned)

    def to_json(self) -> dict[str, list[float]]:
        """Return the rewards and their sums so far, one number for each env step."""
        found = {
            "learned_reward": self.learned,
            "learned_spread": self.spread,
            "learned_return_so_far": self.learned.cumsum(),
            "return_so_far": self.true.cumsum(),
        }
        return {name: [float(f"{x:.5g}") for x in v.tolist()] for name, v in found.items()}


def reward_taught(run: Run, seed: int | None) -> LearnedReward | None:
    """Return the newest learned reward of a run; None if it is not one of `teach`.

    Raises:
        UserFacingError: it cannot be read.
    """
    return load_learned_reward(run, seed) if run.manifest["command"] == "teach" else None


def learned_episode(reward: LearnedReward, steps: EpisodeSteps) -> LearnedEpisode:
    """Return the learned reward along the steps of an episode."""
    spec = reward.spec
    action: Any = spec.own_spaces.take(within(spec.action, steps.action))
    taken = steps.obs, action, steps.next_obs
    learned = reward.rewards(*taken, terminated=steps.terminated)
    spread = reward.spread(*taken)
    return LearnedEpisode(learned.astype(np.float64), spread.astype(np.float64), steps.reward)
