"""People rank and rate sets of clips: the labels are those of a simulated teacher."""

from pathlib import Path

import numpy as np
import pytest

from backflip.labelling import label_queue
from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.refused import Refused
from backflip.preferences.clip_sets import NewSet, add_sets, answer_set, open_sets, scores_of
from backflip.preferences.films import Film
from backflip.preferences.kept_labels import LabelHash
from backflip.preferences.labels import LabelStore

FILM = Film(f"{'0' * 64}.webp", 30, 6, 48, 48, 30.0, 1.0, False)
attempts = (f"attempt-{n}" for n in range(10**6))


@pytest.fixture
def store(tmp_path: Path):
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        yield store


@pytest.fixture
def queue(store):
    return LabelQueue(store)


def ask(store, kind, clips=3, sets=1):
    films = [{"person": FILM._replace(frames=2 + place)} for place in range(clips)]
    arrays = [{"obs": np.full((2, 2), place, np.float32)} for place in range(clips)]
    return add_sets(store, [NewSet(0, kind, arrays, 100, films)] * sets)


def give(queue, query, answer, who="me", attempt=None):
    return queue.answer(query, answer, who, 6.0, attempt or next(attempts))


def answers(store):
    return [answer for (answer,) in store.file.rows("SELECT answer FROM effective ORDER BY query")]


@pytest.mark.parametrize(
    ("kind", "answer", "scores"),
    [
        ("rank", [2, 0, 1], [2.0, 1.0, 3.0]),
        ("rank", [[1, 2], 0], [2.0, 3.0, 3.0]),
        ("rank", [[0, 1, 2]], [3.0, 3.0, 3.0]),
        ("rank", "skip", [None, None, None]),
        ("rate", [9, 1, 9], [9.0, 1.0, 9.0]),
        ("rate", [4, None, 5], [4.0, None, 5.0]),
        ("rate", [None, None, None], [None, None, None]),
    ],
)
def test_an_answer_is_recorded_as_that_of_a_simulated_teacher(
    kind, answer, scores, store, queue, tmp_path
):
    (number,) = ask(store, kind)
    (pair,) = queue.take("me")
    assert (pair.query, pair.kind, pair.marks) == (1, kind, [])
    assert [clip["person"].frames for clip in pair.clips] == [2, 3, 4]
    assert give(queue, 1, answer).label == 1
    with LabelStore.open(tmp_path / "other.sqlite") as other:
        ask(other, kind)
        (one,) = open_sets(other)
        answer_set(other, one, dict(zip(one.clips, scores, strict=True)), "me", 6.0)
        select = "SELECT id, query, answer, undoes, who, seconds FROM labels"
        assert store.file.rows(select) == other.file.rows(select)
        assert scores_of(store, number) == scores_of(other, number)
        learned = [[(x.query, x.answer) for x in s.labelled(0)] for s in (store, other)]
        assert learned[0] == learned[1]
    assert queue.take("me") == []
    assert store.counts().labels == 3


BAD = {
    "a clip twice": ("rank", [0, 0, 1], r"`\[0, 0, 1\]` is not an answer .*each once; or skip"),
    "too few clips": ("rank", [0, 1], "places 0 to 2 of the clips, best first"),
    "too many clips": ("rank", [0, 1, 2, 3], "is not an answer"),
    "a clip that is not there": ("rank", [0, 1, 3], "is not an answer"),
    "a truth": ("rank", [0, True, 2], "is not an answer"),
    "a side": ("rank", "left", "`left` is not an answer .*places 0 to 2"),
    "a side of a rating": ("rate", "tie", "`tie` is not an answer .*whole numbers from 1 to 9"),
    "too large": ("rate", [1, 10, 3], "whole numbers from 1 to 9"),
    "too small": ("rate", [1, 0, 3], "whole numbers from 1 to 9"),
    "a fraction": ("rate", [1, 2.5, 3], "whole numbers from 1 to 9"),
    "too few ratings": ("rate", [1, 2], "3 whole numbers"),
    "too many ratings": ("rate", [1, 2, 3, 4], "3 whole numbers"),
}


@pytest.mark.parametrize(("kind", "answer", "said"), BAD.values(), ids=BAD)
def test_bad_answers_get_one_line_and_record_nothing(kind, answer, said, store, queue):
    ask(store, kind)
    queue.take("me")
    with pytest.raises(Refused, match=said) as refused:
        give(queue, 1, answer)
    assert refused.value.problem == "invalid"
    assert "\n" not in str(refused.value)
    assert not store.file.rows("SELECT * FROM labels UNION ALL SELECT * FROM labels")
    assert not store.file.rows("SELECT * FROM scores")


def test_only_the_first_query_of_a_set_is_a_prompt(store, queue):
    ask(store, "rank", sets=2)
    assert [pair.query for pair in queue.take("me")] == [1, 4]
    with pytest.raises(Refused, match="query 2 belongs to prompt 1"):
        give(queue, 2, [0, 1, 2])
    with pytest.raises(Refused, match="me has it"):
        give(queue, 1, [0, 1, 2], who="eve")
    give(queue, 1, [0, 1, 2])
    with pytest.raises(Refused, match="was answered by me"):
        give(queue, 1, [0, 1, 2])


