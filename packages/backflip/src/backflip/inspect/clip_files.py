"""The frames of recorded episodes, and the clip files that are written from them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from backflip.core.spec import EnvSpec, newest_frame
from backflip.envs.spec import HostEnv
from backflip.envs.views.film import film
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.rendered import RenderedView
from backflip.envs.views.view import View
from backflip.inspect.episode_recorder import EpisodeRecording
from backflip.inspect.open_env import drawing_problem, ready_to_draw
from backflip.inspect.pictures import agent_frame, shows_the_same, side_by_side, strip_png
from runshelf.errors import UsageError
from runshelf.store.files import disk_errors
from runshelf.store.writing import write_whole

SUFFIXES = (".webp", ".png")


class ClipFrames(NamedTuple):
    """The frames of a clip: `per_step` for each env step, and one after the last."""

    frames: list[UInt8[np.ndarray, "H W 3"]]
    fps: float
    per_step: int


def drawable(view: View, env: HostEnv) -> tuple[View, str]:
    """Return a view that can draw on this machine, and a note.

    If the environment's own render or its simulator cannot draw here, the observation is drawn
    instead, and the note says why and what to install. Otherwise the note is empty. An environment
    that draws itself must be reset afterwards.
    """
    if isinstance(view, RenderedView):
        render = ready_to_draw(env)
        works = render is not None and render.works
        return (view, "") if works else (view.fallback, drawing_problem(env))
    try:
        view.step_seconds()
    except UsageError as error:
        return NumbersView(env.spec), str(error)
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
