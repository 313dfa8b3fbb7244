"""Strips of clips as PNG: rows of frames or small line plots, each with a caption."""

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from runshelf.errors import UsageError

_PANELS = 8  # frames per clip, besides the panel of the whole clip
_SIDE = 126  # side of a panel, in pixels
_GAP, _CAPTION = 6, 24
_PAPER, _INK, _FAINT, _LINE = (255, 255, 255), (31, 35, 40), (89, 99, 110), (11, 98, 196)


def clip_strip_png(clips: Sequence[Shaped[np.ndarray, "L ..."]], captions: Sequence[str]) -> bytes:
    """Return a PNG with one row per clip below its caption.

    Images: one panel of the whole clip (for each pixel the value furthest from its median, so that
    moving objects leave a track), then evenly spaced frames. Vectors: one plot over time for each
    of the first dimensions, with the same scale in all clips.

    Args:
        clips: observations of each clip: uint8 (L, height, width) or (L, height, width, channels),
            or vectors (L, D); all of the same shape.
        captions: one for each clip.

    Raises:
        UsageError: the clips have other or different shapes, or the captions differ in number.
    """
    if not clips or len(clips) != len(captions) or len({clip.shape for clip in clips}) > 1:
        raise UsageError(
            "a strip needs clips of one shape and a caption for each, got shapes "
            f"{[clip.shape for clip in clips]} and {len(captions)} captions"
        )
    if clips[0].dtype == np.uint8 and clips[0].ndim in (3, 4):
        rows = [_pixel_panels(clip) for clip in clips]
    elif clips[0].ndim == 2:
        rows = _vector_panels(clips)
    else:
        raise UsageError(f"a clip of shape {clips[0].shape} and {clips[0].dtype} cannot be drawn")
    description = PngImagePlugin.PngInfo()
    description.add_itxt("Description", "; ".join(captions))
    stream = io.BytesIO()
    _stacked(rows, captions).save(stream, "PNG", optimize=True, pnginfo=description)
    return stream.getvalue()


Panel = tuple[str, Image.Image]  # name and picture


def _stacked(rows: Sequence[Sequence[Panel]], captions: Sequence[str]) -> Image.Image:
    """Return all rows in one picture, with captions above rows and names below panels."""
    width, height = rows[0][0][1].size
    row_height = _CAPTION + height + 18 + _GAP
    size = (len(rows[0]) * (width + _GAP) + _GAP, len(rows) * row_height + _GAP)
    longest = max(_font(14).getlength(caption) for caption in captions)
    picture = Image.new("RGB", (max(size[0], int(longest) + 3 * _GAP), size[1]), _PAPER)
    draw = ImageDraw.Draw(picture)
    for index, (panels, caption) in enumerate(zip(rows, captions, strict=True)):
        y = _GAP + index * row_height
        draw.text((_GAP, y), caption.replace("−", "-"), _INK, _font(14))  # the font has no minus
        for column, (name, panel) in enumerate(panels):
            x = _GAP + column * (width + _GAP)
            picture.paste(panel, (x, y + _CAPTION))
            draw.text((x, y + _CAPTION + height + 2), name, _FAINT, _font(11))
    return picture


def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _pixel_panels(clip: UInt8[np.ndarray, "L height width ..."]) -> list[Panel]:
    length = len(clip)
    chosen = np.unique(np.linspace(0, length - 1, _PANELS).round().astype(int))
    frames = [(f"step {index + 1}", _enlarged(clip[index])) for index in chosen]
    return [(f"all {length} steps", _enlarged(_track(clip))), *frames]


def _track(clip: UInt8[np.ndarray, "L ..."]) -> UInt8[np.ndarray, "..."]:
    """Return, for each pixel, the value over time that is furthest from its median."""
    usual = np.median(clip, axis=0)
    furthest = np.abs(clip - usual).argmax(0, keepdims=True)
    return np.take_along_axis(clip, furthest, 0)[0]


def _enlarged(frame: UInt8[np.ndarray, "height width ..."]) -> Image.Image:
    """Return a frame as RGB of height `_SIDE`; small frames keep sharp pixels."""
    if frame.ndim == 3 and frame.shape[2] not in (1, 3):
        frame = frame[..., -1]  # neither grey nor RGB: show the last channel
    image = Image.fromarray(frame[..., 0] if frame.ndim == 3 and frame.shape[2] == 1 else frame)
    scale = _SIDE / image.height
    size = (max(round(image.width * scale), 1), _SIDE)
    kind = Image.Resampling.NEAREST if scale >= 2 else Image.Resampling.LANCZOS
    return image.convert("RGB").resize(size, kind)


def _vector_panels(clips: Sequence[Shaped[np.ndarray, "L D"]]) -> list[list[Panel]]:
    """Return a row for each clip: plots of the first dimensions over time."""
    shown = min(clips[0].shape[1], _PANELS + 1)
    every = np.stack(clips).astype(np.float64)
    low, high = np.nanmin(every, (0, 1)), np.nanmax(every, (0, 1))
    rows: list[list[Panel]] = []
    for clip in every:
        panels = [_plot(clip[:, d], low[d], high[d]) for d in range(shown)]
        rows.append([(f"obs[{d}] {low[d]:.2g} to {high[d]:.2g}", p) for d, p in enumerate(panels)])
    return rows


def _plot(values: Float[np.ndarray, " L"], low: float, high: float) -> Image.Image:
    """Return a small line plot, drawn four times larger and reduced for smooth lines."""
    fine = 4
    image = Image.new("RGB", (_SIDE * fine, _SIDE * fine), (246, 248, 250))
    draw = ImageDraw.Draw(image)
    room = 8 * fine
    span = _SIDE * fine - 2 * room
    if low < 0 < high:
        zero = room + span * (1 - (0 - low) / (high - low))
        draw.line([(0, zero), (_SIDE * fine, zero)], (216, 222, 228), fine)
    x = room + span * np.arange(len(values)) / max(len(values) - 1, 1)
    y = room + span * (1 - (values - low) / max(high - low, 1e-12))
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(b)]
    if len(points) > 1:
        draw.line(points, _LINE, 2 * fine, joint="curve")
    return image.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS)
