"""Careless answers are noticed, and careful teachers are not accused."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.preferences.careless import (
    CAREFUL,
    DOUBTFUL_SHARE,
    LATEST,
    LIKELY,
    RANDOM,
    SURE,
    USUAL_SHARE,
    Signs,
    binomial,
    careless_people,
    in_words,
    odds_of_random,
    repeat_share,
    signs_of,
    state_of,
)
from backflip.preferences.label_file import insert
from backflip.preferences.label_records import NewLabel, NewQuery
from backflip.preferences.labels import LabelStore
from runshelf.store.times import now

ANSWERS = 150
RUNS = 20
FRESH_SHARE = 0.12  # of the answers, after the first quarter
REPEAT_AFTER = 10  # answers between a pair and its repeat

Answerer = Callable[[np.random.Generator, float], str]  # of the difference left - right


def flipped(answer: str) -> str:
    return {"left": "right", "right": "left"}.get(answer, answer)


def careful(mistake: float) -> Answerer:
    def answer(rng: np.random.Generator, difference: float) -> str:
        if difference == 0:
            return "tie"
        right = "left" if difference > 0 else "right"
        return flipped(right) if rng.random() < mistake else right

    return answer


def same_key(rng: np.random.Generator, difference: float) -> str:
    return "left"


def at_random(rng: np.random.Generator, difference: float) -> str:
    return str(rng.choice(["left", "right"]))


def dense(rng: np.random.Generator) -> float:
    return float(rng.normal())


def sparse(rng: np.random.Generator) -> float:
    """Most clips have no reward: three pairs of four tie."""
    return float(rng.choice([0.0, 0.0, 0.0, rng.normal()]))


def whole_numbers(rng: np.random.Generator) -> float:
    """Few different returns, as of clips that end or do not."""
    return float(rng.integers(0, 3) - rng.integers(0, 3))


ENVS = (dense, sparse, whole_numbers)


def noticed(answerer: Answerer, env: Callable[..., float], seed: int) -> tuple[str, int]:
    """Return what is said of a person at any time, and after how many answers it is said first.

    Pairs come again as `LabelQueue` shows them. The reward model agrees with the truth of 80 % of
    the fresh pairs.
    """
    rng = np.random.default_rng([seed, 7])
    asked: list[tuple[float, str]] = []
    sides: list[bool] = []
    repeats: list[bool] = []
    checks: list[bool] = []
    again = 0
    while len(asked) < ANSWERS:
        shown_again = rng.random() < repeat_share(repeats) and again < len(asked) - REPEAT_AFTER
        if shown_again:
            difference, before = asked[again]
            turn = rng.random() < 0.5
            answer = answerer(rng, -difference if turn else difference)
            repeats.append((flipped(answer) if turn else answer) == before)
            again += 1
        else:
            difference = env(rng)
            answer = answerer(rng, difference)
            asked.append((difference, answer))
            if len(asked) > ANSWERS / 4 and rng.random() < FRESH_SHARE and answer != "tie":
                predicted = difference > 0 if rng.random() < 0.8 else difference <= 0
                checks.append(predicted == (answer == "left"))
        if answer != "tie":
            sides.append(answer == "left")
        if state := state_of(Signs(sides, repeats, checks)):
            return state, len(asked)
    return "", ANSWERS


def share_noticed(answerer: Answerer) -> float:
    return float(np.mean([bool(noticed(answerer, env, i)[0]) for env in ENVS for i in range(RUNS)]))


@pytest.mark.medium
@pytest.mark.parametrize(("mistake", "most"), [(0.0, 0.0), (0.05, 0.02), (0.1, 0.05)])
def test_careful_teachers_are_not_accused(mistake: float, most: float) -> None:
    assert share_noticed(careful(mistake)) <= most


def test_one_key_is_noticed_after_seventeen_answers() -> None:
    found = [noticed(same_key, env, i) for env in ENVS for i in range(RUNS)]
    assert {state for state, _ in found} == {"same key"}
    assert max(count for _, count in found) <= 17


@pytest.mark.medium
def test_random_answers_are_noticed() -> None:
    assert share_noticed(at_random) >= 0.6


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_binomial_test_by_the_definition(a: int, b: int) -> None:
    """Twice the probability of a count as extreme or more, of all 2^n sequences."""
    n = a + b
    more = sum(math.comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(2 * a - n))
    assert binomial(a, n) == pytest.approx(min(1.0, more / 2**n))


def test_many_answers_are_tested_quickly() -> None:
    """The normal approximation is close for a million; none of it may overflow."""
    assert binomial(501_500, 10**6) == pytest.approx(
        math.erfc((1500 - 0.5) / 500 / 2**0.5), rel=1e-3
    )
    assert binomial(10**6, 10**6) == 0.0


def test_three_numbers_by_hand() -> None:
    assert binomial(15, 15) == pytest.approx(2 / 2**15)
    assert odds_of_random([True, False]) == pytest.approx(0.5 / 0.8 * 0.5 / 0.2)
    assert odds_of_random([]) == 1.0


def test_the_odds_of_a_careful_person_are_fair_bets() -> None:
    """Their mean over all outcomes of n repeats is 1, so they seldom become large."""
    for n in (1, 4, 7):
        mean = 0.0
        for outcome in itertools.product([True, False], repeat=n):
            same = sum(outcome)
            chance = CAREFUL**same * (1 - CAREFUL) ** (n - same)
            mean += chance * odds_of_random(outcome)
            direct = RANDOM**n / chance
            assert odds_of_random(outcome) == pytest.approx(direct)
        assert mean == pytest.approx(1.0)


def test_more_pairs_come_again_while_there_is_doubt() -> None:
    assert repeat_share([]) == USUAL_SHARE
    assert repeat_share([False]) == DOUBTFUL_SHARE
    assert repeat_share([False, True, True]) == USUAL_SHARE


def test_a_change_of_habit_shows_and_passes() -> None:
    before = [True, False] * 60
    late = Signs([*before, *[True] * LATEST], [], [])
    assert state_of(late) == "same key"
    assert in_words(late).startswith("`left` is 30 of the last 30 answers")
    assert state_of(Signs([*late.sides, *before[:20]], [], [])) == ""


def test_agreement_at_chance_confirms_a_suspicion() -> None:
    doubted = [False] * 4 + [True] * 2
    assert SURE > odds_of_random(doubted) > LIKELY
    assert state_of(Signs([], doubted, [])) == ""
    assert state_of(Signs([], doubted, [True, False] * 5)) == "random"
    assert state_of(Signs([], doubted, [True] * 9 + [False])) == ""


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return LabelStore.open(tmp_path / "labels.sqlite")


def test_signs_are_read_from_the_store(store: LabelStore) -> None:
    clips = [{"x": np.full(2, i, np.float32)} for i in range(2)]
    queries = store.add_queries([NewQuery(0, clips[0], clips[1], 0)] * 20)
    store.add_labels([NewLabel(query, "right", "ann", 1.0) for query in queries[:16]])
    store.add_labels([NewLabel(query, "tie", "ann", 1.0) for query in queries[16:18]])
    store.add_labels([NewLabel(query, "left", "bob", 1.0) for query in queries[18:]])
    with store.file.transaction() as connection:
        for query, sides in (
            (queries[0], "right_clip, left_clip"),
            (queries[1], "left_clip, right_clip"),
        ):
            insert(
                connection,
                "INSERT INTO queries (seed, left_clip, right_clip, asked_at, repeats)"
                f" SELECT seed, {sides}, ?, id FROM queries WHERE id = ?",
                (now(), query),
            )
    again = [row[0] for row in store.file.rows("SELECT id FROM queries WHERE repeats IS NOT NULL")]
    store.add_labels([NewLabel(query, "right", "ann", 1.0) for query in again])
    signs = signs_of(store, "ann")
    assert signs.sides == [False] * 18
    assert signs.repeats == [False, True], "the first one was shown with its sides swapped"
    assert not signs.checks
    assert list(careless_people(store)) == ["ann"]
    assert "`right` is 18 of the last 18 answers" in careless_people(store)["ann"]
    assert signs_of(store, "bob") == Signs([True, True], [], ())
    label = store.file.rows("SELECT max(id) FROM labels WHERE who = 'ann'")[0][0]
    store.undo(label, "ann")
    assert len(signs_of(store, "ann").sides) == 17
