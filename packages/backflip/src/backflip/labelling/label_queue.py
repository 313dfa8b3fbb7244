"""The label queue: people take prompts, answer them and undo answers.

Several people can use the queue at once, each under a name, on the page or in a terminal. A person
holds a prompt from taking it until they answer it or leave (`backflip.labelling.leases`); a prompt
that no other person has taken since then is still theirs when they come back. Every keystroke has
an id, so a request repeated after a lost connection or a killed server counts once. Every change is
in the label file before the method returns.
"""

import random
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from backflip.labelling import answer_history
from backflip.labelling.answer_history import OwnAnswer
from backflip.labelling.leases import Leases
from backflip.labelling.people_input import (
    LONGEST_TEXT,
    check_attempt,
    check_seconds,
    checked_goal,
    checked_name,
    on_one_line,
)
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
from backflip.labelling.taking import (
    answered_by_others,
    check_may_answer,
    give_back,
    held_and_free,
    repeatable,
    share_of,
    take,
)
from backflip.labelling.tally import Tally, tally_of
from backflip.preferences.careless import repeat_share, repeats_of
from backflip.preferences.clip_sets import insert_scores
from backflip.preferences.label_file import insert
from backflip.preferences.label_records import Answer, StoredClip
from backflip.preferences.labels import LabelStore
from runshelf.errors import DamagedFile
from runshelf.store.times import now

LISTED = 20  # answers in one part of the list of a person's answers
GOAL, ENOUGH = "goal", "enough"  # keys in the label file

_OF_ATTEMPT = "SELECT id, query, answer, who FROM labels WHERE attempt = ?"


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
            held, free = held_and_free(connection, who, others, without)
            held = [query for query in held if is_shown(connection, query)]
            share = share_of(len(held) + len(free), len(others) + 1)
            fresh = (query for query in free if is_shown(connection, query))
            while len(held) < share:
                query = self._next(connection, who, fresh)
                if query is None:
                    break
                take(connection, query, who, self._clock())
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
                give_back(connection, query, who)

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
        check_seconds(seconds)
        check_attempt(attempt)
        with self.store.file.transaction() as connection:
            one = asked(connection, query)
            said = said_by(one, answer)
            label = _of_attempt(connection, attempt, said, who)
            if label is None:
                check_may_answer(connection, query, who)
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
            check_may_answer(connection, query, who)
            keep_marks(connection, one, marks, who)

    def undo(self, who: str, attempt: str) -> Undone:
        """Undo the newest answer or correction of `who`.

        After an answer, `who` holds its prompt again. After a correction, the answer from before is
        in force again.

        Raises:
            Refused: there is nothing to undo.
        """
        who = checked_name(who)
        check_attempt(attempt)
        with self.store.file.transaction() as connection:
            query, answer, author, repeated = answer_history.undo(connection, who, attempt)
            if answer is not None and author == who:
                return Undone(query, None, answer)
            if repeated:  # another person may hold or have answered the prompt now
                check_may_answer(connection, query, who)
            take(connection, query, who, self._clock())
            return Undone(query, prompt(connection, query, who), None)

    def redo(self, who: str, attempt: str) -> Redone:
        """Restore the answer or correction that `who` undid last.

        Raises:
            Refused: there is nothing to redo, or another person has answered the prompt.
        """
        who = checked_name(who)
        check_attempt(attempt)
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
        check_attempt(attempt)
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
        return on_one_line(self._saying(GOAL) or "")[:LONGEST_TEXT]

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
            again = repeatable(connection, who)
        elif chance < repeats + self._overlap:
            again = answered_by_others(connection, who)
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
