"""Attacks on time: the clock is set back while a run goes on, and between two runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runshelf import steady_clock
from runshelf.index.entry import read_status
from runshelf.recorder.output_reader import read_output
from runshelf.steady_clock import SteadyClock
from runshelf.store.finding import find_run, list_runs
from runshelf.store.home import TRASH, make_shared
from runshelf.store.metrics import read_metrics
from runshelf.store.periods import periods
from runshelf.store.run import create_run, open_run, resume_run
from runshelf.store.run_ids import is_ulid, new_ulid
from runshelf.store.series import read_series
from runshelf.store.times import seconds_of

HOUR = 3600.0
LARGEST = "7" + 25 * "Z"


class Clocks:
    """Both clocks, in place of the module `time`."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_790_000_000.0, 50.0

    def time(self) -> float:
        """Return the wall clock, in seconds."""
        return self.wall

    def time_ns(self) -> int:
        """Return the wall clock, in nanoseconds."""
        return int(self.wall * 1e9)

    def monotonic(self) -> float:
        """Return the monotonic clock."""
        return self.steady

    def passes(self, seconds: float) -> None:
        """Let both clocks go on."""
        self.wall, self.steady = self.wall + seconds, self.steady + seconds


@pytest.fixture
def clocks(monkeypatch) -> Clocks:
    """Clocks that the test sets, for all that writes a run."""
    clocks = Clocks()
    for name in ("time", "time_ns", "monotonic"):
        monkeypatch.setattr(steady_clock.time, name, getattr(clocks, name))
    return clocks


@pytest.mark.attack
def test_time_goes_on_if_the_clock_is_set_back(clocks, tried):
    clock, begin = SteadyClock(), clocks.wall
    for back in (0.5, 10.0, HOUR, 24 * HOUR):
        before = clock.now()
        clocks.passes(10.0)
        clocks.wall -= back + 10.0
        assert clock.now() == pytest.approx(before + 10.0)
        clocks.passes(5.0)
        assert clock.now() == pytest.approx(before + 15.0)
    assert clock.now() == pytest.approx(begin + 60.0)
    tried(4, "times the clock was set back")


def test_time_follows_a_clock_that_is_set_forward(clocks):
    clock = SteadyClock()
    clocks.wall += HOUR  # as after the sleep of a laptop
    assert clock.now() == clocks.wall


def test_a_thread_that_waits_between_two_lines_sets_no_clock_ahead(clocks, monkeypatch):
    clock, others = SteadyClock(), []

    def time() -> float:
        """Return the wall clock; another thread asks for the time before this one goes on."""
        found = clocks.wall
        if not others:
            others.append(0.0)
            clocks.passes(1.0)
            others.append(clock.now())
        return found

    monkeypatch.setattr(steady_clock.time, "time", time)
    clock.now()
    assert others[1] == clocks.wall
    clocks.passes(1.0)
    assert clock.now() == clocks.wall


def test_a_record_that_goes_on_begins_after_its_last_time(clocks):
    assert SteadyClock(after=clocks.wall + HOUR).now() == clocks.wall + HOUR


@pytest.mark.attack
def test_ids_never_go_back_within_a_home(tmp_path, clocks, tried):
    made: list[str] = []
    for back in (0.0, 1.0, HOUR, 400 * 24 * HOUR, 0.001, -HOUR, HOUR):
        clocks.wall -= back
        with create_run(tmp_path, command="run", config={}, argv=[]) as writer:
            made.append(writer.run.ulid)
        assert find_run(tmp_path, "latest").ulid == made[-1]
    assert made == sorted(made) == list_runs(tmp_path)
    # Also not below a run in the trash, which may come back.
    (tmp_path / "runs" / made[-1]).rename(make_shared(tmp_path, TRASH) / made[-1])
    clocks.wall -= HOUR
    with create_run(tmp_path, command="run", config={}, argv=[]) as writer:
        assert writer.run.ulid > made[-1]
    tried(8, "runs made after the clock was set back")


def test_an_id_beyond_all_times_does_not_stop_new_runs(tmp_path):
    assert is_ulid(new_ulid(after=LARGEST))
    (tmp_path / "runs" / LARGEST).mkdir(parents=True)
    with create_run(tmp_path, command="run", config={}, argv=[]) as writer:
        assert writer.run.ulid < LARGEST


