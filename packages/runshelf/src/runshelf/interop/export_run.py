"""Exports a run's metrics as a TensorBoard logdir, CSV or JSON Lines."""

import csv
import io
import json
import os
import shutil
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from runshelf.csv_cells import csv_cell
from runshelf.errors import UsageError, UserFacingError
from runshelf.interop.event_files import image_event, scalar_event, version_event
from runshelf.received_json import finite
from runshelf.store.columns import EXACT
from runshelf.store.files import disk_errors
from runshelf.store.metrics import SEED, read_metrics
from runshelf.store.opening import read_whole
from runshelf.store.paths import exists, is_folder
from runshelf.store.records import to_json
from runshelf.store.run import Run
from runshelf.store.series import NOT_METRICS

Record = dict[str, Any]

# What the step of an event is, best first: env steps are comparable between programs.
_STEPS = ("env_steps", "step", "updates")


def export_run(run: Run, path: Path) -> int:
    """Write the metrics of a run to `path`, and return the number of records.

    `.csv` and `.jsonl` select these formats. Any other name makes a folder with a TensorBoard event
    file of 32-bit numbers, and a subfolder for each seed. The output is written under a temporary
    name and renamed at the end, so an error leaves nothing.

    Raises:
        UsageError: `path` exists and is not an empty folder.
        UserFacingError: the run cannot be read, or the disk is full.
    """
    if exists(path) and (not is_folder(path) or any(path.iterdir())):
        raise UsageError(f"`{path}` already exists: choose another path")
    records = read_metrics(run.folder).records
    with disk_errors(path), _renamed_at_end(path) as partial:
        if path.suffix == ".csv":
            _write_csv(partial, records)
        elif path.suffix == ".jsonl":
            with partial.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(to_json(r), allow_nan=False) + "\n" for r in records)
        else:
            partial.mkdir(parents=True)
            _write_logdir(run, partial, records)
    return len(records)


@contextmanager
def _renamed_at_end(path: Path) -> Generator[Path, None, None]:
    """Yield a temporary path, renamed to `path` at the end and removed after an error."""
    target = path.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.partial")
    try:
        yield partial
        partial.rename(target)
    except BaseException:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)
        raise


def _write_csv(path: Path, records: list[Record]) -> None:
    names = list(dict.fromkeys(name for record in records for name in record))
    # Lone surrogates, which UTF-8 cannot encode, are escaped.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([csv_cell(name) for name in names])
        writer.writerows([_cell(record.get(name)) for name in names] for record in records)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return csv_cell(value)
    return json.dumps(to_json(value)) if isinstance(value, dict | list) else value


def _write_logdir(run: Run, path: Path, records: list[Record]) -> None:
    """Write event files, one folder for each seed."""
    by_seed: dict[int | None, list[Record]] = {}
    for record in records:
        seed = record.get(SEED)  # a text is not used, because it could be a path
        is_seed = isinstance(seed, int) and abs(seed) <= EXACT
        by_seed.setdefault(seed if is_seed else None, []).append(record)
    for seed, of_seed in by_seed.items():
        folder = path if seed is None else path / f"seed_{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        host = socket.gethostname().replace("/", "-")
        name = f"events.out.tfevents.{int(time.time())}.{host}.{os.getpid()}.0"
        with (folder / name).open("xb") as file:
            file.writelines(_events(run, of_seed))


def _events(run: Run, records: list[Record]) -> Iterator[bytes]:
    created = _created_at(run)
    yield version_event(created)
    axes = _axes(records)
    for position, record in enumerate(records):
        numbers = {k: float(v) for k, v in record.items() if isinstance(v, int | float)}
        at = numbers.get("time", created + numbers.get("seconds", 0.0))
        by_step: dict[int, list[tuple[str, float]]] = {}
        for name, value in record.items():
            if name in NOT_METRICS:
                continue
            steps = (int(record[a]) for a in axes[name] if finite(record.get(a)) is not None)
            step = next(steps, position)
            if name in numbers:
                by_step.setdefault(step, []).append((name, numbers[name]))
            elif isinstance(value, dict) and isinstance(value.get("image"), str):
                yield from _image(run, at, step, name, value["image"])
        for step, scalars in by_step.items():
            yield scalar_event(at, step, scalars)


def _axes(records: list[Record]) -> dict[str, list[str]]:
    """Return for each metric the axes that give its step, best first.

    It is one axis if all records of the metric have it: steps of two axes would be mixed otherwise.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for record in records:
        here = [axis for axis in _STEPS if finite(record.get(axis)) is not None]
        for name in record:
            every, some = found.get(name, (here, []))
            every = [axis for axis in every if axis in here]
            found[name] = every, [axis for axis in _STEPS if axis in (*some, *here)]
    return {name: every[:1] or some for name, (every, some) in found.items()}


def _image(run: Run, at: float, step: int, name: str, file: str) -> Iterator[bytes]:
    from PIL import Image  # noqa: PLC0415  (needed for images only)

    path = f"media/{Path(file).name}"
    png = read_whole(run.folder, path)
    if png is None:
        raise UserFacingError(f"`{run.folder / path}` is missing: restore it from a copy")
    with Image.open(io.BytesIO(png), formats=["PNG"]) as picture:
        size = {"height": picture.height, "width": picture.width}
        channels = len(picture.getbands())
    yield image_event(at, step, name, png=png, **size, channels=channels)


def _created_at(run: Run) -> float:
    try:
        return datetime.fromisoformat(run.manifest["created"]).timestamp()
    except (ValueError, OverflowError):
        return 0.0
