"""Tests of salvage: what a killed recorder left, and who takes it when."""

import os
import signal
import sys
import time

from backflip.archive.index.index import open_index
from backflip.archive.liveness import is_alive, read_heartbeat
from backflip.archive.recorder import salvage as module
from backflip.archive.recorder.salvage import salvage_all

WAITS = """
import os, time
print("waits", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
for n in range(1000):
    print(n)
"""
DEADLINE_SECONDS = 30


def until(holds):
    end = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.01)


def recorder_killed_before_it_copied(bench):
    """Stop a recorder, let its program print a thousand lines and end, then kill the recorder."""
    recorder = bench.start("run", "--", sys.executable, "-c", WAITS)
    until(lambda: bench.runs() and bench.output())
    until(lambda: (beat := read_heartbeat(bench.last.folder)) and beat.program)
    program = read_heartbeat(bench.last.folder).program
    os.kill(recorder.pid, signal.SIGSTOP)
    bench.write("go", "")
    until(lambda: not is_alive(program))
    recorder.kill()
    recorder.communicate()


def test_what_takes_long_to_salvage_does_not_hold_up_another_program(bench, monkeypatch):
    recorder_killed_before_it_copied(bench)
    monkeypatch.setattr(module, "_QUICK_BYTES", 100)
    salvage_all()
    assert bench.output() == [("out", "waits")]
    monkeypatch.undo()
    salvage_all()
    assert bench.output() == [("out", "waits"), *(("out", str(n)) for n in range(1000))]


def test_looking_at_the_table_salvages_what_was_lost(bench):
    recorder_killed_before_it_copied(bench)
    with open_index(bench.home) as index:
        index.refresh()
        assert [row.state for row in index.runs().rows] == ["lost"]
    assert len(bench.output()) == 1001
