"""Notices lost labels: a checkpoint keeps count and hash of the labels up to it. Needs no JAX.

Labels are only added, so the file of a run begins with everything that its checkpoint counted. A
file that does not was emptied, cut or swapped, or copied without its write-ahead log. Labels that
came after the checkpoint are not an error.
"""

import hashlib
import json
import math
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final

from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.preferences.label_file import LABELS, LabelFile
from runshelf.errors import DamagedFile, UsageError

_KEY = "labels"  # in the metadata of a checkpoint
_QUERIES = """
    SELECT q.id, q.seed, q.asked_at, q.repeats, q.origin, l.env_steps, l.arrays, r.arrays
    FROM queries q JOIN clips l ON l.id = q.left_clip JOIN clips r ON r.id = q.right_clip
    WHERE q.id > ? ORDER BY q.id LIMIT ?"""
_ANSWERS = """
    SELECT id, query, answer, undoes, replaces, who, at, seconds, attempt FROM labels
    WHERE id > ? ORDER BY id LIMIT ?"""
_HASHED = 3  # the first version of label files with everything that is hashed
_ROWS = 64  # read at once; a row of queries has two clips


class KeptLabels(NamedTuple):
    """The queries and answers of a run at one moment.

    Attributes:
        queries: the number of queries.
        answers: the number of answers, undos included.
        sha256: the hash of both, with the clips of the queries.
    """

    queries: int
    answers: int
    sha256: str

    def metadata(self) -> dict[str, str]:
        """Return the metadata of a checkpoint that keeps these numbers."""
        return {_KEY: json.dumps(self._asdict())}


@final
class LabelHash:
    """Counts and hashes the queries and answers of a label file, in the order of their ids.

    Each row is read once: a later call continues after the rows of the call before.
    """

    def __init__(self, file: LabelFile) -> None:
        self._queries, self._answers = _RowHash(file, _QUERIES), _RowHash(file, _ANSWERS)

    def first(self, queries: int | float = math.inf, answers: int | float = math.inf) -> KeptLabels:
        """Return what the file has in the first rows, at most so many; by default in all."""
        # Answers first: a query added meanwhile is hashed now or later, its answer never before it.
        answered, asked = self._answers.first(answers), self._queries.first(queries)
        both = hashlib.sha256(asked + answered).hexdigest()
        return KeptLabels(self._queries.count, self._answers.count, both)


class _RowHash:
    def __init__(self, file: LabelFile, select: str) -> None:
        self._file, self._select = file, select
        self._hash, self._newest, self.count = hashlib.sha256(), 0, 0

    def first(self, most: int | float) -> bytes:
        while rows := self._file.rows(
            self._select, (self._newest, int(min(_ROWS, most - self.count)))
        ):
            for row in rows:
                self._hash.update(b"".join(map(_encoded, row)))
            self._newest, self.count = rows[-1][0], self.count + len(rows)
        return self._hash.digest()


def _encoded(value: object) -> bytes:
    """Return a value with its kind and length, so that no two rows have the same bytes."""
    data = value if isinstance(value, bytes) else repr(value).encode()
    return b"%s %d " % (type(value).__name__.encode(), len(data)) + data


def kept_with_checkpoint(run_folder: Path) -> KeptLabels | None:
    """Return what the newest usable checkpoint of a run counted; None if none did."""
    with suppress(DamagedFile):
        return _kept_in(load_arrays(run_folder / CHECKPOINT).metadata)
    return None


def refuse_lost_labels(run_folder: Path) -> None:
    """Refuse a run that has lost labels.

    Raises:
        UsageError: it has no label file, and no checkpoint that counted labels.
        DamagedFile: labels that its checkpoint counted are missing or differ, or the label file
            is missing, empty or damaged; the message says how to go on.
    """
    kept = kept_with_checkpoint(run_folder)  # read first: the run may be in progress
    if kept is None and not os.path.lexists(run_folder / LABELS):
        raise UsageError(
            f"`{run_folder}` has no labels, since it has no `{LABELS}`: choose a run that has "
            f"labels; if this run had some, restore `{LABELS}` from a copy"
        )
    with LabelFile.open_to_read(run_folder / LABELS) as file:
        found = None if kept is None else _found(file, kept)
    if kept is not None and found != kept:
        raise DamagedFile(_lost(run_folder, kept, found))


def _found(file: LabelFile, kept: KeptLabels) -> KeptLabels | None:
    """Return what a file has of the labels that a checkpoint counted; None for an older file."""
    return LabelHash(file).first(kept.queries, kept.answers) if file.version() >= _HASHED else None


def _lost(folder: Path, kept: KeptLabels, found: KeptLabels | None) -> str:
    """Return the message: what is missing, and how to go on."""
    path, left = folder / LABELS, found or KeptLabels(0, 0, "")
    counts = [
        (kept.answers - left.answers, kept.answers, "answers"),
        (kept.queries - left.queries, kept.queries, "queries"),
    ]
    missing = " and ".join(f"{lost} of {total} {what}" for lost, total, what in counts if lost)
    what = f"has lost {missing} that" if missing else "has other labels than"
    name = shlex.quote(str(folder))
    return (
        f"`{path}` {what} the checkpoint of its run counted: restore `{LABELS}`, and "
        f"`{LABELS}-wal` if there is one, from a copy; or save what is left with "
        f"`backflip labels export {name} left.jsonl --incomplete`, and start a new run "
        "with --labels-from left.jsonl"
    )


def _kept_in(metadata: Mapping[str, str]) -> KeptLabels | None:
    """Return what a checkpoint counted; None for a checkpoint from before 2026-11-23."""
    with suppress(KeyError, ValueError, TypeError, RecursionError):
        kept = KeptLabels(**json.loads(metadata[_KEY]))
        return KeptLabels(int(kept.queries), int(kept.answers), str(kept.sha256))
    return None
