"""Films of clips: what a person should see, and what the agent saw, frame for frame together.

A clip of L env steps is cut at L k + 1 moments, k in each env step and one at its end, with k large
enough for 30 frames in a second. Where the episode ended before the clip does, the last picture
stands still, darkened, under the word "ended".
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.spec import EnvSpec
from backflip.envs.views.minatar import MinAtarView, is_planes
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.view import NeedsScene, View

SMOOTH = 30  # frames in a second that a person takes for a movement
SHORTEST = 1.0  # seconds that a clip should last
DIMMED = 0.45  # how bright what stands still after the end is
WORD = "ended"
ROOM_FOR_WORD = 48  # pixels; in anything smaller the word would not be one


class Movie(NamedTuple):
    """Frames to be shown at a pace.

    Attributes:
        frames: colour pictures, in order.
        fps: frames per second at speed 1.
        slowdown: how much slower than the environment's own time that is; 1 is real time.
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
    scene: Float[np.ndarray, "..."],
    alive: Bool[np.ndarray, " L"],
) -> Movie:
    """Return what a person should see of a clip.

    Frame j shows the moment j / k env steps after the clip's start, frame L k the one after its
    last step; so frame n k shows how the episode ended, where only n steps are alive, and only the
    frames after it are darkened. Fast environments are shown slower, so that a clip lasts at least
    a second.

    Args:
        view: how the environment looks.
        obs: the newest frame of what was seen before each env step.
        next_obs: the newest frame of what followed.
        scene: (L, S), what the environment recorded for pictures, or (0,).
        alive: false after the episode's end; the first is true.
    """
    if isinstance(view, NeedsScene) and not scene.size:
        view = view.fallback
    length, moving = len(alive), int(alive.sum())
    slowdown = max(1.0, SHORTEST / (length * view.step_seconds()))
    shown = view.step_seconds() * slowdown
    per_step = _frames_per_step(shown)
    poses = view.poses(obs[:moving], next_obs[:moving], scene[:moving])
    frames = _after_end(_moving(view, poses, moving, per_step), (length - moving) * per_step)
    return Movie(frames, per_step / shown, slowdown, view.pixelated)


def stills(
    view: View,
    obs: Shaped[np.ndarray, "L ..."],
    next_obs: Shaped[np.ndarray, "L ..."],
    scene: Float[np.ndarray, "..."],
    alive: Bool[np.ndarray, " L"],
) -> UInt8[np.ndarray, "L H W 3"]:
    """Return one picture for each env step of a clip: the moment before the step.

    After the episode's end the last picture stays, darkened. The arguments are those of `film`.
    """
    if isinstance(view, NeedsScene) and not scene.size:
        view = view.fallback
    length, moving = len(alive), int(alive.sum())
    poses = view.poses(obs[:moving], next_obs[:moving], scene[:moving])
    return _after_end(view.draw(poses[:moving]), length - moving)


def agent_film(
    spec: EnvSpec,
    obs: Shaped[np.ndarray, "L ..."],
    alive: Bool[np.ndarray, " L"],
    fps_of: Movie,
) -> Movie:
    """Return what the agent saw of a clip, at the pace of a film of the same clip.

    Frame j shows what the action was chosen from that was under way then; nothing lies between.
    """
    view = PixelsView() if spec.is_pixels else NumbersView(spec)
    view = MinAtarView() if is_planes(spec) else view
    length, moving, count = len(alive), int(alive.sum()), len(fps_of.frames)
    per_step = (count - 1) // length
    poses = view.poses(obs[:moving], obs[:moving], np.zeros(0, np.float32))[:moving]
    frames = _after_end(_moving(view, poses, moving, per_step), (length - moving) * per_step)
    return Movie(frames, fps_of.fps, fps_of.slowdown, view.pixelated)


def _frames_per_step(seconds: float) -> int:
    """Return the least number of frames for an env step shown for so long."""
    # A little less, or rounding makes 30.000001 frames in a second two where one would do.
    return max(math.ceil(SMOOTH * seconds - 1e-6), 1)


def _moving(
    view: View, poses: Shaped[np.ndarray, "K ..."], env_steps: int, per_step: int
) -> UInt8[np.ndarray, "F H W 3"]:
    """Return the frames from the start of the first env step to the end of the last."""
    number = np.arange(env_steps * per_step + 1)
    before: Int[np.ndarray, " F"] = np.minimum(number // per_step, len(poses) - 1)
    if not view.interpolates:
        return view.draw(poses)[before]
    after = np.minimum(before + 1, len(poses) - 1)
    share = number % per_step / per_step
    return view.draw(view.between(poses[before], poses[after], share))


def _after_end(
    frames: UInt8[np.ndarray, "F H W 3"], count: int
) -> UInt8[np.ndarray, "F_and_count H W 3"]:
    """Return the frames, followed by `count` of the last one, darkened."""
    if not count:
        return frames
    return np.concatenate([frames, np.repeat(ended(frames[-1])[None], count, axis=0)])


def ended(frame: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
    """Return a frame darkened, with the word "ended" at its top where there is room."""
    dark = np.rint(frame * DIMMED).astype(np.uint8)
    height, width, _ = frame.shape
    if min(height, width) < ROOM_FOR_WORD:
        return dark
    image = Image.fromarray(dark)
    font = ImageFont.load_default(max(min(height, width) / 12, 10))
    ImageDraw.Draw(image).text((width / 2, height / 12), WORD, (255, 255, 255), font, "mm")
    return np.asarray(image)