@pytest.mark.attack
@pytest.mark.parametrize("back", [1.0, HOUR, 400 * 24 * HOUR])
def test_the_duration_of_a_run_is_right_if_the_clock_is_set_back(tmp_path, clocks, back, tried):
    with create_run(tmp_path, command="run", config={}, argv=[]) as writer:
        clocks.passes(60.0)
        clocks.wall -= back
        writer.record("interrupted", seconds=60.0)
    clocks.wall -= back
    with resume_run(writer.run) as again:
        clocks.passes(30.0)
        clocks.wall -= back
    run = again.run
    times = [seconds_of(event["time"]) for event in run.events()]
    assert times == sorted(times)
    assert [one.seconds for one in periods(run.events(), clocks.wall)] == [60.0, 30.0]
    assert read_status(run).seconds == 90.0
    tried(3, "times the clock was set back")


def test_a_damaged_time_of_an_event_does_not_stop_a_run(tmp_path):
    writer = create_run(tmp_path, command="run", config={}, argv=[])
    writer.close()
    with (writer.folder / "events.jsonl").open("a") as events:
        events.write('{"status": "resumed", "time": "9999-12-31T23:59:59.999999+00:00"}\n')
    with resume_run(open_run(writer.folder)) as again:
        pass
    assert again.run.events()[-1]["time"] < "3000"


# The clock of the whole process is set back by an hour at every third look.
BACKWARDS = """
import sys, time
real, looks = time.time, 0

def time_of_day():
    global looks
    looks += 1
    return real() - 3600 * (looks // 3)

time.time = time_of_day
time.time_ns = lambda: int(time_of_day() * 1e9)
"""

LOGGING = """
import runshelf
for i in range(50):
    runshelf.log("loss", i)
    runshelf.log({"loss": i, "norm": 1.0})
"""

RECORDING = """
from runshelf.cli.main import main
from runshelf.recorder import system_metrics
system_metrics._FIRST_SECONDS = system_metrics._EVERY_SECONDS = 0.02
status = main(["run", "--home", sys.argv[1], "--", sys.executable, "-c",
    "import time\\nfor i in range(8): print(i, flush=True); time.sleep(0.05)"])
sys.exit(status)
"""


def run_backwards(program: str, home: Path) -> None:
    environ = {**os.environ, "RUNSHELF_HOME": str(home)}
    command = [sys.executable, "-c", BACKWARDS + program, str(home)]
    subprocess.run(command, check=True, timeout=120, env=environ, cwd=home, capture_output=True)


@pytest.mark.attack
@pytest.mark.medium
def test_what_is_logged_while_the_clock_is_set_back_has_times_in_order(tmp_path, tried):
    run_backwards(LOGGING, tmp_path)
    run = find_run(tmp_path, "latest")
    times = [record["time"] for record in read_metrics(run.folder).records]
    assert len(times) == 100
    assert times == sorted(times)
    (series,) = read_series(run.folder, ["loss"], "time")["loss"].values()
    assert series.x[0] == 0.0
    assert series.x[-1] < HOUR
    assert (read_status(run).seconds or 0.0) >= 0.0
    tried(33, "times the clock was set back")


@pytest.mark.attack
@pytest.mark.slow
def test_a_recorded_program_has_no_negative_seconds(tmp_path, tried):
    for _ in range(2):
        run_backwards(RECORDING, tmp_path)
        run = find_run(tmp_path, "latest")
        assert run.ulid == list_runs(tmp_path)[-1]
        seconds = [line.seconds for line in read_output(run.folder)]
        assert len(seconds) == 8
        assert seconds == sorted(seconds)
        assert seconds[0] >= 0.0
        end = run.events()[-1]
        assert 0.0 < end["seconds"] < HOUR
        measured = read_metrics(run.folder, "system").records
        assert all(record["seconds"] >= 0.0 for record in measured)
        times = [record["time"] for record in measured]
        assert len(times) > 3
        assert times == sorted(times)
        assert json.loads((run.folder / "run.json").read_text())["run"] == run.ulid
    assert len(list_runs(tmp_path)) == 2
    tried(2, "programs recorded while the clock was set back")
