"""Checkpoints: named arrays in one safetensors file, written atomically.

A checkpoint is up to three files. `x.safetensors` is the newest complete one,
`x.previous.safetensors` the one before it, `x.safetensors.partial` the one being written. At every
moment at least one of them is complete, and a SHA-256 over the whole file shows which. So a kill at
any instruction, or a damaged newest file, costs at most one interval of work.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole
from runshelf.store.writing import partial_of, replace_file

CHECKPOINT = "checkpoint.safetensors"  # inside a run's folder

_SEAL_KEY = "backflip.sha256"
# A quote inside a JSON string is escaped, so these bytes can only be the metadata key itself.
_SEAL_MARK = f'"{_SEAL_KEY}":"'.encode()
_BLANK_SEAL = b"0" * 64
_HEADER_LENGTH_BYTES = 8
# safetensors writes a few more (bfloat16, float8) that its numpy reader cannot read back.
_DTYPES = frozenset({"bool", "float16", "float32", "float64", "complex64"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class LoadedArrays(NamedTuple):
    """The contents of a checkpoint.

    Attributes:
        arrays: the saved arrays by name, in little-endian order, read-only.
        metadata: the saved metadata.
        note: one line for the user if the newest file is not usable, else None.
    """

    arrays: dict[str, np.ndarray]
    metadata: dict[str, str]
    note: str | None


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Replace the checkpoint at `path`; it survives a kill and a power cut.

    Args:
        path: the file, by convention `checkpoint.safetensors` or `policy.safetensors`.
        arrays: any shape, zero-size and 0-d included; the dtypes numpy and safetensors share.
        metadata: strings kept in the file's header.

    Raises:
        UsageError: an array's dtype or a metadata key cannot be stored.
        UserFacingError: the disk is full or the file cannot be written; the old one is intact.
    """
    if _SEAL_KEY in metadata:
        raise UsageError(f"metadata key `{_SEAL_KEY}` is reserved for the checksum: rename it")
    sealed = _seal(to_safetensors(arrays, {**metadata, _SEAL_KEY: _BLANK_SEAL.decode()}))
    replace_file(path.parent, path.name, sealed, previous=_previous(path).name)


def load_arrays(path: Path) -> LoadedArrays:
    """Return the newest complete checkpoint saved at `path`.

    Raises:
        DamagedFile: there is no checkpoint, or all files are damaged.
    """
    damage: list[str] = []
    for candidate in [path, *(other for other in _others(path) if os.path.lexists(other))]:
        try:
            arrays, metadata = _unseal(_read(candidate))
        except (_UnusableError, SafetensorError) as error:
            damage.append(f"`{candidate.name}` {error}")
        else:
            note = f"{'; '.join(damage)}: using `{candidate.name}` instead" if damage else None
            return LoadedArrays(arrays, metadata, note)
    if not has_checkpoint(path):
        raise DamagedFile(
            f"there is no checkpoint `{path}`: start the run again from the beginning"
        )
    raise DamagedFile(
        f"no usable checkpoint in `{path.parent}` ({'; '.join(damage)}): "
        "restore one from a copy, or start the run again from the beginning"
    )


def has_checkpoint(path: Path) -> bool:
    """Return whether a checkpoint was ever completely saved at `path`."""
    return any(map(os.path.lexists, (path, _previous(path))))


def to_safetensors(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """Return `arrays` as safetensors bytes, without a checksum; equal contents, equal bytes.

    Raises:
        UsageError: arrays have dtypes that cannot be stored; all of them are named.
    """
    wrong = [f"`{name}` is {a.dtype}" for name, a in arrays.items() if a.dtype.name not in _DTYPES]
    if wrong:
        raise UsageError(f"arrays cannot be stored: {', '.join(wrong)}; use {sorted(_DTYPES)}")
    # safetensors reads raw memory: a transposed array would be stored scrambled.
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # None, since safetensors 0.8.0 writes an unreadable header for no arrays and empty metadata.
    return _with_metadata_in_order(safetensors.numpy.save(plain, dict(metadata) or None))


def _with_metadata_in_order(data: bytes) -> bytes:
    """Return safetensors bytes with sorted metadata, which the library writes in random order."""
    end = _HEADER_LENGTH_BYTES + int.from_bytes(data[:_HEADER_LENGTH_BYTES], "little")
    header = json.loads(data[_HEADER_LENGTH_BYTES:end])
    if len(header.get("__metadata__", ())) < 2:
        return data
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(_HEADER_LENGTH_BYTES, "little"), text, data[end:]])


def from_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays in safetensors bytes.

    Raises:
        SafetensorError: the bytes are not safetensors, or NumPy lacks a dtype of theirs.
    """
    try:
        return safetensors.numpy.load(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SafetensorError(f"not arrays of NumPy: {error}") from error


class _UnusableError(Exception):
    """The reason why a file is not a usable checkpoint."""


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def _others(path: Path) -> list[Path]:
    """Return the other files that may hold a complete checkpoint, newest first.

    A complete partial file is newer than the previous one: a kill came just before the rename.
    """
    return [path.with_name(partial_of(path.name)), _previous(path)]


def _read(path: Path) -> bytes:
    try:
        data = read_whole(path.parent, path.name)
    except DamagedFile as error:
        why = "cannot be read: Is a directory" if path.is_dir() else "is not a regular file"
        raise _UnusableError(why) from error
    except UserFacingError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        raise _UnusableError(f"cannot be read: {reason}") from error
    if data is None:
        raise _UnusableError("is missing")
    return data


def _seal_position(data: bytes) -> int:
    end = _HEADER_LENGTH_BYTES + int.from_bytes(data[:_HEADER_LENGTH_BYTES], "little")
    mark = data.find(_SEAL_MARK, _HEADER_LENGTH_BYTES, end)
    if mark < 0:
        raise _UnusableError("is not a checkpoint of backflip, or its header is damaged")
    return mark + len(_SEAL_MARK)


def _with_seal(data: bytes, seal: bytes) -> bytes:
    start = _seal_position(data)
    return data[:start] + seal + data[start + len(seal) :]


def _seal(data: bytes) -> bytes:
    """Return `data` with the checksum of all its bytes (the seal itself blank) in the header."""
    return _with_seal(data, hashlib.sha256(data).hexdigest().encode())


def _unseal(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    blank = _with_seal(data, _BLANK_SEAL)
    if _seal(blank) != data:
        raise _UnusableError("is damaged: its checksum does not match")
    header_end = _HEADER_LENGTH_BYTES + int.from_bytes(data[:_HEADER_LENGTH_BYTES], "little")
    arrays = from_safetensors(data)  # which checks the header
    metadata: dict[str, str] = parse_record(data[_HEADER_LENGTH_BYTES:header_end])["__metadata__"]
    del metadata[_SEAL_KEY]
    return arrays, metadata
