"""The label queue: people take prompts, answer them and undo answers.

Several people can use the queue at once, each under a name, on the page or in a terminal. A person
holds a prompt from taking it until they answer it or leave (`backflip.labelling.leases`); a prompt
that no other person has taken since then is still theirs when they come back. Every keystroke has
an id, so a request repeated after a lost connection or a killed server counts once. Every change is
in the label file before the method returns.
"""

import math
import random
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from backflip.labelling import answer_history
from backflip.labelling.answer_history import OwnAnswer
from backflip.labelling.leases import Leases
from backflip.labelling.prompts import (
    Asked,
    Given,
    Prompt,
    Said,
    asked,
    checked_answer,
    is_shown,
    keep_marks,
    prompt,
    said_by,
)
from backflip.labelling.refused import Refused
from backflip.labelling.tally import Tally, tally_of
from backflip.preferences.careless import repeat_share, repeats_of
from backflip.preferences.clip_sets import insert_scores
from backflip.preferences.label_file import insert, now
from backflip.preferences.label_records import DEMONSTRATION, Answer, StoredClip
from backflip.preferences.labels import LabelStore
from runshelf.errors import DamagedFile, shown

AHEAD = 4  # maximum prompts a person holds: one on the screen, three loaded
REPEAT_AFTER = 10  # minimum number of answers between a prompt and its repeat
LONGEST_TEXT = 200  # characters of a goal
LONGEST_NAME = 40
LISTED = 20  # answers in one part of the list of a person's answers
GOAL, ENOUGH = "goal", "enough"  # keys in the label file
NO_HOLDER = ""  # `who` of a take that returns a prompt to the queue

_LAST_TAKER = "SELECT who FROM takes WHERE query = ? ORDER BY id DESC LIMIT 1"
_OF_ATTEMPT = "SELECT id, query, answer, who FROM labels WHERE attempt = ?"
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


class Answered(NamedTuple):
    """The label's id and the opinion of the reward model on its clips."""

    label: int
    opinion: StoredClip | None


class Undone(NamedTuple):
    """What an undo did.

    Attributes:
        query: the prompt's number.
        prompt: the prompt, to answer it again; None after the undo of a correction.
        answer: the answer from before the correction; None if the prompt is open again.
    """

    query: int
    prompt: Prompt | None
    answer: Answer | None


class Redone(NamedTuple):
    """A prompt whose answer was restored, and the answer; None for a set, which has several."""

    query: int
    answer: Answer | None


class ListedAnswer(NamedTuple):
    """An answer of a person, with the films of its prompt."""

    given: OwnAnswer
    prompt: Prompt


