"""Open any environment, in JAX or not, as a `HostEnv` that is stepped one env step at a time.

Inspection uses what training uses: the `reset`, `step` and `observe` of environments in JAX, and
the same adapter for all others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from backflip.core.errors import EnvironmentFailed
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.registry import make_host, make_native
from backflip.envs.rendering import OwnRender
from backflip.envs.spec import (
    DrawsItself,
    HasScene,
    HasScenes,
    HostEnv,
    HostStep,
    NativeEnv,
    step_within_bounds,
)


def open_env(env_id: str, env_args: Mapping[str, Any], rows: int) -> HostEnv:
    """Return a batch of `rows` environments.

    Raises:
        UsageError: the environment does not exist or cannot be created.
    """
    native = make_native(env_id, env_args)
    return make_host(env_id, env_args, rows) if native is None else SteppedEnv(native, rows)


def scenes_of(env: HostEnv) -> np.ndarray | None:
    """Return what to draw the current states from, pictures of row 0 only; None if not needed."""
    return env.scenes([0]) if isinstance(env, HasScenes) else None


def scene_of(env: HostEnv) -> np.ndarray:
    """Return the scene of the current state of row 0, with its axis: (1, S), or (0,) if none."""
    scenes = scenes_of(env)
    return np.zeros(0, np.float32) if scenes is None else scenes[:1]


def own_render(env: HostEnv) -> OwnRender | None:
    """Return what draws a batch with its own `render()`; None if another view draws it."""
    return env.own_render if isinstance(env, DrawsItself) else None


def ready_to_draw(env: HostEnv) -> OwnRender | None:
    """Return the same, with row 0 ready to be drawn. All rows must be reset afterwards."""
    if isinstance(env, DrawsItself):
        env.draw_rows([0])
    return own_render(env)


def drawing_problem(env: HostEnv) -> str:
    """Return why a batch is drawn as numbers and not by its own `render()`, or nothing."""
    render = own_render(env)
    why = "" if render is None else render.problem
    return why and f"`{env.spec.id}` is shown as it is observed: {why}"


class _Row(NamedTuple):
    """One environment: its state, the key of its future randomness, and the end of its episode."""

    state: Any
    key: PRNGKeyArray
    ended: Bool[Array, ""]


class _StepResult(NamedTuple):
    """The result of one env step of one environment."""

    obs: Any
    scene: Any
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@final
class SteppedEnv:
    """A batch of an environment in JAX. The env step after an episode's end only resets.

    A row's seed determines all its randomness: rows with equal seeds and actions stay equal.

    Args:
        env: the environment.
        num_envs: batch size, at least 1.
    """

    def __init__(self, env: NativeEnv, num_envs: int) -> None:
        self._env = env
        self._num_envs = num_envs
        self._reset = jax.jit(jax.vmap(self._reset_row))
        self._step = jax.jit(jax.vmap(self._step_row))
        self._rows: Any = None
        self._scenes: Any = ()
        self._env_steps = 0  # since the last reset

    @property
    def spec(self) -> EnvSpec:
        """The specification of one environment."""
        return self._env.spec

    @property
    def num_envs(self) -> int:
        """The batch size."""
        return self._num_envs

    def reset(self, seeds: list[int]) -> np.ndarray:
        """Start a new episode in every row, row i from seed i; return observations (N, ...)."""
        self._rows, first_obs, self._scenes = self._reset(np.asarray(seeds, np.uint32))
        obs, self._env_steps = np.array(first_obs), 0
        self._check_finite("observation", obs)
        return obs

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment.

        Raises:
            EnvironmentFailed: an observation or reward is not finite.
        """
        resets, self._env_steps = np.array(self._rows.ended), self._env_steps + 1
        self._rows, result = self._step(self._rows, np.asarray(actions, self._action_dtype))
        self._scenes = result.scene
        obs, reward, terminated, truncated = map(
            np.array, (result.obs, result.reward, result.terminated, result.truncated)
        )
        self._check_finite("observation", obs)
        self._check_finite("reward", reward)
        return HostStep(obs, reward, terminated, truncated, obs.copy(), ~resets)

    def _check_finite(self, name: str, array: np.ndarray) -> None:
        finite = np.isfinite(array)
        if not finite.all():
            row, *place = np.argwhere(~finite)[0].tolist()
            when = f"env step {self._env_steps}" if self._env_steps else "the reset"
            raise EnvironmentFailed(
                f"environment `{self.spec.id}` failed in row {row} at {when}: {name}{place or ''} "
                f"is {array[row, *place]}, expected a finite number"
            )

    def scenes(self, rows: Sequence[int] = ()) -> np.ndarray | None:
        """Return the numbers to draw the current states from; None if observations suffice."""
        return np.array(self._scenes) if isinstance(self._env, HasScene) else None

    def close(self) -> None:
        """Nothing to free."""

    @property
    def _action_dtype(self) -> np.dtype:
        action = self.spec.action
        return np.dtype(np.int32) if isinstance(action, Discrete) else action.dtype

    def _reset_row(self, seed: Array) -> tuple[_Row, Any, Any]:
        first, rest = jax.random.split(jax.random.key(seed))
        state = self._env.reset(first)
        row = _Row(state, rest, jnp.zeros((), bool))
        return row, self._env.observe(state), self._scene(state)

    def _step_row(self, row: _Row, action: Any) -> tuple[_Row, _StepResult]:
        rest, step_key, reset_key = jax.random.split(row.key, 3)
        moved = step_within_bounds(self._env, row.state, action, step_key)

        def choose(fresh: Array, after: Array) -> Array:
            return jnp.where(row.ended, fresh, after)

        state = jax.tree.map(choose, self._env.reset(reset_key), moved.state)
        terminated = moved.terminated & ~row.ended
        truncated = moved.truncated & ~moved.terminated & ~row.ended
        result = _StepResult(
            self._env.observe(state),
            self._scene(state),
            jnp.where(row.ended, 0.0, moved.reward),
            terminated,
            truncated,
        )
        return _Row(state, rest, terminated | truncated), result

    def _scene(self, state: Any) -> Any:
        return self._env.scene(state) if isinstance(self._env, HasScene) else ()
