"""The label queue: people take pairs from it, answer them, undo answers.

Several people may use it at once, each with a name, through a page or a terminal. A pair belongs to
the person who took it until it is answered or two minutes have passed. Every keystroke has an id,
so that one sent again (after a lost connection or a killed server) counts once. Every change is in
the label file before a method returns. Needs no JAX.
"""

import itertools
import json
import math
import random
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, final

from backflip.preferences.films import Film, Which
from backflip.preferences.label_file import insert, now
from backflip.preferences.labels import ANSWERS, Answer, LabelStore, StoredClip
from runshelf.errors import DamagedFile, UsageError

HELD_SECONDS = 120.0  # a pair taken and not answered goes back after so long
AHEAD = 4  # pairs one person holds at most: one on the screen, three loaded
REPEAT_SHARE = 0.05  # of the pairs shown to a person, shown before
REPEAT_AFTER = 10  # answers, at least, between a pair and its repeat
LONGEST_BREAK = 60.0  # seconds between two answers; what is longer was not spent answering
LONGEST_TEXT = 200  # characters of a goal
LONGEST_NAME = 40
GOAL, ENOUGH = "goal", "enough"
NOBODY = ""  # takes what is given back

Problem = Literal["unknown", "answered", "not yours", "invalid"]
# One query's latest taker: (who, when).
_TAKER = "SELECT who, at FROM takes WHERE query = ? ORDER BY id DESC LIMIT 1"


class Refused(UsageError):
    """What a person asked for cannot be; nothing was written.

    Attributes:
        problem: of which kind.
    """

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


class Pair(NamedTuple):
    """A query as it is shown: how both clips look, to a person and to the agent."""

    query: int
    left: dict[Which, Film]
    right: dict[Which, Film]


class Answered(NamedTuple):
    """What is said back to an answer: the label's id, and what the reward model had thought."""

    label: int
    opinion: StoredClip | None


class Tally(NamedTuple):
    """How labelling stands.

    Attributes:
        labels: answers in force, of the budget.
        mine: answers in force of the person who asks, repeats included.
        open: pairs that wait for an answer.
        per_minute: labels a minute while people were answering; None before the second one.
        repeated: repeats the person who asks has answered.
        self_agreement: share of them answered as the first time; None if there are none.
        shared: pairs two people have answered.
        agreement: share of them answered alike; None if there are none.
    """

    labels: int
    mine: int
    open: int
    per_minute: float | None
    repeated: int
    self_agreement: float | None
    shared: int
    agreement: float | None


