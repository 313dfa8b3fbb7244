"""Tests of programs that print faster than a reader reads."""

import hashlib
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runshelf.recorder.spool import Spool, SpoolReader

PYTHON = sys.executable
MIB = 1 << 20
FLOOD = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), os._exit(7)))
data = (b"x" * 99 + b"\\n") * 1000
while True:
    os.write(1, data)
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_unread_output_waits_on_disk_and_signals_still_work(bench):
    process = bench.start("run", "--grace", "20s", PYTHON, "-c", FLOOD)
    spool = None
    end = time.monotonic() + 60
    while spool is None or spool.stat().st_blocks * 512 < 20 * MIB:
        assert time.monotonic() < end, "unread output must wait on disk"
        spool = next(bench.home.glob("runs/*/spool/out"), None)
        time.sleep(0.01)
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) < 200 * 1024
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    assert process.returncode == 7
    assert out.endswith(b"saved\n")
    assert bench.end()["status"] == "failed"
    assert bench.output()[-1] == ("out", "saved")
    assert not spool.parent.exists()


@pytest.mark.slow
def test_a_budget_stops_a_program_that_prints_without_pause(bench):
    flood = FLOOD.replace("time.sleep(0.01)", "time.sleep(0.001)")
    flood = flood.replace("while True", "for _ in range(30_000)")  # if the budget does not work
    words = ["run", "--budget", "2s", "--grace", "20s", PYTHON, "-c", flood]
    began = time.monotonic()
    process = bench.start(*words, stdout=subprocess.DEVNULL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 7
    assert b"its budget of 2 s is used up" in err
    assert bench.end()["status"] == "stopped"
    (stop,) = (event for event in bench.last.events() if event.get("event") == "budget")
    assert (stop["killed"], stop["survivors"]) == ([], [])
    assert 2 <= bench.end()["seconds"] < 20
    assert time.monotonic() - began < 40
    assert bench.output()[-1] == ("out", "saved")


@pytest.mark.medium
def test_all_bytes_are_shown_in_order(bench):
    data = random.Random(3).randbytes(50 * MIB)
    (bench.work / "data").write_bytes(data)
    process = bench.start("run", "cat", "data")
    seen = hashlib.sha256()
    while piece := process.stdout.read1(1 << 20):
        seen.update(piece)
    process.communicate()
    assert process.returncode == 0
    assert seen.digest() == hashlib.sha256(data).digest()


def test_disk_space_is_reserved_ahead_of_output(tmp_path):
    spool = Spool(tmp_path)
    reader = SpoolReader(spool, "out")
    before = spool.path("out").stat().st_blocks * 512
    if not before:
        pytest.skip("this file system reserves nothing")
    with spool.path("out").open("ab") as file:
        file.write(b"x" * before)
    while reader.read():
        reader.release(0)
    assert spool.path("out").stat().st_blocks * 512 > before
    reader.close()
