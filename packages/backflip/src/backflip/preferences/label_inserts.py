"""Inserts records into a label file, inside a transaction of the caller. Needs no JAX."""

import json
import math
import sqlite3
import zlib

from backflip.core.checkpoint import to_safetensors
from backflip.preferences.label_file import insert
from backflip.preferences.label_records import (
    ANSWERS,
    AnsweredElsewhere,
    Films,
    NewLabel,
    NewQuery,
    StoredClip,
)
from runshelf.errors import UsageError, did_you_mean
from runshelf.store.times import now

# Level 1 compresses pixels nearly as well as 6, several times faster.
_COMPRESSION = 1


def check_label(label: NewLabel) -> None:
    """Refuse what cannot be an answer.

    Raises:
        UsageError: it is not one of `ANSWERS`, or its seconds are no duration.
    """
    if label.answer not in ANSWERS:
        hint = did_you_mean(label.answer, ANSWERS)
        expected = ", ".join(f"`{answer}`" for answer in ANSWERS)
        raise UsageError(f"`{label.answer}` is not an answer (expected {expected}){hint}")
    if not (math.isfinite(label.seconds) and label.seconds >= 0):
        raise UsageError(f"`seconds` must be finite and at least 0, got {label.seconds}")


def insert_query(connection: sqlite3.Connection, query: NewQuery, left: bytes, right: bytes) -> int:
    """Insert a query with its packed clips and return its id."""
    clips = [insert_clip(connection, query.seed, query.env_steps, clip) for clip in (left, right)]
    for clip, films in zip(clips, query.films or (), strict=False):
        insert_films(connection, clip, films)
    return insert(
        connection,
        "INSERT INTO queries (seed, left_clip, right_clip, asked_at, origin, opinion)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (query.seed, *clips, now(), query.origin, query.opinion and packed_clip(query.opinion)),
    )


def insert_clip(connection: sqlite3.Connection, seed: int, env_steps: int, packed: bytes) -> int:
    """Insert a clip and return its id."""
    return insert(
        connection,
        "INSERT INTO clips (seed, env_steps, arrays) VALUES (?, ?, ?)",
        (seed, env_steps, packed),
    )


def insert_answered(connection: sqlite3.Connection, one: AnsweredElsewhere) -> int:
    """Insert a query and its answer for every seed that lacks it; return the number of seeds."""
    known = "SELECT 1 FROM labels WHERE attempt = ?"
    new = [
        (seed, attempt)
        for seed, attempt in one.attempts.items()
        if connection.execute(known, (attempt,)).fetchone() is None
    ]
    # One copy of the clips serves all seeds.
    clips = [insert_clip(connection, one.seed, one.env_steps, c) for c in one.clips if new]
    for seed, attempt in new:
        query = insert(
            connection,
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, origin)"
            " VALUES (?, ?, ?, ?, ?)",
            (seed, *clips, one.at, one.origin),
        )
        insert(
            connection,
            "INSERT INTO labels (query, answer, who, at, seconds, attempt)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (query, one.answer, one.who, one.at, one.seconds, attempt),
        )
    return len(new)


def insert_films(connection: sqlite3.Connection, clip: int, films: Films) -> None:
    """Insert the films of a clip."""
    for view, film in films.items():
        insert(
            connection,
            "INSERT INTO films (clip, view, about) VALUES (?, ?, ?)",
            (clip, view, json.dumps(film._asdict())),
        )


def insert_label(connection: sqlite3.Connection, label: NewLabel, at: str | None = None) -> int:
    """Insert an answer, given at this moment or at `at`, and return its id.

    Raises:
        UsageError: its query is unknown or answered.
    """
    row = connection.execute(
        "SELECT e.answer FROM queries q LEFT JOIN effective e ON e.query = q.id WHERE q.id = ?",
        (label.query,),
    ).fetchone()
    if row is None:
        raise UsageError(f"there is no query {label.query}: it cannot be answered")
    if row[0] is not None:
        raise UsageError(f"query {label.query} is answered (`{row[0]}`): undo that answer first")
    return insert(
        connection,
        "INSERT INTO labels (query, answer, who, at, seconds) VALUES (?, ?, ?, ?, ?)",
        (label.query, label.answer, label.who, at or now(), float(label.seconds)),
    )


def packed_clip(clip: StoredClip) -> bytes:
    """Return a clip as the label file keeps it."""
    return zlib.compress(to_safetensors(clip, {}), _COMPRESSION)
