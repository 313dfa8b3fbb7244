"""Creates homes with runs for tests, without running anything."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CREATED = "2026-11-21T10:00:00.000+00:00"
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(number: int) -> str:
    """Return an id; ids are in the order of the numbers."""
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
    """Create the folder of a run that took an hour and finished an hour ago."""
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
    """Set the time stamps of a folder and its files to an hour ago."""
    then = time.time() - 3600
    for path in [*folder.iterdir(), folder]:
        os.utime(path, (then, then), follow_symlinks=False)
