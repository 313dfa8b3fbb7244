"""A run becomes files that others read: a TensorBoard logdir, CSV, JSON Lines."""

import csv
import json
import os
import socket
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from backflip.archive.checkpoint import disk_errors
from backflip.archive.foreign.events import image_event, scalar_event, version_event
from backflip.archive.metrics import read_metrics, to_json
from backflip.archive.run import Run
from backflip.archive.series import AXES, SEED
from backflip.core.errors import BackflipError, UsageError

Record = dict[str, Any]

_STEPS = ("step", "env_steps", "updates")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_run(run: Run, path: Path) -> int:
    """Write the metrics of a run to `path` and return how many records that are.

    A name that ends in `.csv` or `.jsonl` makes such a file; any other a folder with an event file
    of TensorBoard, in which numbers have 32 bits, and a folder below it for each seed.

    Raises:
        UsageError: there is something at `path` already.
        BackflipError: the run cannot be read, or the disk is full.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"there is something at `{path}` already: name another place")
    records = read_metrics(run.folder).records
    with disk_errors(path):
        if path.suffix == ".csv":
            _write_csv(path, records)
        elif path.suffix == ".jsonl":
            lines = (json.dumps(to_json(record), allow_nan=False) for record in records)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        else:
            _write_logdir(run, path, records)
    return len(records)


def _write_csv(path: Path, records: list[Record]) -> None:
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([_defused(name) for name in names])
        writer.writerows([_cell(record.get(name)) for name in names] for record in records)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return _defused(value)
    return json.dumps(to_json(value)) if isinstance(value, dict | list) else value


def _defused(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _write_logdir(run: Run, path: Path, records: list[Record]) -> None:
    by_seed: dict[Any, list[Record]] = {}
    for record in records:
        by_seed.setdefault(record.get(SEED), []).append(record)
    for seed, of_seed in by_seed.items():
        folder = path if seed is None else path / f"seed_{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        host = socket.gethostname().replace("/", "-")
        name = f"events.out.tfevents.{int(time.time())}.{host}.{os.getpid()}.0"
        with (folder / name).open("xb") as file:
            file.writelines(_events(run, of_seed))


def _events(run: Run, records: list[Record]) -> Iterator[bytes]:
    begun = _begun(run)
    yield version_event(begun)
    for position, record in enumerate(records):
        at = record.get("time", begun + float(record.get("seconds", 0.0)))
        step = int(next((record[axis] for axis in _STEPS if axis in record), position))
        metrics = {k: v for k, v in record.items() if k not in (*AXES, SEED)}
        numbers = [(k, float(v)) for k, v in metrics.items() if isinstance(v, int | float)]
        if numbers:
            yield scalar_event(float(at), step, numbers)
        for name, value in metrics.items():
            if isinstance(value, dict) and isinstance(value.get("image"), str):
                yield from _image(run, float(at), step, name, value["image"])


def _image(run: Run, at: float, step: int, name: str, file: str) -> Iterator[bytes]:
    from PIL import Image  # noqa: PLC0415  (runs with images only)

    path = run.folder / "media" / Path(file).name
    if not path.is_file():
        raise BackflipError(f"`{path}` is missing: restore it from a copy")
    with Image.open(path, formats=["PNG"]) as picture:
        size = {"height": picture.height, "width": picture.width}
        channels = len(picture.getbands())
    yield image_event(at, step, name, png=path.read_bytes(), **size, channels=channels)


def _begun(run: Run) -> float:
    try:
        return datetime.fromisoformat(run.manifest["created"]).timestamp()
    except (ValueError, OverflowError):
        return 0.0
