"""States of runs, with real processes that live, die or become zombies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import CREATED, make_run, write_lines

from runshelf.store.liveness import SILENCE_SECONDS, Process, process
from runshelf.store.run import Run, create_run, open_run
from runshelf.store.state import state_of

STARTED = {"status": "started", "time": CREATED}
RECORDS = """
import sys, time
from pathlib import Path
from runshelf.store.run import *
writer = create_run(Path(sys.argv[1]), command="run", config={}, argv=[])
print(writer.folder, flush=True)
time.sleep(60)
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Run]]:
    """A process that records a run and does nothing else."""
    command = [sys.executable, "-c", RECORDS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield child, open_run(Path(child.stdout.readline().strip()))
        child.kill()


def beats(run: Run, recorder: Process, program: Process | None = None, age: float = 0) -> None:
    """Write a heartbeat of a given age."""
    path = run.folder / "heartbeat.json"
    fields = {"recorder": recorder._asdict(), "program": program and program._asdict()}
    path.write_text(json.dumps(fields))
    os.utime(path, (time.time() - age, time.time() - age))


def begun(home: Path, **last: Any) -> Run:
    """Make a run without an end, unless the last event is given."""
    return open_run(make_run(home, 1, events=[STARTED, *([last] if last else [])]))


@pytest.mark.parametrize(
    ("event", "name", "note"),
    [
        ({"status": "finished"}, "finished", ""),
        ({"status": "failed", "exit_status": 3}, "failed", "exit status 3"),
        ({"status": "failed", "error": "ValueError: x"}, "failed", "ValueError: x"),
        ({"status": "interrupted"}, "interrupted", ""),
        ({"status": "stopped"}, "stopped", ""),
    ],
)
def test_the_last_status_is_the_state(
    tmp_path: Path, event: dict[str, Any], name: str, note: str
) -> None:
    run = begun(tmp_path, time="2026-11-21T10:00:01+00:00", **event)
    write_lines(run.folder / "more.jsonl", [])
    assert state_of(run) == (name, "2026-11-21T10:00:01+00:00", note)


def test_events_without_a_status_change_nothing(tmp_path: Path) -> None:
    run = begun(tmp_path, event="budget", time="2027-01-01T00:00:00+00:00")
    assert state_of(run) == ("lost", CREATED, "")


def test_a_run_without_events_is_lost_rather_than_an_error(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, 1, events=[]))
    assert state_of(run) == ("lost", "", "")


@pytest.mark.medium
def test_running_until_its_process_is_killed_then_lost(
    recorder: tuple[subprocess.Popen[str], Run],
) -> None:
    child, run = recorder
    assert state_of(run).name == "running"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert state_of(run)[::2] == ("lost", "its process is gone without a recorded reason")


@pytest.mark.medium
def test_a_zombie_is_dead(recorder: tuple[subprocess.Popen[str], Run]) -> None:
    child, run = recorder
    child.send_signal(signal.SIGKILL)
    stat = Path(f"/proc/{child.pid}/stat")
    deadline = time.monotonic() + 20
    while stat.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child.returncode is None, "not waited for yet"
    assert state_of(run).name == "lost"


@pytest.mark.medium
def test_a_paused_process_is_running(
    recorder: tuple[subprocess.Popen[str], Run],
) -> None:
    child, run = recorder
    child.send_signal(signal.SIGSTOP)
    os.utime(run.folder / "heartbeat.json", (0, 0))
    assert state_of(run).name == "running"
    child.send_signal(signal.SIGCONT)


def test_a_reused_process_id_is_another_process(tmp_path: Path) -> None:
    run = begun(tmp_path)
    beats(run, process()._replace(started="1"))
    assert state_of(run).name == "lost"
    beats(run, process())
    assert state_of(run).name == "running"


def test_a_program_that_outlives_its_recorder_is_running(tmp_path: Path) -> None:
    run = begun(tmp_path)
    gone = process()._replace(started="1")
    with subprocess.Popen(["sleep", "60"]) as program:
        beats(run, gone, process(program.pid))
        state = state_of(run)
        assert (state.name, f"(process {program.pid}) still runs" in state.note) == (
            "running",
            True,
        )
        program.kill()
    assert state_of(run).name == "lost"


@pytest.mark.parametrize("machine", ["another boot/pid:[1]", ""])
def test_runs_of_other_machines_use_the_age_of_the_heartbeat(tmp_path: Path, machine: str) -> None:
    run = begun(tmp_path)
    there = process()._replace(machine=machine, host="node7")
    beats(run, there, age=SILENCE_SECONDS - 10)
    assert state_of(run) == ("running", CREATED, "")
    beats(run, there, age=10 - SILENCE_SECONDS)
    assert state_of(run).name == "running"
    beats(run, there, age=-3600)  # from the future, as a received run may have it
    assert state_of(run).name == "lost"
    beats(run, there, age=SILENCE_SECONDS + 40)
    assert state_of(run) == ("lost", CREATED, "no sign of life from node7 for 100 s")


def test_a_reboot_ends_what_ran_before_it(tmp_path: Path) -> None:
    """The same process id with another boot id and an old heartbeat is another process."""
    run = begun(tmp_path)
    beats(run, process()._replace(machine="earlier boot/pid:[1]"), age=3600)
    assert state_of(run).name == "lost"


def test_without_a_heartbeat_the_lock_decides(tmp_path: Path) -> None:
    with create_run(tmp_path, command="run", config={}, argv=[]) as writer:
        (writer.folder / "heartbeat.json").unlink()
        assert state_of(writer.run).name == "running"
    assert state_of(writer.run).name == "finished"
    run = begun(tmp_path)
    assert state_of(run).name == "lost"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '"x"',
        '{"recorder": 3}',
        '{"recorder": {"pid": 1}}',
        '{"recorder": {"pid": "x", "started": 1, "machine": 2, "host": 3}, "program": []}',
        '{"recorder": {"pid": 1, "started": "1", "machine": "m", "host": "h"}, "program": "x"}',
        "[" * 100_000,
    ],
)
def test_a_damaged_heartbeat_is_ignored(tmp_path: Path, content: str) -> None:
    run = begun(tmp_path)
    (run.folder / "heartbeat.json").write_text(content)
    assert state_of(run).name == "lost"


@pytest.mark.medium
@pytest.mark.parametrize("name", ["heartbeat.json", "lock", "events.jsonl"])
def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path, name: str) -> None:
    run = begun(tmp_path)
    (run.folder / name).unlink(missing_ok=True)
    os.mkfifo(run.folder / name)
    done = subprocess.run(
        [sys.executable, "-c", LOOKS, str(run.folder)], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr


LOOKS = """
import sys
from pathlib import Path
from runshelf.store.run import Run
from runshelf.store.state import state_of
from runshelf.errors import UserFacingError
try: print(state_of(Run(Path(sys.argv[1]), {})))
except UserFacingError as error: print(error)
"""


def test_events_of_wrong_types_are_ignored(tmp_path: Path) -> None:
    run = begun(tmp_path)
    for status in (3, None, ["finished"], {"a": 1}, "exploded"):
        write_lines(run.folder / "events.jsonl", [STARTED, {"status": status, "time": 7}])
        assert state_of(run).name == "lost"
    write_lines(run.folder / "events.jsonl", [{"status": "failed", "error": {"a": 1}}])
    assert state_of(run) == ("failed", "", "{'a': 1}")
