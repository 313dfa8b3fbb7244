"""Reads the files in which W&B keeps runs on disk (`run-ID.wandb`), without the service.

A file is a log of LevelDB: blocks of 32 KiB with parts of records, each with a CRC-32, its length
and whether it is a whole record, or the first, a middle or the last part of one. A record is a
message of protocol buffers. Sources: github.com/google/leveldb, `doc/log_format.md`, and
github.com/wandb/wandb, `wandb/proto/wandb_internal.proto`; checked with files of W&B 0.31.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import DamagedFile, UsageError
from runshelf.interop.protobuf import WireError, fields, raw, text
from runshelf.interop.tfrecord import LARGEST_RECORD, Damage
from runshelf.store.files import disk_errors
from runshelf.store.paths import is_file

MOST_FILES = 1_000
SUFFIX = ".wandb"

_MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 2**15
_HEADER = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
# Fields of a record, and of the messages in it.
_HISTORY, _CONFIG, _RUN = 2, 5, 17
_ITEM, _UPDATE, _CONFIG_OF_RUN, _DISPLAY_NAME = 1, 1, 4, 8
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16


@final
class WandbLog(NamedTuple):
    """What a run logged.

    Attributes:
        name: what the user calls it; empty if it has no name.
        config: its configuration.
        rows: the numbers of each call of `wandb.log`, by name; names of nested dictionaries are
            joined by dots, as on W&B's pages. `_step`, `_runtime` and `_timestamp` are among them.
        damage: records that were skipped.
    """

    name: str
    config: dict[str, Any]
    rows: list[dict[str, float]]
    damage: Damage


def find_wandb_files(path: Path) -> list[Path]:
    """Return the files of W&B at or below a path; links are not followed.

    Raises:
        UsageError: there are too many.
    """
    if is_file(path):
        return [path] if path.suffix == SUFFIX else []
    found = list[Path]()
    for folder, folders, names in os.walk(path, followlinks=False):
        folders.sort()
        files = (Path(folder) / name for name in sorted(names) if name.endswith(SUFFIX))
        found += [file for file in files if file.is_file() and not file.is_symlink()]
        if len(found) > MOST_FILES:
            raise UsageError(f"`{path}` has more than {MOST_FILES} files of W&B: name a subfolder")
    return found


def read_wandb(path: Path) -> WandbLog:
    """Return what a run logged, without damaged and incomplete records.

    Raises:
        DamagedFile: it is not a file of W&B.
        UserFacingError: it cannot be read.
    """
    with disk_errors(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read()
    if not data.startswith(_MAGIC):
        raise DamagedFile(f"`{path}` does not begin as a file of W&B does")
    log = WandbLog("", {}, [], Damage())
    for record in _records(data, log.damage):
        try:
            log = _with_record(log, record)
        except WireError as error:
            log.damage.add(f"a record cannot be read: {error}")
    return log


def _records(data: bytes, damage: Damage) -> Iterator[bytes]:
    """Yield the records of a log of LevelDB."""
    parts = list[bytes]()
    for kind, part in _parts(data, damage):
        if kind in (_WHOLE, _FIRST):
            parts = []
        elif not parts:
            continue  # the first part was damaged
        parts.append(part)
        if kind in (_WHOLE, _LAST):
            if sum(map(len, parts)) <= LARGEST_RECORD:
                yield b"".join(parts)
            parts = []


def _parts(data: bytes, damage: Damage) -> Iterator[tuple[int, bytes]]:
    at = len(_MAGIC)
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER.size:
            at += left  # zeros fill the block
            continue
        if at + _HEADER.size > len(data):
            damage.add(f"torn at byte {at}, in a header")
            return
        crc, length, kind = _HEADER.unpack_from(data, at)
        begin, end = at + _HEADER.size, at + _HEADER.size + length
        if end > len(data) and end - at <= left:
            damage.add(f"torn at byte {at}, within a record")
            return
        part = data[begin:end]
        sound = _WHOLE <= kind <= _LAST and end - at <= left
        if not sound or zlib.crc32(part, zlib.crc32(bytes([kind]))) != crc:
            damage.add(f"damaged at byte {at}: the checksum of a record is wrong")
            at += left  # its length may be wrong, too: go on with the next block
            continue
        yield kind, part
        at = end


def _with_record(log: WandbLog, record: bytes) -> WandbLog:
    """Return the log with what a record adds."""
    for number, value in fields(record):
        if number == _HISTORY:
            log.rows.append(_numbers(raw(value)))
        elif number == _CONFIG:
            log.config.update(_updates(raw(value)))
        elif number == _RUN:
            for part, content in fields(raw(value)):
                if part == _CONFIG_OF_RUN:
                    log.config.update(_updates(raw(content)))
                elif part == _DISPLAY_NAME:
                    log = log._replace(name=text(content))
    return log


def _numbers(message: bytes) -> dict[str, float]:
    """Return the numbers of one call of `wandb.log`; other values are left out."""
    found: dict[str, float] = {}
    for number, item in fields(message):
        if number == _ITEM:
            name, written = _named(raw(item))
            try:
                found[name] = float(written)
            except ValueError:
                continue
    return found


def _updates(message: bytes) -> dict[str, Any]:
    """Return what a message changes in the configuration."""
    found: dict[str, Any] = {}
    for number, item in fields(message):
        if number == _UPDATE:
            name, written = _named(raw(item))
            try:
                value = json.loads(written)
            except (ValueError, RecursionError):
                continue
            if not isinstance(value, float) or math.isfinite(value):
                found[name] = value
    return found


def _named(message: bytes) -> tuple[str, str]:
    """Return the name of an item, and its value as JSON."""
    key, nested, written = "", list[str](), ""
    for number, value in fields(message):
        if number == _KEY:
            key = text(value)
        elif number == _NESTED_KEY:
            nested.append(text(value))
        elif number == _VALUE_JSON:
            written = text(value)
    return ".".join(nested) or key, written
