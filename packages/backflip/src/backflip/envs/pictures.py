"""Pictures as bytes: small enough to keep one for every env step that a clip may show.

A picture is a PNG. One of more than `MOST_BYTES`, such as a photograph, is a lossy WebP instead.
Arrays of pictures are of type `object`, one `bytes` each; empty bytes mean that there is none.
"""

import io
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from backflip.envs.views.view import HEIGHT, WIDTH

MOST_BYTES = 12_288  # of a PNG
QUALITY = 80  # of a WebP
LARGEST_SIDE = 8_192  # pixels of a frame that an environment draws
NONE = b""


class NoPictureError(Exception):
    """What `render()` returned is not a picture."""


def encoded(frame: UInt8[np.ndarray, "H W 3"]) -> bytes:
    """Return a frame as a picture, scaled down to at most 320 x 240 pixels."""
    image = Image.fromarray(frame)
    scale = min(WIDTH / image.width, HEIGHT / image.height, 1.0)
    size = max(round(image.width * scale), 1), max(round(image.height * scale), 1)
    if size != image.size:
        image = image.resize(size, Image.Resampling.HAMMING)
    exact = _saved(image, "PNG", compress_level=1)
    return exact if len(exact) <= MOST_BYTES else _saved(image, "WEBP", quality=QUALITY, method=0)


def are_pictures(scene: Any) -> TypeGuard[np.ndarray]:
    """Return whether the scenes of a record are pictures, not numbers."""
    return isinstance(scene, np.ndarray) and scene.dtype == np.object_


def packed(pictures: Sequence[bytes]) -> UInt8[np.ndarray, "L B"] | None:
    """Return pictures as one array, each padded with zeros; None if one is missing."""
    if not all(pictures):
        return None
    width = max(map(len, pictures))
    padded = b"".join(picture.ljust(width, b"\0") for picture in pictures)
    return np.frombuffer(padded, np.uint8).reshape(len(pictures), width)


def unpacked(pictures: UInt8[np.ndarray, "L B"]) -> UInt8[np.ndarray, "L H W 3"]:
    """Return the frames of packed pictures, all in the size of the first."""
    images = [Image.open(io.BytesIO(picture.tobytes())).convert("RGB") for picture in pictures]
    size = images[0].size
    return np.stack([np.asarray(one if one.size == size else one.resize(size)) for one in images])


def frame_of(drawn: Any) -> UInt8[np.ndarray, "H W 3"]:
    """Return what `render()` returned as a colour frame; of a list, the last frame.

    Raises:
        NoPictureError: it is not a picture; the message begins with "returned".
    """
    if isinstance(drawn, list | tuple) and drawn and np.ndim(drawn[0]) > 1:
        drawn = drawn[-1]
    if drawn is None or isinstance(drawn, str | bytes | list | tuple):
        raise NoPictureError(f"returned {_kind(drawn)}, expected uint8 (height, width, 3)")
    frame = np.asarray(drawn)
    if frame.ndim == 2:
        frame = np.repeat(frame[..., None], 3, axis=-1)
    ends = frame.shape[2:] in ((1,), (3,), (4,))
    whole = frame.dtype.kind in "iu" and frame.size and frame.min() >= 0 and frame.max() <= 255
    if not (ends and whole) or max(frame.shape[:2]) > LARGEST_SIDE:
        got = f"{frame.dtype} of shape {frame.shape}"
        raise NoPictureError(f"returned {got}, expected uint8 of shape (height, width, 3)")
    colours = np.repeat(frame, 3, axis=-1) if frame.shape[2] == 1 else frame[..., :3]
    return np.ascontiguousarray(colours, np.uint8)


def _saved(image: Image.Image, kind: str, **settings: int) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **settings)
    return file.getvalue()


def _kind(drawn: object) -> str:
    return "None" if drawn is None else f"a {type(drawn).__name__}"
