"""The label queue: people take pairs, answer them and undo answers.

Several people can use it at once, each under a name, on the page or in a terminal. A person holds a
pair from taking it until they answer it or two minutes have passed. Every keystroke has an id, so a
request repeated after a lost connection or a killed server counts once. Every change is in the
label file before the method returns.
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

HELD_SECONDS = 120.0  # an unanswered pair returns to the queue after this time
AHEAD = 4  # maximum pairs a person holds: one on the screen, three loaded
REPEAT_SHARE = 0.05  # share of repeats among the pairs shown to a person
REPEAT_AFTER = 10  # minimum number of answers between a pair and its repeat
LONGEST_BREAK = 60.0  # seconds; a longer gap between two answers is a break
LONGEST_TEXT = 200  # characters of a goal
LONGEST_NAME = 40
GOAL, ENOUGH = "goal", "enough"  # keys in the label file
NO_HOLDER = ""  # `who` of a take that returns a pair to the queue

Problem = Literal["unknown", "answered", "not yours", "invalid"]
_LAST_TAKER = "SELECT who, at FROM takes WHERE query = ? ORDER BY id DESC LIMIT 1"


class Refused(UsageError):
    """A request is refused; nothing was written.

    Attributes:
        problem: the reason.
    """

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


class Pair(NamedTuple):
    """A query and the films of both clips, by view."""

    query: int
    left: dict[Which, Film]
    right: dict[Which, Film]


class Answered(NamedTuple):
    """The label's id and the opinion of the reward model on the pair."""

    label: int
    opinion: StoredClip | None


class Tally(NamedTuple):
    """Progress of labelling, as one person sees it. Answers that were undone do not count.

    Attributes:
        labels: answers that count towards the budget.
        mine: this person's answers, repeats included.
        open: pairs without an answer.
        per_minute: recent labels per minute, without breaks; None before the second label.
        repeated: repeats that this person answered.
        self_agreement: share of them with the same answer as the first time; None if none.
        shared: pairs that two people answered.
        agreement: share of them with the same answer; None if none.
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
    """Gives the pairs of one label store to people.

    Args:
        store: the run's labels. No other code in this process may use it.
        overlap: share of pairs that a second person also sees.
        clock: returns seconds since 1970.
        rng: chooses the repeats and their sides.
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
        """Return the next pairs for `who`: those they hold, then new ones.

        Each call holds them for another two minutes.

        Args:
            who: the person's name.
            without: queries that cannot be shown (a film is missing or damaged).

        Raises:
            Refused: the name is invalid.
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
        """Return pairs to the queue. Pairs that `who` does not hold are unchanged.

        Raises:
            Refused: the name is invalid.
        """
        who = checked_name(who)
        with self.store.file.transaction() as connection:
            for query in queries:
                taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
                if taker is not None and taker[0] == who:
                    _take(connection, query, NO_HOLDER, 0.0)

    def answer(self, query: int, answer: str, who: str, seconds: float, attempt: str) -> Answered:
        """Record an answer. It is on disk when this returns.

        Args:
            query: the pair's id.
            answer: one of `ANSWERS`.
            who: the person's name.
            seconds: from the moment the pair was shown to the key press.
            attempt: unique id of the keystroke.

        Raises:
            Refused: the pair is unknown, answered or not held by `who`, or the answer is invalid.
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
        """Undo the last answer of `who` and return its pair, which `who` holds again.

        Raises:
            Refused: there is nothing to undo.
        """
        who = checked_name(who)
        _check_attempt(attempt)
        with self.store.file.transaction() as connection:
            query = _undone_by(connection, attempt, who)
            if query is None:
                query = _undo_last(connection, who, attempt)
            else:  # a repeated request: another person may hold the pair now
                _check_may_answer(connection, query, who)
            _take(connection, query, who, self._clock())
            return _pair(connection, query)

    def goal(self) -> str:
        """Return the goal in the person's words; empty if not set."""
        return self._saying(GOAL) or ""

    def set_goal(self, text: str, who: str) -> str:
        """Record a new goal and return the stored text.

        Raises:
            Refused: the text is too long.
        """
        text = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
        if len(text) > LONGEST_TEXT:
            raise Refused(
                "invalid", f"the goal has {len(text)} characters; at most {LONGEST_TEXT} fit"
            )
        self._record_saying(GOAL, text, who)
        return text

    def finish_labelling(self, who: str, finished: bool = True) -> None:
        """Record whether labelling is finished: no more queries will follow."""
        self._record_saying(ENOUGH, "yes" if finished else "no", who)

    def labelling_finished(self) -> bool:
        """Return whether a person finished labelling."""
        return self._saying(ENOUGH) == "yes"

    def tally(self, who: str) -> Tally:
        """Return the progress of labelling as `who` sees it."""
        counts = self.store.counts()
        repeats = _repeats_answered(self.store)
        own = [same for first, second, same in repeats if first == second == who]
        others = [same for first, second, same in repeats if first != second]
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

    def active_people(self) -> int:
        """Return how many people took a pair in the last two minutes."""
        rows = self.store.file.rows(
            "SELECT count(DISTINCT who) FROM takes WHERE at > ?", (self._clock() - HELD_SECONDS,)
        )
        return int(rows[0][0])

    def _opinion(self, query: int) -> StoredClip | None:
        try:
            return self.store.opinion(query)
        except DamagedFile:  # the answer is stored; an error would say the opposite
            return None

    def _share(self, connection: Any, who: str, moment: float, available: int) -> int:
        """Return how many pairs `who` may hold, so that some remain for the others."""
        rows = connection.execute(
            "SELECT count(DISTINCT who) FROM takes WHERE at > ? AND who <> ?",
            (moment - HELD_SECONDS, who),
        )
        people = int(rows.fetchone()[0]) + 1
        return max(1, min(AHEAD, math.ceil(available / people)))

    def _next(self, connection: Any, who: str, fresh: "Iterable[int]") -> int | None:
        """Return a new pair for `who`, or at times a repeat; None if no new pair is left."""
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
        """Add a repeat of a query with its sides in random order; return the repeat's id."""
        flip = self._rng.random() < 0.5
        sides = "right_clip, left_clip" if flip else "left_clip, right_clip"
        return insert(
            connection,
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, repeats)"
            f" SELECT seed, {sides}, ?, id FROM queries WHERE id = ?",
            (now(), query),
        )

    def _saying(self, key: str) -> str | None:
        """Return the newest value of a key that people set; None if not set."""
        rows = self.store.file.rows(
            "SELECT value FROM sayings WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
        )
        return rows[0][0] if rows else None

    def _record_saying(self, key: str, value: str, who: str) -> None:
        with self.store.file.transaction() as connection:
            insert(
                connection,
                "INSERT INTO sayings (key, value, who, at) VALUES (?, ?, ?, ?)",
                (key, value, checked_name(who), now()),
            )


