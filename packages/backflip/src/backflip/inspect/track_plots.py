"""Plots of an episode's value, entropy and rewards below its frames, on the same time axis."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, GOAL, GROUND, JOINT, LIMB, LIMIT
from backflip.inspect.pictures import enlarged

HEIGHT = 54  # height of one panel, in pixels
MARGIN = 6  # pixels around a curve
TEXT = 13
MIN_FRAME_HEIGHT = 240  # smaller frames are enlarged to this height, so that text fits
COLOURS = (LIMB, BODY, GOAL, LIMIT)
PAIR = (BODY, LIMB)  # of two curves in one panel
BAND = 0.35  # of a curve's colour, in the band of its spread


class Curve(NamedTuple):
    """A number for each env step, drawn with a band if it has a spread.

    Attributes:
        name: what it is.
        values: the numbers.
        spread: half the height of the band; None for no band.
    """

    name: str
    values: Float[np.ndarray, " L"]
    spread: Float[np.ndarray, " L"] | None = None

    def until(self, count: int) -> "Curve":
        """Return the first `count` env steps."""
        spread = None if self.spread is None else self.spread[:count]
        return Curve(self.name, self.values[:count], spread)

    def at(self, env_step: int) -> str:
        """Return the name and the value at an env step, or at the last one."""
        place = min(env_step, len(self.values) - 1)
        band = "" if self.spread is None else f" ± {self.spread[place]:.2g}"
        return f"{self.name} {self.values[place]:.3g}{band}"


Panel = Sequence[Curve]  # one or two curves, each with its own scale


def with_panels(
    frames: Sequence[UInt8[np.ndarray, "H W 3"]], per_step: int, panels: Sequence[Panel]
) -> list[UInt8[np.ndarray, "H2 W2 3"]]:
    """Return frames with the panels drawn below each, and a vertical line at the frame's time.

    Args:
        frames: the frames of a clip of at most L env steps.
        per_step: frames per env step.
        panels: the curves; numbers after the clip's end are ignored.
    """
    count = (len(frames) - 1) // per_step
    shown = [[curve.until(count) for curve in panel] for panel in panels]
    large = [enlarged(one, max(MIN_FRAME_HEIGHT, len(one))) for one in frames]
    width = large[0].shape[1]
    coloured = [_colours(place, panel) for place, panel in enumerate(panels)]
    still = [_panel(*one, width) for one in zip(shown, coloured, strict=True)]
    return [
        np.concatenate([frame, *_at_time(still, shown, coloured, number / per_step)])
        for number, frame in enumerate(large)
    ]


def _colours(place: int, panel: Panel) -> Sequence[tuple[int, int, int]]:
    return PAIR if len(panel) > 1 else [COLOURS[place % len(COLOURS)]]


def _at_time(
    still: Sequence[Image.Image],
    panels: Sequence[Panel],
    coloured: Sequence[Sequence[tuple[int, int, int]]],
    at: float,
) -> list[UInt8[np.ndarray, "HEIGHT W 3"]]:
    """Return the panels with a line at env step `at`, and the values there next to the names."""
    drawn: list[np.ndarray] = []
    for image, panel, colours in zip(still, panels, coloured, strict=True):
        moment = image.copy()
        pen = ImageDraw.Draw(moment)
        x = round((image.width - 1) * at / len(panel[0].values))
        pen.line((x, 0, x, HEIGHT), JOINT)
        places = ((MARGIN, "la"), (image.width - MARGIN, "ra"))
        for curve, colour, (left, anchor) in zip(panel, colours, places, strict=False):
            ink = JOINT if len(panel) == 1 else colour
            pen.text((left, 2), curve.at(int(at)), ink, _font(TEXT), anchor)
        drawn.append(np.asarray(moment))
    return drawn


def _panel(panel: Panel, colours: Sequence[tuple[int, int, int]], width: int) -> Image.Image:
    """Return the curves of one panel over the whole clip; one alone is labelled with its range."""
    image = Image.new("RGB", (width, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(image)
    pen.line((0, 0, width, 0), FAINT)
    for curve, colour in zip(panel, colours, strict=True):
        _draw(pen, curve, colour, width)
    if len(panel) == 1:
        text = f"{panel[0].values.min():.3g} to {panel[0].values.max():.3g}"
        pen.text((width - MARGIN, 2), text, GROUND, _font(TEXT - 2), "ra")
    return image


def _draw(pen: ImageDraw.ImageDraw, curve: Curve, colour: tuple[int, int, int], width: int) -> None:
    """Draw a curve of steps over its band, scaled to its own range."""
    values = curve.values
    spread = np.zeros_like(values) if curve.spread is None else curve.spread
    low, high = float((values - spread).min()), float((values + spread).max())
    top, span = TEXT + MARGIN, HEIGHT - TEXT - 2 * MARGIN
    edges = np.arange(len(values) + 1) * (width - 1) / len(values)

    def line(heights: Float[np.ndarray, " L"]) -> list[tuple[float, float]]:
        share = (heights - low) / (high - low) if high > low else np.full(len(heights), 0.5)
        return [
            point
            for y, left, right in zip(top + span * (1 - share), edges, edges[1:], strict=False)
            for point in ((float(left), float(y)), (float(right), float(y)))
        ]

    if spread.any():
        mixed = [round(BAND * c + (1 - BAND) * b) for c, b in zip(colour, BACKGROUND, strict=True)]
        outline = line(values + spread) + line(values - spread)[::-1]
        pen.polygon(outline, (mixed[0], mixed[1], mixed[2]))
    pen.line(line(values), colour, 2)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
