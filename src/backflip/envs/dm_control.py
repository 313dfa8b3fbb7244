"""The tasks of the DeepMind Control Suite, by envpool's own C++ of them, many at once in threads.

Tassa et al. 2018, arXiv:1801.00690. `dm_control:cheetah-run` is the domain `cheetah` with the task
`run`. What the suite calls an observation, several named arrays, is one vector here: all of them in
envpool's order. Rewards are between 0 and 1, episodes have 1000 env steps, and in no domain but lqr
does a state end one.
"""

import importlib
import re
from typing import Any, final

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from backflip.core.cores import usable_cores
from backflip.core.errors import UsageError, did_you_mean

MODULE = "envpool.mujoco.dmc"  # where envpool keeps them, among its many others
EPISODE_STEPS = 1_000
ENDING_DOMAIN = "lqr"
WORD_BORDER = re.compile("(?<=[a-z])(?=[A-Z])")

_envpool: Any = importlib.import_module("envpool")
_registry: Any = importlib.import_module("envpool.registration").registry


@final
class ControlBatch(VectorEnv[Any, Any, Any]):
    """N environments of one task.

    envpool takes seeds only when a pool is made, so a reset makes a new one. A step that merely
    resets repeats the reward before it there; here it pays nothing.

    Args:
        name: domain and task, as `cheetah-run`.
        num_envs: N.
        max_episode_steps: the time limit in env steps.

    Raises:
        UsageError: there is no such task.
    """

    def __init__(self, name: str, num_envs: int, max_episode_steps: int = EPISODE_STEPS) -> None:
        self._task = envpool_name(name)
        self._limit = max_episode_steps
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self._ended = np.zeros(num_envs, bool)
        self._pool = self._made([0] * num_envs)
        size = _joined(self._pool.reset()[0]).shape[1]
        # envpool writes the smallest positive number where it means that there is no lower bound.
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.single_action_space = self._pool.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every row, from a seed of its own where there are any."""
        del options
        if seed is not None:
            self._pool.close()
            self._pool = self._made([_envpool_seed(one) for one in seed])
        self._ended[:] = False
        return _joined(self._pool.reset()[0]), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every row, or begin its next episode where the last step ended one."""
        obs, reward, terminated, truncated, _ = self._pool.step(actions)
        reward = np.where(self._ended, 0.0, reward)
        self._ended = terminated | truncated
        return _joined(obs), reward, terminated, truncated, {}

    def close_extras(self, **kwargs: Any) -> None:
        """Free the pool."""
        del kwargs
        self._pool.close()

    def _made(self, seeds: list[int]) -> Any:
        return _envpool.make_gymnasium(
            self._task,
            num_envs=self.num_envs,
            num_threads=min(self.num_envs, usable_cores()),
            max_episode_steps=self._limit,
            seed=seeds,
        )


def terminates(name: str) -> bool:
    """Return whether some state of a task ends an episode."""
    return name.partition("-")[0] == ENDING_DOMAIN


def envpool_name(name: str) -> str:
    """Return envpool's id of a domain and task: `ball_in_cup-catch` is `BallInCupCatch-v1`.

    Raises:
        UsageError: there is no such task.
    """
    known = _tasks()
    if name not in known:
        raise UsageError(
            f"unknown dm_control task `{name}`{did_you_mean(name, known)} "
            "(a domain, a hyphen and a task, as dm_control:cheetah-run)"
        )
    return known[name]


def _tasks() -> dict[str, str]:
    """Return envpool's ids by the suite's names of domain and task."""
    found: dict[str, str] = {}
    for task, (module, kind, given) in _registry.specs.items():
        if module == MODULE:
            words = WORD_BORDER.split(kind.removeprefix("Dmc").removesuffix("EnvSpec"))
            domain = "_".join(word if word.isupper() else word.lower() for word in words)
            found[f"{domain}-{given['task_name']}"] = task
    return found


def _joined(obs: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([part.reshape(len(part), -1) for part in obs.values()], axis=1)


def _envpool_seed(seed: int) -> int:
    """Return a seed of any size as one of envpool's, which have 31 bits."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)
