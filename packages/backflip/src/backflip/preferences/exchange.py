"""Export of labels to a file, and import from a file or from another run. Needs no JAX.

`backflip.preferences.label_lines` describes the file.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from backflip.preferences.kept_labels import refuse_lost_labels
from backflip.preferences.label_file import LABELS, LabelFile
from backflip.preferences.label_lines import (
    ImportedLabel,
    checked_clip,
    described,
    invalid_field,
    read_lines,
    write_lines,
)
from backflip.preferences.label_records import AnsweredElsewhere
from backflip.preferences.labels import LabelStore
from backflip.preferences.packed_clips import BadClipError
from runshelf.errors import UsageError

Kind = tuple[tuple[int, ...], np.dtype]  # an array's shape without the clip length, and its dtype
Identity = tuple[int, str, str, str, str]  # seed, left clip, right clip, who and when
TRAINED_ON = ("obs", "action", "next_obs", "lived")  # arrays whose kind must match


def export_labels(store: LabelStore, path: Path) -> int:
    """Write all answers that were not undone to `path`, atomically; return their number.

    Raises:
        UsageError: the name ends in neither `.jsonl` nor `.csv`.
        DamagedFile: a clip in the store cannot be decoded.
        UserFacingError: the file cannot be written.
    """
    labels = list(_answered(store.file))
    write_lines(path, labels)
    return len(labels)


def read_labels(path: Path) -> list[ImportedLabel]:
    """Return the labels in a file, checked.

    Raises:
        UsageError: the file is missing, empty or invalid; the message has line and column.
    """
    labels = read_lines(path)
    if not labels:
        raise UsageError(f"`{path}` has no labels: expected one line for each")
    return labels


def labels_of_run(run_folder: Path) -> list[ImportedLabel]:
    """Return the answers of all seeds of a run that were not undone; the run may be in progress.

    Raises:
        UsageError: the run has no labels.
        DamagedFile: labels are lost, or damaged.
    """
    refuse_lost_labels(run_folder)
    with LabelFile.open_to_read(run_folder / LABELS) as file:
        return list(_answered(file))


def import_labels(
    store: LabelStore, labels: Iterable[ImportedLabel], seeds: Sequence[int], origin: str
) -> int:
    """Add labels to a store for every seed, in one transaction; return how many are new.

    Repeated queries are left out: they measure a teacher and are not trained on. An answer is
    identified by its seed, the content of both clips, its author and its time (in milliseconds).
    Answers that the store already has are not added again, even if they were undone.

    Args:
        store: the label store.
        labels: the result of `read_labels` or `labels_of_run`.
        seeds: seeds that get all labels.
        origin: the file or run that the labels come from.

    Raises:
        UsageError: the store has clips of another environment or length, or another answer of the
            same person at the same time; nothing is added.
        UserFacingError: the disk is full; nothing is added.
    """
    labels = list(labels)
    check_fits(labels, *_kind_of_clips(store.file))
    known = {_identity(label, label.seed): label.answer for label in _answered(store.file)}
    _refuse_other_answers(labels, known, seeds)
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


def refuse_without_clips(store: LabelStore, run: str) -> None:
    """Refuse labels for a store without clips, which cannot tell whether they fit.

    Raises:
        UsageError: the store has no clips.
    """
    if not store.file.rows("SELECT 1 FROM clips LIMIT 1"):
        raise UsageError(
            f"run `{run}` has no clips yet, so labels cannot be compared with its environment; "
            "start a new run with them: backflip teach ENV --labels-from FILE"
        )


def _refuse_other_answers(
    labels: Sequence[ImportedLabel], known: Mapping[Identity, str], seeds: Iterable[int]
) -> None:
    """Refuse labels that are known, but with another answer: one of both was changed by hand."""
    answers = dict(known)
    for number, label in enumerate(labels, 1):
        for seed in seeds if label.repeats is None else ():
            had = answers.setdefault(_identity(label, seed), label.answer)
            if had != label.answer:
                raise UsageError(
                    f"label {number} (query {label.query}) is `{label.answer}`, and the same label "
                    f"is already there as `{had}`: leave one of them out; a corrected answer needs "
                    "another `who`"
                )


def importable(labels: Iterable[ImportedLabel]) -> int:
    """Return how many labels each seed of a new run gets: repeats and copies are left out.

    Several seeds of a run may have the same imported label.
    """
    return len({_identity(label, 0) for label in labels if label.repeats is None})


def check_fits(
    labels: Iterable[ImportedLabel],
    shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]],
    length: int | None = None,
) -> None:
    """Check that all clips have the expected arrays.

    Args:
        labels: the labels to check.
        shapes: the arrays that a clip must have: shape without the clip length, and dtype. A clip
            may have more arrays.
        length: the length of every clip; None for that of the first clip.

    Raises:
        UsageError: a clip does not fit; the message has the label, the array and both shapes.
    """
    for number, label in enumerate(labels, 1):
        for key, (shape, dtype) in shapes.items():
            found = label.shapes.get(key)
            if length is None and found is not None:
                length = found[0][0]
            expected = ((length, *shape), np.dtype(dtype))
            if found != expected:
                is_length = found is not None and found[0][1:] == shape and found[1] == dtype
                elsewhere = "labels are from another environment"
                what = "clips have another length" if is_length else elsewhere
                raise UsageError(
                    f"the {what}: in label {number} (query {label.query}) `{key}` is "
                    f"{described(found)}, expected {described(expected)}"
                )


def _attempt(label: ImportedLabel, seed: int) -> str:
    """Return the `attempt` that identifies an answer in a store, at most 64 characters."""
    return f"import-{hashlib.sha256(json.dumps(_identity(label, seed)).encode()).hexdigest()[:57]}"


def _identity(label: ImportedLabel, seed: int) -> Identity:
    """Return what identifies an answer among those of a seed."""
    return (seed, label.left_clip, label.right_clip, label.who, label.at)


def _kind_of_clips(file: LabelFile) -> tuple[dict[str, Kind], int | None]:
    """Return the kinds of the arrays in a store's clips, and the clip length."""
    rows = file.rows("SELECT arrays FROM clips ORDER BY id LIMIT 1")
    shapes = checked_clip(rows[0][0]).shapes if rows else {}
    kinds = {key: shapes[key] for key in TRAINED_ON if key in shapes}
    length = next((shape[0] for shape, _ in kinds.values()), None)
    return {key: (shape[1:], dtype) for key, (shape, dtype) in kinds.items()}, length


