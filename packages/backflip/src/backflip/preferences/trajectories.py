"""Recorded trajectories, and the clips cut from them.

A trajectory is one episode, or part of one. No clip extends past its end, unless it ended by
termination: as in the agent's own clips, the steps after that are not alive.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from backflip.core.learned_actions import learned_actions
from backflip.core.spaces import Box, InvalidValue, learned
from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.types import Transition
from backflip.preferences.clips import Clip, Window, cut
from runshelf.errors import UsageError

ROWS_AT_ONCE = 4_096
UNFIT = (InvalidValue, TypeError, ValueError)  # what is raised for values outside of a space
# Observations that are stated twice may differ by this share of a number's standard deviation,
# and of the number.
SAME = 1e-3
ROUNDING = 1e-6
ROWS_OF_SPREAD = 256
MOST_OUTSIDE = 0.5  # share of the numbers of actions; a Gaussian policy of std 1 has .32


class Trajectories(NamedTuple):
    """N steps of E trajectories, in the form that an algorithm learns from.

    Attributes:
        obs: R observations, newest frames only.
        next_obs: observations after steps; `obs` itself if it has them.
        action: the action of each step.
        reward: the true reward of each step; None if not recorded.
        terminated: the step ended the episode by the task's own rule.
        before: the row in `obs` of each step.
        after: the row in `next_obs` of each step.
        last: the last step of each step's trajectory.
    """

    obs: Shaped[np.ndarray, "R ..."]
    next_obs: Shaped[np.ndarray, "Q ..."]
    action: Shaped[np.ndarray, "N ..."]
    reward: Float[np.ndarray, " N"] | None
    terminated: Bool[np.ndarray, " N"]
    before: Int[np.ndarray, " N"]
    after: Int[np.ndarray, " N"]
    last: Int[np.ndarray, " N"]

    @property
    def episodes(self) -> int:
        """The number of trajectories."""
        return int((self.last == np.arange(len(self.last))).sum())

    def sha256(self) -> str:
        """Return a hash of all numbers."""
        found = hashlib.sha256()
        for array in self:
            if array is not None:
                found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()


def joined(
    obs: np.ndarray,
    next_obs: np.ndarray | None,
    action: np.ndarray,
    reward: np.ndarray | None,
    terminated: np.ndarray,
    truncated: np.ndarray,
) -> Trajectories:
    """Return trajectories, each of which ends with a termination, a truncation or the data.

    Args:
        obs: the observations before the steps; without `next_obs`, each trajectory has one more
            row than steps, its last observation.
        next_obs: the observations after the steps, or None.
        action: the action of each step.
        reward: the reward of each step, or None.
        terminated: whether each step ended its episode by the task's own rule.
        truncated: whether something else ended it.

    Raises:
        UsageError: numbers of rows do not fit together, or trajectories are not in order.
    """
    steps = len(action)
    ends = terminated | truncated
    ends[-1:] = True
    number = np.cumsum(ends) - ends
    trajectories = int(ends.sum())
    _refuse_other_counts(len(obs), next_obs, steps, trajectories)
    index = np.arange(steps)
    last = np.flatnonzero(ends)[number]
    if next_obs is None:
        before = index + number
        return Trajectories(
            obs=obs,
            next_obs=obs,
            action=action,
            reward=reward,
            terminated=terminated,
            before=before,
            after=before + 1,
            last=last,
        )
    _refuse_out_of_order(obs, next_obs, ends)
    return Trajectories(
        obs=obs,
        next_obs=next_obs,
        action=action,
        reward=reward,
        terminated=terminated,
        before=index,
        after=index,
        last=last,
    )


def windows(found: Trajectories, length: int) -> Int[np.ndarray, " windows"]:
    """Return the first steps of all clips of `length` steps."""
    index = np.arange(len(found.last))
    fits = index + length - 1 <= found.last
    return np.flatnonzero(fits | found.terminated[found.last])


def clip_at(found: Trajectories, start: int, length: int) -> Clip:
    """Return the clip of `length` steps that starts at a step of `windows`."""
    steps = np.arange(start, min(start + length, int(found.last[start]) + 1))
    none = np.zeros((len(steps), 1), bool)
    reward = np.zeros(len(steps), np.float32) if found.reward is None else found.reward[steps]
    record = Transition(
        obs=found.obs[found.before[steps]][:, None],
        action=found.action[steps][:, None],
        reward=reward[:, None],
        terminated=found.terminated[steps][:, None],
        truncated=none,
        next_obs=found.next_obs[found.after[steps]][:, None],
        valid=~none,
        extra=(),
    )
    return cut(record, Window(0, 0), length)


def seen_as_learned(spec: EnvSpec, values: Any, name: str) -> Shaped[np.ndarray, "R ..."]:
    """Return recorded observations as the newest frames that an algorithm learns from.

    Args:
        spec: the environment's spec.
        values: observations in the environment's own space, stacked frames or newest ones.
        name: their name, for messages.

    Raises:
        UsageError: they are not in the environment's observation space.
    """
    rows = _rows_of(values)
    try:
        parts = [_newest(spec, _part(values, some), name) for some in _chunks(rows)]
    except UNFIT as error:
        why = _of_all(lambda: learned(spec.own_spaces.observation, values, spec.observation))
        raise _misfit(spec, name, (why or str(error)).replace("`obs`", "it")) from error
    for number, part in enumerate(parts):
        if not np.isfinite(part).all():
            row = int(np.argwhere(~np.isfinite(part))[0][0]) + number * ROWS_AT_ONCE
            raise UsageError(f"`{name}` has numbers that are not finite, first in row {row}")
    return np.concatenate(parts)


def taken_as_learned(spec: EnvSpec, values: Any, name: str) -> Shaped[np.ndarray, "N ..."]:
    """Return recorded actions as those that an algorithm chooses.

    Some may lie outside the bounds, as those of a Gaussian policy do: environments clip them, and
    so do reward models.

    Raises:
        UsageError: they are not in the environment's action space, or most lie outside its bounds.
    """
    parts: list[np.ndarray] = []
    for some in _chunks(_rows_of(values)):
        try:
            part, single = learned_actions(spec.own_spaces.action, _part(values, some), spec.action)
        except UNFIT as error:
            why = _of_all(lambda: learned_actions(spec.own_spaces.action, values, spec.action))
            raise _misfit(spec, name, (why or str(error)).replace("`action`", "it")) from error
        if single:
            raise _misfit(spec, name, "it has no axis of steps")
        if not np.isfinite(part).all():
            row = int(np.argwhere(~np.isfinite(part))[0][0]) + some.start
            raise UsageError(f"`{name}` has numbers that are not finite, first in row {row}")
        parts.append(part)
    actions = np.concatenate(parts)
    if isinstance(spec.action, Box):
        _refuse_other_units(spec, spec.action, actions, name)
    return actions


def _newest(spec: EnvSpec, values: Any, name: str) -> np.ndarray:
    """Return some observations as newest frames."""
    box = spec.observation
    if spec.is_image and np.asarray(values).dtype.kind not in "iu":
        raise _misfit(spec, name, f"it must have whole numbers, got {np.asarray(values).dtype}")
    frame = (*box.shape[:-1], box.shape[-1] // spec.frame_stack)
    if spec.is_image:
        _refuse_outside(spec, np.asarray(values), frame, name)
    if spec.frame_stack > 1 and np.shape(values)[1:] == frame:
        return np.asarray(values).astype(box.dtype)
    with np.errstate(over="ignore"):  # what overflows is not finite, and refused
        rows, single = learned(spec.own_spaces.observation, values, box)
    if single:
        raise _misfit(spec, name, "it has no axis of steps")
    return newest_frame(spec, rows)


def _refuse_outside(spec: EnvSpec, values: np.ndarray, frame: tuple[int, ...], name: str) -> None:
    """Refuse pixels outside the observation space, which a cast to uint8 would wrap.

    Arrays of other shapes than a batch of images are left to the check of shapes.
    """
    low, high = spec.observation.low, spec.observation.high
    if values.shape[1:] == frame:
        low, high = newest_frame(spec, low), newest_frame(spec, high)
    if not values.size or not values.ndim or values.size != len(values) * low.size:
        return
    images = values.reshape(-1, *low.shape)
    outside = (images < low) | (images > high)
    if outside.any():
        row, *place = np.argwhere(outside)[0].tolist()
        least, most = low[tuple(place)], high[tuple(place)]
        raise _misfit(
            spec,
            name,
            f"its pixels must lie between {least} and {most}, got {images[row, *place]}; "
            "record them as the environment returns them",
        )


def _refuse_other_units(spec: EnvSpec, box: Box, actions: np.ndarray, name: str) -> None:
    """Refuse actions most of whose bounded numbers lie outside the bounds."""
    low, high, values = box.low[box.bounded], box.high[box.bounded], actions[:, box.bounded]
    outside = (values < low) | (values > high)
    if outside.size and outside.mean() > MOST_OUTSIDE:
        raise _misfit(
            spec,
            name,
            f"{outside.mean():.0%} of its numbers lie outside the bounds of the action space "
            f"({low.min():.4g} to {high.max():.4g}): they go from {values.min():.4g} to "
            f"{values.max():.4g}; record the actions in the units of the environment, or clipped "
            "to its bounds",
        )


def _of_all(check: Callable[[], object]) -> str:
    """Return what is said against all values: that against a part has the shape of the part."""
    try:
        check()
    except UNFIT as error:
        return str(error)
    return ""


def _misfit(spec: EnvSpec, name: str, problem: str) -> UsageError:
    return UsageError(f"`{name}` does not fit environment `{spec.id}`: {problem}")


def _rows_of(values: Any) -> int:
    """Return the number of rows of an array, or of a dict or tuple of arrays."""
    while isinstance(values, dict | tuple):
        values = next(iter(values.values() if isinstance(values, dict) else values), np.zeros(0))
    return len(values) if np.ndim(values) else 0


def _chunks(rows: int) -> list[slice]:
    return [slice(at, at + ROWS_AT_ONCE) for at in range(0, max(rows, 1), ROWS_AT_ONCE)]


def _part(values: Any, some: slice) -> Any:
    if isinstance(values, dict):
        return {key: _part(part, some) for key, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_part(part, some) for part in values)
    return values[some] if np.ndim(values) else values


def _refuse_other_counts(
    rows: int, next_obs: np.ndarray | None, steps: int, trajectories: int
) -> None:
    """Refuse observations that are not one for each step, or one more in each trajectory."""
    more = steps + trajectories
    if next_obs is None and rows == steps:
        raise UsageError(
            f"`next_observations` is missing: `observations` has one row for each of the {steps} "
            f"steps; add it, or the last observation of each of the {trajectories} trajectories "
            f"({more} rows)"
        )
    expected = more if next_obs is None else steps
    if rows != expected:
        how = f"{steps} steps" + ("" if next_obs is not None else f" + {trajectories} trajectories")
        raise UsageError(f"`observations` has {rows} rows, expected {expected} ({how})")


def _refuse_out_of_order(obs: np.ndarray, next_obs: np.ndarray, ends: np.ndarray) -> None:
    """Refuse steps that do not follow each other, such as those of a shuffled replay.

    Two numbers are equal if they differ by less than a thousandth of the number's standard
    deviation, or by rounding.
    """
    every = max(len(obs) // ROWS_OF_SPREAD, 1)
    spread = SAME * obs[::every][:ROWS_OF_SPREAD].astype(np.float64).std(0)
    for start in range(0, len(ends) - 1, ROWS_AT_ONCE):
        some = slice(start, min(start + ROWS_AT_ONCE, len(ends) - 1))
        left = next_obs[some].astype(np.float64)
        right = obs[some.start + 1 : some.stop + 1].astype(np.float64)
        near = np.abs(left - right) <= spread + ROUNDING * np.abs(right)
        near = near.reshape(len(left), -1).all(1)
        wrong = np.flatnonzero(~near & ~ends[some])
        if wrong.size:
            step = start + int(wrong[0])
            raise UsageError(
                f"`next_observations` of step {step} is not `observations` of step {step + 1}, and "
                "no termination or truncation separates them: steps must be in the order of their "
                "trajectories, with `truncations` true where one was cut"
            )
