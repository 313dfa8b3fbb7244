"""A person's answers as a history: undo, redo, and correct an older one.

Nothing is changed or deleted. An undo, a redo and a correction are further records of the label
file (see `backflip.preferences.label_schema`): an undo refers to an answer, a redo to an undo, and
a correction is an answer that refers to the one that it replaces. A person undoes the newest of
their answers and corrections, and redoes the newest of the undos that follow them: a new answer or
correction ends redoing. Imported answers do not belong to anybody's history. The answer to a set of
clips has a record for each pair of them, and these are undone and redone together; it is not
corrected one by one.
"""

import sqlite3
from typing import Literal, NamedTuple

from backflip.labelling.refused import Refused
from backflip.preferences.label_file import LabelFile, insert
from backflip.preferences.label_records import Answer
from runshelf.store.times import now

# The queries that are answered together with one: those of its set, the first one first.
_TOGETHER = """
    SELECT o.id FROM queries q JOIN queries o ON o.id = q.id OR o.clip_set = q.clip_set
    WHERE q.id = ? ORDER BY o.id"""
_NEWEST_ANSWER = "SELECT max(id) FROM standing WHERE query = ? AND who = ? AND answer IS NOT NULL"
_NEWEST_UNDO = """
    SELECT max(u.id) FROM labels u JOIN labels a ON a.id = u.undoes
    WHERE u.query = ? AND u.who = ? AND a.answer IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM labels r WHERE r.undoes = u.id)"""
_IN_FORCE = "SELECT answer, who FROM effective WHERE query = ?"
# Not redone, and newer than every answer and correction of the person.
_REDOABLE = """
    SELECT u.id, a.id, a.query, a.answer, a.replaces FROM labels u JOIN labels a ON a.id = u.undoes
    WHERE u.who = :who AND a.answer IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM labels r WHERE r.undoes = u.id)
    AND u.id > (SELECT max(id) FROM labels WHERE who = :who AND answer IS NOT NULL)
    ORDER BY u.id DESC LIMIT 1"""


class Restored(NamedTuple):
    """The state of a prompt after an undo or a redo.

    Attributes:
        query: the prompt's number.
        answer: its answer in force; None if the prompt is open again.
        who: who gave that answer.
        repeated: the request had been carried out before.
    """

    query: int
    answer: Answer | None
    who: str | None
    repeated: bool


class OwnAnswer(NamedTuple):
    """An answer of one person.

    Attributes:
        label: the record's id.
        query: the pair.
        answer: the answer in force.
        at: when it was given.
        corrected: whether it replaces an older answer.
    """

    label: int
    query: int
    answer: Answer
    at: str
    corrected: bool


def undo(connection: sqlite3.Connection, who: str, attempt: str) -> Restored:
    """Undo the newest answer or correction of `who`.

    Raises:
        Refused: there is nothing to undo, or the attempt was used for something else.
    """
    known = _of_attempt(connection, attempt, who)
    if known is None:
        return _restored(connection, _undo_newest(connection, who, attempt), repeated=False)
    if known.undid != "answer":
        raise _used()
    return _restored(connection, known.query, repeated=True)


def redo(connection: sqlite3.Connection, who: str, attempt: str) -> Restored:
    """Restore the answer or correction that `who` undid last.

    Raises:
        Refused: there is nothing to redo, another person has answered the prompt meanwhile, or
            the attempt was used for something else.
    """
    known = _of_attempt(connection, attempt, who)
    if known is None:
        return _restored(connection, _redo_newest(connection, who, attempt), repeated=False)
    if known.undid != "undo":
        raise _used()
    return _restored(connection, known.query, repeated=True)


def correct(
    connection: sqlite3.Connection, label: int, answer: Answer, who: str, attempt: str
) -> int:
    """Replace an answer of `who` by another one; return the new record's id.

    Raises:
        Refused: `label` is not an answer of `who` in force, it has this answer, or the attempt was
            used for something else.
    """
    known = connection.execute(
        "SELECT id, replaces, answer, who FROM labels WHERE attempt = ?", (attempt,)
    ).fetchone()
    if known is not None:
        if tuple(known[1:]) != (label, answer, who):
            raise _used()
        return int(known[0])
    query, seconds = _correctable(connection, label, answer, who)
    return insert(
        connection,
        "INSERT INTO labels (query, answer, who, at, seconds, attempt, replaces)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (query, answer, who, now(), seconds, attempt, label),
    )


def can_redo(file: LabelFile, who: str) -> bool:
    """Return whether `redo` would find an undone answer of `who`."""
    rows = file.rows(_REDOABLE, {"who": who})
    return bool(rows) and (rows[0][4] is not None or not file.rows(_IN_FORCE, (rows[0][2],)))


