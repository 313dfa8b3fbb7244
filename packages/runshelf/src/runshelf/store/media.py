"""Logged arrays: images and clips as files named by their content, others as statistics."""

import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image

from runshelf.errors import UsageError

MOST_PIXELS = 2**28
Saved = dict[str, Any]


@final
class NotNumbers(UsageError):
    """A value that cannot be logged, and what is wrong with it in a word or two."""

    def __init__(self, value: Any, kind: str, why: str = "give a number, text or an array") -> None:
        """Say that `value` cannot be logged: it is of this kind."""
        super().__init__(f"{kind}, `{value!r:.60}`, cannot be logged: {why}")
        self.kind = kind


def as_array(value: Any) -> Shaped[np.ndarray, "..."]:
    """Return an array of numbers: of numpy, JAX, PyTorch, Pillow, or a list of such.

    Of a masked array, all that is not masked, one after the other, if anything is masked.

    Raises:
        NotNumbers: it is none.
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
        array = np.asarray(value)
        if array.dtype.kind == "V":  # the small floats of JAX
            array = array.astype(np.float32)
    except (ValueError, TypeError) as error:
        raise NotNumbers(value, _kind_of(value), str(error)) from error
    if array.dtype.kind not in "biuf":
        of = f" of {array.dtype}" if array.ndim and array.dtype.kind != "O" else ""
        raise NotNumbers(value, _kind_of(value) + of)
    return array


def _unmasked(value: Any) -> Any:
    if not np.ma.getmaskarray(value).any():
        return np.ma.getdata(value)
    if not value.ndim:
        raise NotNumbers(value, "a masked number")
    return value.compressed()


def _kind_of(value: Any) -> str:
    """Return in a word or two what a value is that cannot be logged."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return "a mapping as a value"
    if isinstance(value, list | tuple):
        return "a list that is no array of numbers"
    return f"a value of type {type(value).__name__}"


def statistics(array: Shaped[np.ndarray, "..."]) -> dict[str, int | float]:
    """Return what is logged of an array: min, max, mean and std of what is not NaN, and counts.

    The standard deviation is that of the values, √(Σ(x - mean)² / n). An array without any value
    has only its counts.
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
    """Return what saves an array of bytes as the image or clip that its shape says it is, or None.

    An image is (height, width) or (height, width, 3 or 4), a clip has one axis more in front.
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
    """Keep an image in the run's `folder` as PNG and return what its record says.

    Raises:
        UsageError: it is no image.
        OSError: it cannot be written.
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
    """Keep a clip in the run's `folder` as animated WebP without loss; return what its record says.

    Raises:
        UsageError: it is no clip, or no number of frames per second.
        OSError: it cannot be written.
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
    # WebP has no grey; what is transparent keeps its colours all the same.
    mode = "RGBA" if array.shape[3:] == (4,) else "RGB"
    first, *others = (Image.fromarray(frame).convert(mode) for frame in array)
    file = io.BytesIO()
    first.save(
        *(file, "WEBP"),
        **{"save_all": True, "append_images": others, "duration": round(1000 / fps), "loop": 0},
        **{"lossless": True, "exact": True, "method": 0, "quality": 20},
    )
    about = {"frames": len(array), "fps": float(fps)}
    return {"clip": _keep(folder, file.getvalue(), "webp"), **about}


def _is_picture(array: UInt8[np.ndarray, "..."]) -> bool:
    small = array.size <= MOST_PIXELS and max(array.shape, default=0) <= 16_383
    return small and 0 not in array.shape and _is_picture_shape(array.shape)


def _is_picture_shape(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))


def _bytes(array: Shaped[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    """Return pixels as bytes; floats are brightness from 0 to 1."""
    if array.size > MOST_PIXELS:
        raise UsageError(f"pixels of shape {array.shape}: at most {MOST_PIXELS} numbers are kept")
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float64)
    if array.dtype.kind != "f" or not ((values >= 0) & (values <= 1)).all():
        raise UsageError(f"pixels are uint8, or floats from 0 to 1; got {array.dtype}")
    return np.rint(values * 255).astype(np.uint8)


def _keep(folder: str, data: bytes, suffix: str) -> str:
    """Write `data` under the name of its content, unless it is there; return the path."""
    name = f"media/{hashlib.sha256(data).hexdigest()}.{suffix}"
    path = Path(folder) / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.partial")
        try:
            partial.write_bytes(data)
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
    return name
