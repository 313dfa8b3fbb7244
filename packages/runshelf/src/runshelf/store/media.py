"""Logged arrays: images and clips become files named by their SHA-256, others statistics."""

import hashlib
import io
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image

from runshelf.errors import UsageError
from runshelf.store.writing import keep_file, make_folder

MOST_PIXELS = 2**28
MOST_IN_LISTS = 10**6
_MOST_LEVELS = 32
_NUMBERS = frozenset((int, float, bool))
Saved = dict[str, Any]


@final
class NotNumbers(UsageError):
    """A value that cannot be logged; `kind` is a short description of it."""

    def __init__(self, value: Any, kind: str, why: str = "give a number, text or an array") -> None:
        """Build the message from the value, its kind, and what to do."""
        super().__init__(f"{kind}, `{value!r:.60}`, cannot be logged: {why}")
        self.kind = kind


def as_array(value: Any) -> Shaped[np.ndarray, "..."]:
    """Convert a value of numpy, JAX, PyTorch or Pillow, or a list of these, to a numpy array.

    If a masked array has masked entries, the others are returned as a flat array.

    Raises:
        NotNumbers: the value is not an array of numbers.
    """
    if isinstance(value, np.ma.MaskedArray):
        return as_array(_unmasked(cast("Any", value)))
    if isinstance(value, Image.Image):
        value = value if value.mode in ("L", "RGB", "RGBA") else value.convert("RGBA")
    elif hasattr(value, "detach"):  # PyTorch, perhaps on a device and with a gradient
        value = value.detach().cpu()
        value = value.float() if "bfloat16" in str(value.dtype) else value
    elif value is None or isinstance(value, bytes | bytearray | Mapping | Set | complex):
        raise NotNumbers(value, _kind_of(value))
    try:
        array = np.asarray(_finite(value, _Room()))
        if array.dtype.kind == "V":  # the small floats of JAX
            array = array.astype(np.float32)
    except (ValueError, TypeError) as error:
        raise NotNumbers(value, _kind_of(value), str(error)) from error
    if array.dtype.kind not in "biuf":
        of = f" of {array.dtype}" if array.ndim and array.dtype.kind != "O" else ""
        raise NotNumbers(value, _kind_of(value) + of)
    return array


@final
class _Room:
    """How many values of lists may still be read: a sequence of a program may be endless."""

    def __init__(self) -> None:
        self.left = MOST_IN_LISTS

    def take(self, values: Iterable[Any]) -> list[Any]:
        """Return the values as a list.

        Raises:
            ValueError: there are more than fit.
        """
        found = list(itertools.islice(values, self.left + 1))
        self.left -= len(found)
        if self.left < 0:
            raise ValueError(f"more than {MOST_IN_LISTS} values: give an array")
        return found


def _finite(value: Any, room: _Room, depth: int = 0) -> Any:
    """Return a value with lists in the place of all sequences that numpy would iterate over.

    Raises:
        ValueError: they have too many values, or too many levels.
        TypeError: a mapping is in a list.
    """
    if hasattr(value, "__array__") or not _is_sequence(value):
        return value
    if depth > _MOST_LEVELS:
        raise ValueError(f"lists of more than {_MOST_LEVELS} levels")
    if isinstance(value, Mapping):
        raise TypeError("a mapping in a list")
    items = room.take(cast("Iterable[Any]", value))
    if _NUMBERS.issuperset(map(type, items)):
        return items
    return [_finite(item, room, depth + 1) for item in items]


def _is_sequence(value: Any) -> bool:
    """Return whether numpy takes a value for a sequence, and has no faster way to read it."""
    kind = type(value)
    if issubclass(kind, str | bytes | bytearray | memoryview):
        return False
    return hasattr(kind, "__len__") and hasattr(kind, "__getitem__")


def _unmasked(value: Any) -> Any:
    if not np.ma.getmaskarray(value).any():
        return np.ma.getdata(value)
    if not value.ndim:
        raise NotNumbers(value, "a masked number")
    return value.compressed()


