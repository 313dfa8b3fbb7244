"""A batch of one of Gymnasium's MuJoCo tasks, as a vector environment with equal results.

With a fixed horizon no state terminates. States that would have terminated cost a penalty instead,
as in Christiano et al. 2017, arXiv:1706.03741, appendix A.1 ("no early termination"): termination
would reveal information about the task that should come from the teacher only. The paper does not
give its penalties. Here every env step that ends in an unhealthy state costs as much as the bonus
of a healthy state. `penalty="smooth"` has rewards and time limits of rl-teacher instead, by the
same authors (github.com/nottombrown/rl-teacher, 04ce0f96, `envs.py`): the height of the torso (or
what the task has for it) without threshold, and no cost of torques. In a long episode of a pendulum
nearly all env steps show a pole that has fallen and stays there.
"""

from collections.abc import Sequence
from typing import Any, Literal, final

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float

from backflip.envs.mujoco.simulators import Simulators
from backflip.envs.mujoco.tasks import TASKS, unlimited_angles

Penalty = Literal["threshold", "smooth"]  # of unhealthy states, with a fixed horizon


@final
class MujocoBatch(VectorEnv[Any, Any, Any]):
    """N environments of one task, equal to Gymnasium's with the same seeds and actions.

    Args:
        name: a key of `TASKS`.
        num_envs: N.
        autoreset_mode: when episodes begin.
        max_episode_steps: the time limit in env steps; None for Gymnasium's, or for rl-teacher's
            with a smooth penalty, which is shorter for both pendulums.
        fixed_horizon: only the time limit ends episodes. The penalty of an unhealthy state is 1 for
            Hopper, Walker2d, Ant and InvertedPendulum, 5 for Humanoid, and 10 for
            InvertedDoublePendulum; it replaces a bonus of the same size.
        penalty: `threshold` as above, or `smooth`; only with a fixed horizon.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        autoreset_mode: AutoresetMode,
        max_episode_steps: int | None = None,
        *,
        fixed_horizon: bool = False,
        penalty: Penalty = "threshold",
    ) -> None:
        self._task, self._fixed_horizon = TASKS[name], fixed_horizon
        self._smooth = self._task.smooth if penalty == "smooth" else None
        self._simulators = Simulators(
            self._task.file, num_envs, self._task.frame_skip, self._task.contacts
        )
        self.max_episode_steps: int = max_episode_steps or self._usual_limit(name)
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": autoreset_mode}
        low, high = self._simulators.model.actuator_ctrlrange.astype(np.float32).T
        self.single_action_space = Box(low, high, dtype=np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators = [np_random()[0] for _ in range(num_envs)]
        self._age, self._ended = np.zeros(num_envs, np.int64), np.zeros(num_envs, bool)
        self._later_limits = np.full(num_envs, self.max_episode_steps)
        self._limits = self._later_limits.copy()  # of the present episodes
        shape = self._task.observe(self._simulators).shape[1:]
        self.single_observation_space = Box(-np.inf, np.inf, shape, np.float64)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.angles = unlimited_angles(self._task, self._simulators)

    def _usual_limit(self, name: str) -> Any:
        own = None if self._smooth is None else self._task.smooth_steps
        return own or gymnasium.spec(name).max_episode_steps

    @property
    def data(self) -> list[Any]:
        """The simulators' data, from which pictures can be drawn."""
        return self._simulators.data

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every row, with one seed per row if given."""
        del options
        for row, one in enumerate(seed or ()):
            self._generators[row] = np_random(one)[0]
        self._ended[:] = False
        self._later_limits[:] = self.max_episode_steps
        self._begin(np.ones(self.num_envs, bool))
        return self._task.observe(self._simulators), {}

    def shorten_episodes(self, first: Sequence[int], later: Sequence[int]) -> bool:
        """Truncate the episode of row i after first[i] env steps, the next ones after later[i]."""
        self._limits = np.minimum(first, self.max_episode_steps)
        self._later_limits = np.minimum(later, self.max_episode_steps)
        return True

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every row, or begin its next episode, depending on the autoreset mode."""
        resets, task, simulators = self._ended, self._task, self._simulators
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            resets = np.zeros_like(resets)
        before = task.place(simulators)
        simulators.step(np.flatnonzero(~resets).tolist(), actions)
        self._age += 1
        healthy = task.healthy(simulators) if task.healthy else np.ones(self.num_envs, bool)
        reward = self._reward(before, actions, healthy)
        if self._fixed_horizon:
            healthy[:] = True
        if resets.any():
            self._begin(resets)
        reward[resets] = 0.0
        terminated, truncated = ~healthy & ~resets, self._age >= self._limits
        return self._finish(reward, terminated, truncated)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        del kwargs
        self._simulators.close()

    def _reward(
        self,
        before: Float[np.ndarray, " N"],
        actions: np.ndarray,
        healthy: Bool[np.ndarray, " N"],
    ) -> Float[np.ndarray, " N"]:
        """Return the reward of every row after an env step."""
        task = self._task
        if self._smooth is not None:
            return self._smooth(self._simulators, before)
        bonus = np.where(healthy, task.bonus, 0.0)
        reward = task.reward(self._simulators, before, actions, bonus)
        penalty = np.where(healthy, 0.0, task.bonus if self._fixed_horizon else 0.0)
        return reward - penalty

    def _finish(
        self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Return the result of the env step; in mode SAME_STEP begin the next episodes."""
        obs, infos = self._task.observe(self._simulators), {}
        self._ended = terminated | truncated
        same_step = self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        if same_step and self._ended.any():
            infos = {"final_obs": obs}
            self._begin(self._ended)
            obs = self._task.observe(self._simulators)
        return obs, reward, terminated, truncated, infos

    def _begin(self, rows: np.ndarray) -> None:
        """Begin an episode in the rows that are true."""
        for row in np.flatnonzero(rows).tolist():
            start = self._task.start(self._simulators, self._generators[row])
            self._simulators.place(row, *start)
        self._age[rows], self._limits[rows] = 0, self._later_limits[rows]
