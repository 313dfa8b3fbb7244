"""Tests of `backflip.labelling.answer_history`: undo, redo and corrections, by the queue."""

import random
import sqlite3
from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backflip.labelling import answer_history, label_queue
from backflip.labelling.label_queue import LISTED, LabelQueue
from backflip.labelling.refused import Refused
from backflip.preferences import label_schema
from backflip.preferences.films import Film
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore

FILM = Film(f"{'0' * 64}.webp", 30, 6, 48, 48, 30.0, 1.0, False)
CLIP = {"obs": np.zeros((2, 2), np.float32)}
QUERY = NewQuery(0, CLIP, CLIP, 100, films=({"person": FILM}, {"person": FILM}))


class NoRepeats(random.Random):
    """Random numbers that never make a repeat."""

    def random(self):
        """A large one."""
        return 0.99


class Person:
    """Somebody at the queue of one run."""

    attempts = count()

    def __init__(self, queue, who="me"):
        self.queue, self.who = queue, who

    def attempt(self):
        """Return a new attempt id."""
        return f"attempt-{next(Person.attempts)}"

    def answer(self, query, answer="left"):
        """Take and answer a pair; return the label."""
        self.queue.take(self.who)
        return self.queue.answer(query, answer, self.who, 1.5, self.attempt()).label

    def answer_next(self):
        """Answer the next pair; return the label."""
        return self.answer(self.queue.take(self.who)[0].query)

    def undo(self):
        """Undo."""
        return self.queue.undo(self.who, self.attempt())

    def redo(self):
        """Redo."""
        return self.queue.redo(self.who, self.attempt())

    def correct(self, label, answer):
        """Correct an answer; return the new label."""
        return self.queue.correct(label, answer, self.who, self.attempt())

    def listed(self, before=None):
        """Return the list of own answers."""
        return [one.given for one in self.queue.own_answers(self.who, before)]


@pytest.fixture
def store(tmp_path):
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        store.add_queries([QUERY] * 8)
        yield store


@pytest.fixture
def me(store):
    return Person(LabelQueue(store, rng=NoRepeats()))


def in_force(store):
    return store.file.rows("SELECT query, answer FROM effective ORDER BY query")


def records(store):
    return store.file.rows("SELECT * FROM labels")


def test_redo_restores_the_undone_answers_one_by_one(store, me):
    given_labels = [me.answer(query) for query in (1, 2, 3)]
    before = store.file.rows("SELECT * FROM effective ORDER BY id")
    assert [me.undo().query for _ in range(3)] == [3, 2, 1]
    assert in_force(store) == []
    assert [me.redo() for _ in range(3)] == [(1, "left"), (2, "left"), (3, "left")]
    assert store.file.rows("SELECT * FROM effective ORDER BY id") == before
    assert [row[0] for row in before] == given_labels
    assert len(records(store)) == 9, "every step is a record"


def test_new_answer_ends_redoing(store, me):
    me.answer(1)
    me.answer(2)
    me.undo()
    me.undo()
    assert me.queue.tally("me").can_redo
    me.answer(1, "right")
    assert not me.queue.tally("me").can_redo
    with pytest.raises(Refused, match="no undone answer to restore") as refused:
        me.redo()
    assert refused.value.problem == "unknown"
    assert in_force(store) == [(1, "right")]


def test_redone_answer_can_be_undone_again(store, me):
    me.answer(1)
    me.undo()
    me.redo()
    assert not me.queue.tally("me").can_redo
    assert me.undo().query == 1
    assert me.queue.tally("me").can_redo
    assert in_force(store) == []


def test_nobody_redoes_what_somebody_else_undid(me):
    me.answer(1)
    me.undo()
    bob = Person(me.queue, "bob")
    assert not me.queue.tally("bob").can_redo
    with pytest.raises(Refused, match="no undone answer to restore"):
        bob.redo()


def test_redo_is_refused_after_another_person_answered_the_pair(store, me):
    me.answer(1)
    me.undo()
    me.queue.give_back("me", [1])
    me.queue.leases.end("me")
    Person(me.queue, "bob").answer(1, "tie")
    assert not me.queue.tally("me").can_redo
    with pytest.raises(Refused, match="answered by bob in the meantime") as refused:
        me.redo()
    assert refused.value.problem == "answered"
    assert in_force(store) == [(1, "tie")]


def test_repeated_requests_count_once(store, me):
    label = me.answer(1)
    queue = me.queue
    corrected = [queue.correct(label, "tie", "me", "correct it") for _ in range(2)]
    assert corrected[0] == corrected[1]
    queue.undo("me", "undo once")
    assert queue.undo("me", "undo once").answer == "left"
    assert [queue.redo("me", "redo once") for _ in range(2)] == [(1, "tie")] * 2
    assert len(records(store)) == 4
    for again in (
        lambda: queue.redo("me", "undo once"),
        lambda: queue.undo("me", "redo once"),
        lambda: queue.redo("bob", "redo once"),
        lambda: queue.correct(label, "skip", "me", "correct it"),
        lambda: queue.redo("me", "correct it"),
        lambda: queue.undo("me", "correct it"),
    ):
        with pytest.raises(Refused, match="used for something else"):
            again()


def test_correction_replaces_an_older_answer(store, me):
    labels = [me.answer(query) for query in (1, 2, 3)]
    before = store.count_records(100)
    new = me.correct(labels[0], "right")
    assert in_force(store) == [(1, "right"), (2, "left"), (3, "left")]
    assert [answer.answer for answer in store.in_force(0, 100)] == ["left", "left", "right"]
    assert store.count_records(100) > before, "so that the trainer fits again"
    assert store.counts().labels == 3
    again = me.correct(new, "skip")
    assert in_force(store)[0] == (1, "skip")
    assert len(store.in_force(0, 100)) == 2, "nothing is learned from it"
    assert again > new