def _kind_of(value: Any) -> str:
    """Return a short description of a value that cannot be logged."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return "a mapping as a value"
    if isinstance(value, list | tuple):
        return "a list that is not an array of numbers"
    return f"a value of type {type(value).__name__}"


def statistics(array: Shaped[np.ndarray, "..."]) -> dict[str, int | float]:
    """Return min, max, mean and std of the values that are not NaN, and the counts `n` and `nans`.

    The standard deviation is √(Σ(x - mean)² / n). If all values are NaN only counts are returned.
    """
    values = array.astype(np.float64).ravel()
    known = values[~np.isnan(values)]
    found: dict[str, int | float] = {}
    if len(known):
        with np.errstate(all="ignore"):
            found |= {"min": float(known.min()), "max": float(known.max())}
            found |= {"mean": float(known.mean()), "std": float(known.std())}
    found["n"] = len(values)
    if len(known) < len(values):
        found["nans"] = len(values) - len(known)
    return found


def saver_of(array: Shaped[np.ndarray, "..."]) -> Callable[[str], Saved] | None:
    """Return a function that saves a uint8 array as an image or a clip; None for other shapes.

    An image is (height, width) or (height, width, 3 or 4). A clip has one more axis in front.
    """
    if array.dtype != np.uint8 or array.ndim < 2 or 0 in array.shape:
        return None
    colours = array.shape[-1] in (3, 4) and array.ndim > 2
    if array.ndim - colours == 2:
        return lambda folder: save_image(folder, array)
    if array.ndim - colours == 3:
        return lambda folder: save_clip(folder, array, 30.0)
    return None


def save_image(folder: str, pixels: Any) -> Saved:
    """Write an image to the run's `folder` as PNG; return the value of its record.

    Raises:
        UsageError: the array is not an image.
        OSError: the file cannot be written.
    """
    array = _bytes(as_array(pixels))
    if not _is_picture(array):
        raise UsageError(
            f"an image is (height, width) or (height, width, 3 or 4), got {array.shape}"
        )
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG", compress_level=4)
    return {"image": _keep(folder, file.getvalue(), "png")}


def save_clip(folder: str, frames: Any, fps: int | float) -> Saved:
    """Write a clip to the run's `folder` as lossless animated WebP; return the value of its record.

    Raises:
        UsageError: the array is not a clip, or `fps` is out of range.
        OSError: the file cannot be written.
    """
    if isinstance(frames, Sequence):
        listed = cast("Sequence[Any]", frames)
        frames = np.stack([as_array(frame) for frame in listed]) if listed else np.zeros(0)
    array = _bytes(as_array(frames))
    if array.ndim not in (3, 4) or not len(array) or not _is_picture(array[0]):
        raise UsageError(
            "a clip is (frames, height, width) or (frames, height, width, 3 or 4), "
            f"got {array.shape}"
        )
    if not 0.1 <= fps <= 1000:
        raise UsageError(f"a clip has 0.1 to 1000 frames per second, got {fps}")
    # WebP has no grey mode.
    mode = "RGBA" if array.shape[3:] == (4,) else "RGB"
    first, *others = (Image.fromarray(frame).convert(mode) for frame in array)
    file = io.BytesIO()
    first.save(
        file,
        "WEBP",
        save_all=True,
        append_images=others,
        duration=round(1000 / fps),
        loop=0,
        lossless=True,
        exact=True,
        method=0,
        quality=20,
    )
    about = {"frames": len(array), "fps": float(fps)}
    return {"clip": _keep(folder, file.getvalue(), "webp"), **about}


def _is_picture(array: UInt8[np.ndarray, "..."]) -> bool:
    small = array.size <= MOST_PIXELS and max(array.shape, default=0) <= 16_383
    grey_or_colour = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    return small and 0 not in array.shape and grey_or_colour


def _bytes(array: Shaped[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    """Return pixels as bytes; floats are brightness from 0 to 1."""
    if array.size > MOST_PIXELS:
        raise UsageError(
            f"pixels of shape {array.shape}: at most {MOST_PIXELS} numbers are allowed"
        )
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float64)
    if array.dtype.kind != "f" or not ((values >= 0) & (values <= 1)).all():
        raise UsageError(f"pixels are uint8, or floats from 0 to 1; got {array.dtype}")
    return np.rint(values * 255).astype(np.uint8)


def _keep(folder: str, data: bytes, suffix: str) -> str:
    """Write `data` to a file named by its SHA-256, unless it exists; return the path."""
    name = f"media/{hashlib.sha256(data).hexdigest()}.{suffix}"
    make_folder(Path(folder), "media")
    keep_file(Path(folder), name, data)
    return name
