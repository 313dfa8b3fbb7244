"""Clips of what was lived through: their frames, and the files they are written to."""

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
from backflip.inspect.pictures import agent_frame, side_by_side, shows_the_same, strip_png
from runshelf.errors import UsageError
from runshelf.store.files import disk_errors, write_whole

SUFFIXES = (".webp", ".png")


class EpisodeRecording(NamedTuple):
    """What a clip of one episode is drawn from: L env steps, or as many as are kept.

    Attributes:
        obs: what was acted on, whole.
        next_obs: what followed.
        scene: what the environment recorded for pictures, or (0,).
        reward: what was paid.
    """

    obs: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    scene: Float[np.ndarray, "..."]
    reward: Float[np.ndarray, " L"]

    @classmethod
    def of(cls, env_steps: Sequence[tuple[Any, ...]]) -> "EpisodeRecording":
        """Return the clip of env steps, each of which has these four of one moment."""
        obs, next_obs, scene, reward = map(np.stack, zip(*env_steps, strict=True))
        return cls(obs, next_obs, scene if scene.size else np.zeros(0, np.float32), reward)


class ClipFrames(NamedTuple):
    """A clip's frames, `per_step` for each env step and one for its end."""

    frames: list[UInt8[np.ndarray, "H W 3"]]
    fps: float
    per_step: int


def drawable(view: View, spec: EnvSpec) -> tuple[View, str]:
    """Return a view that can draw here: bars where the simulator has nothing to draw with.

    Beside it, why, and what to install; nothing where the view itself can draw.
    """
    try:
        view.step_seconds()
    except UsageError as error:
        return NumbersView(spec), str(error)
    return view, ""


def first_seconds(view: View, recording: EpisodeRecording, seconds: float) -> EpisodeRecording:
    """Return the beginning of an episode, in the environment's own time."""
    count = max(int(seconds / view.step_seconds()), 1)
    scene = recording.scene[:count] if recording.scene.size else recording.scene
    return EpisodeRecording(recording.obs[:count], recording.next_obs[:count], scene, recording.reward[:count])


def frames_of(view: View, spec: EnvSpec, recording: EpisodeRecording, *, with_agents: bool) -> ClipFrames:
    """Return the frames of a clip, if asked for with what the agent got side_by_side each."""
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
    """Return a clip's file.

    Raises:
        UsageError: its name does not say of which kind.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"`{path}` must end in .webp (moving) or .png (a strip of frames)")
    return path


def write_clip(path: Path, frames: Sequence[UInt8[np.ndarray, "H W 3"]], fps: float) -> None:
    """Write frames as an animated WebP, or as a strip of a few of them if `path` ends in .png.

    Raises:
        UsageError: it ends in something else.
        UserFacingError: it cannot be written.
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
