"""Rankings and ratings become the comparisons that they say."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages.backflip.tests.conformance.teacher import clip_of_rewards

from backflip.preferences.clip_sets import (
    ClipSet,
    NewSet,
    add_sets,
    answer_set,
    open_sets,
    scores_of,
)
from backflip.preferences.labels import LabelStore
from backflip.preferences.rankings import (
    answer_of,
    most_disputed_sets,
    pairs_of,
    scores_of_ranking,
    set_sizes,
    uniform_sets,
)
from backflip.preferences.schedule import label_schedule
from backflip.preferences.teacher_query import TeacherQuery
from backflip.preferences.teachers import FunctionTeacher, SimulatedTeacher, TeacherFailed
from runshelf.errors import UsageError


def clip(value: float) -> dict[str, np.ndarray]:
    return {"obs": np.full((3, 1), value, np.float32)}


def shown(*returns: float) -> list[Any]:
    return [clip_of_rewards(np.array([value, 0.0])) for value in returns]


def saying(value: Any) -> Callable[[Any], Any]:
    def said(shown: Any) -> Any:
        return value

    return said


def total(clip: Any) -> Any:
    return clip.rewards.sum()


@pytest.fixture
def store(tmp_path: Any) -> Any:
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        yield store


def ask(store: LabelStore, *values: float, ask: Any = "rank", seed: int = 0) -> ClipSet:
    add_sets(store, [NewSet(seed, ask, [clip(value) for value in values], 640)])
    return open_sets(store, seed)[-1]


@given(st.integers(0, 300), st.integers(2, 9))
def test_sets_have_exactly_as_many_pairs_as_queries(queries: int, at_once: int) -> None:
    sizes = set_sizes(queries, at_once)
    assert sum(len(pairs_of(size)) for size in sizes) == queries
    assert all(2 <= size <= at_once for size in sizes)
    assert sizes == sorted(sizes, reverse=True)
    if at_once < 9 and queries:
        assert len(sizes) >= queries // math.comb(at_once, 2)


@given(st.integers(2, 200), st.integers(1, 40), st.integers(2, 28))
def test_the_schedule_of_sets_has_all_queries_in_whole_sets(
    labels: int, phases: int, unit: int
) -> None:
    rounds = label_schedule(labels, phases, unit)
    assert sum(rounds) == labels
    assert len(rounds) == phases
    assert all(count % unit == 0 for count in rounds[1:])
    assert label_schedule(labels, phases, 1) == label_schedule(labels, phases)


@pytest.mark.parametrize(
    ("ranking", "scores"),
    [
        ([2, 0, 1], [2.0, 1.0, 3.0]),
        ([[0, 2], 1], [3.0, 2.0, 3.0]),
        ((1, [2, 0]), [2.0, 3.0, 2.0]),
        (np.array([0, 1, 2]), [3.0, 2.0, 1.0]),
        ([[0, 1, 2]], [3.0, 3.0, 3.0]),
    ],
)
def test_scores_follow_the_ranking(ranking: Any, scores: list[float]) -> None:
    assert scores_of_ranking(ranking, 3) == scores


@pytest.mark.parametrize(
    "ranking",
    [
        *([0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], [0, 1, 2, 2], [0, 1, True], [0, 1, 2.0]),
        *([[0, [1]], 2], "012", None, 3, {0: 1}, [], [0, 1, "2"], {0, 1, 2}, [0, 1, None]),
    ],
)
def test_what_is_no_ranking_is_none(ranking: Any) -> None:
    assert scores_of_ranking(ranking, 3) is None


def test_one_ranking_becomes_the_labels_of_all_pairs(store: LabelStore) -> None:
    one = ask(store, 10, 11, 12, 13)
    assert len(one.queries) == 6
    assert store.counts().pending == 6
    best_first = [one.clips[2], one.clips[0], one.clips[3], one.clips[1]]
    scores: dict[int, float | None] = {best_first[0]: 4.0, best_first[1]: 3.0, best_first[2]: 3.0}
    scores[best_first[3]] = 1.0
    assert answer_set(store, one, scores, "oracle", 12.0) == 6
    found = {
        (pair.left["obs"][0, 0].item(), pair.right["obs"][0, 0].item()): pair.answer
        for pair in store.labelled(0)
    }
    assert found == {
        (10, 11): "left",
        (10, 12): "right",
        (10, 13): "tie",
        (11, 12): "right",
        (11, 13): "right",
        (12, 13): "left",
    }
    assert scores_of(store, one.id) == scores
    assert not open_sets(store)
    clips = store.file.rows("SELECT count(*) FROM clips")[0][0]
    assert clips == 4, "the pairs of a set share its clips"
    (seconds,) = store.file.rows("SELECT sum(seconds) FROM labels")[0]
    assert seconds == pytest.approx(12.0), "one answer took them all"
    sets = store.file.rows("SELECT count(DISTINCT clip_set) FROM queries")[0][0]
    assert sets == 1, "its labels are known to come from one answer"


@pytest.mark.medium
@given(scores=st.lists(st.integers(0, 3).map(float), min_size=2, max_size=7), data=st.data())
def test_labels_of_a_set_agree_with_its_scores(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float], data: Any
) -> None:
    with LabelStore.open(tmp_path_factory.mktemp("set") / "x") as store:
        one = ask(store, *range(len(scores)), ask="rate")
        hidden = data.draw(st.integers(-1, len(scores) - 1))
        given_ = [None if i == hidden else score for i, score in enumerate(scores)]
        answer_set(store, one, dict(zip(one.clips, given_, strict=True)), "x")
        answers = dict(store.file.rows("SELECT query, answer FROM effective"))
        place = {clip: i for i, clip in enumerate(one.clips)}
        for query, (left, right) in one.queries.items():
            a, b = given_[place[left]], given_[place[right]]
            if a is None or b is None:
                assert answers[query] == "skip"
            else:
                assert answers[query] == ("tie" if a == b else "left" if a > b else "right")


def test_a_set_answered_meanwhile_is_not_answered_twice(store: LabelStore) -> None:
    one = ask(store, 1, 2, 3)
    store.add_label(next(iter(one.queries)), "left", "someone", 0.0)
    scores = dict.fromkeys(one.clips, 1.0)
    with pytest.raises(UsageError, match="is answered"):
        answer_set(store, one, scores, "x")
    assert store.counts().labels == 1
    assert not scores_of(store, one.id)
    (left,) = open_sets(store)
    assert len(left.queries) == 2
    assert left.clips == one.clips
    with pytest.raises(UsageError, match="not those of its clips"):
        answer_set(store, left, {1: 2.0}, "x")
    assert answer_set(store, left, scores, "x") == 2


def test_scores_and_sets_are_append_only(store: LabelStore) -> None:
    one = ask(store, 1, 2)
    answer_set(store, one, dict.fromkeys(one.clips, 1.0), "x")
    for change in ("UPDATE scores SET score = 9", "DELETE FROM clip_sets", "DELETE FROM scores"):
        with pytest.raises(Exception, match="append-only"), store.file.transaction() as connection:
            connection.execute(change)


def test_most_disputed_sets_by_the_definition() -> None:
    rng = np.random.default_rng(0)
    returns, sets = rng.normal(size=(9, 3)), uniform_sets(rng, 9, 4, 12)
    assert all(len(set(one)) == 4 for one in sets.tolist())

    def disagreement(one: Any) -> float:
        found = []
        for i, j in itertools.combinations(one, 2):
            chances = [1 / (1 + math.exp(returns[j, m] - returns[i, m])) for m in range(3)]
            mean = sum(chances) / 3
            found.append(sum((x - mean) ** 2 for x in chances) / 3)
        return sum(found) / len(found)

    expected = sorted(sets.tolist(), key=disagreement, reverse=True)[:5]
    assert most_disputed_sets(returns, sets, 5).tolist() == expected


def test_the_oracle_ranks_and_rates_as_it_compares() -> None:
    rng, oracle = np.random.default_rng(1), SimulatedTeacher()
    for _ in range(30):
        clips = shown(*rng.integers(-2, 3, size=5).astype(float))
        ranked = oracle.rank(clips, rng)
        rated = [oracle.rate(clip, rng) for clip in clips]
        for i, j in pairs_of(5):
            compared = oracle.answer(TeacherQuery(clips[i], clips[j]), rng)
            assert answer_of(ranked[i], ranked[j]) == compared
            assert answer_of(rated[i], rated[j]) == compared


def test_a_tired_teacher_skips_and_ties_in_sets_too() -> None:
    rng = np.random.default_rng(0)
    teacher = SimulatedTeacher(skip=0.0, tie=0.5)
    assert teacher.rank(shown(-1, -2), rng) == [None, None]
    assert teacher.rate(shown(-1)[0], rng) is None
    low, high, middle = teacher.rank(shown(-1, 2, 1.8), rng)
    assert high == middle
    assert high is not None
    assert low is not None
    assert low < high
    assert teacher.rate(shown(0.1)[0], rng) == 0.0
    assert teacher.rate(shown(0.9)[0], rng) == 1.0


@pytest.mark.parametrize(("difference", "ties"), [(0.0, True), (1.5, True), (3.0, False)])
def test_ties_of_ranks_are_those_of_comparisons(difference: float, ties: bool) -> None:
    """True returns decide whether clips are alike, however noisy their order is."""
    teacher, rng = SimulatedTeacher(temperature=1.0, tie=2.0), np.random.default_rng(0)
    clips = shown(difference, 0.0)
    ranked = [len(set(teacher.rank(clips, rng))) == 1 for _ in range(100)]
    compared = [teacher.answer(TeacherQuery(*clips), rng) == "tie" for _ in range(100)]
    assert set(ranked) == set(compared) == {ties}


def test_a_mistake_moves_a_clip_by_one_place_at_most() -> None:
    teacher, rng = SimulatedTeacher(mistake=1.0), np.random.default_rng(0)
    assert teacher.rank(shown(5.0, 4.0, 3.0, 2.0, 1.0), rng) == [-1, 0, -3, -2, -4]
    teacher = SimulatedTeacher(mistake=0.5)
    for _ in range(100):
        scores = np.array(teacher.rank(shown(5.0, 4.0, 3.0, 2.0, 1.0), rng), float)
        assert np.abs(-scores - np.arange(5)).max() <= 1


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["rank", "rate", "compare"])
def test_noise_of_ranks_and_ratings_is_that_of_comparisons(kind: str) -> None:
    """P[left] = σ(d / T), with 3000 answers about one pair; then also with mistakes."""
    clips, rng = shown(1.0, 0.0), np.random.default_rng(3)
    for mistake in (0.0, 0.2):
        teacher = SimulatedTeacher(temperature=2.0, mistake=mistake)
        left = 0
        for _ in range(3000):
            if kind == "compare":
                left += teacher.answer(TeacherQuery(*clips), rng) == "left"
            elif kind == "rank":
                left += answer_of(*teacher.rank(clips, rng)) == "left"
            elif not mistake:  # a mistaken rating is negated, whatever the other clip is
                left += answer_of(*(teacher.rate(clip, rng) for clip in clips)) == "left"
        chance = 1 / (1 + math.exp(-1 / 2))
        expected = chance * (1 - mistake) + (1 - chance) * mistake
        if kind != "rate" or not mistake:
            assert left / 3000 == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 3000))


def test_a_function_ranks_a_list_of_clips_and_rates_one() -> None:
    rng, clips = np.random.default_rng(0), shown(3, 1, 2)

    def best_first(some: Any) -> Any:
        return sorted(range(len(some)), key=lambda place: -some[place].rewards.sum())

    assert FunctionTeacher("own:f", best_first).rank(clips, rng) == [3, 1, 2]
    assert FunctionTeacher("own:f", saying("skip")).rank(clips, rng) == [None] * 3
    rate = FunctionTeacher("own:f", total)
    assert [rate.rate(one, rng) for one in clips] == [3.0, 1.0, 2.0]
    assert FunctionTeacher("own:f", saying("skip")).rate(clips[0], rng) is None


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([0, 1], r"returned \[0, 1\] \(list\), expected the places 0, 1, 2 of the clips from best"),
        (None, r"returned None \(NoneType\), expected the places"),
        ("left", r"returned 'left' \(str\), expected the places"),
    ],
)
def test_a_wrong_ranking_is_one_line(returned: Any, said: str) -> None:
    with pytest.raises(TeacherFailed, match=said):
        FunctionTeacher("own:f", saying(returned)).rank(shown(1, 2, 3), np.random.default_rng(0))


@pytest.mark.parametrize(
    "returned", [None, "left", float("nan"), float("inf"), True, [1], "5", 10**400]
)
def test_a_wrong_rating_is_one_line(returned: Any) -> None:
    with pytest.raises(TeacherFailed, match='expected a finite number, or "skip"; all labels'):
        FunctionTeacher("own:f", saying(returned)).rate(shown(1)[0], np.random.default_rng(0))


def test_a_ranking_function_that_raises_is_one_line() -> None:
    def fails(clips: Any) -> Any:
        raise SystemExit(3)

    with pytest.raises(TeacherFailed, match="`own:f` raised SystemExit: 3"):
        FunctionTeacher("own:f", fails).rank(shown(1, 2), np.random.default_rng(0))
