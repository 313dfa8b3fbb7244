"""Tests of programs that print faster than they can be recorded, or than somebody reads."""

import hashlib
import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from backflip.archive.liveness import read_heartbeat
from backflip.archive.recorder import holding
from backflip.archive.recorder.holding import Hold
from backflip.archive.recorder.process_tree import Tree
from backflip.archive.recorder.salvage import salvage
from backflip.archive.recorder.spool import find_spool, make_spool
from backflip.archive.state import state_of

# A child that is forked here starts another program at once, or only waits: what JAX, if another
# test has loaded it, warns of cannot happen.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

PYTHON = sys.executable
MIB = 1 << 20
# More than this in the spool says that nothing holds the program: 64 MiB, and what a program can
# print until it is looked at again on a machine that has much else to do.
BOUND = 250 * MIB
FLOOD = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), os._exit(7)))
data = (b"x" * 99 + b"\\n") * 1000
while True:
    os.write(1, data)
    time.sleep(0.001)
"""


def wait_for(ready, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = ready()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError("it never came to be")


def state_of_process(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def program_of(bench):
    beat = bench.home.exists() and bench.runs() and read_heartbeat(bench.last.folder)
    return beat and beat.program and beat.program.pid


def spooled(bench):
    """Return how much memory the spool of the newest run takes."""
    found = find_spool(bench.last.folder)
    return 512 * found[0].path("out").stat().st_blocks if found else 0


def children(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def guard_of(recorder, program):
    (found,) = [pid for pid in children(recorder.pid) if pid != program]
    return found


@pytest.fixture
def flood(bench):
    """A flood that nobody reads, held by its recorder: the recorder, and the program's id."""
    process = bench.start("run", "--grace", "20s", PYTHON, "-c", FLOOD)
    program = wait_for(lambda: program_of(bench))
    wait_for(lambda: state_of_process(program) == "T")
    yield process, program
    for pid in (process.pid, program):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.communicate()
    wait_for(lambda: state_of_process(program) in "ZX")
    salvage(bench.last.folder)


@pytest.mark.slow
def test_who_reads_slowly_makes_the_program_wait_and_nothing_grows(bench, flood):
    process, program = flood
    taken, end = 0, time.monotonic() + 3
    while time.monotonic() < end:
        taken += len(process.stdout.read1(1 << 16))
        time.sleep(0.01)
        assert spooled(bench) < BOUND
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) < 200 * 1024
    assert state_of_process(program) == "T"
    assert taken > 0
    process.stdout.close()  # who reads has had enough: it goes on, and is held by the log alone
    before = (bench.last.folder / "output.log").stat().st_size
    wait_for(lambda: (bench.last.folder / "output.log").stat().st_size > before + 100 * MIB)
    assert spooled(bench) < BOUND


@pytest.mark.medium
def test_a_signal_reaches_a_program_that_is_held(bench, flood):
    process, program = flood
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: state_of_process(program) in "ZX")  # though nobody reads what it prints
    out, _ = process.communicate()
    assert process.returncode == 7
    assert out.endswith(b"saved\n")
    assert bench.end()["status"] == "failed"


@pytest.mark.medium
def test_a_budget_reaches_a_program_that_is_held(bench):
    done = bench("run", "--budget", "2s", "--grace", "60s", "--", PYTHON, "-c", FLOOD)
    assert done.returncode == 7
    assert done.stdout.endswith("saved\n")
    assert bench.end()["status"] == "stopped"


@pytest.mark.medium
def test_a_recorder_that_is_killed_leaves_nobody_stopped(bench, flood):
    process, program = flood
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: state_of_process(program) != "T")
    assert "goes on" in state_of(bench.last).note
    os.kill(program, signal.SIGKILL)


@pytest.mark.slow
def test_if_the_guard_is_killed_as_well_salvage_continues_the_program(bench, flood):
    process, program = flood
    os.kill(guard_of(process, program), signal.SIGKILL)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    assert state_of_process(program) == "T"
    os.kill(program, signal.SIGTERM)  # it heeds that when it goes on, and prints no more
    salvage(bench.last.folder)
    wait_for(lambda: state_of_process(program) in "ZX")
    salvage(bench.last.folder)
    assert bench.output()[-1] == ("out", "saved")
    assert find_spool(bench.last.folder) is None


