"""Any Gymnasium environment with Box or Discrete spaces, as a `HostEnv`.

Whatever autoreset mode the vector environment has, `next_obs` is the true successor, and the rows
on which NEXT_STEP merely reset are marked as no transitions. What an environment gets wrong
(NaN, a wrong shape, an exception) is reported in one line that says where, before it can spread.
"""

import contextlib
from collections.abc import Callable
from typing import Any, final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from backflip.core.errors import EnvironmentFailed
from backflip.core.spec import (
    LARGEST_BOUND,
    LARGEST_DISCRETE,
    Box,
    Discrete,
    EnvSpec,
    OwnSpaces,
    has_room,
)
from backflip.envs.spec import HasDrawingState, HostStep
from backflip.envs.stdout_guard import stdout_kept_open
from runshelf.errors import UsageError, UserFacingError, one_line

SMALLEST_PICTURE = 16  # of which 16 channels would be a wonder
DISCRETE = f"Discrete of at most {LARGEST_DISCRETE:,}"
MODES = {"next_step": AutoresetMode.NEXT_STEP, "same_step": AutoresetMode.SAME_STEP}

# Gymnasium's own words about style and versions; what matters is raised by this module.
gymnasium.logger.min_level = gymnasium.logger.ERROR + 1


def mode_of(num_envs: int, autoreset: str) -> AutoresetMode:
    """Return Gymnasium's name of an autoreset mode.

    Raises:
        UsageError: there is no such mode, or no environment to be reset.
    """
    if num_envs < 1:
        raise UsageError(f"`num_envs` must be at least 1, got {num_envs}")
    if autoreset not in MODES:
        raise UsageError(f"`autoreset` must be next_step or same_step, got `{autoreset}`")
    return MODES[autoreset]


