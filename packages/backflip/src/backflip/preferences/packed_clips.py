"""Unpacks clips, which may come from another person: safetensors, compressed by zlib. No JAX."""

import zlib
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError

from backflip.core.checkpoint import from_safetensors

LARGEST_CLIP = 128 * 2**20  # bytes after decompression


class BadClipError(Exception):
    """A packed clip is invalid; the message is a predicate, such as "has NaN"."""


class Unpacked(NamedTuple):
    """A clip as safetensors bytes, and its arrays."""

    content: bytes
    arrays: dict[str, np.ndarray]


def unpack(packed: bytes) -> Unpacked:
    """Return a clip; at most `LARGEST_CLIP` bytes are decompressed.

    Raises:
        BadClipError: it cannot be unpacked.
    """
    content = _inflated(packed)
    try:
        return Unpacked(content, from_safetensors(content))
    except SafetensorError as error:
        raise BadClipError(f"is not safetensors ({error})") from error


def _inflated(packed: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, LARGEST_CLIP)
    except zlib.error as error:
        raise BadClipError(f"cannot be decompressed ({error})") from error
    if len(content) == LARGEST_CLIP and not stream.eof:
        raise BadClipError(f"is larger than {LARGEST_CLIP} bytes")
    if not stream.eof or stream.unused_data:
        raise BadClipError("cannot be decompressed (wrong length)")
    return content