def checked_name(who: str) -> str:
    """Return a labeller's name, trimmed.

    Raises:
        Refused: it is empty, too long, or has invisible characters.
    """
    name = unicodedata.normalize("NFC", " ".join(who.split()))
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused("invalid", f"a name has 1 to {LONGEST_NAME} letters, got `{name[:60]!r}`")
    return name


def labels_per_minute(store: LabelStore, newest: int = 30) -> float | None:
    """Return the recent number of labels per minute, without breaks longer than a minute.

    None if there are fewer than two labels.
    """
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
        raise Refused("invalid", f"`{answer[:60]}` is not an answer (expected {expected})")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise Refused("invalid", f"`seconds` is {seconds}: expected a number, 0 or more")
    _check_attempt(attempt)


def _check_attempt(attempt: str) -> None:
    if not (8 <= len(attempt) <= 64 and attempt.isascii() and attempt.isprintable()):
        raise Refused("invalid", "`attempt` must be 8 to 64 letters, unique per keystroke")


def _of_attempt(connection: Any, attempt: str, query: int, answer: str, who: str) -> int | None:
    """Return the label that an earlier request with this attempt created; None if none."""
    row = connection.execute(
        "SELECT id, query, answer, who FROM labels WHERE attempt = ?", (attempt,)
    ).fetchone()
    if row is None:
        return None
    if tuple(row[1:]) != (query, answer, who):
        raise Refused("invalid", "`attempt` has been used for something else")
    return int(row[0])


def _undone_by(connection: Any, attempt: str, who: str) -> int | None:
    """Return the query whose answer an earlier request with this attempt undid; None if none."""
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
    taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
    if taker is None or taker[0] != who:
        holder = f"{taker[0]} has it" if taker and taker[0] != NO_HOLDER else "take it first"
        raise Refused("not yours", f"you do not hold pair {query} ({holder})")


def _undo_last(connection: Any, who: str, attempt: str) -> int:
    row = connection.execute(
        "SELECT e.id, e.query FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who = ? AND q.origin IS NULL ORDER BY e.id DESC LIMIT 1",
        (who,),
    ).fetchone()
    if row is None:
        raise Refused("unknown", f"{who} has no answer that could be undone")
    insert(
        connection,
        "INSERT INTO labels (query, undoes, who, at, seconds, attempt) VALUES (?, ?, ?, ?, 0, ?)",
        (row[1], row[0], who, now(), attempt),
    )
    return int(row[1])


def _held(connection: Any, who: str, moment: float) -> list[int]:
    """Return the pairs that `who` holds, in the order in which they took them."""
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
    """Return the pairs that have films, no answer and no holder, oldest first."""
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
    """Return the oldest pair that `who` answered some time ago and that has no repeat yet."""
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
    """Return the newest pair that another person answered and that has no repeat yet."""
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
    """Return for each answered repeat: first person, second person, whether they agree."""
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
    """Return the equivalent answer for the pair with its sides swapped."""
    mirror: dict[Answer, Answer] = {"left": "right", "right": "left"}
    return mirror.get(answer, answer)


def _share_of(same: Sequence[bool]) -> float | None:
    return sum(same) / len(same) if same else None
