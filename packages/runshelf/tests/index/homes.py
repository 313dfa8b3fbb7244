"""Homes with runs in them, made in a moment."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CREATED = "2026-11-21T10:00:00.000+00:00"
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(number: int) -> str:
    """An id; those of larger numbers come later."""
    return "01ARZ3NDEKTSV4RRFFQ69G5" + "".join(
        LETTERS[(number >> shift) & 31] for shift in (10, 5, 0)
    )


def make_run(
    home: Path,
    number: int,
    *,
    events: Iterable[Mapping[str, Any]] | None = None,
    records: Iterable[Mapping[str, Any]] = (),
    settled: bool = True,
    **manifest: Any,
) -> Path:
    """A folder as a run leaves it: finished, after an hour, an hour ago."""
    folder = home / "runs" / ulid(number)
    folder.mkdir(parents=True)
    (folder / "lock").write_text("1")
    if events is None:
        events = [
            {"status": "started", "time": CREATED},
            {"status": "finished", "time": "2026-11-21T11:00:00.000+00:00"},
        ]
    write_lines(folder / "events.jsonl", events)
    if records:
        write_lines(folder / "metrics-log-1.jsonl", records)
    fields = {"schema": 1, "ulid": ulid(number), "created": CREATED, "command": "run"}
    fields |= {"config": {}, "seeds": [], "argv": ["python", "x.py"]} | manifest
    (folder / "run.json").write_text(json.dumps(fields))
    if settled:
        settle(folder)
    return folder


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def settle(folder: Path) -> None:
    """Let an hour pass for a folder."""
    then = time.time() - 3600
    for path in [*folder.iterdir(), folder]:
        os.utime(path, (then, then), follow_symlinks=False)
