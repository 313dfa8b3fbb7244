"""The heartbeat of a run, and the identity of processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runshelf.store import liveness
from runshelf.store.liveness import HeartbeatWriter, is_alive, process, read_heartbeat


def test_a_process_is_alive_until_it_has_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        named = process(child.pid)
        assert (named.pid, is_alive(named)) == (child.pid, True)
        child.kill()
        child.wait()
        assert is_alive(named) is False
    assert is_alive(process()) is True


def test_a_process_that_is_gone_has_no_start_and_is_not_alive() -> None:
    with subprocess.Popen(["true"]) as child:
        pid = child.pid
    named = process(pid)
    assert (named.started, is_alive(named)) == ("", False)


def test_processes_of_other_machines_are_unknown() -> None:
    here = process()
    assert is_alive(here._replace(machine="elsewhere")) is None
    assert is_alive(here._replace(machine="")) is None


def test_program_names_with_parentheses_and_spaces(tmp_path: Path) -> None:
    program = tmp_path / "a) R (b) 1 2"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        deadline = time.monotonic() + 20
        while "a) R" not in Path(f"/proc/{child.pid}/comm").read_text():
            assert time.monotonic() < deadline
        with subprocess.Popen(["sleep", "60"]) as other:
            starts = int(process(child.pid).started), int(process(other.pid).started)
            other.kill()
        child.kill()
    assert abs(starts[0] - starts[1]) < 3000, "both in ticks since the boot"


def test_without_proc_psutil_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        started = liveness._started_by_ps(child.pid)
        assert float(started) > 0
        child.kill()
        child.wait()
        assert liveness._started_by_ps(child.pid) == ""


def test_the_heartbeat_is_touched_until_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "BEAT_SECONDS", 0.02)
    writer = HeartbeatWriter(tmp_path)
    path = tmp_path / "heartbeat.json"
    assert json.loads(path.read_text())["recorder"]["pid"] == os.getpid()
    os.utime(path, (0, 0))
    deadline = time.monotonic() + 20
    while path.stat().st_mtime == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    heartbeat = read_heartbeat(tmp_path)
    assert heartbeat is not None
    assert (heartbeat.recorder, heartbeat.program) == (process(), None)
    assert heartbeat.age < 20
    writer.stop()
    os.utime(path, (0, 0))
    time.sleep(0.1)
    assert path.stat().st_mtime == 0


def test_the_heartbeat_does_not_keep_a_program_alive(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from runshelf.store.liveness import HeartbeatWriter; "
        f"HeartbeatWriter(Path({str(tmp_path)!r}))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_a_removed_heartbeat_file_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "BEAT_SECONDS", 0.01)
    writer = HeartbeatWriter(tmp_path)
    (tmp_path / "heartbeat.json").unlink()
    time.sleep(0.05)
    writer.stop()


def test_a_missing_heartbeat_is_none(tmp_path: Path) -> None:
    assert read_heartbeat(tmp_path) is None
    assert read_heartbeat(tmp_path / "absent") is None
