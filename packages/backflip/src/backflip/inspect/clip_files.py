"""Recordings of episodes, their frames, and the clip files that are written from them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from PIL import Image

from backflip.core.spec import EnvSpec, newest_frame
from backflip.envs.views.film import film
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.view import View
from backflip.inspect.pictures import agent_frame, shows_the_same, side_by_side, strip_png
from runshelf.errors import UsageError
from runshelf.store.files import disk_errors, write_whole

SUFFIXES = (".webp", ".png")


class EpisodeRecording(NamedTuple):
    """The first L env steps of one episode.

    Attributes:
        obs: observations acted on, with all stacked frames.
        next_obs: the next observations.
        scene: the numbers that the environment recorded for drawing, or (0,).
        reward: rewards.
    """

    obs: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    scene: Float[np.ndarray, "..."]
    reward: Float[np.ndarray, " L"]

    @classmethod
    def of(cls, env_steps: Sequence[tuple[Any, ...]]) -> "EpisodeRecording":
        """Return the recording of env steps given as tuples of the four fields."""
        obs, next_obs, scene, reward = map(np.stack, zip(*env_steps, strict=True))
        return cls(obs, next_obs, scene if scene.size else np.zeros(0, np.float32), reward)


class ClipFrames(NamedTuple):
    """The frames of a clip: `per_step` for each env step, and one after the last."""

    frames: list[UInt8[np.ndarray, "H W 3"]]
    fps: float
    per_step: int


def drawable(view: View, spec: EnvSpec) -> tuple[View, str]:
    """Return a view that can draw on this machine, and a note.

    Bars replace a view whose simulator cannot draw here; the note then says why and what to
    install. Otherwise the note is empty.
    """
    try:
        view.step_seconds()
    except UsageError as error:
        return NumbersView(spec), str(error)
    return view, ""


def first_seconds(view: View, recording: EpisodeRecording, seconds: float) -> EpisodeRecording:
    """Return the first `seconds` of a recording, in the environment's own time."""
    count = max(int(seconds / view.step_seconds()), 1)
    return EpisodeRecording(*(part[:count] for part in recording))


def frames_of(
    view: View, spec: EnvSpec, recording: EpisodeRecording, *, with_agents: bool
) -> ClipFrames:
    """Return the frames of a clip; `with_agents` adds the agent's observation to each frame."""
    length = len(recording.reward)
    obs, next_obs = newest_frame(spec, recording.obs), newest_frame(spec, recording.next_obs)
    movie = film(view, obs, next_obs, recording.scene, np.ones(length, bool))
    per_step, frames = (len(movie.frames) - 1) // length, list(movie.frames)
    if with_agents and not shows_the_same(view, spec):
        seen = (*recording.obs, recording.next_obs[-1])
        largest = np.abs(recording.obs).max(0)
        agents = [agent_frame(spec, one, largest) for one in seen]
        frames = [side_by_side(frame, agents[j // per_step]) for j, frame in enumerate(frames)]
    return ClipFrames(frames, movie.fps, per_step)


def checked_file(path: Path) -> Path:
    """Return the path of a clip file.

    Raises:
        UsageError: its suffix is not supported.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"`{path}` must end in .webp (moving) or .png (a strip of frames)")
    return path


def write_clip(path: Path, frames: Sequence[UInt8[np.ndarray, "H W 3"]], fps: float) -> None:
    """Write frames as an animated WebP, or a few of them as a strip if `path` ends in .png.

    Raises:
        UsageError: the suffix is not supported.
        UserFacingError: the file cannot be written.
    """
    strip = checked_file(path).suffix.lower() == ".png"
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, strip_png(frames) if strip else _webp(frames, fps))


def _webp(frames: Sequence[UInt8[np.ndarray, "H W 3"]], fps: float) -> bytes:
    first, *others = (Image.fromarray(frame) for frame in frames)
    file = io.BytesIO()
    settings: dict[str, Any] = {"duration": max(round(1000 / fps), 1), "loop": 0, "method": 0}
    first.save(file, "WEBP", save_all=True, append_images=others, quality=85, **settings)
    return file.getvalue()
