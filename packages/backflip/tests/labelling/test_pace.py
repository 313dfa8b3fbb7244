"""Tests of `backflip.labelling.pace`: by hand, by its limits, and over simulated weeks."""

import importlib.util
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.labelling.pace import may_start_phase

BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "pace.py"
spec = importlib.util.spec_from_file_location("pace_benchmark", BENCHMARK)
simulated = importlib.util.module_from_spec(spec)
spec.loader.exec_module(simulated)


@pytest.mark.parametrize(
    ("unanswered", "newest", "seconds", "per_minute", "people", "goes_on"),
    [
        (4, 25, 0.0, None, 1, True),  # what one person holds
        (5, 25, 0.0, None, 1, False),
        (8, 25, 0.0, None, 2, True),
        (4 + 10, 25, 30.0, 20.0, 1, True),  # ten more are answered in 30 s at 20 a minute
        (4 + 11, 25, 30.0, 20.0, 1, False),
        (4 + 11, 25, 30.1, 20.0, 1, True),  # rounded up
        (9, 9, 3600.0, 20.0, 1, True),  # however long a phase takes, one round at most
        (10, 9, 3600.0, 20.0, 1, False),
        (1, 0, 3600.0, 20.0, 1, False),  # nothing more is asked: wait for the last answer
        (0, 0, 0.0, None, 0, True),
    ],
)
def test_by_hand(unanswered, newest, seconds, per_minute, people, goes_on):
    said = may_start_phase(
        unanswered,
        newest_round=newest,
        phase_seconds=seconds,
        per_minute=per_minute,
        people=people,
    )
    assert said is goes_on


@given(st.integers(0, 99), st.integers(0, 99), st.floats(0, 1e6), st.floats(0.1, 600))
def test_more_answers_never_stop_it(unanswered, newest, seconds, per_minute):
    def goes_on(count):
        return may_start_phase(
            count, newest_round=newest, phase_seconds=seconds, per_minute=per_minute
        )

    assert goes_on(0)
    assert not goes_on(newest + 1)
    assert goes_on(unanswered) or not goes_on(unanswered + 1)


def run(rule, visits, seconds):
    return simulated.Simulation(rule, visits, 300, 20, seconds, 3.0).run()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("seconds", [1.5, 30.0, 300.0])
def test_in_a_week_of_irregular_visits_training_neither_runs_away_nor_waits_for_nothing(
    seed, seconds
):
    visits = simulated.week(random.Random(seed))
    end = run(simulated.ours, visits, seconds)
    assert (end.answered, end.done) == (300, 20)
    assert end.overdue == 0, "every phase has the answers of all rounds but the newest"
    assert end.most_in_a_row <= 1, "whoever goes away finds the agent one phase on"
    strict = run(simulated.lock_step, visits, seconds)
    assert end.person_waited <= strict.person_waited
    assert end.trainer_idle <= strict.trainer_idle


def test_without_waiting_it_runs_away():
    """What the measures above would show of a broken rule."""
    visits = simulated.week(random.Random(0))
    assert run(simulated.never_wait, visits, 1.5).answered == 0
    slow = run(simulated.never_wait, visits, 300.0)
    assert slow.overdue > 10
    assert slow.most_in_a_row > 10
