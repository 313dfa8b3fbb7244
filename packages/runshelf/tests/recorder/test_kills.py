"""kill -9 of the program, the recorder or both at random moments loses no acknowledged output."""

import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runshelf.recorder.output_reader import read_output
from runshelf.store.finding import list_runs
from runshelf.store.liveness import read_heartbeat
from runshelf.store.run import open_run
from runshelf.store.state import state_of

RUNSHELF = "import sys; from runshelf.cli.main import main; sys.exit(main())"

# Prints on both streams, logs metrics, and writes to a file what has been written so far.
PROGRAM = """
import json, os, sys, time
run = os.environ["BACKFLIP_RUN"]
acks = open(sys.argv[1], "ab", buffering=0)
metrics = open(os.path.join(run, f"metrics-{os.getpid()}.jsonl"), "ab", buffering=0)
acks.write(b"pid %d\\n" % os.getpid())
for i in range(10_000_000):
    os.write(1, b"out %d\\n" % i)
    acks.write(b"out %d\\n" % i)
    if i % 3 == 0:
        os.write(2, b"err %d\\n" % i)
        acks.write(b"err %d\\n" % i)
    metrics.write(b'{"step": %d, "loss": 0.5}\\n' % i)
    acks.write(b"metric %d\\n" % i)
    if i % 7 == 0:
        time.sleep(0.002)
"""


def wait_for(ready, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = ready()
        if found:
            return found
        time.sleep(0.002)
    raise AssertionError("timed out")


def pid_in(acks):
    found = re.match(rb"pid (\d+)\n", acks.read_bytes()) if acks.exists() else None
    return int(found[1]) if found else None


def is_gone(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def acknowledged(acks):
    lines = acks.read_text().split("\n")[1:-1]
    return {
        kind: [line for line in lines if line.startswith(kind)] for kind in ("out", "err", "metric")
    }


def check_kept(folder, acks):
    """Check that every acknowledged line and record can be read, once, in order."""
    printed = {"out": [], "err": []}
    for line in read_output(folder):
        printed[line.stream].append(line.text)
    written = acknowledged(acks)
    for stream, lines in printed.items():
        # One more line than acknowledged may have been printed, in part or whole.
        assert lines[: len(written[stream])] == written[stream]
        assert len(lines) <= len(written[stream]) + 1
    (metrics,) = folder.glob("metrics-[0-9]*.jsonl")
    records = [json.loads(line) for line in metrics.read_text().split("\n")[:-1]]
    assert [f"metric {r['step']}" for r in records][: len(written["metric"])] == written["metric"]


def record(home, acks):
    """Start a recorder of the program."""
    program = home / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-c", RUNSHELF, "run", "--home", str(home), "--"]
    return subprocess.Popen(
        [*command, sys.executable, str(program), str(acks)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=home,
    )


def kill_at_random(home, acks, chance, start):
    """Start a run and kill it; return its folder, the victims, and the program's id."""
    recorder = start(home, acks)
    pid = wait_for(lambda: pid_in(acks))
    time.sleep(chance.uniform(0, 0.3) * chance.random())
    victims = chance.choice([["program"], ["recorder"], ["recorder", "program"]])
    for victim in victims:
        os.kill(pid if victim == "program" else recorder.pid, signal.SIGKILL)
    recorder.wait()
    return home / "runs" / list_runs(home)[-1], victims, pid


def check_one(home, acks, chance, start=record):
    folder, victims, pid = kill_at_random(home, acks, chance, start)
    try:
        check_killed(folder, victims, pid, acks)
    except BaseException:  # a failed check must not leave the program printing forever
        if not is_gone(pid):
            os.kill(pid, signal.SIGKILL)
        raise


def check_killed(folder, victims, pid, acks):
    run = open_run(folder)
    if victims == ["program"]:
        state = state_of(run)
        assert (state.name, run.events()[-1]["signal"]) == ("failed", 9)
    elif victims == ["recorder"]:
        # Shortly after its start, the program is not in the heartbeat yet, so it cannot be found.
        is_named = read_heartbeat(folder).program is not None
        assert state_of(run).name == ("running" if is_named else "lost")
        assert ("still runs" in state_of(run).note) == is_named
        printed = len(read_output(folder))
        before = len(acknowledged(acks)["out"])
        wait_for(lambda: len(acknowledged(acks)["out"]) > before + 20)
        assert len(read_output(folder)) > printed, "output without a recorder must be readable"
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid))
    before = content_of(folder)
    if "recorder" in victims:
        assert state_of(run).name == "lost"
    check_kept(folder, acks)
    assert content_of(folder) == before, "reading must write nothing"


def content_of(folder):
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in (folder, *folder.rglob("*"))}


def check_many(home, moments):
    seed = secrets.randbits(32)
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    for moment in range(moments):
        check_one(home, home / f"acks-{moment}", chance)
    assert len(list_runs(home)) == moments


@pytest.mark.attack
@pytest.mark.slow
def test_kill_9_at_8_random_moments(tmp_path, tried):
    check_many(tmp_path, 8)
    tried(8, "kills of the recorder")
