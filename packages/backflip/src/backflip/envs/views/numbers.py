"""View of any vector: one bar per number, to the right or left of a centre line.

Each bar has the number's name and value. A discrete observation is one number, the state.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, JOINT, LIMB, Point
from backflip.envs.views.view import HEIGHT, UNKNOWN_SECONDS, WIDTH, with_last

FAR = 1e6  # larger bounds are ignored
MARGIN, GAP = 8, 12  # pixels: margin, and gap between two columns
ROWS = 14  # rows of the first column before a second one is used
MOST_COLUMNS = 4
TALLEST = 40  # greatest height of a row, in pixels
LEGIBLE = 9  # least height of a row with text, in pixels
LARGEST_TEXT = {True: 13, False: 9}  # by whether names are written
NAME_SHARE = 0.45  # most of a column's width that names take
NAMED_COLUMNS = 2  # with more columns there is room for the index only
WIDEST_VALUE = {True: "-1.23e+04", False: "-1e+04"}
STATE_TEXT, SMALL_TEXT = 40, 16


@dataclass(frozen=True)
class NumbersView:
    """Poses are the observed numbers: first the length of each bar in [-1, 1], then as they are.

    A full bar stands for the bound of a number. Without a bound, x has a bar of length
    x / (1 + |x|): it is the same in all clips, so that bars of two clips can be compared.
    """

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
    ) -> Float[np.ndarray, "n+1 2 D"]:
        """Return the lengths of the bars, and the numbers."""
        del scene
        seen = with_last(obs, next_obs)
        flat = seen.reshape(len(seen), -1).astype(np.float64)
        return np.stack([_bar_lengths(self.spec, flat), flat], 1)

    def draw(self, poses: Float[np.ndarray, "F 2 D"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
        own = None if self.spec.own is None else self.spec.own.observation
        if isinstance(own, Discrete):
            return np.stack([_state(int(pose[1].argmax()), own) for pose in poses])
        layout = _layout(poses.shape[2], self.spec.number_names)
        return np.stack([_frame(layout, *pose) for pose in poses])


def _bar_lengths(spec: EnvSpec, flat: Float[np.ndarray, "K D"]) -> Float[np.ndarray, "K D"]:
    box = spec.observation
    bound = np.maximum(np.abs(box.low), np.abs(box.high)).reshape(-1).astype(np.float64)
    is_bounded = (bound > 0) & (bound < FAR)
    return flat / np.where(is_bounded, bound, 1.0 + np.abs(flat))


class _Layout(NamedTuple):
    """Where the bars are.

    Attributes:
        rows: bars in each column.
        wide: width of a column, with the gap to the next one.
        high: height of a row.
        top: of the first row.
        labels: the text before each bar; empty if there is no room.
        before: width of these texts.
        after: width of the values.
        text: height of all texts.
    """

    rows: int
    wide: float
    high: float
    top: float
    labels: list[str]
    before: float
    after: float
    text: int


@cache
def _layout(count: int, names: tuple[str, ...]) -> _Layout:
    columns = min(-(-count // ROWS), MOST_COLUMNS)
    rows = -(-count // columns)
    wide = (WIDTH - 2 * MARGIN + GAP) / columns
    high = min((HEIGHT - 2 * MARGIN) / rows, TALLEST)
    top = (HEIGHT - rows * high) / 2
    if high < LEGIBLE:
        return _Layout(rows, wide, high, top, [], 0, 0, 0)
    named = columns <= NAMED_COLUMNS
    texts = list(names) or [f"obs[{index}]" for index in range(count)]
    text = min(int(high) - 1, LARGEST_TEXT[named])
    labels = [
        _fitting(one if named else str(index), text, NAME_SHARE * wide)
        for index, one in enumerate(texts)
    ]
    widths = [_font(text).getlength(one) for one in (*labels, WIDEST_VALUE[named])]
    return _Layout(rows, wide, high, top, labels, max(widths[:-1]) + 6, widths[-1] + 4, text)


def _fitting(text: str, size: int, width: float) -> str:
    """Return a text of at most `width` pixels; a long one loses its middle."""
    shown, kept = text, len(text)
    while kept > 2 and _font(size).getlength(shown) > width:
        kept -= 1
        shown = f"{text[: kept // 2]}..{text[len(text) - (kept + 1) // 2 :]}"
    return shown


def _frame(
    layout: _Layout, shares: Float[np.ndarray, " D"], values: Float[np.ndarray, " D"]
) -> UInt8[np.ndarray, "H W 3"]:
    image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(image)
    digits = 3 if layout.wide > WIDTH / (NAMED_COLUMNS + 1) else 1
    for index, (share, value) in enumerate(zip(shares.tolist(), values.tolist(), strict=True)):
        column, row = divmod(index, layout.rows)
        left, y = MARGIN + column * layout.wide, layout.top + row * layout.high
        right, middle = left + layout.wide - GAP, y + layout.high / 2
        if layout.labels:
            font = _font(layout.text)
            pen.text((left, middle), layout.labels[index], JOINT, font, "lm")
            pen.text((right, middle), f"{value + 0.0:.{digits}g}", JOINT, font, "rm")
        _bar(pen, (left + layout.before, right - layout.after), (y, y + layout.high), share)
    return np.asarray(image)


def _state(index: int, space: Discrete) -> UInt8[np.ndarray, "H W 3"]:
    """Draw one of several states: its number, and its place among all."""
    image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(image)
    middle, last = WIDTH / 2, space.start + space.n - 1
    pen.text((middle, 90), f"state {space.start + index}", JOINT, _font(STATE_TEXT), "mm")
    pen.text((middle, 135), f"of {space.start} to {last}", JOINT, _font(SMALL_TEXT), "mm")
    left, reach = 2 * MARGIN, WIDTH - 4 * MARGIN
    width = max(reach / space.n, 3)
    at = left + (reach - width) * index / max(space.n - 1, 1)
    pen.rectangle((left, 170, left + reach, 180), FAINT)
    pen.rectangle((at, 170, at + width, 180), BODY)
    return np.asarray(image)


@cache
def _font(size: int) -> Any:
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
