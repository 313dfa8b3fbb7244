"""Tests of `backflip.labelling.people_source`: the status that people see, without training."""

import os
import time

import numpy as np
import pytest

from backflip.labelling.needed_labels import needed_labels, newest_round_at, next_phase
from backflip.labelling.people_source import PeopleAnswers
from backflip.labelling.processes import PageProcess
from backflip.labelling.status import Status, read_status, write_status
from backflip.preferences.answer_source import QueriedRun
from backflip.preferences.films import Film
from backflip.preferences.labels import LabelStore
from runshelf.errors import UserFacingError

CLIP = {"obs": np.zeros((2, 2), np.float32)}
FILM = Film(f"{'0' * 64}.webp", 30, 6, 48, 48, 30.0, 1.0, False)


class Drawer:
    """Draws nothing."""

    def redraw_missing(self, store):
        """Nothing is missing."""


@pytest.fixture
def store(tmp_path):
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        yield store


@pytest.fixture
def run(tmp_path, store):
    """A run of one seed: 40 queries before phase 1, then 12 and 8, then none."""
    return QueriedRun(
        folder=tmp_path,
        env="dot",
        seeds=[0],
        store=store,
        drawer=Drawer(),
        phases=4,
        due_after=[40, 12, 8, 0].__getitem__,
        budget=60,
        say=lambda note: None,
        wait=lambda what: None,
        book_time=lambda part: None,
    )


@pytest.fixture
def page(tmp_path):
    """A page that is not started."""
    page = PageProcess(["-c", ""], tmp_path / "page.log")
    page.address = "http://127.0.0.1:1/"
    return page


def ask(store, count, env_steps):
    return [store.add_query(0, CLIP, CLIP, env_steps) for _ in range(count)]


def answer(store, queries):
    for query in queries:
        store.add_label(query, "left", "me", 1)


def status_of(run):
    return read_status(run.folder)