def own_answers(file: LabelFile, who: str, before: int | None, count: int) -> list[OwnAnswer]:
    """Return the newest `count` answers of `who` in force, newest first.

    Args:
        file: the run's label file.
        who: the person.
        before: only records with a smaller id; None for all.
        count: the largest number of answers.
    """
    rows = file.rows(
        "SELECT e.id, e.query, e.answer, e.at, e.replaces IS NOT NULL FROM effective e"
        " JOIN queries q ON q.id = e.query"
        " WHERE e.who = ? AND q.origin IS NULL AND q.clip_set IS NULL"
        " AND (? IS NULL OR e.id < ?) ORDER BY e.id DESC LIMIT ?",
        (who, before, before, count),
    )
    return [
        OwnAnswer(label, query, answer, at, bool(corrected))
        for label, query, answer, at, corrected in rows
    ]


class _Known(NamedTuple):
    """The record of an earlier request with the same attempt, and what it undid."""

    query: int
    undid: Literal["answer", "undo", "nothing"]


def _of_attempt(connection: sqlite3.Connection, attempt: str, who: str) -> _Known | None:
    row = connection.execute(
        "SELECT r.query, r.who, u.id IS NULL, u.answer IS NULL FROM labels r"
        " LEFT JOIN labels u ON u.id = r.undoes WHERE r.attempt = ?",
        (attempt,),
    ).fetchone()
    if row is None:
        return None
    query, author, is_answer, undid_undo = row
    if author != who:
        raise _used()
    return _Known(int(query), "nothing" if is_answer else "undo" if undid_undo else "answer")


def _used() -> Refused:
    return Refused("invalid", "`attempt` has been used for something else")


def _undo_newest(connection: sqlite3.Connection, who: str, attempt: str) -> int:
    row = connection.execute(
        "SELECT s.id, s.query FROM standing s JOIN queries q ON q.id = s.query"
        " WHERE s.who = ? AND s.answer IS NOT NULL AND q.origin IS NULL"
        " ORDER BY s.id DESC LIMIT 1",
        (who,),
    ).fetchone()
    if row is None:
        raise Refused("unknown", "there is no answer to undo")
    return _undo_together(connection, _NEWEST_ANSWER, int(row[1]), who, attempt)


def _redo_newest(connection: sqlite3.Connection, who: str, attempt: str) -> int:
    row = connection.execute(_REDOABLE, {"who": who}).fetchone()
    if row is None:
        raise Refused("unknown", "there is no undone answer to restore")
    _, _, query, _, replaces = row
    taken = connection.execute(_IN_FORCE, (query,)).fetchone()
    if taken is not None and replaces is None:
        raise Refused("answered", f"prompt {query} was answered by {taken[1]} in the meantime")
    return _undo_together(connection, _NEWEST_UNDO, int(query), who, attempt)


def _undo_together(
    connection: sqlite3.Connection, newest: str, query: int, who: str, attempt: str
) -> int:
    """Undo the `newest` record of each query that is answered with one; return the first query."""
    queries = [int(one) for (one,) in connection.execute(_TOGETHER, (query,)).fetchall()]
    for one, part in zip(queries, parts_of(attempt, len(queries)), strict=True):
        (undoes,) = connection.execute(newest, (one, who)).fetchone()
        insert(
            connection,
            "INSERT INTO labels (query, undoes, who, at, seconds, attempt)"
            " VALUES (?, ?, ?, ?, 0, ?)",
            (one, undoes, who, now(), part),
        )
    return queries[0]


def parts_of(attempt: str, records: int) -> list[str]:
    """Return an attempt for each record that one keystroke makes; the first is its own."""
    return [attempt, *(f"{attempt} {number}" for number in range(1, records))]


def _restored(connection: sqlite3.Connection, query: int, *, repeated: bool) -> Restored:
    answer, who = connection.execute(_IN_FORCE, (query,)).fetchone() or (None, None)
    return Restored(query, answer, who, repeated)


def _correctable(
    connection: sqlite3.Connection, label: int, answer: Answer, who: str
) -> tuple[int, float]:
    """Return the pair and the seconds of an answer that `who` may correct.

    Raises:
        Refused: it is not an answer of `who` in force, or it has this answer already.
    """
    row = connection.execute(
        "SELECT e.query, e.seconds, e.answer, e.who, q.clip_set FROM effective e"
        " JOIN queries q ON q.id = e.query WHERE e.id = ? AND q.origin IS NULL",
        (label,),
    ).fetchone()
    if row is None:
        raise Refused("unknown", f"answer {label} does not exist, or it was undone or changed")
    query, seconds, old, author, number = row
    if author != who:
        raise Refused("not yours", f"answer {label} is by {author}: only {author} may change it")
    if number is not None:
        raise Refused("invalid", f"answer {label} is about a set: undo it and answer again")
    if old == answer:
        raise Refused("invalid", f"answer {label} already is `{answer}`")
    return int(query), float(seconds)
