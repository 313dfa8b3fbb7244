"""Stacks of frames, assembled when rows are drawn, so that each image is stored once.

The successor of an image is the next row's image. If the next row begins another episode, the
successor is missing: after a terminated step no value is bootstrapped from it, and a truncated step
is not drawn (its row comes back as invalid). A learned reward reads successors, so for it the
layout stores them too.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from backflip.core.namespace import namespace_of
from backflip.core.replay.layout import Layout, Replay


def stack_frames(layout: Layout, replay: Replay, time: Any, column: Any) -> Any:
    """Return the observations of rows: their frames, oldest first.

    Frames before the start of the episode repeat its first frame, or are black.
    """
    if layout.stack == 1:
        return replay.obs[time, column]
    xp = namespace_of(replay.reward)
    gone = xp.zeros(time.shape, bool)
    moments = [(time, gone)]
    for _ in range(layout.stack - 1):
        gone = gone | _begins(layout, replay, time, column)
        time = xp.where(gone, time, (time - 1) % layout.length)
        moments.append((time, gone))
    if isinstance(replay.obs, np.ndarray):
        return _stack_on_host(layout, replay.obs, moments[::-1], column)
    frames = [replay.obs[time, column] for time, _ in moments[::-1]]
    if not layout.repeats_first_frame:
        shown = [~gone.reshape(*gone.shape, 1, 1, 1) for _, gone in moments[::-1]]
        frames = [frame * seen for frame, seen in zip(frames, shown, strict=True)]
    return jnp.concatenate(frames, -1)


def _stack_on_host(
    layout: Layout, obs: np.ndarray, moments: Sequence[tuple[np.ndarray, np.ndarray]], column: Any
) -> np.ndarray:
    """Return the frames side by side; `np.concatenate` takes three times as long."""
    channels = layout.frame[-1]
    stacks = np.empty((*column.shape, *layout.frame[:-1], layout.stack * channels), obs.dtype)
    for place, (time, gone) in enumerate(moments):
        part = stacks[..., place * channels : (place + 1) * channels]
        part[...] = obs[time, column]
        if not layout.repeats_first_frame:
            part[gone] = 0
    return stacks


def _begins(layout: Layout, replay: Replay, time: Any, column: Any) -> Any:
    """Return whether rows are the first of an episode; a reset row belongs to the previous one."""
    before = (time - 1) % layout.length
    ended = replay.terminated[before, column] | replay.truncated[before, column]
    return replay.valid[time, column] & (ended | ~replay.valid[before, column])
