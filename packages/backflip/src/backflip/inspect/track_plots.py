"""Plots of an episode's value, entropy and reward below its frames, on the same time axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, GOAL, GROUND, JOINT, LIMB, LIMIT
from backflip.inspect.pictures import enlarged

HEIGHT = 54  # height of one track, in pixels
MARGIN = 6  # pixels around a curve
TEXT = 13
MIN_FRAME_HEIGHT = 240  # smaller frames are enlarged to this height, so that text fits
COLOURS = (LIMB, BODY, GOAL, LIMIT)


def with_tracks(
    frames: Sequence[UInt8[np.ndarray, "H W 3"]],
    per_step: int,
    tracks: Mapping[str, Float[np.ndarray, " L"]],
) -> list[UInt8[np.ndarray, "H2 W2 3"]]:
    """Return frames with the tracks drawn below each, and a vertical line at the frame's time.

    Args:
        frames: the frames of a clip of at most L env steps.
        per_step: frames per env step.
        tracks: by name, a number for each env step; those after the clip's end are ignored.
    """
    count = (len(frames) - 1) // per_step
    shown = {name: values[:count] for name, values in tracks.items()}
    large = [enlarged(one, max(MIN_FRAME_HEIGHT, len(one))) for one in frames]
    width = large[0].shape[1]
    still = [
        _track(values, width, COLOURS[index % len(COLOURS)])
        for index, values in enumerate(shown.values())
    ]
    return [
        np.concatenate([frame, *_at_time(still, shown, number / per_step)])
        for number, frame in enumerate(large)
    ]


def _at_time(
    still: list[Image.Image], tracks: Mapping[str, Float[np.ndarray, " L"]], at: float
) -> list[UInt8[np.ndarray, "HEIGHT W 3"]]:
    """Return the tracks with a line at env step `at`, and the value there next to the name."""
    drawn: list[np.ndarray] = []
    for image, (name, values) in zip(still, tracks.items(), strict=True):
        moment = image.copy()
        pen = ImageDraw.Draw(moment)
        x = round((image.width - 1) * at / len(values))
        pen.line((x, 0, x, HEIGHT), JOINT)
        value = values[min(int(at), len(values) - 1)]
        pen.text((MARGIN, 2), f"{name} {value:.3g}", JOINT, ImageFont.load_default(TEXT))
        drawn.append(np.asarray(moment))
    return drawn


def _track(
    values: Float[np.ndarray, " L"], width: int, colour: tuple[int, int, int]
) -> Image.Image:
    """Return the curve of one track over the whole clip, labelled with its range."""
    image = Image.new("RGB", (width, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(image)
    pen.line((0, 0, width, 0), FAINT)
    low, high = float(values.min()), float(values.max())
    top, span = TEXT + MARGIN, HEIGHT - TEXT - 2 * MARGIN
    share = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    edges = np.arange(len(values) + 1) * (width - 1) / len(values)
    heights = top + span * (1 - share)
    points = [
        point
        for y, left, right in zip(heights, edges, edges[1:], strict=False)
        for point in ((float(left), float(y)), (float(right), float(y)))
    ]
    pen.line(points, colour, 2)
    text = f"{low:.3g} to {high:.3g}"
    pen.text((width - MARGIN, 2), text, GROUND, ImageFont.load_default(TEXT - 2), "ra")
    return image
