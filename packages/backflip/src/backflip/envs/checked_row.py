"""One environment of a batch, whose data are checked before they are batched."""

import contextlib
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from backflip.core.spaces import Group, InvalidValue, MultiDiscrete, Space, flattened
from backflip.core.spec import OwnSpaces
from backflip.envs.rendering import OwnRender
from backflip.envs.spaces import in_short, learned_observation
from runshelf.errors import one_line

NO_LIMIT = 10**9  # env steps: longer than any episode


class RowFailed(Exception):
    """One environment of a batch raised or returned invalid data.

    Attributes:
        row: the row.
        what: the cause.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row, self.what = row, what


class CheckedRow(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Checks the data of one environment before it is batched.

    A batch would broadcast a wrong shape, convert a float to bool, and not say which environment
    raised. Observations are copied, because an environment may reuse its buffer before the last
    one of an episode is read. Observations of several parts are flattened. Infos are dropped.
    """

    def __init__(self, env: "gymnasium.Env[Any, Any]", row: int, own: OwnSpaces) -> None:
        super().__init__(env)
        self._grouped = None
        if isinstance(own.observation, Group | MultiDiscrete):
            self._grouped, box = own.observation, learned_observation(own.observation)
            self.observation_space = spaces.Box(box.low, box.high, dtype=np.float32)
        space: Any = self.observation_space
        self._row, self._shape, self._dtype = row, space.shape, space.dtype
        self._env_steps_left = self._later_limit = NO_LIMIT

    def make_again(self, render: OwnRender) -> None:
        """Replace the environment by one that can be drawn, if its spaces are the same."""
        fresh = render.made() if render.works else None
        if fresh is None:
            return
        if fresh.observation_space != self.env.observation_space:
            render.problem = "its observation space changes with `render_mode`"
            return
        with contextlib.suppress(Exception, SystemExit):
            self.env.close()
        self.env = fresh

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        self._env_steps_left = self._later_limit
        return self._observation(self._call("reset", 2, seed=seed, options=options)[0]), {}

    def shorten_episodes(self, first: int, later: int) -> None:
        """Truncate the present episode after `first` env steps, the following after `later`."""
        self._env_steps_left, self._later_limit = first, later

    def restore_limit(self) -> None:
        """Let the following episodes have their own length."""
        self._later_limit = NO_LIMIT

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment."""
        obs, reward, terminated, truncated, _ = self._call("step", 5, action)
        if not isinstance(reward, float):
            self._check_number("reward", reward, "fiu", "a number")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, bool):
                self._check_number(name, flag, "b", "a bool")
        self._env_steps_left -= 1
        truncated = bool(truncated) or self._env_steps_left <= 0
        return self._observation(obs), reward, terminated, truncated, {}

    def _call(self, method: str, count: int, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the environment; return its `count` values."""
        try:
            result = getattr(self.env, method)(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise RowFailed(self._row, f"`{method}` raised {one_line(error)}") from error
        if isinstance(result, tuple) and len(result) == count:
            return result
        what = f"`{method}` returned {in_short(result)}, expected {count} values"
        raise RowFailed(self._row, what)

    def _check_number(self, name: str, value: Any, kinds: str, wanted: str) -> None:
        if np.shape(value) != () or np.asarray(value).dtype.kind not in kinds:
            raise RowFailed(self._row, f"`{name}` is {in_short(value)}, expected {wanted}")

    def _observation(self, value: Any) -> np.ndarray:
        if self._grouped is not None:
            return self._flattened(self._grouped, value)
        try:
            array = np.array(value)
        except ValueError as error:
            what = f"observation is {in_short(value)}, expected an array"
            raise RowFailed(self._row, what) from error
        if array.shape != self._shape:
            what = f"observation has shape {array.shape}, expected {self._shape}"
            raise RowFailed(self._row, what)
        same = array.dtype == self._dtype
        if not same and not np.can_cast(array.dtype, self._dtype, "same_kind"):
            what = f"observation has dtype {array.dtype}, expected {self._dtype}"
            raise RowFailed(self._row, what)
        return array

    def _flattened(self, space: Space, value: Any) -> np.ndarray:
        try:
            batch, single = flattened(space, value, "observation")
        except InvalidValue as error:
            raise RowFailed(self._row, str(error)) from error
        if not single:
            what = f"observation is a batch of {len(batch)}, expected one"
            raise RowFailed(self._row, what)
        return batch[0]
