"""Which prompts a person holds, which are free, and which can be asked once more.

Each `connection` is inside a transaction.
"""

import math
from collections.abc import Collection
from typing import Any

from backflip.labelling.refused import Refused
from backflip.preferences.label_file import insert

AHEAD = 4  # maximum prompts a person holds: one on the screen, three loaded
REPEAT_AFTER = 10  # minimum number of answers between a prompt and its repeat
NO_HOLDER = ""  # `who` of a take that returns a prompt to the queue

_LAST_TAKER = "SELECT who FROM takes WHERE query = ? ORDER BY id DESC LIMIT 1"
# Every prompt without an answer, with the person who took it last and the number of that take. Of a
# set, only the first query can be taken.
_OPEN = """
    SELECT q.id, q.repeats IS NOT NULL, t.who, t.id FROM queries q
    LEFT JOIN takes t ON t.id = (SELECT max(id) FROM takes WHERE query = q.id)
    WHERE q.origin IS NULL AND NOT EXISTS (SELECT 1 FROM effective e WHERE e.query = q.id)
    AND EXISTS (SELECT 1 FROM films f WHERE f.clip = q.left_clip)
    AND EXISTS (SELECT 1 FROM films f WHERE f.clip = q.right_clip)
    AND NOT EXISTS (SELECT 1 FROM queries f WHERE f.clip_set = q.clip_set AND f.id < q.id)
    ORDER BY q.id"""


def held_and_free(
    connection: Any, who: str, others: Collection[str], without: Collection[int]
) -> tuple[list[int], list[int]]:
    """Return the prompts that `who` holds, in order of taking, and those that no person holds.

    Args:
        connection: inside a transaction.
        who: a person.
        others: the other people who are present.
        without: queries to leave out.
    """
    held: list[tuple[int, int]] = []
    free: list[int] = []
    for query, is_repeat, taker, take in connection.execute(_OPEN):
        if query in without:
            continue
        if taker == who:
            held.append((take, query))
        elif taker not in others and not is_repeat:  # a repeat is for the person it was made for
            free.append(int(query))
    return [query for _, query in sorted(held)], free


def share_of(available: int, people: int) -> int:
    """Return how many prompts one person may hold, so that some remain for the others."""
    return max(1, min(AHEAD, math.ceil(available / people)))


def take(connection: Any, query: int, who: str, moment: float) -> None:
    """Record that `who` takes a prompt, unless they took it last."""
    taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
    if taker is None or taker[0] != who:
        insert(
            connection, "INSERT INTO takes (query, who, at) VALUES (?, ?, ?)", (query, who, moment)
        )


def give_back(connection: Any, query: int, who: str) -> None:
    """Put a prompt back into the queue if `who` holds it."""
    taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
    if taker is not None and taker[0] == who:
        take(connection, query, NO_HOLDER, 0.0)


def repeatable(connection: Any, who: str) -> int | None:
    """Return the oldest pair that `who` answered some time ago and that has no repeat yet."""
    row = connection.execute(
        "SELECT e.query FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who = ? AND q.repeats IS NULL AND q.origin IS NULL AND q.clip_set IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM queries r WHERE r.repeats = q.id)"
        " AND (SELECT count(*) FROM effective l WHERE l.who = e.who AND l.id > e.id) >= ?"
        " ORDER BY e.id LIMIT 1",
        (who, REPEAT_AFTER),
    ).fetchone()
    return int(row[0]) if row else None


def answered_by_others(connection: Any, who: str) -> int | None:
    """Return the newest pair that another person answered and that has no repeat yet."""
    row = connection.execute(
        "SELECT e.query FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who <> ? AND q.repeats IS NULL AND q.origin IS NULL AND q.clip_set IS NULL"
        " AND EXISTS (SELECT 1 FROM films f WHERE f.clip = q.left_clip)"
        " AND NOT EXISTS (SELECT 1 FROM queries r WHERE r.repeats = q.id)"
        " ORDER BY e.id DESC LIMIT 1",
        (who,),
    ).fetchone()
    return int(row[0]) if row else None


def check_may_answer(connection: Any, query: int, who: str) -> None:
    """Refuse a prompt that is answered, or that `who` does not hold."""
    answered = connection.execute(
        "SELECT who, answer FROM effective WHERE query = ?", (query,)
    ).fetchone()
    if answered:
        raise Refused("answered", f"prompt {query} was answered by {answered[0]}: undo that first")
    taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
    if taker is None or taker[0] != who:
        holder = f"{taker[0]} has it" if taker and taker[0] != NO_HOLDER else "take it first"
        raise Refused("not yours", f"you do not hold prompt {query} ({holder})")