@final
class LabelQueue:
    """Gives the prompts of one label store to people.

    Attributes:
        leases: who is present; a labeller must renew a lease to keep the prompts.

    Args:
        store: the run's labels. No other code in this process may use it.
        overlap: share of prompts that a second person also sees.
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
        self.leases = Leases(Path(store.file.path).parent, clock)
        self._overlap = overlap
        self._clock = clock
        self._rng = rng or random.Random()

    def take(self, who: str, without: Collection[int] = (), place: str = "") -> list[Prompt]:
        """Return the next prompts for `who`: those they hold, then new ones.

        They keep the prompts as long as they are present.

        Args:
            who: the person's name.
            without: queries that cannot be shown (a film is missing or damaged).
            place: identifies the page or terminal program.

        Raises:
            Refused: the name is invalid.
        """
        who = checked_name(who)
        self.leases.renew(who, place)
        others = self.leases.present() - {who}
        with self.store.file.transaction() as connection:
            held, free = _held_and_free(connection, who, others, without)
            held = [query for query in held if is_shown(connection, query)]
            share = _share(len(held) + len(free), len(others) + 1)
            fresh = (query for query in free if is_shown(connection, query))
            while len(held) < share:
                query = self._next(connection, who, fresh)
                if query is None:
                    break
                _take(connection, query, who, self._clock())
                held.append(query)
            return [prompt(connection, query, who) for query in held]

    def give_back(self, who: str, queries: Collection[int]) -> None:
        """Put prompts back into the queue. Prompts that `who` does not hold are unchanged.

        Raises:
            Refused: the name is invalid.
        """
        who = checked_name(who)
        with self.store.file.transaction() as connection:
            for query in queries:
                taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
                if taker is not None and taker[0] == who:
                    _take(connection, query, NO_HOLDER, 0.0)

    def answer(self, query: int, answer: Given, who: str, seconds: float, attempt: str) -> Answered:
        """Record an answer. It is on disk when this returns.

        Args:
            query: the prompt's number.
            answer: one of `ANSWERS`; of a set, the places of its clips, best first, those of equal
                ones in a list of their own; or a rating of each clip; or `skip`.
            who: the person's name.
            seconds: from the moment the prompt was shown to the key press.
            attempt: unique id of the keystroke.

        Raises:
            Refused: the prompt is unknown, answered or not held by `who`, or the answer is invalid.
        """
        who = checked_name(who)
        _check_seconds(seconds)
        _check_attempt(attempt)
        with self.store.file.transaction() as connection:
            one = asked(connection, query)
            said = said_by(one, answer)
            label = _of_attempt(connection, attempt, said, who)
            if label is None:
                _check_may_answer(connection, query, who)
                label = _record(connection, one, said, who, seconds, attempt)
        return Answered(label, self._opinion(query) if one.kind == "compare" else None)

    def mark(self, query: int, marks: Sequence[Any], who: str) -> None:
        """Keep what a person has said of a set so far. It is on disk when this returns.

        Args:
            query: the set's first query.
            marks: the places of the clips ranked so far, best first; or the ratings of the first
                clips, None for a clip that cannot be told.
            who: the person's name.

        Raises:
            Refused: the set is unknown, answered or not held by `who`, or the marks are invalid.
        """
        who = checked_name(who)
        with self.store.file.transaction() as connection:
            one = asked(connection, query)
            _check_may_answer(connection, query, who)
            keep_marks(connection, one, marks, who)

    def undo(self, who: str, attempt: str) -> Undone:
        """Undo the newest answer or correction of `who`.

        After an answer, `who` holds its prompt again. After a correction, the answer from before is
        in force again.

        Raises:
            Refused: there is nothing to undo.
        """
        who = checked_name(who)
        _check_attempt(attempt)
        with self.store.file.transaction() as connection:
            query, answer, author, repeated = answer_history.undo(connection, who, attempt)
            if answer is not None and author == who:
                return Undone(query, None, answer)
            if repeated:  # another person may hold or have answered the prompt now
                _check_may_answer(connection, query, who)
            _take(connection, query, who, self._clock())
            return Undone(query, prompt(connection, query, who), None)

    def redo(self, who: str, attempt: str) -> Redone:
        """Restore the answer or correction that `who` undid last.

        Raises:
            Refused: there is nothing to redo, or another person has answered the prompt.
        """
        who = checked_name(who)
        _check_attempt(attempt)
        with self.store.file.transaction() as connection:
            query, answer, _, _ = answer_history.redo(connection, who, attempt)
            if answer is None:  # a repeated request: it was undone again
                raise Refused("unknown", f"the answer to prompt {query} was undone again")
            is_set = asked(connection, query).clip_set is not None
            return Redone(query, None if is_set else answer)

    def correct(self, label: int, answer: str, who: str, attempt: str) -> int:
        """Replace an answer of `who` by another one; return the id of the new record.

        Raises:
            Refused: it is not an answer of `who`, it was undone or changed, or the new answer is
                invalid or the same.
        """
        who = checked_name(who)
        checked = checked_answer(answer)
        _check_attempt(attempt)
        with self.store.file.transaction() as connection:
            return answer_history.correct(connection, label, checked, who, attempt)

    def own_answers(self, who: str, before: int | None = None) -> list[ListedAnswer]:
        """Return the newest answers of `who`, newest first, at most `LISTED`.

        Args:
            who: the person's name.
            before: only records with a smaller id; None for all.

        Raises:
            Refused: the name is invalid.
        """
        file = self.store.file
        given = answer_history.own_answers(file, checked_name(who), before, LISTED)
        with file.transaction() as connection:
            shown = (one for one in given if is_shown(connection, one.query))
            return [ListedAnswer(one, prompt(connection, one.query, who)) for one in shown]

    def goal(self) -> str:
        """Return the goal in the person's words; empty if not set."""
        return _plain(self._saying(GOAL) or "")[:LONGEST_TEXT]

    def set_goal(self, text: str, who: str) -> str:
        """Record a new goal and return the stored text.

        Raises:
            Refused: the text is too long.
        """
        text = checked_goal(text)
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
        return tally_of(self.store, who)

    def active_people(self) -> int:
        """Return how many people are present."""
        return len(self.leases.present())

    def _opinion(self, query: int) -> StoredClip | None:
        try:
            return self.store.opinion(query)
        except DamagedFile:  # the answer is stored; an error would say the opposite
            return None

    def _next(self, connection: Any, who: str, fresh: "Iterable[int]") -> int | None:
        """Return a new prompt for `who`, or at times a repeat; None if no new one is left."""
        query = next(iter(fresh), None)
        if query is None:
            return None
        chance, repeats = self._rng.random(), repeat_share(repeats_of(self.store, who))
        if chance < repeats:
            again = _repeatable(connection, who)
        elif chance < repeats + self._overlap:
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
        Refused: it is empty, too long, has invisible characters, or has a meaning of its own.
    """
    name = unicodedata.normalize("NFC", " ".join(who.split()))
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(
            "invalid", f"a name has 1 to {LONGEST_NAME} visible characters, got `{name[:60]!r}`"
        )
    if name == DEMONSTRATION:
        raise Refused("invalid", f"`{name}` means labels of demonstrations: choose another name")
    return name


def checked_goal(text: object) -> str:
    """Return a goal on one line, without invisible characters.

    Raises:
        Refused: it is not text, or it is too long.
    """
    if not isinstance(text, str):
        raise Refused("invalid", f"the goal must be text, got {shown(text)}")
    text = _plain(text)
    if len(text) > LONGEST_TEXT:
        raise Refused("invalid", f"the goal has {len(text)} characters; at most {LONGEST_TEXT} fit")
    return text


def _plain(text: str) -> str:
    """Return a text on one line, without invisible characters."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _check_seconds(seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise Refused("invalid", f"`seconds` is {seconds}: expected a number, 0 or more")


