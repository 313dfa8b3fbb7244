"""The time of a run is booked once, on the part it was spent on."""

import functools

import jax
import pytest

from backflip.training import clock


def test_the_compile_clock_counts_parts_within_parts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    # A new list: programs that this process compiled before have other times.
    fresh = functools.cache(clock._compiling.__wrapped__)
    monkeypatch.setattr(clock, "_compiling", fresh)
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    compiling = clock.CompileClock()
    for end, seconds in ((101.0, 0.5), (102.0, 0.25), (103.0, 2.75), (105.0, 1.0)):
        now[0] = end
        jax.monitoring.record_event_duration_secs(f"{clock.COMPILING}part", seconds)
    jax.monitoring.record_event_duration_secs("/something/else", 50.0)
    assert compiling.seconds == 3.75
    assert clock.CompileClock().seconds == 0.0


def test_time_is_booked_once_and_compiling_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    fresh = functools.cache(clock._compiling.__wrapped__)
    monkeypatch.setattr(clock, "_compiling", fresh)
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    spent = clock.Clock(began=7.0)
    assert spent.book("setup") == 3.0
    now[0] = 18.0
    jax.monitoring.record_event_duration_secs(f"{clock.COMPILING}part", 5.0)
    assert spent.unbooked == 3.0
    assert spent.book("train") == 3.0
    assert spent.unbooked == 0.0
    assert spent.trained == 3.0
    assert spent.seconds == {
        "setup": 3.0,
        "compile": 5.0,
        "train": 3.0,
        "answers": 0.0,
        "evaluate": 0.0,
        "total": 11.0,
    }


def test_earlier_sessions_count_and_missing_parts_are_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock.time, "perf_counter", lambda: 2.0)
    spent = clock.Clock(began=0.0)
    spent.resume_from({"train": 5.0, "total": 5.0})
    spent.book("train")
    assert spent.seconds["train"] == 7.0
    assert spent.trained == 2.0
    assert spent.seconds["answers"] == 0.0
    assert spent.seconds["total"] == 7.0
