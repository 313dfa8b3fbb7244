"""`run --alert`: a companion process watches one run and never harms it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import psutil
import pytest
from packages.runshelf.tests.web.runs import done
from packages.runshelf.tests.worklog.servers import webhook

from runshelf.cli.run_alerts import without_alerts
from runshelf.store.finding import list_runs
from runshelf.store.run import Run, open_run
from runshelf.store.state import state_of
from runshelf.worklog.alerts.companion import MODULE, watched

pytestmark = pytest.mark.medium

# Logs a loss, waits until a file exists, ends with a status.
PROGRAM = """
import json, os, sys, time
with open(os.path.join(os.environ["RUNSHELF_RUN"], "metrics-x.jsonl"), "a") as file:
    file.write(json.dumps({"updates": 1, "loss": 1e6}) + "\\n")
print("begun", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
sys.exit(int(sys.argv[1]))
"""


class Bench:
    """A home in which runs are started as processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "x.py").write_text(PROGRAM)
        self.environ = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, status: int = 0) -> "subprocess.Popen[str]":
        """Start a run with options, each a name and a value."""
        options = [word for pair in words for word in (pair.split(" ", 1))]
        command = [sys.executable, "-m", "runshelf", "run", *options, "--"]
        found = subprocess.Popen(
            [*command, sys.executable, "x.py", str(status)],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(found)
        return found

    def go(self) -> None:
        """Let the program end."""
        (self.folder / "go").touch()

    def companions(self) -> list[psutil.Process]:
        """Return the companions of this bench that live."""
        found: list[psutil.Process] = []
        for one in psutil.process_iter(["cmdline", "cwd", "status"]):
            is_ours = MODULE in (one.info["cmdline"] or []) and one.info["cwd"] == str(self.folder)
            found += [one] if is_ours and one.info["status"] != psutil.STATUS_ZOMBIE else []
        return found

    def run(self) -> Run:
        """Return the only run."""
        (ulid,) = list_runs(self.folder)
        return open_run(self.folder / "runs" / ulid)


def wait_for(ready: Callable[[], Any]) -> Any:
    for _ in range(1500):
        if found := ready():
            return found
        time.sleep(0.02)
    raise AssertionError("timed out")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Bench]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith(("RUNSHELF_", "BACKFLIP_"))]:
        monkeypatch.delenv(name)
    found = Bench(tmp_path.resolve())
    yield found
    found.go()
    for process in found.started:
        process.kill()
        process.communicate()


def text_of(messages: list[Any]) -> list[str]:
    lines = [line for message in messages for line in message["text"].split("\n")]
    return [line.partition(": ")[2] for line in lines]


def test_a_run_is_watched_from_its_start_to_its_end(bench: Bench) -> None:
    with webhook() as hook:
        to = f"--to http://127.0.0.1:{hook.port}/"
        run = bench.start("--alert loss > 100", "--alert failure", to, status=3)
        wait_for(lambda: hook.messages)  # while the program runs
        assert text_of(hook.messages) == ["loss > 100: 1 000 000"]
        bench.go()
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (3, "begun\n")
    assert text_of(hook.messages) == ["loss > 100: 1 000 000", "failed, exit status 3"]
    assert err.count("alert: run") == 2
    assert bench.companions() == []
    assert "still running" not in err  # the companion is no process of the program


@pytest.mark.slow
def test_a_run_that_ends_at_once_is_watched(bench: Bench) -> None:
    bench.go()
    _, err = bench.start("--alert loss > 100", "--alert end").communicate(timeout=60)
    assert "loss > 100" in err
    assert "finished after" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--alert loss >", "is not a rule"),
        pytest.param("--to pigeon", "is not a channel", marks=pytest.mark.slow),
        pytest.param("--to env:NOT_THERE", "is not set", marks=pytest.mark.slow),
    ],
)
def test_what_is_wrong_is_refused_before_the_program_starts(
    bench: Bench, words: str, says: str
) -> None:
    run = bench.start(words, "--alert end")
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (2, "")
    assert says in err
    assert list_runs(bench.folder) == []


@pytest.mark.slow
def test_a_killed_companion_does_not_touch_the_run(bench: Bench) -> None:
    run = bench.start("--alert end")
    (companion,) = wait_for(bench.companions)
    assert run.stdout
    run.stdout.readline()
    companion.kill()
    assert run.stderr
    while "alerts have ended (signal SIGKILL)" not in run.stderr.readline():
        assert run.poll() is None
    bench.go()
    run.communicate(timeout=60)
    assert (run.returncode, state_of(bench.run()).name) == (0, "finished")


@pytest.mark.slow
def test_a_killed_recorder_leaves_alerts_until_the_program_ends(bench: Bench) -> None:
    with webhook() as hook:
        to = f"--to http://127.0.0.1:{hook.port}/"
        run = bench.start("--alert loss > 100", "--alert failure", to)
        wait_for(lambda: hook.messages)
        run.kill()
        run.wait()
        time.sleep(0.5)
        assert bench.companions()  # the program goes on, and so do its alerts
        bench.go()
        wait_for(lambda: len(hook.messages) == 2)
        assert "lost" in text_of(hook.messages)[1]
        wait_for(lambda: not bench.companions())


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        pytest.param("http://127.0.0.1:{port}/", marks=pytest.mark.slow),
        "command:sh -c 'sleep 60.25'",
    ],
)
def test_a_way_that_hangs_keeps_neither_the_record_nor_the_user(bench: Bench, way: str) -> None:
    def hang(_: BaseHTTPRequestHandler) -> None:
        time.sleep(60)

    with webhook(hang) as hook:
        run = bench.start("--alert end", f"--to {way.format(port=hook.port)}")
        bench.go()
        assert run.stderr
        while "sending the last alerts" not in run.stderr.readline():
            pass
        assert state_of(bench.run()).name == "finished"  # it is recorded before
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=15)
    assert run.returncode == 0
    assert bench.companions() == []
    cmdlines = [one.info["cmdline"] for one in psutil.process_iter(["cmdline"])]
    assert ["sleep", "60.25"] not in cmdlines


def test_ctrl_c_is_for_the_program(bench: Bench) -> None:
    run = bench.start("--alert end")
    assert run.stdout
    run.stdout.readline()
    wait_for(bench.companions)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted after" in err
    assert bench.companions() == []


def test_a_process_that_records_no_run_ends_its_companion(bench: Bench) -> None:
    said: list[str] = []
    done(bench.folder, points=3)  # of another process, since its heartbeat is changed
    heartbeat = bench.run().folder / "heartbeat.json"
    heartbeat.write_text(re.sub('"started": "[^"]*"', '"started": "1"', heartbeat.read_text()))
    with watched(bench.folder, ["end"], [], said.append):
        pass
    assert said == []


def test_a_recorded_command_line_has_no_addresses() -> None:
    argv = ["backflip", "train", "--alert", "end", "ppo", "--to=https://x/T0KEN", "--to", "env:X"]
    assert without_alerts([*argv, "--tag", "a"]) == ["backflip", "train", "ppo", "--tag", "a"]
