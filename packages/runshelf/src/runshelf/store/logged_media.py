"""Finds the images and clips of a run in its metric records."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from runshelf.store.metrics import SEED, read_written, writers
from runshelf.store.records import Record
from runshelf.store.series import AXES

_MEDIA_FILE = re.compile(r"media/[0-9a-f]{64}\.(?:png|webp)")


class Media(NamedTuple):
    """An image or a clip of a run.

    Attributes:
        key: the name it was logged under.
        kind: `image` or `clip`.
        path: the file, which may be missing.
        x: the axes of its record.
        seed: the seed, if the record has one.
    """

    key: str
    kind: Literal["image", "clip"]
    path: Path
    x: dict[str, float]
    seed: int | None


def media(folder: Path) -> list[Media]:
    """Return the images and clips of the run in `folder`, in the order recorded.

    Paths outside of the run's `media/` are left out.

    Raises:
        UserFacingError: a file cannot be read.
    """
    batches = (read_written(folder, writer).batch for writer in writers(folder))
    others = (record for batch in batches for _, record in sorted(batch.others.items()))
    return [found for record in others if record for found in _media_of(folder, record)]


def _media_of(folder: Path, record: Record) -> Iterator[Media]:
    x = {axis: float(record[axis]) for axis in AXES if isinstance(record.get(axis), int | float)}
    seed = record.get(SEED) if isinstance(record.get(SEED), int) else None
    for key, value in record.items():
        for kind in ("image", "clip"):
            path: Any = value.get(kind) if isinstance(value, dict) else None
            if isinstance(path, str) and _MEDIA_FILE.fullmatch(path):
                yield Media(key, kind, folder / path, x, seed)
