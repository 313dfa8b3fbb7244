"""Writes files as W&B does."""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runshelf.interop.protobuf import field

BLOCK = 2**15
HEADER = 7


def wandb_file(
    path: Path, rows: Iterable[Mapping[str, Any]], name: str = "", **config: Any
) -> Path:
    """Write a file of a run, and return its path."""
    records = [run_record(name, config), *(history_record(row) for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(in_blocks(records))
    return path


def run_record(name: str, config: Mapping[str, Any]) -> bytes:
    updates = b"".join(field(1, item(key, value, nested=False)) for key, value in config.items())
    return field(17, field(1, "abc") + field(4, updates) + field(8, name))


def history_record(row: Mapping[str, Any]) -> bytes:
    items = b"".join(field(1, item(key, value, nested=True)) for key, value in row.items())
    return field(1, 7) + field(2, items)


def item(key: str, value: Any, *, nested: bool) -> bytes:
    """Return an item. Newer versions of W&B write the names of metrics as nested keys."""
    names = b"".join(field(2, part) for part in key.split(".")) if nested else field(1, key)
    return names + field(16, json.dumps(value))


def in_blocks(records: Iterable[bytes]) -> bytes:
    """Return records as a log of LevelDB."""
    data = bytearray(b":W&B\xe1\xbe\x00")
    for record in records:
        rest, is_first = record, True
        while rest or is_first:
            left = BLOCK - len(data) % BLOCK
            if left < HEADER:
                data += bytes(left)
                continue
            part, rest = rest[: left - HEADER], rest[left - HEADER :]
            kind = (1 if is_first else 4) if not rest else (2 if is_first else 3)
            crc = zlib.crc32(part, zlib.crc32(bytes([kind])))
            data += struct.pack("<IHB", crc, len(part), kind) + part
            is_first = False
    return bytes(data)