def test_undo_of_a_correction_restores_the_answer_from_before(store, me):
    first, second = me.answer(1), me.answer(2)
    me.correct(me.correct(first, "right"), "tie")
    assert me.undo() == (1, None, "right")
    assert me.undo() == (1, None, "left")
    assert in_force(store) == [(1, "left"), (2, "left")]
    assert [me.redo(), me.redo()] == [(1, "right"), (1, "tie")]
    assert [me.undo().answer, me.undo().answer] == ["right", "left"]
    assert me.undo().query == 2
    assert second


def test_corrections_that_are_refused(store, me):
    label = me.answer(1)
    bob = Person(me.queue, "bob")
    theirs = bob.answer_next()
    new = me.correct(label, "tie")
    before = records(store)
    for person, which, answer, problem, words in (
        (me, 99, "left", "unknown", "answer 99 does not exist"),
        (me, label, "left", "unknown", "was undone or changed"),
        (me, theirs, "right", "not yours", "is by bob: only bob may change it"),
        (bob, new, "left", "not yours", "is by me"),
        (me, new, "tie", "invalid", "already is `tie`"),
        (me, new, "up", "invalid", "`up` is not an answer"),
    ):
        with pytest.raises(Refused, match=words) as refused:
            person.correct(which, answer)
        assert refused.value.problem == problem
    assert records(store) == before


def test_undone_answer_cannot_be_corrected(me):
    label = me.answer(1)
    me.undo()
    with pytest.raises(Refused, match="was undone or changed"):
        me.correct(label, "right")


@pytest.mark.medium
def test_own_answers_are_listed_newest_first_in_parts(store, me):
    store.add_queries([QUERY] * LISTED)
    bob = Person(me.queue, "bob")
    labels = [me.answer(query) for query in range(1, LISTED + 4)]
    theirs = bob.answer_next()
    new = me.correct(labels[0], "tie")
    first = me.listed()
    assert [one.label for one in first] == [new, *reversed(labels[4:])]
    assert (first[0].answer, first[0].corrected, first[1].corrected) == ("tie", True, False)
    assert [one.label for one in me.listed(first[-1].label)] == labels[3:0:-1]
    assert me.queue.own_answers("me")[0].prompt.clips[0] == {"person": FILM}
    assert [one.label for one in bob.listed()] == [theirs]


@pytest.mark.medium
def test_corrections_do_not_change_the_rate(store, me, monkeypatch):
    """Three answers at 2 s each; then one is corrected ten minutes later, and one right after."""
    seconds = iter((0, 2, 4, 600, 601))

    def stamp():
        return datetime.fromtimestamp(next(seconds), UTC).isoformat(timespec="milliseconds")

    for module in (label_queue, answer_history):
        monkeypatch.setattr(module, "now", stamp)
    first, second, _ = (Person.answer(me, query) for query in (1, 2, 3))
    assert me.queue.tally("me").per_minute == pytest.approx(30)
    me.correct(first, "right")
    me.correct(second, "right")
    assert me.queue.tally("me").per_minute == pytest.approx(30)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("answer"), st.sampled_from(["left", "right", "tie"])),
        st.tuples(st.just("undo"), st.none()),
        st.tuples(st.just("redo"), st.none()),
        st.tuples(st.just("correct"), st.integers(0, 7)),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(STEPS)
def test_any_sequence_equals_two_stacks(tmp_path_factory, steps):
    """The textbook model: a list of states, and a place in it."""
    path = tmp_path_factory.mktemp("history") / "labels.sqlite"
    with LabelStore.open(path) as store:
        store.add_queries([QUERY] * 30)
        me = Person(LabelQueue(store, rng=NoRepeats()))
        states: list[dict[int, str]] = [{}]
        place, labels_before = 0, 0
        for kind, value in steps:
            now = states[place]
            if kind == "answer":
                query = min(set(range(1, 31)) - now.keys())
                me.answer(query, value)
                after = now | {query: value}
            elif kind == "correct" and now:
                listed = me.listed()
                chosen = listed[value % len(listed)]
                new = "tie" if chosen.answer != "tie" else "left"
                me.correct(chosen.label, new)
                after = now | {chosen.query: new}
            else:
                after = None
            if after is not None:
                states, place = [*states[: place + 1], after], place + 1
            elif kind in ("undo", "redo"):
                target = place + (1 if kind == "redo" else -1)
                act = me.redo if kind == "redo" else me.undo
                if 0 <= target < len(states):
                    act()
                    place = target
                else:
                    with pytest.raises(Refused):
                        act()
            assert dict(in_force(store)) == states[place]
            assert me.queue.tally("me").can_redo == (place + 1 < len(states))
            assert len(records(store)) >= labels_before, "records are only added"
            labels_before = len(records(store))


def test_label_file_of_version_2_is_migrated(tmp_path, monkeypatch):
    path = tmp_path / "labels.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(label_schema, "MIGRATIONS", label_schema.MIGRATIONS[:2])
        patch.setattr(label_schema, "SCHEMA", 2)
        with LabelStore.open(path) as store:
            first, second = store.add_queries([QUERY] * 2)
            label = store.add_label(first, "left", "me", 1)
            store.add_label(second, "right", "me", 1)
            store.undo(label, "me")
    with LabelStore.open(path) as store:
        assert in_force(store) == [(2, "right")]
        me = Person(LabelQueue(store, rng=NoRepeats()))
        me.correct(2, "tie")
        assert (2, "tie") in in_force(store)
        with (
            pytest.raises(sqlite3.IntegrityError, match="append-only"),
            sqlite3.connect(path) as connection,
        ):
            connection.execute("UPDATE labels SET replaces = 1")
        connection.close()