def _check_attempt(attempt: str) -> None:
    if not (8 <= len(attempt) <= 64 and attempt.isascii() and attempt.isprintable()):
        said = f"`attempt` must be 8 to 64 printable ASCII characters, got {len(attempt)}"
        raise Refused("invalid", said)


def _of_attempt(connection: Any, attempt: str, said: Said, who: str) -> int | None:
    """Return the first label that an earlier request with this attempt created; None if none."""
    found = [
        connection.execute(_OF_ATTEMPT, (part,)).fetchone()
        for part in answer_history.parts_of(attempt, len(said.labels))
    ]
    if found[0] is None:
        return None
    known = [None if row is None else tuple(row[1:]) for row in found]
    if known != [(query, answer, who) for query, answer in said.labels.items()]:
        raise Refused("invalid", "`attempt` has been used for something else")
    return int(found[0][0])


def _record(connection: Any, one: Asked, said: Said, who: str, seconds: float, attempt: str) -> int:
    """Insert the labels and scores of an answer; return the id of the first label."""
    at, parts = now(), answer_history.parts_of(attempt, len(said.labels))
    if one.clip_set is not None:
        insert_scores(connection, one.clip_set, said.scores, who, at, seconds)
    each = float(seconds) / len(said.labels)
    for (query, answer), part in zip(said.labels.items(), parts, strict=True):
        insert(
            connection,
            "INSERT INTO labels (query, answer, who, at, seconds, attempt)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (query, answer, who, at, each, part),
        )
    return int(connection.execute(_OF_ATTEMPT, (attempt,)).fetchone()[0])


def _check_may_answer(connection: Any, query: int, who: str) -> None:
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


def _held_and_free(
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


def _share(available: int, people: int) -> int:
    """Return how many prompts one person may hold, so that some remain for the others."""
    return max(1, min(AHEAD, math.ceil(available / people)))


def _take(connection: Any, query: int, who: str, moment: float) -> None:
    """Record that `who` takes a prompt, unless they took it last."""
    taker = connection.execute(_LAST_TAKER, (query,)).fetchone()
    if taker is None or taker[0] != who:
        insert(
            connection, "INSERT INTO takes (query, who, at) VALUES (?, ?, ?)", (query, who, moment)
        )


def _repeatable(connection: Any, who: str) -> int | None:
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


def _answered_by_others(connection: Any, who: str) -> int | None:
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
