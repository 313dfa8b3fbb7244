"""A Gymnasium environment with a learned reward in place of its own."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import NormalizeObservation

from backflip.export.learned_reward import LearnedReward, refuse_other_spaces
from runshelf.errors import UsageError

if TYPE_CHECKING:
    Base = gymnasium.Wrapper[Any, Any, Any, Any]
else:
    Base = gymnasium.Wrapper

TRUE_REWARD = "true_reward"  # in `info`


@final
class RewardEnv(Base, RecordConstructorArgs):
    """Gives the learned reward of every step; the true one is in `info["true_reward"]`.

    It is not a `gymnasium.RewardWrapper`, because a learned reward needs observations and action.

    Args:
        env: the environment, without wrappers that change observations or actions.
        reward: the learned reward.

    Raises:
        UsageError: `env` is not a `gymnasium.Env`, its spaces differ from those of the reward, or
            it normalises observations or has a learned reward already.
    """

    def __init__(self, env: Any, reward: LearnedReward) -> None:
        if not isinstance(env, gymnasium.Env):
            raise UsageError(
                f"`env` must be one gymnasium.Env, got {type(env).__name__}; for a VecEnv of "
                "Stable-Baselines3 call `wrap_vec_env`"
            )
        refuse_other_spaces(reward, env.observation_space, env.action_space)
        if any(isinstance(one, RewardEnv) for one in _layers(env)):
            raise UsageError(
                "`env` has a learned reward already, so its own one would be lost; wrap the "
                "environment without it"
            )
        if any(isinstance(one, NormalizeObservation) for one in _layers(env)):
            raise UsageError(
                "`env` normalises observations, and the reward was learned from those of the "
                "environment: wrap the reward first, then `NormalizeObservation`"
            )
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, reward=reward)
        super().__init__(env)
        self._reward, self._obs = reward, None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._obs = copied(obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; its reward is the learned one."""
        if self._obs is None:
            raise UsageError("call `reset` before the first `step`")
        next_obs, true, terminated, truncated, info = self.env.step(action)
        ended = bool(terminated)
        learned = self._reward.reward(self._obs, action, next_obs, terminated=ended)
        self._obs = copied(next_obs)
        return next_obs, learned, terminated, truncated, {**info, TRUE_REWARD: float(true)}


def _layers(env: Any) -> Iterator[Any]:
    """Yield an environment and those that it wraps."""
    while isinstance(env, gymnasium.Env):
        yield env
        env = getattr(env, "env", None)


def copied(obs: Any) -> Any:
    """Return a copy of an observation, which an environment may change in place."""
    if isinstance(obs, Mapping):
        return {key: copied(part) for key, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(copied(part) for part in obs)
    return np.array(obs)