@pytest.mark.medium
def test_status_counts_to_the_first_learning(run, store, page):
    """Of 40 pairs, at most 4 may be open: those on the screen and loaded."""
    answers = PeopleAnswers(run, page)
    answers.set_status("setting up")
    assert status_of(run).needed_labels == 36
    answers.set_status("drawing", phase=0, env_steps=0)
    assert status_of(run).needed_labels == 36, "although none is drawn yet"
    queries = ask(store, 40, 0)
    answers.set_status("waiting")
    assert status_of(run).needed_labels == 36
    answer(store, queries[:35])
    assert not answers._may_start_phase(40 // 4)
    answer(store, queries[35:36])
    assert answers._may_start_phase(40 // 4), "the number that was shown was the right one"


@pytest.mark.medium
def test_status_counts_on_while_the_agent_learns(run, store, page):
    answers = PeopleAnswers(run, page)
    answer(store, ask(store, 40, 0)[:36])
    answers.wait_for_labels(40)
    answers.set_status("learning", phase=0, env_steps=0)
    status = status_of(run)
    assert status.learned_labels == 36
    allowed = answers._allowed(12)
    assert status.needed_labels == 40 + 12 - allowed
    ask(store, 5, 100)
    answers.set_status("drawing", phase=1, env_steps=100)
    assert status_of(run).needed_labels == 40 + 12 - allowed, "seven are still to be drawn"


@pytest.mark.parametrize(
    ("doing", "phase", "expected"),
    [
        ("setting up", 0, 0),
        ("waiting", 1, 1),
        ("drawing", 3, 3),
        ("learning", 0, 1),
        ("learning", 3, None),
        ("evaluating", 4, None),
        ("finished", 4, None),
        ("stopped", 2, None),
    ],
)
def test_next_phase(doing, phase, expected):
    assert next_phase(Status(doing, 0.0, phase=phase, phases=4)) == expected


@pytest.mark.medium
def test_last_rounds_need_every_answer(run, store):
    assert [newest_round_at(run, phase, first=False) for phase in range(4)] == [40, 12, 8, 0]
    assert newest_round_at(run, 0, first=True) == 10
    ask(store, 60, 0)
    status = Status("waiting", 0.0, phase=3, phases=4)
    assert needed_labels(run, status, allowed=0) == 60
    assert needed_labels(run, status._replace(phase=4), allowed=0) is None


def test_resumed_run_shows_its_phase_at_once(run, page):
    dead = Status("learning", 1.0, phase=2, phases=4, env_steps=300, episode=FILM, pid=2**22 + 1)
    write_status(run.folder, dead._replace(learned_labels=50, phase_seconds=40.0, result="x"))
    assert read_status(run.folder).doing == "stopped"
    answers = PeopleAnswers(run, page)
    answers.set_status("setting up")
    status = status_of(run)
    assert (status.doing, status.phase, status.env_steps) == ("setting up", 2, 300)
    assert (status.episode, status.learned_labels, status.result) == (FILM, 50, "")
    assert (status.pid, status.phases, status.budget) == (os.getpid(), 4, 60)
    assert time.time() - status.since < 60
    answers.set_status("learning", phase=1, env_steps=200)  # the checkpoint is one phase older
    assert (status_of(run).phase, status_of(run).expected_seconds) == (1, 40.0)


def test_film_is_on_the_page_before_the_result(run, page):
    answers = PeopleAnswers(run, page, lambda folder: FILM)
    answers.set_status("learning", phase=3)
    assert status_of(run).film is None
    answers.set_status("evaluating", phase=4)
    assert (status_of(run).doing, status_of(run).film) == ("evaluating", FILM)
    answers.set_status("finished", result="done", more="backflip teach --more latest --labels 50")
    assert (status_of(run).film, status_of(run).result) == (FILM, "done")
    assert status_of(run).more.startswith("backflip teach")


def test_run_finishes_without_a_film_if_none_can_be_drawn(run, page):
    def fail(folder):
        raise UserFacingError("the disk is full")

    answers = PeopleAnswers(run, page, fail)
    answers.set_status("evaluating", phase=4)
    answers.set_status("finished", result="done")
    assert (status_of(run).film, status_of(run).doing) == (None, "finished")


@pytest.fixture
def seconds(monkeypatch):
    """Return a function that sets the seconds since the first phase started."""
    clock = {"now": 1000.0}
    monkeypatch.setattr("time.monotonic", lambda: clock["now"])
    return lambda passed: clock.update(now=1000.0 + passed)


@pytest.mark.medium
def test_people_who_would_wait_want_more_queries(run, store, page, seconds, monkeypatch):
    answers = PeopleAnswers(run, page)
    monkeypatch.setattr(answers.queue, "active_people", lambda: people)
    people = 1
    asked = ask(store, 40, 0)
    per_minute = "backflip.labelling.people_source.labels_per_minute_without_waiting"
    monkeypatch.setattr(per_minute, lambda store: 20.0)
    assert answers.queries_wanted() == 0, "no phase has been measured"
    answer(store, asked[:36])
    answers.wait_for_labels(40)
    seconds(30.0)
    assert answers.queries_wanted() == 4 + 10 - 4, "ten are answered in 30 s, and four are open"
    people = 2
    assert answers.queries_wanted() == 8 + 10 - 4
    people = 0
    assert answers.queries_wanted() == 0, "nobody would wait"
    people = 1
    seconds(1.0)
    assert answers.queries_wanted() == 0, "one is answered in a second, and four are open"


@pytest.mark.medium
def test_the_page_counts_with_the_length_of_the_phase_that_just_ended(
    run, store, page, seconds, monkeypatch
):
    answers = PeopleAnswers(run, page)
    monkeypatch.setattr(answers.queue, "active_people", lambda: 1)
    for name in ("labels_per_minute", "labels_per_minute_without_waiting"):
        monkeypatch.setattr(f"backflip.labelling.people_source.{name}", lambda store: 20.0)
    answer(store, ask(store, 40, 0))
    answers.wait_for_labels(40)
    seconds(18.0)
    answers.queries_wanted()
    answers.set_status("drawing", phase=1, env_steps=64)
    assert status_of(run).needed_labels == 40 + 12 - (4 + 6), "six are answered in 18 s"
