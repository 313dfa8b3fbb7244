"""Tests of `backflip.preferences.schedule`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.preferences.schedule import Due, fresh_schedule, label_schedule, queries_due

LABELS, PHASES = st.integers(1, 2000), st.integers(1, 100)


@given(labels=LABELS, phases=PHASES)
def test_the_schedule_spends_all_labels_and_none_after_the_last_phase(labels, phases):
    due = label_schedule(labels, phases)
    assert len(due) == phases  # before phase 1, ..., after the last but one
    assert sum(due) == labels
    assert due[0] >= 1
    assert min(due) >= 0


@given(labels=LABELS, phases=st.integers(2, 100))
def test_the_rate_falls_as_in_the_paper(labels, phases):
    due = label_schedule(labels, phases)
    assert due[0] == max(1, round(0.25 * labels))
    asking = max(1, round(0.6 * phases))
    rates = [
        (phase <= asking) * 0.25 * phases / (0.25 * phases + phase) for phase in range(1, phases)
    ]
    left = labels - due[0]
    for phase, (asked, rate) in enumerate(zip(due[1:], rates, strict=True), 1):
        assert abs(asked - left * rate / sum(rates)) <= 1  # sums are rounded, not each number
        assert abs(sum(due[1 : phase + 1]) - left * sum(rates[:phase]) / sum(rates)) <= 0.5 + 1e-9


def test_by_hand():
    assert label_schedule(100, 1) == [100]
    due = label_schedule(100, 20)
    assert due[0] == 25
    assert np.all(np.diff([sum(due[i : i + 4]) for i in range(1, 13, 4)]) < 0)
    assert due[12] > 0
    assert due[13:] == [0] * 7  # the last labels come after phase 12 of 20


def test_fewer_labels_than_phases_leave_phases_without_a_question():
    due = label_schedule(2, 20)
    assert sum(due) == 2
    assert sorted(due) == [0] * 18 + [1, 1]


@given(pairs=st.integers(0, 300), phases=st.integers(2, 100))
def test_fresh_pairs_are_spread_over_all_rounds_after_the_first(pairs, phases):
    due = fresh_schedule(pairs, phases)
    assert len(due) == phases
    assert (due[0], sum(due)) == (0, pairs)
    assert max(due[1:]) - min(due[1:]) <= 1
    assert due[-1] >= 1 or pairs < phases - 1  # the newest behaviour is checked until the end


def test_one_phase_has_no_fresh_pairs():
    assert fresh_schedule(0, 1) == [0]


@given(
    count=st.integers(0, 300),
    phases=st.integers(1, 40),
    unit=st.integers(1, 6),
    learns=st.booleans(),
    explores=st.booleans(),
)
def test_all_queries_are_due_in_some_round(count, phases, unit, learns, explores):
    learns = learns or explores  # exploring is learning
    due = queries_due(count, phases, unit, 0.12, learns_first=learns, explores_first=explores)
    assert len(due.every) == len(due.fresh) == phases
    assert sum(due.every) == (0 if phases == 1 and learns else count)
    assert min(due.others) >= 0
    assert due.every[0] == 0 or not learns
    assert sum(due.fresh) == (round(0.12 * count) if phases > 1 + explores else 0)


@pytest.mark.parametrize("learns_first", [False, True])
def test_a_run_with_more_open_queries_than_it_asks_for_makes_none(learns_first):
    due = queries_due(-30, 20, 1, 0.12, learns_first=learns_first)
    assert due == ([0] * 20, [0] * 20)


def test_three_rounds_by_hand():
    assert queries_due(100, 3, 1, 0.12) == ([22, 46, 32], [0, 6, 6])
    assert queries_due(100, 3, 1, 0.12, learns_first=True) == ([0, 28, 72], [0, 6, 6])
    exploring = queries_due(100, 3, 1, 0.12, learns_first=True, explores_first=True)
    assert exploring == ([0, 22, 78], [0, 0, 12])


def test_queries_of_the_last_rounds_come_sooner():
    due = Due([10, 3, 5, 4, 2, 1], fresh=[0, 1, 1, 0, 2, 1])  # others: 10 2 4 4 0 0
    assert due.sooner(1, 5) == Due([10, 5, 5, 2, 2, 1], due.fresh)
    assert due.sooner(1, 8) == Due([10, 8, 4, 0, 2, 1], due.fresh)
    assert due.sooner(1, 99).every[1] == 9, "at most three times as many"
    assert due.sooner(2, 99).every == [10, 3, 9, 0, 2, 1], "no more are left"
    assert due.sooner(3, 99) == due, "no round that follows has any but fresh pairs"
    assert due.sooner(4, 3) == Due([10, 3, 5, 4, 3, 0], [0, 1, 1, 0, 3, 0])
    assert due.sooner(5, 99) == due.sooner(6, 99) == due, "no round follows"
    assert due.sooner(1, 3) == due.sooner(1, 0) == due
    assert due.with_at_least(1, 99).every == [10, 11, 1, 0, 2, 1]


def test_a_stopped_process_does_not_raise_the_limit():
    due = Due([10, 2, 5, 4, 2, 1], fresh=[0] * 6)
    assert due.sooner(1, 99).every[1] == due.sooner(1, 99, asked=6).every[1] == 6
    assert due.sooner(1, 0, asked=5).every == [10, 5, 5, 4, 0, 0], "what was asked is kept"
    assert due.sooner(1, 0, asked=1) == due, "it was stopped before it asked all"


def test_a_round_without_queries_stays_so():
    due = Due([10, 0, 5], fresh=[0, 0, 1])
    assert due.sooner(1, 5) == due.with_at_least(1, 5) == due


def test_sets_stay_whole_when_they_come_sooner():
    due = Due([6, 6, 6, 3], fresh=[0] * 4)
    assert due.sooner(1, 11, unit=3).every == [6, 9, 6, 0]
    assert due.sooner(1, 8, unit=3) == due


@given(
    labels=LABELS,
    phases=st.integers(2, 100),
    unit=st.integers(1, 10),
    wanted=st.lists(st.integers(0, 300), min_size=3, max_size=3),
)
def test_no_query_is_lost_or_added_when_some_come_sooner(labels, phases, unit, wanted):
    planned = queries_due(labels, phases, unit, 0.12)
    due = planned
    for number, count in enumerate(wanted):
        due = due.sooner(number, count, unit=unit)
    assert sum(due.every) == sum(planned.every)
    assert min(due.others) >= 0
    assert all(
        (now - then) % unit == 0 for now, then in zip(due.others, planned.others, strict=True)
    )
    total, before = np.cumsum(due.others), np.cumsum(planned.others)
    assert np.all(total >= before), "no query comes later"
