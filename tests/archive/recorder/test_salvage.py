"""Tests of salvage: what a killed recorder left, and who takes it when."""

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from backflip.archive.index.run_index import open_index
from backflip.archive.liveness import is_alive, read_heartbeat
from backflip.archive.recorder import salvage as module
from backflip.archive.recorder import spool
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


@pytest.fixture
def out_of_the_way(monkeypatch):
    """A folder that no other recorder looks into for what was left, as each does that starts."""
    folder = Path(tempfile.mkdtemp(dir=spool._places()[0]))
    monkeypatch.setattr(spool, "_MEMORY", folder)
    yield folder
    shutil.rmtree(folder)


def recorder_killed_before_it_copied(bench, folder):
    """Stop a recorder, let its program print a thousand lines and end, then kill the recorder."""
    recorder = bench.start("run", "--", sys.executable, "-c", WAITS)
    until(lambda: bench.runs() and bench.output())
    until(lambda: (beat := read_heartbeat(bench.last.folder)) and beat.program)
    program = read_heartbeat(bench.last.folder).program
    os.kill(recorder.pid, signal.SIGSTOP)
    bench.write("go", "")
    until(lambda: not is_alive(program))
    left = folder.parent / spool._name(bench.last.folder)
    left.rename(folder / left.name)
    recorder.kill()
    recorder.communicate()


def test_what_takes_long_to_salvage_does_not_hold_up_another_program(
    bench, monkeypatch, out_of_the_way
):
    recorder_killed_before_it_copied(bench, out_of_the_way)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_QUICK_BYTES", 100)
        salvage_all()
    assert bench.output() == [("out", "waits")]
    salvage_all()
    assert bench.output() == [("out", "waits"), *(("out", str(n)) for n in range(1000))]


def test_looking_at_the_table_salvages_what_was_lost(bench, out_of_the_way):
    recorder_killed_before_it_copied(bench, out_of_the_way)
    with open_index(bench.home) as index:
        index.refresh()
        assert [row.state for row in index.runs().rows] == ["lost"]
    assert len(bench.output()) == 1001
