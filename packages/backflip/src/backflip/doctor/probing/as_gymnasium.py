"""A probe as an environment of Gymnasium, for algorithms of other libraries."""

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from backflip.core.spaces import Discrete
from backflip.core.spec import within


class AsGymnasium(gymnasium.Env[np.ndarray, Any]):
    """An environment in JAX that is reset and stepped from Python.

    Args:
        env: the environment, whose observations are vectors.

    Attributes:
        env_steps: the number of env steps that were made.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (as in Gymnasium)

    def __init__(self, env: Any) -> None:
        self.env, spec = env, env.spec
        box, action = spec.observation, spec.action
        self.observation_space = spaces.Box(box.low, box.high, dtype=np.float32)
        self.action_space: Any = (
            spaces.Discrete(action.n)
            if isinstance(action, Discrete)
            else spaces.Box(action.low, action.high, dtype=np.float32)
        )
        self._key = jax.random.key(0)
        self._state: Any = None
        self.env_steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the first observation of an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._key = jax.random.key(seed)
        self._state, obs, self._key = _first(self.env, self._key)
        return np.array(obs), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Return the result of one env step.

        Raises:
            ResetNeeded: it was never reset.
            InvalidAction: the action is no choice of the environment.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("`step` before `reset`: call `env.reset()` first")
        space = self.env.spec.action
        chosen = np.asarray(action, np.int32 if isinstance(space, Discrete) else np.float32)
        if isinstance(space, Discrete) and not self.action_space.contains(chosen):
            raise gymnasium.error.InvalidAction(
                f"`step` needs an action of {self.action_space}, got {action!r}"
            )
        self.env_steps += 1
        self._state, seen, self._key = _next(
            self.env, self._state, within(space, chosen), self._key
        )
        obs, reward, terminated, truncated = jax.device_get(seen)
        # Copies: arrays of JAX are read-only, and algorithms may normalise in place.
        return np.array(obs), float(reward), bool(terminated), bool(truncated), {}


# One compiled program for all instances of a probe.


@partial(jax.jit, static_argnums=0)
def _first(env: Any, key: Any) -> tuple[Any, Any, Any]:
    """Return an initial state, its observation and the next key."""
    key, now = jax.random.split(key)
    state = env.reset(now)
    return state, env.observe(state), key


@partial(jax.jit, static_argnums=0)
def _next(env: Any, state: Any, action: Any, key: Any) -> tuple[Any, Any, Any]:
    """Return the next state, what is seen there, and the next key."""
    key, now = jax.random.split(key)
    after = env.step(state, action, now)
    seen = (env.observe(after.state), after.reward, after.terminated, after.truncated)
    return after.state, seen, key
