"""Single pictures: the agent's observation, pictures side by side, and strips of pictures."""

import io
from collections.abc import Sequence

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image

from backflip.core.spec import EnvSpec
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.view import View

PANELS = 8  # frames in a strip
GAP = 8  # pixels between two pictures
PAPER = (20, 23, 29)


def agent_frame(
    spec: EnvSpec, obs: Shaped[np.ndarray, "..."], largest: Shaped[np.ndarray, "..."]
) -> UInt8[np.ndarray, "H W 3"]:
    """Return one observation as a picture that shows everything the agent receives.

    A colour image stays as it is. Of other images each channel becomes a grey picture; these stand
    in a row, stacked frames oldest first. Each number of a vector becomes a bar.

    Args:
        spec: the environment's specification.
        obs: the observation.
        largest: the largest magnitude of each number, which sets the scale of an unbounded one.
    """
    if not spec.is_image:
        view = NumbersView(spec)
        return view.draw(view.poses(obs[None], largest[None], np.zeros(0, np.float32))[:1])[0]
    if obs.shape[-1] == 3 and spec.frame_stack == 1:
        return np.asarray(obs)
    brightest = max(int(spec.observation.high.max()), 1)
    grey = (obs.astype(np.float32) * (255 / brightest)).astype(np.uint8)
    line = np.full((len(grey), 1), 90, np.uint8)  # separates two channels
    parts = [part for channel in np.moveaxis(grey, -1, 0) for part in (channel, line)]
    return np.repeat(np.concatenate(parts[:-1], 1)[..., None], 3, axis=-1)


def enlarged(frame: UInt8[np.ndarray, "H W 3"], height: int) -> UInt8[np.ndarray, "height W2 3"]:
    """Return a frame scaled to a height; pixels stay square blocks when it grows."""
    size = (max(round(frame.shape[1] * height / frame.shape[0]), 1), height)
    grows = height >= frame.shape[0]
    kind = Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS
    return np.asarray(Image.fromarray(frame).resize(size, kind))


def side_by_side(
    left: UInt8[np.ndarray, "H W 3"], right: UInt8[np.ndarray, "..."]
) -> UInt8[np.ndarray, "H W2 3"]:
    """Return two frames side by side, the second scaled to the height of the first."""
    gap = np.full((len(left), GAP, 3), PAPER, np.uint8)
    return np.concatenate([left, gap, enlarged(right, len(left))], 1)


def shows_the_same(view: View, spec: EnvSpec) -> bool:
    """Return whether a view already shows everything the agent receives."""
    coloured = spec.is_image and spec.observation.shape[-1] in (1, 3) and spec.frame_stack == 1
    return isinstance(view, NumbersView) or (coloured and view.pixelated)


def strip_png(frames: Sequence[UInt8[np.ndarray, "H W 3"]]) -> bytes:
    """Return a few evenly spaced frames side by side, as a PNG."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, PANELS).round().astype(int))
    gap = np.full((len(frames[0]), GAP, 3), PAPER, np.uint8)
    parts = [part for index in chosen for part in (frames[index], gap)]
    return png(np.concatenate(parts[:-1], 1))


def png(frame: UInt8[np.ndarray, "H W 3"]) -> bytes:
    """Return one frame as a PNG."""
    file = io.BytesIO()
    Image.fromarray(frame).save(file, "PNG", compress_level=4)
    return file.getvalue()