@pytest.mark.medium
def test_every_byte_is_shown_in_order_and_no_memory_taken(bench):
    data = random.Random(3).randbytes(50 * MIB)
    (bench.work / "data").write_bytes(data)
    process = bench.start("run", "cat", "data")
    seen = hashlib.sha256()
    while piece := process.stdout.read1(1 << 20):
        seen.update(piece)
        assert spooled(bench) < BOUND
    process.communicate()
    assert process.returncode == 0
    assert seen.digest() == hashlib.sha256(data).digest()


@pytest.fixture
def hold(tmp_path):
    """A hold on children of this process, and how one is started."""
    tree, spool = Tree(), make_spool(tmp_path, 0.0)
    hold = Hold(spool, tree)

    def start():
        pid = os.spawnvp(os.P_NOWAIT, "sleep", ["sleep", "1000"])
        wait_for(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
        wait_for(lambda: state_of_process(pid) == "S")
        return pid

    yield hold, start, spool
    hold.close()
    tree.kill()
    tree.close()
    spool.remove()


def test_it_is_held_above_one_mark_and_continued_below_another(hold):
    hold, start, spool = hold
    pids = [start(), start()]
    hold.check(holding.MOST)
    assert [state_of_process(pid) for pid in pids] == ["S", "S"]
    hold.check(holding.MOST + 1)
    wait_for(lambda: [state_of_process(pid) for pid in pids] == ["T", "T"])
    hold.check(holding.LEAST)
    assert sorted(
        fields[0] for fields in json.loads((spool.folder / "held.json").read_bytes())
    ) == sorted(pids)
    assert [state_of_process(pid) for pid in pids] == ["T", "T"]
    hold.check(holding.LEAST - 1)
    wait_for(lambda: [state_of_process(pid) for pid in pids] == ["S", "S"])
    assert not (spool.folder / "held.json").exists()


def test_who_was_stopped_by_somebody_else_is_not_continued(hold):
    hold, start, _ = hold
    mine, others = start(), start()
    os.kill(others, signal.SIGSTOP)
    wait_for(lambda: state_of_process(others) == "T")
    hold.check(holding.MOST + 1)
    wait_for(lambda: state_of_process(mine) == "T")
    hold.relent(0)
    wait_for(lambda: state_of_process(mine) == "S")
    assert state_of_process(others) == "T"


def test_who_was_started_or_continued_meanwhile_is_held_too(hold, monkeypatch):
    monkeypatch.setattr(holding, "_AGAIN_SECONDS", 0.0)
    hold, start, _ = hold
    first = start()
    hold.check(holding.MOST + 1)
    wait_for(lambda: state_of_process(first) == "T")
    os.kill(first, signal.SIGCONT)
    second = start()
    wait_for(lambda: state_of_process(first) == "S")
    hold.check(holding.MOST + 1)
    wait_for(lambda: [state_of_process(pid) for pid in (first, second)] == ["T", "T"])
    hold.close()
    wait_for(lambda: [state_of_process(pid) for pid in (first, second)] == ["S", "S"])


def test_after_a_signal_it_may_print_as_much_again(hold):
    hold, start, _ = hold
    pid = start()
    hold.relent(holding.MOST)
    hold.check(2 * holding.MOST)
    assert state_of_process(pid) == "S"
    hold.check(2 * holding.MOST + 1)
    wait_for(lambda: state_of_process(pid) == "T")


def test_another_process_with_the_same_id_is_not_continued(hold):
    hold, start, spool = hold
    pid = start()
    hold.check(holding.MOST + 1)
    wait_for(lambda: state_of_process(pid) == "T")
    marker = spool.folder / "held.json"
    ((number, started, *rest),) = json.loads(marker.read_bytes())
    marker.write_text(json.dumps([[number, started + "0", *rest]]))
    holding.release(spool.folder)
    assert state_of_process(pid) == "T"
    assert not marker.exists()


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", "[[1]]", '[["x", 1, 2, 3]]', "null"])
def test_a_marker_that_says_nothing_is_passed_over(tmp_path, text):
    (tmp_path / "held.json").write_text(text)
    holding.release(tmp_path)