@final
class LabelQueue:
    """Hands out the pairs of one label store.

    Args:
        store: the run's labels; only this queue may use it in this process.
        overlap: share of pairs that are shown to a second person, too.
        clock: seconds since 1970.
        rng: decides which pairs are repeats, and their sides.
    """

    def __init__(
        self,
        store: LabelStore,
        *,
        overlap: float = 0.0,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self.store = store
        self._overlap = overlap
        self._clock = clock
        self._rng = rng or random.Random()

    def take(self, who: str, without: Collection[int] = ()) -> list[Pair]:
        """Return the pairs `who` is to answer next: those held already, then new ones.

        Asking again keeps what is held for another two minutes.

        Args:
            who: the person's name.
            without: queries that cannot be shown there (a film is missing or damaged).

        Raises:
            Refused: the name is none.
        """
        who, moment = checked_name(who), self._clock()
        with self.store.file.transaction() as connection:
            held = [query for query in _held(connection, who, moment) if query not in without]
            open_now = _open(connection, moment, without)
            share = self._share(connection, who, moment, len(held) + len(open_now))
            fresh = iter(open_now)
            while len(held) < share:
                query = self._next(connection, who, fresh)
                if query is None:
                    break
                held.append(query)
            for query in held:
                _take(connection, query, who, moment)
            return [_pair(connection, query) for query in held]

    def give_back(self, who: str, queries: Collection[int]) -> None:
        """Let others have pairs that `who` holds; those held by nobody or another stay as they are.

        Raises:
            Refused: the name is none.
        """
        who = checked_name(who)
        with self.store.file.transaction() as connection:
            for query in queries:
                taker = connection.execute(_TAKER, (query,)).fetchone()
                if taker is not None and taker[0] == who:
                    _take(connection, query, NOBODY, 0.0)

    def answer(self, query: int, answer: str, who: str, seconds: float, attempt: str) -> Answered:
        """Record an answer; it is on disk once this returns.

        Args:
            query: which pair.
            answer: one of `ANSWERS`.
            who: the person's name.
            seconds: from the pair's being on the screen to the key.
            attempt: names this keystroke.

        Raises:
            Refused: unknown, answered, not taken by `who`, or not an answer.
        """
        who = checked_name(who)
        _check_answer(answer, seconds, attempt)
        with self.store.file.transaction() as connection:
            label = _of_attempt(connection, attempt, query, answer, who)
            if label is None:
                _check_may_answer(connection, query, who)
                label = insert(
                    connection,
                    "INSERT INTO labels (query, answer, who, at, seconds, attempt)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (query, answer, who, now(), float(seconds), attempt),
                )
        return Answered(label, self._opinion(query))

    def undo(self, who: str, attempt: str) -> Pair:
        """Take back the last answer of `who` that is in force, and return its pair to them.

        Raises:
            Refused: there is nothing to undo.
        """
        who = checked_name(who)
        _check_attempt(attempt)
        with self.store.file.transaction() as connection:
            query = _undone_by(connection, attempt, who)
            if query is None:
                query = _undo_last(connection, who, attempt)
            else:  # sent again: meanwhile somebody else may have the pair
                _check_may_answer(connection, query, who)
            _take(connection, query, who, self._clock())
            return _pair(connection, query)

    def goal(self) -> str:
        """Return what the person wants to see, in their words; empty if nobody said."""
        return self._said(GOAL) or ""

    def set_goal(self, text: str, who: str) -> str:
        """Record a new goal and return it as it is kept.

        Raises:
            Refused: it is too long.
        """
        text = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
        if len(text) > LONGEST_TEXT:
            raise Refused(
                "invalid", f"the goal has {len(text)} characters; say it in {LONGEST_TEXT}"
            )
        self._say(GOAL, text, who)
        return text

    def say_enough(self, who: str, enough: bool = True) -> None:
        """Record that no more labels will come: training ends with those there are."""
        self._say(ENOUGH, "yes" if enough else "no", who)

    def said_enough(self) -> bool:
        """Return whether somebody has said that there are labels enough."""
        return self._said(ENOUGH) == "yes"

    def tally(self, who: str) -> Tally:
        """Return how labelling stands, seen by `who`."""
        counts = self.store.counts()
        alike = _repeats_answered(self.store)
        own = [same for first, second, same in alike if first == second == who]
        others = [same for first, second, same in alike if first != second]
        mine = self.store.file.rows("SELECT count(*) FROM effective WHERE who = ?", (who,))
        return Tally(
            labels=counts.labels,
            mine=int(mine[0][0]),
            open=counts.pending,
            per_minute=labels_per_minute(self.store),
            repeated=len(own),
            self_agreement=_share_of(own),
            shared=len(others),
            agreement=_share_of(others),
        )

    def people_lately(self) -> int:
        """Return how many people took a pair within the last two minutes."""
        rows = self.store.file.rows(
            "SELECT count(DISTINCT who) FROM takes WHERE at > ?", (self._clock() - HELD_SECONDS,)
        )
        return int(rows[0][0])

    def _opinion(self, query: int) -> StoredClip | None:
        try:
            return self.store.opinion(query)
        except DamagedFile:  # the answer is kept all the same, and must not seem refused
            return None

    def _share(self, connection: Any, who: str, moment: float, available: int) -> int:
        """Return how many pairs `who` may hold: not so many that the others have none."""
        rows = connection.execute(
            "SELECT count(DISTINCT who) FROM takes WHERE at > ? AND who <> ?",
            (moment - HELD_SECONDS, who),
        )
        people = int(rows.fetchone()[0]) + 1
        return max(1, min(AHEAD, math.ceil(available / people)))

    def _next(self, connection: Any, who: str, fresh: "Iterable[int]") -> int | None:
        """Return a pair for `who`: a new one, at times one seen before; None if there is none."""
        query = next(iter(fresh), None)
        if query is None:
            return None
        chance = self._rng.random()
        if chance < REPEAT_SHARE:
            again = _repeatable(connection, who)
        elif chance < REPEAT_SHARE + self._overlap:
            again = _answered_by_others(connection, who)
        else:
            again = None
        return query if again is None else self._repeat(connection, again)

    def _repeat(self, connection: Any, query: int) -> int:
        """Ask a query once more, with its sides drawn anew; return the new query's id."""
        flip = self._rng.random() < 0.5
        sides = "right_clip, left_clip" if flip else "left_clip, right_clip"
        return insert(
            connection,
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, repeats)"
            f" SELECT seed, {sides}, ?, id FROM queries WHERE id = ?",
            (now(), query),
        )

    def _said(self, key: str) -> str | None:
        rows = self.store.file.rows(
            "SELECT value FROM sayings WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
        )
        return rows[0][0] if rows else None

    def _say(self, key: str, value: str, who: str) -> None:
        with self.store.file.transaction() as connection:
            insert(
                connection,
                "INSERT INTO sayings (key, value, who, at) VALUES (?, ?, ?, ?)",
                (key, value, checked_name(who), now()),
            )


