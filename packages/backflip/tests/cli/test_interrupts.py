"""Ctrl-C, SIGTERM and SIGHUP at any time end the program with one line and the right status."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runshelf.store.finding import find_run
from runshelf.store.state import state_of

LINE = ["train", "ppo", "CartPole-v1", "--env-steps", "200000000", "--set", "epochs=1", "--home"]
PATIENCE = 120.0  # seconds


def begun(home: Path) -> subprocess.Popen[str]:
    """Start a very long run."""
    return subprocess.Popen(
        [sys.executable, "-m", "backflip", *LINE, str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,  # not this repository, about whose files there are notes
    )


def wait_for(pattern: str, home: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the run has written a file."""
    until = time.monotonic() + PATIENCE
    while not list(home.glob(pattern)):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def starting(process: subprocess.Popen[str], home: Path) -> list[str]:
    """Wait until the process has begun to import JAX; earlier, Python itself may be starting."""
    del home
    until = time.monotonic() + PATIENCE
    while "jaxlib" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    return []


def beginning(process: subprocess.Popen[str], home: Path) -> list[str]:
    """Wait until the run exists, before its programs are compiled."""
    wait_for("runs/*/run.json", home, process)
    return []


def learning(process: subprocess.Popen[str], home: Path) -> list[str]:
    """Wait until learning has begun; return the output until then."""
    del home
    assert process.stderr is not None
    said = [process.stderr.readline()]
    while "known after the first phase" not in said[-1]:
        assert said[-1], said
        said.append(process.stderr.readline())
    return said


@pytest.mark.medium
@pytest.mark.parametrize(
    ("until", "number", "times", "status"),
    [
        (starting, signal.SIGINT, 1, 130),
        pytest.param(beginning, signal.SIGINT, 1, 130, marks=pytest.mark.slow),
        pytest.param(learning, signal.SIGINT, 100, 130, marks=pytest.mark.slow),
        (learning, signal.SIGTERM, 1, 143),
        pytest.param(learning, signal.SIGHUP, 1, 143, marks=pytest.mark.slow),
    ],
    ids=["starting", "beginning", "learning, impatiently", "SIGTERM", "SIGHUP"],
)
def test_an_interrupt_ends_the_program_at_once_with_one_line(
    until: Callable[[subprocess.Popen[str], Path], list[str]],
    number: signal.Signals,
    times: int,
    status: int,
    tmp_path: Path,
) -> None:
    """A phase lasts minutes, so it must be interruptible."""
    process = begun(tmp_path)
    end = threading.Timer(PATIENCE, process.kill)
    end.start()
    before = until(process, tmp_path)
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.01)
    printed, said = process.communicate()
    end.cancel()
    assert (process.returncode, printed) == (status, ""), said
    *progress, last = [*before, *said.splitlines()]
    assert last.startswith("backflip: interrupted")
    notes = [line for line in progress if "env steps" not in line]
    assert all("not in the snapshot: Python also imports" in line for line in notes), said
    if until is learning:
        assert "resume with: backflip resume" in last
        assert state_of(find_run(tmp_path, "latest")).name == "interrupted"
