"""Warnings about running runs."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from runshelf.store.progress import progress_of


def write(folder: Path, writer: str, records: list[dict[str, Any]], age: float = 0.0) -> None:
    """Write metric records; set the file's age in seconds."""
    path = folder / f"metrics-{writer}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.utime(path, (time.time() - age,) * 2)


def alarms(folder: Path) -> list[str]:
    return progress_of(folder, {}, 100.0).alarms


@pytest.mark.parametrize("writer", ["a", "b"])
def test_a_nan_loss_of_any_writer_is_a_warning(tmp_path: Path, writer: str) -> None:
    for name in ("a", "b"):
        loss = "NaN" if name == writer else 1.0
        write(tmp_path, name, [{"loss": 1.0, "ratio": "NaN"}] * 9 + [{"loss": loss}])
    assert alarms(tmp_path) == ["loss is not finite"]


def test_an_old_nan_loss_is_not_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "a", [{"loss": "NaN"}] + [{"loss": 1.0}] * 4)
    assert alarms(tmp_path) == []


@pytest.mark.parametrize("clock", ["seconds", "time"])
@pytest.mark.parametrize(("age", "is_quiet"), [(900, False), (1100, True)])
def test_the_allowed_gap_is_relative_to_the_mean_gap_between_records(
    tmp_path: Path, clock: str, age: float, is_quiet: bool
) -> None:
    write(tmp_path, "a", [{clock: 100.0 * n, "x": 1} for n in range(9)], age)
    assert [alarm.startswith("no record for ") for alarm in alarms(tmp_path)] == [True] * is_quiet


@pytest.mark.parametrize(("age", "is_quiet"), [(50, False), (70, True)])
def test_without_times_records_may_be_a_minute_old(
    tmp_path: Path, age: float, is_quiet: bool
) -> None:
    write(tmp_path, "a", [{"x": 1}] * 9, age)
    assert bool(alarms(tmp_path)) == is_quiet


@pytest.mark.parametrize(("age", "is_silent"), [(50, False), (70, True)])
def test_a_heartbeat_may_be_a_minute_old(tmp_path: Path, age: float, is_silent: bool) -> None:
    (tmp_path / "heartbeat.json").write_text("{}")
    os.utime(tmp_path / "heartbeat.json", (time.time() - age,) * 2)
    assert [a.startswith("no heartbeat for ") for a in alarms(tmp_path)] == [True] * is_silent


@pytest.mark.attack
@pytest.mark.parametrize("manifest", [{"budget_seconds": 600}, {"config": {"env_steps": 1000}}, {}])
def test_a_clock_set_back_gives_no_negative_progress(
    tmp_path: Path, manifest: dict[str, Any], tried: Any
) -> None:
    write(tmp_path, "a", [{"env_steps": 100, "loss": 1.0}], age=-3600.0)
    found = progress_of(tmp_path, manifest, -3600.0, [100.0])
    assert found.share is not None
    assert 0.0 <= found.share <= 1.0
    assert found.seconds_left is None or 0.0 <= found.seconds_left <= 600.0
    assert found.alarms == []
    tried(1, "times the clock was set back")


def test_an_alarm_that_the_run_recorded_comes_first(tmp_path: Path) -> None:
    events = [{"status": "started"}, {"alarm": "it cheats", "env_steps": 3}, {"alarm": 7}]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    write(tmp_path, "a", [{"loss": "NaN"}])
    assert alarms(tmp_path) == ["it cheats", "loss is not finite"]