def checked_name(who: str) -> str:
    """Return a labeller's name, trimmed.

    Raises:
        Refused: it is empty, too long, or has characters that cannot be seen.
    """
    name = unicodedata.normalize("NFC", " ".join(who.split()))
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused("invalid", f"a name has 1 to {LONGEST_NAME} letters, got `{name[:60]!r}`")
    return name


def labels_per_minute(store: LabelStore, newest: int = 30) -> float | None:
    """Return how many answers a minute came lately; breaks longer than a minute are left out."""
    rows = store.file.rows(
        "SELECT e.at FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE q.origin IS NULL ORDER BY e.id DESC LIMIT ?",
        (newest,),
    )
    times = [datetime.fromisoformat(at).timestamp() for (at,) in reversed(rows)]
    gaps = [max(0.0, b - a) for a, b in itertools.pairwise(times)]
    spent = [gap for gap in gaps if gap <= LONGEST_BREAK]
    return 60.0 * len(spent) / max(sum(spent), 1e-3) if spent else None


def _check_answer(answer: str, seconds: float, attempt: str) -> None:
    if answer not in ANSWERS:
        expected = ", ".join(ANSWERS)
        raise Refused("invalid", f"`{answer[:60]}` is no answer (expected {expected})")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise Refused("invalid", f"`seconds` is {seconds}: expected how long it took, 0 or more")
    _check_attempt(attempt)


def _check_attempt(attempt: str) -> None:
    if not (8 <= len(attempt) <= 64 and attempt.isascii() and attempt.isprintable()):
        raise Refused("invalid", "`attempt` must be 8 to 64 letters, new for every keystroke")


def _of_attempt(connection: Any, attempt: str, query: int, answer: str, who: str) -> int | None:
    """Return the label an attempt has left, or None if it has left none."""
    row = connection.execute(
        "SELECT id, query, answer, who FROM labels WHERE attempt = ?", (attempt,)
    ).fetchone()
    if row is None:
        return None
    if tuple(row[1:]) != (query, answer, who):
        raise Refused("invalid", "`attempt` has been used for something else")
    return int(row[0])


def _undone_by(connection: Any, attempt: str, who: str) -> int | None:
    """Return the query of which an attempt has taken back the answer, or None."""
    row = connection.execute(
        "SELECT query, undoes, who FROM labels WHERE attempt = ?", (attempt,)
    ).fetchone()
    if row is None:
        return None
    if row[1] is None or row[2] != who:
        raise Refused("invalid", "`attempt` has been used for something else")
    return int(row[0])


def _check_may_answer(connection: Any, query: int, who: str) -> None:
    if not connection.execute("SELECT 1 FROM queries WHERE id = ?", (query,)).fetchone():
        raise Refused("unknown", f"there is no pair {query}")
    answered = connection.execute(
        "SELECT who, answer FROM effective WHERE query = ?", (query,)
    ).fetchone()
    if answered:
        raise Refused("answered", f"pair {query} was answered by {answered[0]}: undo that first")
    taker = connection.execute(_TAKER, (query,)).fetchone()
    if taker is None or taker[0] != who:
        holder = f"{taker[0]} has it" if taker and taker[0] != NOBODY else "nobody took it"
        raise Refused("not yours", f"pair {query} is not yours to answer ({holder})")


def _undo_last(connection: Any, who: str, attempt: str) -> int:
    row = connection.execute(
        "SELECT e.id, e.query FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who = ? AND q.origin IS NULL ORDER BY e.id DESC LIMIT 1",
        (who,),
    ).fetchone()
    if row is None:
        raise Refused("unknown", f"{who} has given no answer that could be undone")
    insert(
        connection,
        "INSERT INTO labels (query, undoes, who, at, seconds, attempt) VALUES (?, ?, ?, ?, 0, ?)",
        (row[1], row[0], who, now(), attempt),
    )
    return int(row[1])


