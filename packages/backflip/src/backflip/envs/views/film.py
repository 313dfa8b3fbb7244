"""Movies of clips: the person's view and the agent's observations, with matching frames.

A clip of L env steps has L k + 1 frames: k per env step and one after the last, with k large enough
for 30 frames per second. After the end of an episode the last picture is repeated, darkened, with
the word "ended".
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.spec import EnvSpec
from backflip.envs.views.minatar import MinAtarView, is_planes
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.view import Interpolates, View, view_for

SMOOTH = 30  # frames per second that look like continuous motion
SHORTEST = 1.0  # least duration of a clip in seconds
DIMMED = 0.45  # brightness of frames after the end
WORD = "ended"
ROOM_FOR_WORD = 48  # the word is left out of frames smaller than this many pixels


class Movie(NamedTuple):
    """Frames and their rate.

    Attributes:
        frames: colour pictures.
        fps: frames per second at speed 1.
        slowdown: slowdown relative to the environment's own time; 1 is real time.
        pixelated: whether to enlarge without smoothing.
    """

    frames: UInt8[np.ndarray, "F H W 3"]
    fps: float
    slowdown: float
    pixelated: bool


def film(
    view: View,
    obs: Shaped[np.ndarray, "L ..."],
    next_obs: Shaped[np.ndarray, "L ..."],
    scene: Shaped[np.ndarray, "..."],
    alive: Bool[np.ndarray, " L"],
) -> Movie:
    """Return the movie of a clip in a view.

    Frame j shows the time j / k env steps after the clip's start. If only n steps are alive, frame
    n k shows the end of the episode and the frames after it are darkened. Fast environments are
    slowed down so that a clip lasts at least one second.

    Args:
        view: the view.
        obs: the newest frame of the observation before each env step.
        next_obs: the newest frame of the next observation.
        scene: what the environment recorded for drawing, (L, S), or (0,). Of a clip in which an
            episode ends, the entry after the last step may show how it ended.
        alive: false after the episode's end; the first entry is true.
    """
    view = view_for(view, scene)
    length, moving = len(alive), int(alive.sum())
    slowdown = max(1.0, SHORTEST / (length * view.step_seconds()))
    shown = view.step_seconds() * slowdown
    per_step = _frames_per_step(shown)
    poses = view.poses(obs[:moving], next_obs[:moving], scene[: moving + 1])
    frames = _after_end(_moving(view, poses, moving, per_step), (length - moving) * per_step)
    return Movie(frames, per_step / shown, slowdown, view.pixelated)


def stills(
    view: View,
    obs: Shaped[np.ndarray, "L ..."],
    next_obs: Shaped[np.ndarray, "L ..."],
    scene: Shaped[np.ndarray, "..."],
    alive: Bool[np.ndarray, " L"],
) -> UInt8[np.ndarray, "L H W 3"]:
    """Return one picture of the state before each env step of a clip.

    After the episode's end the last picture is repeated, darkened. Arguments as in `film`.
    """
    view = view_for(view, scene)
    length, moving = len(alive), int(alive.sum())
    poses = view.poses(obs[:moving], next_obs[:moving], scene[:moving])
    return _after_end(view.draw(poses[:moving]), length - moving)


def agent_film(
    spec: EnvSpec,
    obs: Shaped[np.ndarray, "L ..."],
    alive: Bool[np.ndarray, " L"],
    fps_of: Movie,
) -> Movie:
    """Return the movie of the agent's observations, with the frame rate of a movie of the clip.

    Frame j shows the observation from which the current action was chosen.
    """
    view = PixelsView() if spec.is_image else NumbersView(spec)
    view = MinAtarView() if is_planes(spec) else view
    length, moving, count = len(alive), int(alive.sum()), len(fps_of.frames)
    per_step = (count - 1) // length
    poses = view.poses(obs[:moving], obs[:moving], np.zeros(0, np.float32))[:moving]
    frames = _after_end(_moving(view, poses, moving, per_step), (length - moving) * per_step)
    return Movie(frames, fps_of.fps, fps_of.slowdown, view.pixelated)


def _frames_per_step(seconds: float) -> int:
    """Return the least number of frames for an env step of the given duration."""
    # The small subtraction keeps rounding errors from giving two frames at 1/30 s.
    return max(math.ceil(SMOOTH * seconds - 1e-6), 1)


def _moving(
    view: View, poses: Shaped[np.ndarray, "K ..."], env_steps: int, per_step: int
) -> UInt8[np.ndarray, "F H W 3"]:
    """Return the frames from the start of the first env step to the end of the last one."""
    number = np.arange(env_steps * per_step + 1)
    before: Int[np.ndarray, " F"] = np.minimum(number // per_step, len(poses) - 1)
    if not isinstance(view, Interpolates):
        return view.draw(poses)[before]
    after = np.minimum(before + 1, len(poses) - 1)
    share = number % per_step / per_step
    return view.draw(view.between(poses[before], poses[after], share))


def _after_end(
    frames: UInt8[np.ndarray, "F H W 3"], count: int
) -> UInt8[np.ndarray, "F_and_count H W 3"]:
    """Return the frames followed by `count` darkened copies of the last one."""
    if not count:
        return frames
    return np.concatenate([frames, np.repeat(ended(frames[-1])[None], count, axis=0)])


def ended(frame: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
    """Return a darkened frame with the word "ended" at its top, if it is large enough."""
    dark = np.rint(frame * DIMMED).astype(np.uint8)
    height, width, _ = frame.shape
    if min(height, width) < ROOM_FOR_WORD:
        return dark
    image = Image.fromarray(dark)
    font = ImageFont.load_default(max(min(height, width) / 12, 10))
    ImageDraw.Draw(image).text((width / 2, height / 12), WORD, (255, 255, 255), font, "mm")
    return np.asarray(image)
