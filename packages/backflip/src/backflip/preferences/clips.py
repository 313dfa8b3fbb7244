"""Clips: pieces of one trajectory, all of the same length.

After termination a trajectory stays in an absorbing state with a reward of zero. So a clip may
extend past the end of an episode: those steps are not alive, their reward is zero, and a film
shows the last frame. An early end is then worse than survival where each step earns reward
(CartPole), and better where each step costs (MountainCar), without a special rule. No clip extends
past a truncation, because the following states are unknown.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from backflip.core.types import Transition
from backflip.rewards.interface import ObservedClip

# The scene of clips that are drawn from observations, and of clips of old runs.
NO_SCENE: Float[np.ndarray, " 0"] = np.zeros(0, np.float32)
NO_SCENE.flags.writeable = False


class Clip(NamedTuple):
    """L steps of one trajectory, as NumPy arrays.

    Attributes:
        obs: the newest frame of the observation before each step.
        action: the action of each step.
        next_obs: the newest frame of the observation after each step.
        reward: true rewards, for simulated teachers and evaluation only; 0 if not alive.
        alive: false after the episode's end.
        scene: (L, S) the state from which `backflip.envs.views` draws each step, or (0,).
    """

    obs: Shaped[np.ndarray, "L ..."]
    action: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    reward: Float[np.ndarray, " L"]
    alive: Bool[np.ndarray, " L"]
    scene: Float[np.ndarray, "..."] = NO_SCENE


def to_arrays(clip: Clip) -> dict[str, np.ndarray]:
    """Return the arrays of a clip for a label file, where `alive` is called `lived`."""
    arrays = clip._asdict()
    return {"lived" if name == "alive" else name: array for name, array in arrays.items()}


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Clip:
    """Return the clip for the arrays of a label file."""
    return Clip(**{"alive" if name == "lived" else name: array for name, array in arrays.items()})


def observed(clip: Clip) -> ObservedClip:
    """Return the clip for a reward model, without the true reward."""
    return ObservedClip(clip.obs, clip.action, clip.next_obs, clip.alive)


class Window(NamedTuple):
    """The first step of a clip in a record."""

    time: int
    env: int


def windows(record: Transition, length: int) -> list[Window]:
    """Return all windows of a record (T', M) in which a clip of `length` steps fits."""
    horizon, envs = record.terminated.shape
    found = []
    for env in range(envs):
        for time in range(horizon):
            if record.valid[time, env] and _lasts(record, time, env, length):
                found.append(Window(time, env))
    return found


def episode_start(record: Transition, length: int) -> Clip | None:
    """Return a clip that starts with an episode, else any clip; None if no clip fits."""
    places = windows(record, length)
    ended = record.terminated | record.truncated | ~record.valid
    starts = [place for place in places if place.time and ended[place.time - 1, place.env]]
    chosen = next(iter(starts or places), None)
    return None if chosen is None else cut(record, chosen, length)


def _lasts(record: Transition, time: int, env: int, length: int) -> bool:
    """Return whether one trajectory, including its absorbing state, fills the window."""
    until = min(time + length, record.terminated.shape[0])
    terminated = np.flatnonzero(record.terminated[time:until, env])
    truncated = np.flatnonzero(record.truncated[time:until, env])
    if truncated.size and truncated[0] < length - 1:
        return bool(terminated.size and terminated[0] < truncated[0])
    return bool(terminated.size) or until == time + length


def cut(record: Transition, window: Window, length: int) -> Clip:
    """Return the clip that starts at `window`; steps past the end repeat the last one."""
    time, env = window
    rows = np.arange(time, min(time + length, record.terminated.shape[0]))
    ended = np.flatnonzero(record.terminated[rows, env])
    last = rows[ended[0]] if ended.size else rows[-1]
    index = np.minimum(np.arange(time, time + length), last)
    alive = np.arange(time, time + length) <= last
    reward = np.where(alive, record.reward[index, env], 0.0).astype(np.float32)
    return Clip(
        obs=record.obs[index, env],
        action=record.action[index, env],
        next_obs=record.next_obs[index, env],
        reward=reward,
        alive=alive,
        scene=NO_SCENE if isinstance(record.scene, tuple) else record.scene[index, env],
    )