def _held(connection: Any, who: str, moment: float) -> list[int]:
    """Return the pairs `who` took within the last two minutes and has not answered, as taken."""
    rows = connection.execute(
        "SELECT t.query, min(t.id) FROM takes t WHERE t.who = ? AND t.at > ?"
        " AND NOT EXISTS (SELECT 1 FROM takes l WHERE l.query = t.query AND l.id > t.id"
        "                 AND l.who <> t.who)"
        " AND NOT EXISTS (SELECT 1 FROM effective e WHERE e.query = t.query)"
        " GROUP BY t.query ORDER BY min(t.id)",
        (who, moment - HELD_SECONDS),
    )
    return [int(query) for query, _ in rows]


def _open(connection: Any, moment: float, without: Collection[int]) -> list[int]:
    """Return the pairs that can be shown, nobody has answered and nobody holds, oldest first."""
    rows = connection.execute(
        "SELECT q.id FROM queries q WHERE q.repeats IS NULL AND q.origin IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM effective e WHERE e.query = q.id)"
        " AND coalesce((SELECT t.at FROM takes t WHERE t.query = q.id ORDER BY t.id DESC LIMIT 1),"
        " 0) <= ?"
        " AND EXISTS (SELECT 1 FROM films f WHERE f.clip = q.left_clip)"
        " AND EXISTS (SELECT 1 FROM films f WHERE f.clip = q.right_clip)"
        " ORDER BY q.id LIMIT ?",
        (moment - HELD_SECONDS, 64 + len(without)),
    )
    return [int(query) for (query,) in rows if query not in without]


def _take(connection: Any, query: int, who: str, moment: float) -> None:
    insert(connection, "INSERT INTO takes (query, who, at) VALUES (?, ?, ?)", (query, who, moment))


def _repeatable(connection: Any, who: str) -> int | None:
    """Return a pair that `who` answered a while ago and was not shown again, oldest first."""
    row = connection.execute(
        "SELECT e.query FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who = ? AND q.repeats IS NULL AND q.origin IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM queries r WHERE r.repeats = q.id)"
        " AND (SELECT count(*) FROM effective l WHERE l.who = e.who AND l.id > e.id) >= ?"
        " ORDER BY e.id LIMIT 1",
        (who, REPEAT_AFTER),
    ).fetchone()
    return int(row[0]) if row else None


def _answered_by_others(connection: Any, who: str) -> int | None:
    """Return a pair that another person answered and nobody was shown again, newest first."""
    row = connection.execute(
        "SELECT e.query FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who <> ? AND q.repeats IS NULL AND q.origin IS NULL"
        " AND EXISTS (SELECT 1 FROM films f WHERE f.clip = q.left_clip)"
        " AND NOT EXISTS (SELECT 1 FROM queries r WHERE r.repeats = q.id)"
        " ORDER BY e.id DESC LIMIT 1",
        (who,),
    ).fetchone()
    return int(row[0]) if row else None


def _pair(connection: Any, query: int) -> Pair:
    clips = connection.execute(
        "SELECT left_clip, right_clip FROM queries WHERE id = ?", (query,)
    ).fetchone()
    left, right = (_films(connection, clip) for clip in clips)
    return Pair(query, left, right)


def _films(connection: Any, clip: int) -> dict[Which, Film]:
    rows = connection.execute("SELECT view, about FROM films WHERE clip = ? ORDER BY id", (clip,))
    return {view: Film(**json.loads(about)) for view, about in rows}


def _repeats_answered(store: LabelStore) -> list[tuple[str, str, bool]]:
    """Return, of each repeat answered, who answered first, who again, and whether alike."""
    rows = store.file.rows(
        "SELECT a.who, b.who, a.answer, b.answer, p.left_clip = q.left_clip"
        " FROM queries q JOIN queries p ON p.id = q.repeats"
        " JOIN effective a ON a.query = p.id JOIN effective b ON b.query = q.id"
    )
    return [
        (first, second, one == (other if unflipped else _mirrored(other)))
        for first, second, one, other, unflipped in rows
    ]


def _mirrored(answer: Answer) -> Answer:
    """Return the same answer for a pair whose sides are swapped."""
    mirror: dict[Answer, Answer] = {"left": "right", "right": "left"}
    return mirror.get(answer, answer)


def _share_of(alike: Sequence[bool]) -> float | None:
    return sum(alike) / len(alike) if alike else None
