"""View of any vector: one bar per dimension, to the right or left of a centre line."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.spec import EnvSpec
from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, JOINT, LIMB, Point
from backflip.envs.views.view import HEIGHT, UNKNOWN_SECONDS, WIDTH, with_last

FAR = 1e6  # larger bounds are ignored
MARGIN, GAP, LABEL = 8, 12, 22  # pixels: margin, gap between columns, width of a bar's index
ROWS = 14  # rows of the first column before a second one is used
TALLEST = 40  # greatest height of a row, in pixels
LEGIBLE = 9  # least height of a row with an index, in pixels


@dataclass(frozen=True)
class NumbersView:
    """Poses are the observed numbers, each divided by its bound."""

    spec: EnvSpec
    seconds: float = UNKNOWN_SECONDS
    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return self.seconds

    def poses(
        self,
        obs: Float[np.ndarray, "n ..."],
        next_obs: Float[np.ndarray, "n ..."],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 D"]:
        """Return the numbers divided by their bounds, or by the clip's maximum if unbounded."""
        del scene
        seen = with_last(obs, next_obs)
        flat = seen.reshape(len(seen), -1).astype(np.float64)
        return flat / _largest(self.spec, flat)

    def draw(self, poses: Float[np.ndarray, "F D"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
        return np.stack([_frame(pose) for pose in poses])


def _largest(spec: EnvSpec, flat: Float[np.ndarray, "K D"]) -> Float[np.ndarray, " D"]:
    """Return, for each dimension, the magnitude that a full bar stands for."""
    box = spec.observation
    bound = np.maximum(np.abs(box.low), np.abs(box.high)).reshape(-1).astype(np.float64)
    largest = np.where(bound < FAR, bound, np.abs(flat).max(0))
    return np.where(largest > 0, largest, 1.0)


def _frame(pose: Float[np.ndarray, " D"]) -> UInt8[np.ndarray, "H W 3"]:
    image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(image)
    columns = min(-(-len(pose) // ROWS), 4)
    rows = -(-len(pose) // columns)
    wide, high = (WIDTH - 2 * MARGIN + GAP) / columns, (HEIGHT - 2 * MARGIN) / rows
    high, label = min(high, TALLEST), LABEL if high >= LEGIBLE else 0
    top = (HEIGHT - rows * high) / 2
    for index, value in enumerate(pose):
        column, row = divmod(index, rows)
        left, y = MARGIN + column * wide, top + row * high
        if label:
            pen.text((left, y + high / 2), str(index), JOINT, _font(min(high - 1, 13)), "lm")
        _bar(pen, (left + label, left + wide - GAP), (y, y + high), float(value))
    return np.asarray(image)


@cache
def _font(size: int | float) -> Any:
    return ImageFont.load_default(size)


def _bar(pen: ImageDraw.ImageDraw, xs: Point, ys: Point, value: float) -> None:
    """Draw one number in [-1, 1] as a bar on a pale bar of full length."""
    (left, right), (top, bottom) = xs, ys
    room = min((bottom - top) / 5, 4)
    centre, reach = (left + right) / 2, (right - left) / 2
    pen.rectangle((left, top + room, right, bottom - room), FAINT)
    end = centre + reach * min(max(value, -1.0), 1.0)
    colour = BODY if value >= 0 else LIMB
    pen.rectangle((min(centre, end), top + room, max(centre, end), bottom - room), colour)
    pen.line((centre, top, centre, bottom), JOINT, 1)
