"""Tests of `backflip.labelling.pace`: by hand, at its limits, and in simulated weeks."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modules import module_at

from backflip.labelling.pace import open_pairs_allowed, pairs_to_stay_busy

simulated = module_at("benchmarks/pace.py")


@pytest.mark.parametrize(
    ("unanswered", "newest", "seconds", "per_minute", "people", "starts"),
    [
        (4, 25, 0.0, None, 1, True),  # what one person holds
        (5, 25, 0.0, None, 1, False),
        (8, 25, 0.0, None, 2, True),
        (4 + 10, 25, 30.0, 20.0, 1, True),  # ten more are answered in 30 s at 20 a minute
        (4 + 11, 25, 30.0, 20.0, 1, False),
        (4 + 11, 25, 30.1, 20.0, 1, True),  # rounded up
        (9, 9, 3600.0, 20.0, 1, True),  # at most one round, even for a long phase
        (10, 9, 3600.0, 20.0, 1, False),
        (1, 0, 3600.0, 20.0, 1, False),  # no more queries: wait for the last answer
        (0, 0, 0.0, None, 0, True),
    ],
)
def test_by_hand(unanswered, newest, seconds, per_minute, people, starts):
    allowed = open_pairs_allowed(
        newest, phase_seconds=seconds, per_minute=per_minute, people=people
    )
    assert (unanswered <= allowed) is starts


@pytest.mark.parametrize(
    ("seconds", "per_minute", "people", "pairs"),
    [
        (30.0, 20.0, 1, 10 + 4),
        (30.1, 20.0, 1, 11 + 4),  # rounded up
        (30.0, 20.0, 0, 10),
        (30.0, 20.0, 3, 10 + 10),  # never more than twice what is answered
        (1.0, 20.0, 4, 1 + 1),  # short phases follow each other soon
        (30.0, None, 1, 0),
    ],
)
def test_pairs_to_stay_busy_by_hand(seconds, per_minute, people, pairs):
    found = pairs_to_stay_busy(phase_seconds=seconds, per_minute=per_minute, people=people)
    assert found == pairs


@given(st.integers(0, 99), st.integers(0, 99), st.floats(0, 1e6), st.floats(0.1, 600))
def test_more_answers_never_delay_the_phase(unanswered, newest, seconds, per_minute):
    def starts(count):
        return count <= open_pairs_allowed(newest, phase_seconds=seconds, per_minute=per_minute)

    assert starts(0)
    assert not starts(newest + 1)
    assert starts(unanswered) or not starts(unanswered + 1)


def run(rule, visits, seconds):
    return simulated.Simulation(rule, visits, 300, 20, seconds, 3.0).run()


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("seconds", [1.5, 30.0, 300.0])
def test_week_of_irregular_visits(seed, seconds):
    visits = simulated.week(random.Random(seed))
    end = run(simulated.ours, visits, seconds)
    assert (end.answered, end.done) == (300, 20)
    assert end.overdue == 0, "every phase has the answers of all rounds but the newest"
    assert end.most_in_a_row <= 1, "at most one phase passes while the person is absent"
    strict = run(simulated.lock_step, visits, seconds)
    assert end.person_waited <= strict.person_waited
    assert end.trainer_idle <= strict.trainer_idle


def test_rule_that_never_waits_fails_these_measures():
    visits = simulated.week(random.Random(0))
    assert run(simulated.never_wait, visits, 1.5).answered == 0
    slow = run(simulated.never_wait, visits, 300.0)
    assert slow.overdue > 10
    assert slow.most_in_a_row > 10


@pytest.mark.medium
def test_a_person_who_stays_has_a_pair_although_phases_are_long():
    def ready(seconds, *, sooner):
        stays = [(0.0, simulated.DAY)]
        end = simulated.Simulation(
            simulated.ours, stays, 150, 20, seconds, 3.0, draw_seconds=0.5, sooner=sooner
        ).run()
        assert (end.answered, end.done) == (150, 20)
        return 1 - end.person_waited / end.attended

    assert ready(20.0, sooner=True) > 0.9
    assert ready(20.0, sooner=False) < 0.8
    assert ready(10.0, sooner=True) > 0.97
