"""Labels out of a run and into another one, by way of a file or straight from the run's folder.

What a file of labels looks like is in `backflip.preferences.label_lines`. No JAX here.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from backflip.preferences.label_file import LABELS, LabelFile
from backflip.preferences.label_lines import (
    BadClipError,
    ImportedLabel,
    described,
    read_lines,
    unpack,
    write_lines,
)
from backflip.preferences.labels import AnsweredElsewhere, LabelStore
from runshelf.errors import UsageError

Kind = tuple[tuple[int, ...], np.dtype]  # of an array in a clip: shape without the length, dtype
TRAINED_ON = ("obs", "action", "next_obs", "lived")  # arrays that clips must have alike


def export_labels(store: LabelStore, path: Path) -> int:
    """Write every answer in force to `path`, whole or not at all; return how many there are.

    Raises:
        UsageError: the name ends in neither `.jsonl` nor `.csv`.
        DamagedFile: a clip in the store cannot be decoded.
        UserFacingError: the file cannot be written.
    """
    labels = list(_answered(store.file))
    write_lines(path, labels)
    return len(labels)


def read_labels(path: Path) -> list[ImportedLabel]:
    """Return the labels in a file that `export_labels`, or anybody, wrote.

    Raises:
        UsageError: something in it is not as it should be; says in which line and column.
    """
    labels = read_lines(path)
    if not labels:
        raise UsageError(f"`{path}` holds no labels: expected one line for each")
    return labels


def labels_of_run(run_folder: Path) -> list[ImportedLabel]:
    """Return the answers in force of a run, of all its seeds; the run may go on meanwhile.

    Raises:
        UsageError: the folder has no labels.
        DamagedFile: they are damaged.
    """
    path = run_folder / LABELS
    if not path.is_file():
        raise UsageError(f"`{run_folder}` has no labels: it has no `{LABELS}`, name a run that has")
    with LabelFile.open_to_read(path) as file:
        return list(_answered(file))


def import_labels(
    store: LabelStore, labels: Iterable[ImportedLabel], seeds: Sequence[int], origin: str
) -> int:
    """Add labels to a store for every seed to learn from, all or none; return how many are new.

    Repeats are left out: they measure a teacher, and nothing is learnt from them. An answer is
    known by its seed, both clips' content, who gave it and when (to the millisecond); known ones,
    imported or given here, are not added again. What was imported stays undone if it was undone.

    Args:
        store: where to.
        labels: what `read_labels` or `labels_of_run` returned.
        seeds: each of them gets all labels.
        origin: the file or run they come from.

    Raises:
        UsageError: the store has clips of another environment or length; nothing is added.
        UserFacingError: the disk is full; nothing of them is kept.
    """
    labels = list(labels)
    check_fits(labels, *_kind_of_clips(store.file))
    known = {_identity(label, label.seed) for label in _answered(store.file)}
    return store.add_answered(
        AnsweredElsewhere(
            clips=label.packed,
            seed=label.seed,
            env_steps=label.env_steps,
            answer=label.answer,
            who=label.who,
            at=label.at,
            seconds=label.seconds,
            origin=origin,
            attempts={
                seed: _attempt(label, seed) for seed in seeds if _identity(label, seed) not in known
            },
        )
        for label in labels
        if label.repeats is None
    )


def check_fits(
    labels: Iterable[ImportedLabel],
    shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]],
    length: int | None = None,
) -> None:
    """Raise if labels are not of clips as expected, of another environment that is.

    Args:
        labels: to be looked at.
        shapes: of the arrays that must be in a clip: the shape without the clip's length, and the
            dtype. A clip may have others.
        length: of every clip; None for whichever the first one has.

    Raises:
        UsageError: one does not fit; says which, what was expected and what it has.
    """
    for number, label in enumerate(labels, 1):
        for key, (shape, dtype) in shapes.items():
            found = label.shapes.get(key)
            if length is None and found is not None:
                length = found[0][0]
            expected = ((length, *shape), np.dtype(dtype))
            if found != expected:
                raise UsageError(
                    f"the labels are of another environment, or of clips of another length: in "
                    f"label {number} (query {label.query}) `{key}` is {described(found)}, "
                    f"expected {described(expected)}"
                )


def _attempt(label: ImportedLabel, seed: int) -> str:
    """Return what names an answer in a store, in the 64 letters that an attempt may have."""
    return f"import-{hashlib.sha256(json.dumps(_identity(label, seed)).encode()).hexdigest()[:57]}"


def _identity(label: ImportedLabel, seed: int) -> tuple[int, str, str, str, str]:
    """Return what an answer is known by among those a seed learns from."""
    return (seed, label.left_clip, label.right_clip, label.who, label.at)


def _kind_of_clips(file: LabelFile) -> tuple[dict[str, Kind], int | None]:
    """Return what the clips of a store look like without their length, and the length."""
    rows = file.rows("SELECT arrays FROM clips ORDER BY id LIMIT 1")
    shapes = unpack(rows[0][0]).shapes if rows else {}
    kinds = {key: shapes[key] for key in TRAINED_ON if key in shapes}
    length = next((shape[0] for shape, _ in kinds.values()), None)
    return {key: (shape[1:], dtype) for key, (shape, dtype) in kinds.items()}, length


def _answered(file: LabelFile) -> Iterator[ImportedLabel]:
    """Return the answers in force that a label file has, in the order of answering."""
    # Of the first version, which had neither.
    newer = "q.repeats, q.origin" if file.version() > 1 else "NULL, NULL"
    rows = file.rows(
        f"SELECT q.seed, l.env_steps, e.answer, e.who, e.at, e.seconds, q.id, {newer},"
        " l.arrays, r.arrays FROM effective e JOIN queries q ON q.id = e.query"
        " JOIN clips l ON l.id = q.left_clip JOIN clips r ON r.id = q.right_clip ORDER BY e.id"
    )
    for seed, env_steps, answer, who, at, seconds, query, repeats, origin, *packed in rows:
        try:
            left, right = (unpack(one) for one in packed)
        except BadClipError as error:
            raise file.damaged(f"a clip of query {query} {error}") from error
        yield ImportedLabel(
            *(seed, env_steps, answer, who, at, seconds, repeats, query, origin),
            *(left.sha, right.sha, (packed[0], packed[1]), left.shapes),
        )
