"""Tests of `backflip.labelling.label_queue`: who gets which pair, what is refused."""

import random
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from backflip.labelling import answer_history, label_queue
from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.leases import LEASE_SECONDS
from backflip.labelling.people_input import checked_name
from backflip.labelling.refused import Refused
from backflip.labelling.taking import AHEAD
from backflip.labelling.tally import labels_per_minute_without_waiting
from backflip.preferences.films import Film
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore

FILM = Film(f"{'0' * 64}.webp", 30, 6, 48, 48, 30.0, 1.0, False)


class Chance(random.Random):
    """Random numbers that a test has chosen: for whether to repeat, and whether to flip."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = list(numbers)

    def random(self) -> float:
        """The next one chosen; those not chosen are large, and repeat nothing."""
        return self.numbers.pop(0) if self.numbers else 0.99


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.seconds

    def stamp(self) -> str:
        """The time as records keep it."""
        return datetime.fromtimestamp(self.seconds, UTC).isoformat(timespec="milliseconds")


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (label_queue, answer_history):
        monkeypatch.setattr(module, "now", clock.stamp)
    return clock


@pytest.fixture
def store(tmp_path: Path):
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        yield store


@pytest.fixture
def queue(store, clock):
    return LabelQueue(store, clock=clock, rng=Chance())


def ask(store, count, opinion=None, films=({"person": FILM}, {"person": FILM})):
    clip = {"obs": np.zeros((2, 2), np.float32)}
    query = NewQuery(0, clip, clip, 100, films=films, opinion=opinion)
    return store.add_queries([query] * count)


def taken(queue, who="me", without=()):
    return [pair.query for pair in queue.take(who, without)]


attempts = (f"attempt-{n}" for n in range(10**6))


def give(queue, query, answer="left", who="me", attempt=None):
    return queue.answer(query, answer, who, 1.5, attempt or next(attempts))


def records(store, table="labels"):
    return store.file.rows(f"SELECT * FROM {table}")


# --- taking --------------------------------------------------------------------------------------


def test_oldest_pairs_come_first_up_to_the_limit(store, queue):
    ask(store, 6)
    assert taken(queue) == [1, 2, 3, 4]
    assert len(taken(queue)) == AHEAD


def test_answered_pairs_are_replaced(store, queue):
    ask(store, 6)
    taken(queue)
    give(queue, 2)
    assert taken(queue) == [1, 3, 4, 5]


def test_pair_has_the_films_of_all_views(store, queue):
    left, right = (FILM._replace(frames=n) for n in (5, 7))
    ask(store, 1, films=({"person": left, "agent": FILM}, {"person": right, "agent": FILM}))
    (pair,) = queue.take("me")
    assert pair.clips == [{"person": left, "agent": FILM}, {"person": right, "agent": FILM}]


def test_pairs_without_films_are_not_shown(store, queue):
    ask(store, 1, films=None)
    assert taken(queue) == []


def test_held_pairs_are_not_given_to_others(store, queue):
    ask(store, 12)
    held = [taken(queue, who) for who in ("ann", "bob", "cem")]
    assert len(set().union(*held)) == sum(map(len, held))
    assert all(held)


def test_last_pairs_are_shared(store, queue):
    """Bob is there, too: of four pairs Ann gets two, so that he has something to do next."""
    ask(store, 2)
    assert taken(queue, "bob") == [1, 2]
    ask(store, 4)
    assert taken(queue, "ann") == [3, 4]


def test_pairs_of_a_person_who_left_are_free(store, queue, clock):
    ask(store, 1)
    assert taken(queue, "ann") == [1]
    clock.seconds += LEASE_SECONDS
    assert taken(queue, "bob") == []
    clock.seconds += 0.1
    assert taken(queue, "bob") == [1]
    assert taken(queue, "ann") == []
    with pytest.raises(Refused, match="bob has it"):
        give(queue, 1, who="ann")


def test_closed_page_frees_the_pairs_at_once_unless_another_page_is_open(store, queue):
    ask(store, 1)
    for place in ("one", "two"):
        assert [pair.query for pair in queue.take("ann", place=place)] == [1]
    queue.leases.end("ann", "one")
    assert taken(queue, "bob") == []
    queue.leases.end("ann", "two")
    assert taken(queue, "bob") == [1]


@pytest.mark.medium
def test_person_who_thinks_for_an_hour_keeps_the_pair(store, queue, clock):
    ask(store, 1)
    assert taken(queue, "ann") == [1]
    for _ in range(1800):
        clock.seconds += 2
        queue.leases.renew("ann")
    assert taken(queue, "bob") == []
    give(queue, 1, who="ann")


def test_returned_pairs_are_free_at_once(store, queue):
    ask(store, 3)
    assert taken(queue, "ann") == [1, 2, 3]
    assert taken(queue, "bob") == []
    queue.give_back("ann", [1, 3])
    assert taken(queue, "bob") == [1], "half of what is there: ann was here lately"
    with pytest.raises(Refused, match="do not hold"):
        give(queue, 1, who="ann")
    give(queue, 2, who="ann")


def test_only_the_holder_can_return_a_pair(store, queue):
    ask(store, 1)
    taken(queue, "ann")
    before = records(store, "takes")
    queue.give_back("bob", [1, 99])
    assert records(store, "takes") == before
    queue.give_back("ann", [1])
    with pytest.raises(Refused, match="take it first"):
        give(queue, 1, who="ann")


def test_late_answer_counts_if_the_pair_was_not_taken(store, queue, clock):
    ask(store, 1)
    taken(queue)
    clock.seconds += 10 * LEASE_SECONDS
    assert taken(queue) == [1], "nobody else took it"
    clock.seconds += 10 * LEASE_SECONDS
    assert give(queue, 1).label == 1


def test_excluded_pairs_are_left_out(store, queue):
    ask(store, 6)
    assert taken(queue, without=[1, 3]) == [2, 4, 5, 6]
    assert taken(queue, without=[]) == [2, 4, 5, 6]


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "a\tb\x00", "a\u202eb"])
def test_invalid_names_are_refused(store, queue, name):
    with pytest.raises(Refused, match="a name has 1 to 40 visible characters") as refused:
        queue.take(name)
    assert refused.value.problem == "invalid"
    assert records(store, "takes") == []


def test_names_are_trimmed():
    assert checked_name("  Ann  Lee\n") == "Ann Lee"


# --- answering -----------------------------------------------------------------------------------


def test_answer_is_recorded_with_name_and_seconds(store, queue, clock):
    ask(store, 1)
    taken(queue)
    assert queue.answer(1, "tie", "me", 2.5, "attempt-x").label == 1
    (row,) = store.file.rows("SELECT query, answer, who, at, seconds, attempt FROM labels")
    assert row == (1, "tie", "me", clock.stamp(), 2.5, "attempt-x")


def test_attempt_counts_once(store, queue):
    ask(store, 2)
    taken(queue)
    first = give(queue, 1, attempt="the same one")
    assert give(queue, 1, attempt="the same one") == first
    assert len(records(store)) == 1
    with pytest.raises(Refused, match="used for something else"):
        give(queue, 2, attempt="the same one")


def test_undone_attempt_counts_once(store, queue):
    """Sent, undone, and sent again by a page that knows of neither: it stays undone."""
    ask(store, 1)
    taken(queue)
    give(queue, 1, attempt="sent twice")
    queue.undo("me", "attempt-u")
    give(queue, 1, attempt="sent twice")
    assert store.counts().labels == 0
    assert len(records(store)) == 2


def test_refusals_have_a_reason_and_write_nothing(store, queue):
    ask(store, 3)
    taken(queue, "ann")
    give(queue, 1, who="ann")
    before = records(store)
    for query, who, problem, words in (
        (9, "ann", "unknown", "there is no prompt 9"),
        (1, "ann", "answered", "answered by ann: undo that first"),
        (2, "bob", "not yours", r"you do not hold prompt 2 \(ann has it\)"),
    ):
        with pytest.raises(Refused, match=words) as refused:
            give(queue, query, who=who)
        assert refused.value.problem == problem
    assert records(store) == before


def test_free_pair_cannot_be_answered(store, queue):
    ask(store, 1)
    with pytest.raises(Refused, match="take it first"):
        give(queue, 1)


@pytest.mark.parametrize(
    ("answer", "seconds", "attempt", "words"),
    [
        ("up", 1.0, "attempt-x", "`up` is not an answer"),
        ("left", -0.1, "attempt-x", "`seconds` is -0.1"),
        ("left", float("nan"), "attempt-x", "`seconds` is nan"),
        ("left", 1.0, "short", "`attempt` must be"),
        ("left", 1.0, "x" * 65, "`attempt` must be"),
        ("left", 1.0, "attempt-ä", "`attempt` must be"),
    ],
)
def test_invalid_answers_are_refused(store, queue, answer, seconds, attempt, words):
    ask(store, 1)
    taken(queue)
    with pytest.raises(Refused, match=words) as refused:
        queue.answer(1, answer, "me", seconds, attempt)
    assert refused.value.problem == "invalid"
    assert records(store) == []


def test_answer_returns_the_opinion(store, queue):
    opinion = {"left": np.ones((2, 3), np.float32), "right": np.zeros((2, 3), np.float32)}
    ask(store, 1, opinion=opinion)
    ask(store, 1)
    taken(queue)
    told = give(queue, 1).opinion
    assert told is not None
    np.testing.assert_array_equal(told["left"], opinion["left"])
    assert give(queue, 2).opinion is None


def test_damaged_opinion_does_not_block_the_answer(store, queue):
    ask(store, 1, opinion={"left": np.ones((2, 3), np.float32)})
    with sqlite3.connect(store.file.path) as connection:
        connection.execute("DROP TRIGGER queries_no_update")
        connection.execute("UPDATE queries SET opinion = x'00'")
    connection.close()
    taken(queue)
    assert give(queue, 1) == (1, None)


# --- undoing -------------------------------------------------------------------------------------


def test_undo_is_last_first_and_pairs_can_be_answered_again(store, queue):
    ask(store, 3)
    taken(queue)
    for query in (1, 2, 3):
        give(queue, query)
    assert [queue.undo("me", next(attempts)).query for _ in range(2)] == [3, 2]
    assert taken(queue) == [2, 3]
    give(queue, 2, "right")
    assert store.file.rows("SELECT query, answer FROM effective ORDER BY query") == [
        (1, "left"),
        (2, "right"),
    ]


def test_repeated_undo_counts_once(store, queue):
    ask(store, 2)
    taken(queue)
    give(queue, 1)
    give(queue, 2)
    assert [queue.undo("me", "the same one").query for _ in range(2)] == [2, 2]
    assert store.counts().labels == 1


def test_repeated_undo_does_not_take_the_pair_from_another_person(store, queue, clock):
    ask(store, 1)
    taken(queue, "ann")
    give(queue, 1, who="ann")
    queue.undo("ann", "attempt-u")
    clock.seconds += LEASE_SECONDS + 1
    assert taken(queue, "bob") == [1]
    with pytest.raises(Refused, match="bob has it"):
        queue.undo("ann", "attempt-u")
    give(queue, 1, who="bob")
    with pytest.raises(Refused, match="answered by bob"):
        queue.undo("ann", "attempt-u")


def test_attempt_belongs_to_one_person_and_one_action(store, queue):
    ask(store, 2)
    taken(queue, "ann")
    give(queue, 1, "left", "ann", "attempt-a")
    queue.undo("ann", "attempt-u")
    before = records(store), records(store, "takes")
    for again in (
        lambda: give(queue, 1, "right", "ann", "attempt-a"),
        lambda: give(queue, 1, "left", "bob", "attempt-a"),
        lambda: give(queue, 2, "left", "ann", "attempt-u"),
        lambda: queue.undo("ann", "attempt-a"),
        lambda: queue.undo("bob", "attempt-u"),
    ):
        with pytest.raises(Refused, match="used for something else") as refused:
            again()
        assert refused.value.problem == "invalid"
    assert (records(store), records(store, "takes")) == before


def test_goal_and_name_are_normalised(queue):
    assert queue.set_goal("up \x00\x1b[31m\u202eright", "me") == "up [31mright"
    assert checked_name("Ren\u0065\u0301") == "Ren\u00e9"


def test_undo_is_limited_to_own_answers(store, queue):
    ask(store, 2)
    taken(queue, "ann")
    give(queue, 1, who="ann")
    with pytest.raises(Refused, match="no answer to undo") as refused:
        queue.undo("bob", next(attempts))
    assert refused.value.problem == "unknown"
    assert store.counts().labels == 1


# --- repeats and overlap -------------------------------------------------------------------------


def answered(store, queue, count, who="me", answer="left"):
    """`count` new pairs, each answered by `who`."""
    queries = ask(store, count)
    for query in queries:
        queue.take(who)
        give(queue, query, answer, who)
    return queries


@pytest.mark.medium
def test_about_one_in_twenty_is_a_repeat(store, clock):
    """A number below .05 repeats the oldest pair answered long ago; then the sides are drawn."""
    queue = LabelQueue(store, clock=clock, rng=Chance())
    answered(store, queue, 11)
    ask(store, 2)
    queue = LabelQueue(store, clock=clock, rng=Chance(0.049, 0.4, 0.05))
    again, new = queue.take("me")[:2]
    assert (again.query, new.query) == (14, 13)
    (row,) = store.file.rows("SELECT left_clip, right_clip, repeats FROM queries WHERE id = 14")
    assert row == (2, 1, 1)  # of pair 1, its sides swapped
    assert store.counts().queries == 13  # repeats are not counted


@pytest.mark.medium
def test_repeat_comes_after_ten_answers(store, clock):
    queue = LabelQueue(store, clock=clock, rng=Chance())
    answered(store, queue, 10)
    ask(store, 1)
    assert taken(LabelQueue(store, clock=clock, rng=Chance(0.0))) == [11]


@pytest.mark.medium
def test_pair_is_repeated_once(store, clock):
    queue = LabelQueue(store, clock=clock, rng=Chance())
    answered(store, queue, 11)
    ask(store, 2)
    taken(LabelQueue(store, clock=clock, rng=Chance(0.0, 0.9, 0.0, 0.9)))
    assert store.file.rows("SELECT repeats FROM queries WHERE repeats IS NOT NULL") == [(1,)]


def test_overlap_shows_pairs_of_others(store, clock):
    queue = LabelQueue(store, clock=clock, rng=Chance())
    answered(store, queue, 2, who="ann")
    clock.seconds += LEASE_SECONDS + 1  # she has left
    ask(store, 2)
    one = taken(LabelQueue(store, clock=clock, rng=Chance(0.15)), "bob")
    assert one == [3, 4]
    ask(store, 2)
    queue = LabelQueue(store, overlap=0.1, clock=clock, rng=Chance(0.14, 0.9))
    assert 7 in taken(queue, "bob")
    assert store.file.rows("SELECT repeats FROM queries WHERE id = 7") == [(2,)]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("flipped", "first", "again", "alike"),
    [
        (False, "left", "left", True),
        (False, "left", "right", False),
        (True, "left", "right", True),
        (True, "left", "left", False),
        (True, "right", "left", True),
        (True, "tie", "tie", True),
        (True, "skip", "tie", False),
    ],
)
def test_agreement_respects_swapped_sides(store, clock, flipped, first, again, alike):
    queue = LabelQueue(store, clock=clock, rng=Chance())
    answered(store, queue, 1, answer=first)
    answered(store, queue, 10)
    ask(store, 1)
    queue = LabelQueue(store, clock=clock, rng=Chance(0.0, 0.1 if flipped else 0.9))
    (repeat, *_) = taken(queue)
    give(queue, repeat, again)
    tally = queue.tally("me")
    assert (tally.repeated, tally.self_agreement) == (1, float(alike))
    assert (tally.shared, tally.agreement) == (0, None)
    # It is an answer of mine, but none of the labels.
    assert (tally.labels, tally.mine) == (11, 12)


def test_agreement_with_others(store, clock):
    queue = LabelQueue(store, clock=clock, rng=Chance())
    answered(store, queue, 2, who="ann")
    clock.seconds += LEASE_SECONDS + 1
    ask(store, 2)
    queue = LabelQueue(store, overlap=0.5, clock=clock, rng=Chance(0.3, 0.9, 0.3, 0.9))
    both = [query for query in taken(queue, "bob") if query > 4]
    give(queue, both[0], "left", "bob")
    give(queue, both[1], "right", "bob")
    for who in ("ann", "bob"):
        tally = queue.tally(who)
        assert (tally.shared, tally.agreement, tally.repeated) == (2, 0.5, 0)


# --- counting ------------------------------------------------------------------------------------


def test_rate_excludes_breaks(store, queue, clock):
    """Gaps of 2, 100 and 4 seconds: of the two that were no break, 2 answers in 6 seconds."""
    ask(store, 4)
    taken(queue)
    assert queue.tally("me").per_minute is None
    for query, gap in ((1, 0.0), (2, 2.0), (3, 100.0), (4, 4.0)):
        clock.seconds += gap
        give(queue, query)
    assert queue.tally("me").per_minute == pytest.approx(20.0)


def test_rate_without_waiting_is_that_of_the_median_answer(store, queue, clock):
    """Gaps of 3, 3 and 14 seconds: the person waited for a pair before the last answer."""
    ask(store, 4)
    taken(queue)
    assert labels_per_minute_without_waiting(store) is None
    for query, gap in ((1, 0.0), (2, 3.0), (3, 3.0), (4, 14.0)):
        clock.seconds += gap
        give(queue, query)
    assert labels_per_minute_without_waiting(store) == pytest.approx(20.0)
    assert queue.tally("me").per_minute == pytest.approx(9.0)


def test_one_answer_has_no_rate(store, queue):
    answered(store, queue, 1)
    assert queue.tally("me").per_minute is None


def test_tally_excludes_undone_answers(store, queue):
    answered(store, queue, 3)
    answered(store, queue, 2, who="ann", answer="skip")
    queue.undo("me", next(attempts))
    ask(store, 4)
    tally = queue.tally("me")
    assert (tally.labels, tally.mine, tally.open) == (4, 2, 5)
    assert queue.tally("nobody").mine == 0


def test_active_people(store, queue, clock):
    ask(store, 8)
    taken(queue, "ann")
    clock.seconds += LEASE_SECONDS - 1
    taken(queue, "bob")
    assert queue.active_people() == 2
    clock.seconds += 2
    assert queue.active_people() == 1


# --- what people say -----------------------------------------------------------------------------


def test_newest_goal_counts(store, queue):
    assert queue.goal() == ""
    assert queue.set_goal(" stand on\n one leg ", "me") == "stand on one leg"
    queue.set_goal("x" * 200, "ann")
    assert queue.goal() == "x" * 200
    with pytest.raises(Refused, match="201 characters"):
        queue.set_goal("x" * 201, "me")
    queue.set_goal("", "me")
    assert queue.goal() == ""
    assert len(records(store, "sayings")) == 3


def test_finish_can_be_undone(queue):
    assert not queue.labelling_finished()
    queue.finish_labelling("me")
    assert queue.labelling_finished()
    queue.finish_labelling("ann", finished=False)
    assert not queue.labelling_finished()


def test_two_queues_of_one_file_give_different_pairs(store, clock, tmp_path):
    ask(store, 12)
    with LabelStore.open(tmp_path / "labels.sqlite") as other:
        one = taken(LabelQueue(store, clock=clock, rng=Chance()), "ann")
        two = taken(LabelQueue(other, clock=clock, rng=Chance()), "bob")
    assert not set(one) & set(two)
