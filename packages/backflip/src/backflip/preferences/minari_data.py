"""Reads recorded trajectories from a Minari data set on this machine. Nothing is downloaded."""

import importlib
import re
from typing import Any

import numpy as np

from backflip.core.spec import EnvSpec
from backflip.preferences.trajectories import (
    Trajectories,
    joined,
    seen_as_learned,
    taken_as_learned,
)
from backflip.preferences.trajectory_file import flags, refuse_too_large, rewards
from runshelf.errors import UsageError, UserFacingError, one_line

PREFIX = "minari:"
_ID = re.compile(r"[\w.:-]+(/[\w.:-]+)*")


def read_minari(name: str, spec: EnvSpec) -> Trajectories:
    """Return the trajectories of a data set, checked against an environment.

    Args:
        name: Minari's id of the data set.
        spec: the environment's spec.

    Raises:
        UsageError: Minari is not installed, it does not have the data set, or its data does not
            fit the environment.
    """
    if not _ID.fullmatch(name) or ".." in name:
        raise UsageError(
            f"`{PREFIX}{name}` is not the id of a Minari data set; try minari list local"
        )
    try:
        minari: Any = importlib.import_module("minari")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"`{PREFIX}{name}` needs Minari: pip install 'backflip[minari]'"
        ) from error
    try:
        return _read(minari.load_dataset(name), spec)
    except UserFacingError as error:
        raise UsageError(f"`{PREFIX}{name}`: {error}") from error
    except FileNotFoundError as error:
        raise UsageError(
            f"Minari has no data set `{name}` on this machine; try minari download {name}"
        ) from error
    except Exception as error:  # whatever Minari raises for a damaged data set
        raise UsageError(f"`{PREFIX}{name}` cannot be read: {one_line(error)}") from error


def _read(data: Any, spec: EnvSpec) -> Trajectories:
    steps, episodes = int(data.total_steps), int(data.total_episodes)
    if steps < 1:
        raise UsageError("the data set has no steps")
    refuse_too_large(2 * (steps + episodes), spec, 0)  # as read, and joined
    found = [_episode(one, spec) for one in data.iterate_episodes() if len(one.rewards)]
    obs, action, reward, terminated, truncated = map(np.concatenate, zip(*found, strict=True))
    return joined(obs, None, action, reward, terminated, truncated)


def _episode(data: Any, spec: EnvSpec) -> tuple[np.ndarray, ...]:
    """Return observations, actions, rewards and flags of one episode, which ends it."""
    steps, where = len(data.rewards), f"of episode {data.id}"
    obs = seen_as_learned(spec, data.observations, f"observations {where}")
    action = taken_as_learned(spec, data.actions, f"actions {where}")
    over, cut = (
        flags(np.asarray(x), name)
        for x, name in ((data.terminations, "terminations"), (data.truncations, "truncations"))
    )
    sizes = (len(obs) - 1, len(action), len(over), len(cut))
    if set(sizes) != {steps} or (over | cut)[:-1].any():
        raise UsageError(f"the arrays {where} do not fit together: {steps} rewards, {sizes} others")
    cut[-1] = not over[-1]  # it is not continued in the next one
    return obs, action, rewards(np.asarray(data.rewards)), over, cut
