"""Clips: pieces of one trajectory, all of the same length.

After termination a trajectory stays in an absorbing state with a reward of zero. So a clip may
extend past the end of an episode: those steps are not alive, their reward is zero, and a film
shows the last frame. An early end is then worse than survival where each step earns reward
(CartPole), and better where each step costs (MountainCar), without a special rule. No clip extends
past a truncation, because the following states are unknown.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, SupportsIndex, final, overload

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from backflip.core.types import Transition
from backflip.envs.pictures import are_pictures, packed
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
        scene: (L, S) what `backflip.envs.views` draws each step from, numbers or a picture's bytes,
            or (0,). After the episode's end it is that of the last state, where recorded.
    """

    obs: Shaped[np.ndarray, "L ..."]
    action: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    reward: Float[np.ndarray, " L"]
    alive: Bool[np.ndarray, " L"]
    scene: Shaped[np.ndarray, "..."] = NO_SCENE


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


NEVER = 2**62  # a row after all others


class Window(NamedTuple):
    """The first step of a clip in a record."""

    time: int
    env: int


@final
class Windows(Sequence[Window]):
    """Windows as two arrays: a record of a million env steps has nearly as many.

    Attributes:
        times: the time of each.
        envs: the environment of each.
    """

    def __init__(self, times: Int[np.ndarray, " W"], envs: Int[np.ndarray, " W"]) -> None:
        self.times, self.envs = times, envs

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.times)

    @overload
    def __getitem__(self, at: SupportsIndex) -> Window: ...

    @overload
    def __getitem__(self, at: slice) -> "Windows": ...

    def __getitem__(self, at: SupportsIndex | slice) -> "Window | Windows":
        """Return one window, or a slice of them."""
        if isinstance(at, slice):
            return Windows(self.times[at], self.envs[at])
        return Window(int(self.times[at]), int(self.envs[at]))

    def some(self, chosen: Bool[np.ndarray, " W"] | Int[np.ndarray, " V"]) -> "Windows":
        """Return the chosen windows; `chosen` is a mask, or their indices."""
        return Windows(self.times[chosen], self.envs[chosen])


def windows(record: Transition, length: int) -> Windows:
    """Return all windows of a record (T', M) in which a clip of `length` steps fits.

    One trajectory, with its absorbing state, fills a window: it terminates in the window, or it
    lasts to the window's last step. A time limit may only cut it after that step.
    """
    horizon = len(record.terminated)
    times = np.arange(horizon)[:, None]
    terminates = _first_from(record.terminated)
    fills = (terminates < times + length) | (times + length <= horizon)
    cut_before = _first_from(record.truncated)
    cut_inside = (cut_before < times + length - 1) & (cut_before <= terminates)
    envs, starts = np.nonzero((record.valid & fills & ~cut_inside).T)
    return Windows(starts, envs)


def _first_from(happens: Bool[np.ndarray, "T M"]) -> Int[np.ndarray, "T M"]:
    """Return for each row the first row, from it on, where something happens; `NEVER` if none."""
    rows = np.where(happens, np.arange(len(happens))[:, None], NEVER)
    return np.minimum.accumulate(rows[::-1])[::-1]


def ends_inside(record: Transition, places: Windows, length: int) -> Bool[np.ndarray, " W"]:
    """Return for each window whether the clip contains the end of an episode."""
    terminates = _first_from(record.terminated)
    return terminates[places.times, places.envs] < places.times + length


def episode_steps(record: Transition, places: Windows) -> Int[np.ndarray, " W"]:
    """Return the env step of its episode at which each clip begins; -1 if that began earlier."""
    ended = record.terminated | record.truncated | ~record.valid
    newest = np.maximum.accumulate(np.where(ended, np.arange(len(ended))[:, None], -1))
    before = np.concatenate([np.full_like(newest[:1], -1), newest])[places.times, places.envs]
    return np.where(before < 0, -1, places.times - before - 1)


def last_steps(record: Transition, places: Windows, length: int) -> Int[np.ndarray, " W"]:
    """Return the time of the last step of each clip that is alive."""
    ends = _first_from(record.terminated)[places.times, places.envs]
    return np.minimum(ends, np.minimum(places.times + length, len(record.terminated)) - 1)


def episode_start(record: Transition, length: int) -> Clip | None:
    """Return a clip that starts with an episode, else any clip; None if no clip fits.

    If the environment draws itself, it is a clip with pictures, where there is one.
    """
    places = with_pictures(record, windows(record, length), length)
    ended = record.terminated | record.truncated | ~record.valid
    starts = [place for place in places if place.time and ended[place.time - 1, place.env]]
    chosen = next(iter(starts or places), None)
    return None if chosen is None else cut(record, chosen, length)


def with_pictures(record: Transition, places: Windows, length: int) -> Windows:
    """Return the windows whose steps all have pictures; all windows if none has, or needs any."""
    if not are_pictures(record.scene):
        return places
    drawn = [all(record.scene[_scene_times(record, at, length), at.env]) for at in places]
    return places.some(np.array(drawn)) if any(drawn) else places


def cut(record: Transition, window: Window, length: int) -> Clip:
    """Return the clip that starts at `window`; steps past the end repeat the last one."""
    times, env = np.arange(window.time, window.time + length), window.env
    last = _last(record, window, length)
    index, alive = np.minimum(times, last), times <= last
    return Clip(
        obs=record.obs[index, env],
        action=record.action[index, env],
        next_obs=record.next_obs[index, env],
        reward=np.where(alive, record.reward[index, env], 0.0).astype(np.float32),
        alive=alive,
        scene=_scene(record, window, length),
    )


def _last(record: Transition, window: Window, length: int) -> int:
    """Return the time of the last step of the clip at `window` that is alive."""
    after = min(window.time + length, record.terminated.shape[0])
    ended = np.flatnonzero(record.terminated[window.time : after, window.env])
    return int(window.time + ended[0] if ended.size else after - 1)


def _scene(record: Transition, window: Window, length: int) -> Shaped[np.ndarray, "..."]:
    """Return the scene of the clip at `window`."""
    if isinstance(record.scene, tuple):
        return NO_SCENE
    scene = record.scene[_scene_times(record, window, length), window.env]
    if not are_pictures(scene):
        return scene
    pictures = packed(scene.tolist())
    return NO_SCENE if pictures is None else pictures


def _scene_times(record: Transition, window: Window, length: int) -> Int[np.ndarray, " L"]:
    """Return the times whose scenes the clip at `window` shows.

    If an environment resets in an env step of its own, that row has the scene of the episode's last
    state, which is shown after the end.
    """
    last = _last(record, window, length)
    follows = last + 1 < len(record.valid) and not record.valid[last + 1, window.env]
    return np.minimum(np.arange(window.time, window.time + length), last + follows)
