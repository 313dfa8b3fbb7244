"""A `VecEnv` of Stable-Baselines3 with a learned reward in place of its own.

Stable-Baselines3 is not a dependency: it is imported by name, when a `VecEnv` is wrapped.
"""

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from backflip.export.learned_reward import LearnedReward, refuse_other_spaces
from backflip.export.reward_env import TRUE_REWARD, copied
from runshelf.errors import UsageError


def reward_vec_env(vec_env: Any, reward: LearnedReward) -> Any:
    """Return `vec_env` with the learned reward; see `LearnedReward.wrap_vec_env`."""
    try:
        library = importlib.import_module("stable_baselines3.common.vec_env")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"`wrap_vec_env` needs Stable-Baselines3, and `{error.name}` is not installed; for one "
            "gymnasium.Env call `wrap`"
        ) from error
    if not isinstance(vec_env, library.VecEnv):
        raise UsageError(
            f"`vec_env` must be a VecEnv of Stable-Baselines3, got {type(vec_env).__name__}; for "
            "one gymnasium.Env call `wrap`"
        )
    refuse_other_spaces(reward, vec_env.observation_space, vec_env.action_space)
    if any(_normalises(library, one) for one in _layers(vec_env)):
        raise UsageError(
            "`vec_env` normalises observations, and the reward was learned from those of the "
            "environment: wrap the reward first, then `VecNormalize`"
        )
    return _wrapper(library.VecEnvWrapper)(vec_env, reward)


def _normalises(library: Any, vec_env: Any) -> bool:
    return isinstance(vec_env, library.VecNormalize) and vec_env.norm_obs


def _layers(vec_env: Any) -> Iterator[Any]:
    """Yield a VecEnv and those that it wraps."""
    while vec_env is not None:
        yield vec_env
        vec_env = getattr(vec_env, "venv", None)


@cache
def _wrapper(base: Any) -> Any:
    """Return the wrapper as a class of `base`, Stable-Baselines3's `VecEnvWrapper`."""

    class RewardVecEnv(base):
        """Gives learned rewards; the true ones are in each `info["true_reward"]`."""

        def __init__(self, vec_env: Any, reward: LearnedReward) -> None:
            super().__init__(vec_env)
            self._reward, self._obs, self._actions = reward, None, np.zeros(0)

        def reset(self) -> Any:
            """Begin an episode in every environment."""
            obs = self.venv.reset()
            self._obs = copied(obs)
            return obs

        def step_async(self, actions: np.ndarray) -> None:
            """Begin a step."""
            self._actions = np.array(actions)
            self.venv.step_async(actions)

        def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
            """Finish the step; its rewards are the learned ones."""
            obs, true, dones, infos = self.venv.step_wait()
            cut = np.array([bool(info.get("TimeLimit.truncated")) for info in infos])
            learned = self._reward.rewards(
                self._obs, self._actions, _successors(obs, dones, infos), terminated=dones & ~cut
            )
            self._obs = copied(obs)
            for info, one in zip(infos, true, strict=True):
                info[TRUE_REWARD] = float(one)
            return obs, learned, dones, infos

    return RewardVecEnv


def _successors(obs: Any, dones: np.ndarray, infos: list[dict[str, Any]]) -> Any:
    """Return the true next observations: where an episode ended, its last observation."""
    found = copied(obs)
    for number in np.flatnonzero(dones):
        _put(found, int(number), infos[number]["terminal_observation"])
    return found


def _put(batch: Any, number: int, obs: Any) -> None:
    """Replace one observation of a batch."""
    if isinstance(batch, Mapping | tuple):
        keys = batch.keys() if isinstance(batch, Mapping) else range(len(batch))
        for key in keys:
            _put(batch[key], number, obs[key])
    else:
        batch[number] = obs