def _answered(file: LabelFile) -> Iterator[ImportedLabel]:
    """Return the answers of a label file that were not undone, in the order of answering."""
    # Version 1 has neither column.
    newer = "q.repeats, q.origin" if file.version() > 1 else "NULL, NULL"
    rows = file.rows(
        f"SELECT q.seed, l.env_steps, e.answer, e.who, e.at, e.seconds, q.id, {newer},"
        " l.arrays, r.arrays FROM effective e JOIN queries q ON q.id = e.query"
        " JOIN clips l ON l.id = q.left_clip JOIN clips r ON r.id = q.right_clip ORDER BY e.id"
    )
    for seed, env_steps, answer, who, at, seconds, query, repeats, origin, *packed in rows:
        said = {"seed": seed, "env_steps": env_steps, "who": who, "at": at, "seconds": seconds}
        if wrong := invalid_field(said):
            raise file.damaged(f"the answer to query {query} has an invalid `{wrong}`")
        try:
            left, right = (checked_clip(one) for one in packed)
        except BadClipError as error:
            raise file.damaged(f"a clip of query {query} {error}") from error
        yield ImportedLabel(
            seed=seed,
            env_steps=env_steps,
            answer=answer,
            who=who,
            at=at,
            seconds=seconds,
            repeats=repeats,
            query=query,
            origin=origin,
            left_clip=left.sha,
            right_clip=right.sha,
            packed=(packed[0], packed[1]),
            shapes=left.shapes,
        )