@final
class GymnasiumEnv:
    """A batch of Gymnasium environments.

    A discrete observation becomes one-hot, images (uint8 with three axes, or two, which get one
    channel) stay as they are, and every other observation becomes a vector of float32. An action
    is a vector, too; on its way to the environment it gets its box's shape and is clipped to it,
    or is shifted to where its discrete space starts. Every array returned is a copy.

    Args:
        env_id: the name a person typed.
        vector: the batch, in either autoreset mode; from here on this object's to step and close.
        max_episode_steps: the time limit in env steps; None asks the batch.
        frame_stack: how many frames an image observation holds in its channels, oldest first.
        terminates: some state ends the task by its own rule.
        repeats_first_frame: what stands in a stack before the episode's first frame: that one
            again, or black.

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
    ) -> None:
        self._vector = vector
        self._autoreset = _autoreset_mode(env_id, vector)
        self._seen: Any = vector.single_observation_space
        observation, action = _facts(env_id, self._seen, vector.single_action_space)
        limit = max_episode_steps or _time_limit(vector)
        self._own = OwnSpaces(_own(self._seen), _own(vector.single_action_space))
        self._spec = EnvSpec(
            env_id,
            observation,
            action,
            limit,
            frame_stack,
            terminates,
            repeats_first_frame,
            self._own,
        )
        self._ended = np.zeros(vector.num_envs, bool)
        self._episodes = np.zeros(vector.num_envs, np.int64)
        self._env_steps = np.zeros(vector.num_envs, np.int64)  # in the present episode

    @classmethod
    def of(
        cls,
        env_id: str,
        make: Callable[[], Any],
        num_envs: int,
        autoreset: str = "next_step",
        terminates: bool = True,
        max_episode_steps: int | None = None,
    ) -> "GymnasiumEnv":
        """Return `num_envs` environments, each of its own call of `make`, stepped one by one.

        Args:
            env_id: the name a person typed.
            make: returns a new `gymnasium.Env`.
            num_envs: how many, at least 1.
            autoreset: `next_step` or `same_step`, as Gymnasium means them.
            terminates: some state ends the task by its own rule.
            max_episode_steps: the time limit in env steps; None asks the environments.
        """
        mode = mode_of(num_envs, autoreset)
        rows = [_Row(make(), row) for row in range(num_envs)]
        _facts(env_id, rows[0].observation_space, rows[0].action_space)  # before they are batched
        # The batch is to own the rows: it takes them out of one iterator, in order.
        take = iter(rows).__next__
        vector = SyncVectorEnv([take] * num_envs, copy=False, autoreset_mode=mode)
        return cls(env_id, vector, max_episode_steps=max_episode_steps, terminates=terminates)

    @property
    def spec(self) -> EnvSpec:
        """The facts of one environment."""
        return self._spec

    @property
    def num_envs(self) -> int:
        """How many environments are stepped at once."""
        return self._vector.num_envs

    def reset(self, seeds: list[int]) -> np.ndarray:
        """Start a new episode in every environment, row i from seed i; return (N, ...) obs."""
        if len(seeds) != self.num_envs:
            raise ValueError(f"`seeds` must be {self.num_envs} numbers, got {len(seeds)}")
        self._ended[:] = False
        self._episodes[:], self._env_steps[:] = 1, 0
        result = self._call("reset", seed=[int(seed) for seed in seeds])
        return self._see(self._parts("reset", result, 2)[0])

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment.

        Raises:
            EnvironmentFailed: what came back is no transition.
            UserFacingError: an action is not finite, so that the fault is the policy's.
        """
        resets = self._ended & (self._autoreset is AutoresetMode.NEXT_STEP)
        self._env_steps = np.where(resets, 0, self._env_steps + 1)
        self._episodes += resets
        result = self._call("step", self._take(np.asarray(actions)))
        seen, reward, terminated, truncated, infos = self._parts("step", result, 5)
        reward = self._numbers("reward", reward, np.dtype(np.float32))
        terminated = self._numbers("terminated", terminated, np.dtype(bool))
        truncated = self._numbers("truncated", truncated, np.dtype(bool)) & ~terminated
        self._ended = terminated | truncated
        obs, next_obs = self._observations(seen, infos)
        return HostStep(obs, reward, terminated, truncated, next_obs, ~resets)

    def scenes(self) -> np.ndarray | None:
        """Return the states to draw from, float32 (N, S), where the simulator is MuJoCo, else None.

        These are positions, velocities and, in dm_control, the places of targets. In float32 a limb
        is off by less than a thousandth of a pixel: enough to draw from, too little to go on
        simulating from.
        """
        rows: Any = getattr(self._vector, "envs", None)
        simulators = getattr(self._vector, "data", []) if rows is None else rows
        states = [_drawing_state(one) for one in simulators]
        drawn = [state for state in states if state is not None]
        return np.stack(drawn).astype(np.float32) if drawn and len(drawn) == len(states) else None

    def close(self) -> None:
        """Free what the environments hold. One that cannot be closed has nothing left to spoil."""
        with contextlib.suppress(Exception, SystemExit):
            self._vector.close()

    def _observations(self, seen: Any, infos: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return what to act on next, and the true successors."""
        if self._autoreset is AutoresetMode.NEXT_STEP or not self._ended.any():
            obs = self._see(seen)
            return obs, obs.copy()
        successors = self._see(self._with_final(seen, infos))
        self._episodes += self._ended
        self._env_steps[self._ended] = 0
        return self._see(seen), successors

    def _with_final(self, seen: Any, infos: Any) -> np.ndarray:
        """Return the batch as seen, but with the last observations of the episodes that ended."""
        successors = np.array(seen)
        for row in np.flatnonzero(self._ended):
            final_obs = infos.get("final_obs", {row: None})[row]
            if final_obs is None or np.shape(final_obs) != successors.shape[1:]:
                what = f"`final_obs` is {_short(final_obs)} where an episode ended"
                raise self._failed(int(row), what)
            successors[row] = final_obs
        return successors

    def _see(self, batch: Any) -> np.ndarray:
        """Return a copy of a batch of observations as the spec promises it, once it is checked."""
        array, box = np.asarray(batch), self._spec.observation
        shape, dtype = (self.num_envs, *(self._seen.shape or ())), self._seen.dtype
        if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            got = f"{array.dtype} of shape {array.shape}"
            raise self._failed(None, f"observations are {got}, expected {dtype} of shape {shape}")
        if isinstance(self._seen, spaces.Discrete):
            return self._one_hot(array - self._seen.start, int(self._seen.n))
        with np.errstate(over="ignore"):  # beyond float32: reported as the infinity it becomes
            array = array.astype(box.dtype).reshape(self.num_envs, *box.shape)
        self._check_finite("observation", array)
        return array

    def _one_hot(self, places: np.ndarray, size: int) -> np.ndarray:
        outside = (places < 0) | (places >= size)
        if outside.any():
            row = int(outside.argmax())
            what = f"observation is number {places[row]} of {self._seen}, counted from 0"
            raise self._failed(row, what)
        return (places[:, None] == np.arange(size)).astype(np.float32)

    def _take(self, actions: np.ndarray) -> np.ndarray:
        """Return actions as the environments want them."""
        finite = np.isfinite(actions)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            raise UserFacingError(f"the policy chose the action {actions[row]} in row {row}")
        return self._own.take(actions)

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what the batch returns; whatever it raises becomes one line."""
        try:
            # What is not finite is reported below.
            with np.errstate(all="ignore"), stdout_kept_open():
                return getattr(self._vector, method)(*args, **kwargs)
        except _RowFailedError as error:
            raise self._failed(error.row, error.what) from error.__cause__
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `sys.exit` is an environment's failure, too
            raise self._failed(None, f"`{method}` raised {one_line(error)}") from error

    def _parts(self, method: str, result: Any, count: int) -> Any:
        if not isinstance(result, tuple) or len(result) != count:
            raise self._failed(
                None, f"`{method}` returned {_short(result)}, expected {count} values"
            )
        return result

    def _numbers(self, name: str, values: Any, dtype: np.dtype) -> np.ndarray:
        """Return a copy of one value per row, once it is checked."""
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
        """Return the one line that says which environment, where, when and what."""
        place = f"one of {self.num_envs} rows" if row is None else f"row {row}"
        at = int(np.argmax(self._env_steps)) if row is None else row
        step, episode = self._env_steps[at], self._episodes[at]
        when = f"step {step} of episode {episode}" if step else f"the start of episode {episode}"
        return EnvironmentFailed(
            f"environment `{self._spec.id}` failed in {place} at {when}: {what}"
        )


class _RowFailedError(Exception):
    """One environment of a batch did something wrong; `GymnasiumEnv` knows when.

    Attributes:
        row: which one.
        what: what it did.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row, self.what = row, what


class _Row(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One environment, held to its word before its values are mixed with those of others.

    A batch would broadcast a wrong shape, round a float where a bool should be, or say that
    something raised but not where. Observations are copied: an environment may reuse its buffer
    while the last one of an episode is still to be read. Infos are dropped: nothing uses them.
    """

    def __init__(self, env: "gymnasium.Env[Any, Any]", row: int) -> None:
        super().__init__(env)
        space: Any = env.observation_space
        self._row, self._shape, self._dtype = row, space.shape, space.dtype

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        try:
            result = self.env.reset(seed=seed, options=options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _RowFailedError(self._row, f"`reset` raised {one_line(error)}") from error
        return self._observation(self._parts("reset", result, 2)[0]), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment."""
        try:
            result = self.env.step(action)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _RowFailedError(self._row, f"`step` raised {one_line(error)}") from error
        obs, reward, terminated, truncated, _ = self._parts("step", result, 5)
        if not isinstance(reward, float):
            self._check_number("reward", reward, "fiu", "a number")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, bool):
                self._check_number(name, flag, "b", "a bool")
        return self._observation(obs), reward, terminated, truncated, {}

    def _parts(self, method: str, result: Any, count: int) -> Any:
        if isinstance(result, tuple) and len(result) == count:
            return result
        what = f"`{method}` returned {_short(result)}, expected {count} values"
        raise _RowFailedError(self._row, what)

    def _check_number(self, name: str, value: Any, kinds: str, wanted: str) -> None:
        if np.shape(value) != () or np.asarray(value).dtype.kind not in kinds:
            raise _RowFailedError(self._row, f"`{name}` is {_short(value)}, expected {wanted}")

    def _observation(self, value: Any) -> np.ndarray:
        try:
            array = np.array(value)
        except ValueError as error:
            what = f"observation is {_short(value)}, expected an array"
            raise _RowFailedError(self._row, what) from error
        if array.shape != self._shape:
            what = f"observation has shape {array.shape}, expected {self._shape}"
            raise _RowFailedError(self._row, what)
        same = array.dtype == self._dtype
        if not same and not np.can_cast(array.dtype, self._dtype, "same_kind"):
            what = f"observation has dtype {array.dtype}, expected {self._dtype}"
            raise _RowFailedError(self._row, what)
        return array


def _facts(
    env_id: str, observation: "spaces.Space[Any]", action: "spaces.Space[Any]"
) -> tuple[Box, Box | Discrete]:
    """Return what the spec says of two spaces.

    Raises:
        UsageError: one of them is not supported.
    """
    return _observation_box(env_id, observation), _action_facts(env_id, action)


def _observation_box(env_id: str, space: "spaces.Space[Any]") -> Box:
    if isinstance(space, spaces.Discrete):
        if space.n > LARGEST_DISCRETE:
            raise _unsupported(env_id, "observation", space, f"Box and {DISCRETE}")
        one_hot = np.ones(int(space.n), np.float32)
        return Box(np.zeros_like(one_hot), one_hot, one_hot.dtype)
    if not isinstance(space, spaces.Box):
        raise _unsupported(env_id, "observation", space, "Box and Discrete")
    if 0 in space.shape:
        raise _unsupported(env_id, "observation", space, "those with at least one number")
    if space.dtype == np.uint8 and len(space.shape) in (2, 3):
        if _channels_come_first(space.shape):
            raise UsageError(
                f"environment `{env_id}` shows images of shape {space.shape}, channels first, and "
                "they must come last; wrap it in gymnasium.wrappers.TransformObservation, with "
                "`numpy.moveaxis(image, 0, -1)`"
            )
        return _box(space, (*space.shape, 1)[:3], np.dtype(np.uint8))
    return _box(space, (-1,), np.dtype(np.float32))


def _action_facts(env_id: str, space: "spaces.Space[Any]") -> Box | Discrete:
    if isinstance(space, spaces.Discrete) and space.n <= LARGEST_DISCRETE:
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        box = _box(space, (-1,), np.dtype(np.float32))
        if has_room(box.low, box.high):
            return box
    supported = (
        f"{DISCRETE}, and Box of at least one float between bounds of at most "
        f"{LARGEST_BOUND:g}, low below high,"
    )
    raise _unsupported(env_id, "action", space, supported)


def _own(space: Any) -> Box | Discrete:
    """Return a supported space as it is."""
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n), int(space.start))
    return Box(space.low, space.high, space.dtype)


def _box(space: spaces.Box, shape: tuple[int, ...], dtype: np.dtype) -> Box:
    with np.errstate(over="ignore"):  # the largest float64 is a common way to say "no bound"
        low, high = space.low.astype(dtype).reshape(shape), space.high.astype(dtype).reshape(shape)
    return Box(low, high, dtype)


def _channels_come_first(shape: tuple[int, ...]) -> bool:
    """Return whether a shape is an image's that has its few channels on the first axis.

    There are a dozen or more in a stack of frames, but fewer than pixels along either side.
    """
    return len(shape) == 3 and max(shape[0], SMALLEST_PICTURE - 1) < min(shape[1:])


def _unsupported(env_id: str, role: str, space: "spaces.Space[Any]", supported: str) -> UsageError:
    return UsageError(
        f"environment `{env_id}` has the {role} space {_short(space)}, "
        f"which is not supported: {supported} are; wrap the environment to give one of these"
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
    """Return what to draw one environment or MuJoCo's data from; None if it is not MuJoCo's."""
    simulator = getattr(simulator, "unwrapped", simulator)
    if isinstance(simulator, HasDrawingState):
        return simulator.drawing_state()
    data = getattr(simulator, "data", simulator)
    if not (hasattr(data, "qpos") and hasattr(data, "qvel")):
        return None
    return np.concatenate([data.qpos, data.qvel])


def _time_limit(vector: "VectorEnv[Any, Any, Any]") -> int | None:
    specs = [vector.spec, *(env.spec for env in getattr(vector, "envs", []))]
    return next((spec.max_episode_steps for spec in specs if spec is not None), None)


def _short(value: Any) -> str:
    """Return a value as one line of at most 120 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:119]}…"
