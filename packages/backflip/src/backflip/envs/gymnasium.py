"""Adapter that makes Gymnasium environments a `HostEnv`.

In every autoreset mode `next_obs` is the true next observation, and rows that only reset in the
mode NEXT_STEP are marked as invalid. Invalid data (NaN, a wrong shape) and exceptions are reported
in one line that names row, env step and value.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit

from backflip.core.errors import EnvironmentFailed
from backflip.core.spaces import (
    Box,
    Group,
    MultiDiscrete,
    names_of_numbers,
)
from backflip.core.spec import EnvSpec, OwnSpaces
from backflip.envs.checked_row import CheckedRow, RowFailed
from backflip.envs.metadata import class_of, number_names
from backflip.envs.pictures import NONE
from backflip.envs.rendering import Make, OwnRender
from backflip.envs.spaces import in_short, learned_action, learned_observation, own_spaces
from backflip.envs.spec import CanShorten, HasDrawingState, HostStep, KnowsAngles
from backflip.envs.stdout_guard import stdout_kept_open
from runshelf.errors import UsageError, UserFacingError, one_line

MODES = {"next_step": AutoresetMode.NEXT_STEP, "same_step": AutoresetMode.SAME_STEP}

# Silence Gymnasium's warnings about style and versions; this module raises real errors.
gymnasium.logger.min_level = gymnasium.logger.ERROR + 1


def mode_of(num_envs: int, autoreset: str) -> AutoresetMode:
    """Return Gymnasium's constant of an autoreset mode.

    Raises:
        UsageError: the mode is unknown, or `num_envs` is less than 1.
    """
    if num_envs < 1:
        raise UsageError(f"`num_envs` must be at least 1, got {num_envs}")
    if autoreset not in MODES:
        raise UsageError(f"`autoreset` must be next_step or same_step, got `{autoreset}`")
    return MODES[autoreset]


@final
class GymnasiumEnv:
    """A batch of Gymnasium environments.

    Discrete observations become one-hot. Images (uint8 with two or three axes) keep their values
    and get a channel axis. All other observations become float32 vectors; those of Dict and Tuple
    spaces are flattened. Actions are vectors, too: they are reshaped and clipped to the
    environment's box, or shifted to the start of its discrete space. Several choices are one choice
    of all combinations. Every array returned is a copy.

    Args:
        env_id: the environment's id.
        vector: the batch, in either autoreset mode; owned by this object from now on.
        max_episode_steps: the time limit in env steps; None to read it from the batch.
        frame_stack: number of frames in the channels of an image observation, oldest first.
        terminates: whether a state can terminate an episode.
        repeats_first_frame: whether stacks are padded with the first frame of an episode, or
            with black.
        own_render: draws the environments with their own `render()`; None if another view does.
        own: the environments' own spaces, if those of the batch are different.

    Raises:
        UsageError: a space or the autoreset mode is not supported.
    """

    def __init__(
        self,
        env_id: str,
        vector: "VectorEnv[Any, Any, Any]",
        *,
        max_episode_steps: int | None = None,
        frame_stack: int = 1,
        terminates: bool = True,
        repeats_first_frame: bool = True,
        own_render: OwnRender | None = None,
        own: OwnSpaces | None = None,
    ) -> None:
        self._vector = vector
        self.own_render = own_render
        self._drawn: list[int] = []  # rows that can be drawn
        self._autoreset = _autoreset_mode(env_id, vector)
        self._seen: Any = vector.single_observation_space
        self._own = own or own_spaces(env_id, self._seen, vector.single_action_space)
        observation = learned_observation(self._own.observation)
        limit = max_episode_steps or _time_limit(vector)
        self._spec = EnvSpec(
            id=env_id,
            observation=observation,
            action=learned_action(self._own.action),
            max_episode_steps=limit,
            frame_stack=frame_stack,
            terminates=terminates,
            repeats_first_frame=repeats_first_frame,
            own=self._own,
            number_names=self._number_names(env_id, observation),
            angles=vector.angles if isinstance(vector, KnowsAngles) else (),
        )
        self._ended = np.zeros(vector.num_envs, bool)
        self._episodes = np.zeros(vector.num_envs, np.int64)
        self._env_steps = np.zeros(vector.num_envs, np.int64)  # in the present episode

    @classmethod
    def of(
        cls,
        env_id: str,
        make: Make,
        num_envs: int,
        autoreset: str = "next_step",
        terminates: bool = True,
        max_episode_steps: int | None = None,
        draws_itself: bool = False,
    ) -> "GymnasiumEnv":
        """Return a batch of `num_envs` environments, each created by a call of `make`.

        Args:
            env_id: the environment's id.
            make: returns a new `gymnasium.Env`; with `render_mode`, one that can be drawn.
            num_envs: batch size, at least 1.
            autoreset: Gymnasium's `next_step` or `same_step`.
            terminates: whether a state can terminate an episode.
            max_episode_steps: the time limit in env steps; None to read it from the environments.
            draws_itself: whether pictures come from the environments' own `render()`.
        """
        mode = mode_of(num_envs, autoreset)
        made = [make() for _ in range(num_envs)]
        if len({id(one) for one in made}) < num_envs:
            raise UsageError(
                f"`{env_id}` returned the same environment twice; it must make a new one at each "
                "call"
            )
        own = own_spaces(env_id, made[0].observation_space, made[0].action_space)
        rows = [CheckedRow(one, row, own) for row, one in enumerate(made)]
        take = iter(rows).__next__  # each call of the constructor list takes the next row
        vector = SyncVectorEnv([take] * num_envs, copy=False, autoreset_mode=mode)
        return cls(
            env_id,
            vector,
            max_episode_steps=max_episode_steps,
            terminates=terminates,
            own_render=OwnRender(make) if draws_itself else None,
            own=own,
        )

    @property
    def spec(self) -> EnvSpec:
        """The specification of one environment."""
        return self._spec

    @property
    def num_envs(self) -> int:
        """The batch size."""
        return self._vector.num_envs

    def reset(self, seeds: list[int]) -> np.ndarray:
        """Start a new episode in every row, row i from seed i; return observations (N, ...)."""
        if len(seeds) != self.num_envs:
            raise ValueError(f"`seeds` must be {self.num_envs} numbers, got {len(seeds)}")
        self._ended[:] = False
        for row in self._rows():
            row.restore_limit()
        self._episodes[:], self._env_steps[:] = 1, 0
        return self._see(self._call("reset", 2, seed=[int(seed) for seed in seeds])[0])

    def shorten_episodes(self, first: Sequence[int], later: Sequence[int]) -> bool:
        """Truncate the present episode of row i after first[i] env steps, the next after later[i].

        Return false if the batch is a vector environment that cannot do this.
        """
        vector: Any = self._vector
        if isinstance(vector, CanShorten):
            return vector.shorten_episodes(first, later)
        rows = self._rows()
        for row, env_steps, following in zip(rows, first, later, strict=False):
            row.shorten_episodes(env_steps, following)
        return bool(rows)

    def _rows(self) -> list[CheckedRow]:
        """Return the environments, if they are stepped one by one."""
        return [row for row in getattr(self._vector, "envs", []) if isinstance(row, CheckedRow)]

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment.

        Raises:
            EnvironmentFailed: an environment raised or returned invalid data.
            UserFacingError: an action is not finite, which is the policy's fault.
        """
        resets = self._ended & (self._autoreset is AutoresetMode.NEXT_STEP)
        self._env_steps = np.where(resets, 0, self._env_steps + 1)
        self._episodes += resets
        actions = self._take(np.asarray(actions))
        seen, reward, terminated, truncated, infos = self._call("step", 5, actions)
        reward = self._numbers("reward", reward, np.dtype(np.float32))
        terminated = self._numbers("terminated", terminated, np.dtype(bool))
        truncated = self._numbers("truncated", truncated, np.dtype(bool)) & ~terminated
        self._ended = terminated | truncated
        obs, next_obs = self._observations(seen, infos)
        return HostStep(obs, reward, terminated, truncated, next_obs, ~resets)

    def draw_rows(self, rows: Sequence[int]) -> None:
        """Make rows again such that `render()` can draw them; all rows must be reset afterwards.

        Without a render of their own that works, nothing changes and `scenes` has no pictures.
        """
        render, envs = self.own_render, getattr(self._vector, "envs", [])
        if render is None or render.problem or self._drawn == list(rows):
            return
        if not self._drawn:
            render.find_mode(envs[0])
        for row in rows:
            envs[row].make_again(render)
        self._drawn = list(rows) if render.works else []

    def scenes(self, rows: Sequence[int] = ()) -> np.ndarray | None:
        """Return what to draw the current states from; None to use observations.

        Of MuJoCo environments these are float32 (N, S): positions, velocities and, in dm_control,
        target positions. float32 is precise to a thousandth of a pixel, which suffices to draw but
        not to continue a simulation. Of environments that draw themselves these are pictures (N,)
        of the given rows, after `draw_rows`; see `backflip.envs.pictures`.
        """
        envs: Any = getattr(self._vector, "envs", None)
        if self.own_render is not None:
            return self._pictures(self.own_render, rows) if self._drawn else None
        simulators = getattr(self._vector, "data", []) if envs is None else envs
        states = [_drawing_state(one) for one in simulators]
        drawn = [state for state in states if state is not None]
        return np.stack(drawn).astype(np.float32) if drawn and len(drawn) == len(states) else None

    def _number_names(self, env_id: str, box: Box) -> tuple[str, ...]:
        """Return the names that the environment states of its numbers, if it observes a vector."""
        if len(box.shape) != 1 or isinstance(self._seen, spaces.Discrete):
            return ()
        if isinstance(self._own.observation, Group | MultiDiscrete):
            return names_of_numbers(self._own.observation)
        envs = getattr(self._vector, "envs", None)
        return number_names(envs[0].unwrapped if envs else class_of(env_id), box.shape[0])

    def _pictures(self, render: OwnRender, rows: Sequence[int]) -> np.ndarray:
        pictures, envs = np.full(self.num_envs, NONE, object), getattr(self._vector, "envs", [])
        for row in rows:
            pictures[row] = render.picture(envs[row])
        return pictures

    def close(self) -> None:
        """Free the environments' resources; exceptions are ignored."""
        with contextlib.suppress(Exception, SystemExit):
            self._vector.close()

    def _observations(self, seen: Any, infos: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the observations to act on next, and the true next observations."""
        if self._autoreset is AutoresetMode.NEXT_STEP or not self._ended.any():
            obs = self._see(seen)
            return obs, obs.copy()
        successors = self._see(self._with_final(seen, infos))
        self._episodes += self._ended
        self._env_steps[self._ended] = 0
        return self._see(seen), successors

    def _with_final(self, seen: Any, infos: Any) -> np.ndarray:
        """Return the batch of observations with the last ones of the episodes that ended."""
        successors = np.array(seen)
        for row in np.flatnonzero(self._ended):
            final_obs = infos.get("final_obs", {row: None})[row]
            if final_obs is None or np.shape(final_obs) != successors.shape[1:]:
                what = f"`final_obs` is {in_short(final_obs)} after the end of an episode"
                raise self._failed(int(row), what)
            successors[row] = final_obs
        return successors

    def _see(self, batch: Any) -> np.ndarray:
        """Check a batch of observations and return a copy that conforms to the spec."""
        array, box = np.asarray(batch), self._spec.observation
        shape, dtype = (self.num_envs, *(self._seen.shape or ())), self._seen.dtype
        if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            got = f"{array.dtype} of shape {array.shape}"
            raise self._failed(None, f"observations are {got}, expected {dtype} of shape {shape}")
        if isinstance(self._seen, spaces.Discrete):
            return self._one_hot(array - self._seen.start, int(self._seen.n))
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported below
            array = array.astype(box.dtype).reshape(self.num_envs, *box.shape)
        self._check_finite("observation", array)
        return array

    def _one_hot(self, places: np.ndarray, size: int) -> np.ndarray:
        outside = (places < 0) | (places >= size)
        if outside.any():
            row = int(outside.argmax())
            what = f"observation has index {places[row]} in {self._seen}, counted from 0"
            raise self._failed(row, what)
        return (places[:, None] == np.arange(size)).astype(np.float32)

    def _take(self, actions: np.ndarray) -> Any:
        """Return actions in the environments' own form."""
        finite = np.isfinite(actions)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            raise UserFacingError(f"the policy's action {actions[row]} in row {row} is not finite")
        return self._own.take(actions)

    def _call(self, method: str, count: int, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the batch and return its `count` values; errors have one line."""
        try:
            # Values that are not finite are reported later.
            with np.errstate(all="ignore"), stdout_kept_open():
                result = getattr(self._vector, method)(*args, **kwargs)
        except RowFailed as error:
            raise self._failed(error.row, error.what) from error.__cause__
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes SystemExit
            raise self._failed(None, f"`{method}` raised {one_line(error)}") from error
        if isinstance(result, tuple) and len(result) == count:
            return result
        raise self._failed(None, f"`{method}` returned {in_short(result)}, expected {count} values")

    def _numbers(self, name: str, values: Any, dtype: np.dtype) -> np.ndarray:
        """Check one value per row and return a copy."""
        array = np.asarray(values)
        if array.shape != (self.num_envs,) or not np.can_cast(array.dtype, dtype, "same_kind"):
            got = f"{array.dtype} of shape {array.shape}"
            raise self._failed(
                None, f"`{name}` is {got}, expected {dtype} of shape ({self.num_envs},)"
            )
        with np.errstate(over="ignore"):
            array = array.astype(dtype)
        self._check_finite(name, array)
        return array

    def _check_finite(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind != "f":
            return
        finite = np.isfinite(array)
        if not finite.all():
            row, *place = np.argwhere(~finite)[0].tolist()
            where = f"{name}{place or ''}"
            raise self._failed(row, f"{where} is {array[row, *place]}, expected a finite number")

    def _failed(self, row: int | None, what: str) -> EnvironmentFailed:
        """Return the error with environment, row, env step and cause in one line."""
        place = f"one of {self.num_envs} rows" if row is None else f"row {row}"
        at = int(np.argmax(self._env_steps)) if row is None else row
        step, episode = self._env_steps[at], self._episodes[at]
        when = f"step {step} of episode {episode}" if step else f"the start of episode {episode}"
        return EnvironmentFailed(
            f"environment `{self._spec.id}` failed in {place} at {when}: {what}"
        )


def _autoreset_mode(env_id: str, vector: "VectorEnv[Any, Any, Any]") -> AutoresetMode:
    mode: Any = vector.metadata.get("autoreset_mode")
    if mode not in MODES.values():
        raise UsageError(
            f"environment `{env_id}`: `metadata['autoreset_mode']` of its vector environment must "
            f"be AutoresetMode.NEXT_STEP or AutoresetMode.SAME_STEP, got {mode}"
        )
    return mode


def _drawing_state(simulator: Any) -> np.ndarray | None:
    """Return the state to draw an environment or MuJoCo's data from; None without MuJoCo."""
    simulator = getattr(simulator, "unwrapped", simulator)
    if isinstance(simulator, HasDrawingState):
        return simulator.drawing_state()
    data = getattr(simulator, "data", simulator)
    if not (hasattr(data, "qpos") and hasattr(data, "qvel")):
        return None
    return np.concatenate([data.qpos, data.qvel])


def _time_limit(vector: "VectorEnv[Any, Any, Any]") -> int | None:
    """Return the smallest limit among all wrappers, else that of the registration."""
    limits = [limit for env in getattr(vector, "envs", [])[:1] for limit in _limits(env)]
    if limits:
        return min(limits)
    specs = [vector.spec, *(env.spec for env in getattr(vector, "envs", []))]
    return next((spec.max_episode_steps for spec in specs if spec is not None), None)


def _limits(env: Any) -> Iterator[int]:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            yield env.get_wrapper_attr("_max_episode_steps")
        env = env.env