def test_an_answer_sent_twice_counts_once(store, queue):
    ask(store, "rate")
    queue.take("me")
    once = give(queue, 1, [1, 2, 3], attempt="the same")
    assert give(queue, 1, [1, 2, 3], attempt="the same") == once
    with pytest.raises(Refused, match="used for something else"):
        give(queue, 1, [1, 2, 2], attempt="the same")
    assert len(answers(store)) == 3


def test_the_rate_counts_a_set_as_the_labels_that_it_gives(store, queue, monkeypatch):
    """Three sets of three labels each, 12 and 18 seconds apart: 6 labels in 30 seconds."""
    ask(store, "rate", sets=3)
    queue.take("me")
    for query, second, expected in ((1, 0, None), (4, 12, 15.0), (7, 30, 12.0)):
        monkeypatch.setattr(label_queue, "now", lambda at=second: f"2026-01-01T00:00:{at:02}+00:00")
        give(queue, query, [1, 2, 3])
        assert queue.tally("me").per_minute == expected


def test_undo_and_redo_are_about_the_whole_set(store, queue):
    (number,) = ask(store, "rank")
    queue.take("me")
    give(queue, 1, [2, 1, 0])
    undone = queue.undo("me", "undo one")
    assert undone.query == undone.prompt.query == 1
    assert undone.answer is None
    assert answers(store) == []
    assert scores_of(store, number) == {}
    assert queue.undo("me", "undo one").query == 1, "the same request again"
    assert len(store.file.rows("SELECT * FROM labels")) == 6
    assert queue.tally("me").can_redo
    redone = queue.redo("me", "redo one")
    assert redone == (1, None)
    assert answers(store) == ["right"] * 3
    queue.undo("me", "undo two")
    give(queue, 1, [0, 1, 2])
    assert answers(store) == ["left"] * 3
    assert scores_of(store, number) == {1: 3.0, 2: 2.0, 3: 1.0}
    assert [row for (row,) in store.file.rows("SELECT count(*) FROM labels")] == [15]
    queue.undo("me", "undo three")
    queue.redo("me", "redo three")
    assert answers(store) == ["left"] * 3
    with pytest.raises(Refused, match="no undone answer"):
        queue.redo("me", "redo four")


def test_marks_are_on_disk_with_every_key(store, queue, tmp_path):
    ask(store, "rate")
    queue.take("me")
    queue.mark(1, [7], "me")
    queue.mark(1, [7, None], "me")
    with LabelStore.open(tmp_path / "labels.sqlite") as again:  # after a kill
        (pair,) = LabelQueue(again).take("me")
        assert pair.marks == [7, None]
    give(queue, 1, [7, None, 2])
    assert queue.undo("me", "undo one").prompt.marks == [7, None], "back by one key"
    queue.leases.end("me", "")
    (pair,) = queue.take("eve")
    assert pair.marks == [], "another person begins anew"


@pytest.mark.parametrize(
    ("kind", "marks"),
    [
        *(("rank", marks) for marks in ([0, 0], [3], [-1], [0, 1, 2], [None], [[0, 1]], [True])),
        *(("rate", marks) for marks in ([0], [10], [1, 2, 3], ["1"], [1.5])),
    ],
)
def test_wrong_marks_are_refused(kind, marks, store, queue):
    ask(store, kind)
    queue.take("me")
    with pytest.raises(Refused, match=r"are not marks .expected fewer than 3"):
        queue.mark(1, marks, "me")
    assert not store.file.rows("SELECT * FROM sayings")


def test_marks_of_others_and_damaged_ones(store, queue):
    ask(store, "rank")
    with pytest.raises(Refused, match="take it first"):
        queue.mark(1, [0], "me")
    queue.take("me")
    for value in ("[0, 0]", "{", "[" * 9_999, "7"):
        with store.file.transaction() as connection:
            connection.execute(
                "INSERT INTO sayings (key, value, who, at) VALUES ('marks 1', ?, 'me', '')",
                (value,),
            )
        assert list(queue.take("me")[0].marks) == []


@pytest.mark.medium
def test_sets_are_neither_shown_again_nor_corrected_nor_signs_of_a_careless_person(store):
    ask(store, "rank", sets=40)
    eager = LabelQueue(store, overlap=1.0)
    for _ in range(40):
        give(eager, eager.take("me")[0].query, [0, 1, 2])
    assert not store.file.rows("SELECT * FROM queries WHERE repeats IS NOT NULL")
    assert eager.tally("me").careless == ""
    assert eager.own_answers("me") == []
    with pytest.raises(Refused, match="is about a set: undo it and answer again"):
        eager.correct(1, "right", "me", "correct one")


def test_labels_of_sets_are_kept_with_a_checkpoint(store, queue):
    ask(store, "rank")
    queue.take("me")
    before = LabelHash(store.file).first()
    give(queue, 1, [0, 1, 2])
    after = LabelHash(store.file).first()
    assert (before.queries, after.queries, after.answers) == (3, 3, 3)
