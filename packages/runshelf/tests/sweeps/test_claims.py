"""Claims: one live worker for each block, whatever is killed, and however clocks differ."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from runshelf.store.liveness import SILENCE_SECONDS
from runshelf.sweeps.claims import Claims, newest_claims, read_holder

HOLD = """
import sys, time
from pathlib import Path
from runshelf.sweeps.claims import Claims
claim = Claims(Path(sys.argv[1])).take("a")
print(claim.number if claim else 0, flush=True)
time.sleep(60)
"""
WITH_PROGRAM = """
import subprocess, sys, time
from pathlib import Path
from runshelf.sweeps.claims import Claims
claim = Claims(Path(sys.argv[1])).take("a")
program = subprocess.Popen(["sleep", "60"], pass_fds=(claim.lock,))
print(program.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "blocks").mkdir()
    return tmp_path


def holder(folder, code=HOLD):
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


def take(folder, start, found):
    start.wait()
    claims = Claims(folder)
    got = [name for name in map(str, range(20)) if claims.take(name)]
    found.put(got)
    time.sleep(1.0)  # a claim of a dead process may be taken over


@pytest.mark.medium
def test_of_several_processes_one_gets_each_block(folder):
    context = multiprocessing.get_context("spawn")
    start, found = context.Event(), context.Queue()
    processes = [context.Process(target=take, args=(folder, start, found)) for _ in range(3)]
    for process in processes:
        process.start()
    start.set()
    got = [name for _ in processes for name in found.get(timeout=60)]
    for process in processes:
        process.join()
    assert sorted(got) == sorted(map(str, range(20)))


@pytest.mark.medium
def test_a_claim_is_held_until_its_process_is_killed(folder):
    process, number = holder(folder)
    assert number == 1
    assert Claims(folder).take("a") is None
    end(process)
    claim = Claims(folder).take("a")
    assert claim is not None
    assert claim.number == 2
    claim.release(done=True)


@pytest.mark.medium
def test_a_program_holds_the_block_of_its_killed_worker(folder):
    process, program = holder(folder, WITH_PROGRAM)
    end(process)
    assert Claims(folder).take("a") is None
    os.kill(program, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while (claim := Claims(folder).take("a")) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert claim is not None
    claim.release(done=True)


def test_a_released_block_is_free_at_once(folder):
    claims = Claims(folder)
    first = claims.take("a")
    assert first is not None
    first.release(done=False)
    second = claims.take("a")
    assert second is not None
    assert second.number == 2
    assert second.is_newest()
    assert not first.is_newest()
    second.release(done=True)


def other_machine(folder, touched):
    text = (
        '{"worker": {"pid": 1, "started": "1", "machine": "elsewhere", "host": "far"}, '
        '"released": false}'
    )
    path = folder / "blocks" / "a.claim-1"
    path.write_text(text)
    os.utime(path, (touched, touched))
    return path


@pytest.mark.parametrize("hours", [-3, 0, 3])
def test_another_machine_is_gone_after_a_minute_of_silence_whatever_its_clock_says(folder, hours):
    path = other_machine(folder, time.time() + 3600 * hours)
    now = 0.0
    claims = Claims(folder, clock=lambda: now)
    assert claims.take("a") is None
    now = SILENCE_SECONDS - 1
    assert claims.take("a") is None
    moment = path.stat().st_mtime + 5
    os.utime(path, (moment, moment))
    now = SILENCE_SECONDS + 1
    assert claims.take("a") is None  # it was heard since
    now = 2 * SILENCE_SECONDS + 2
    claim = claims.take("a")
    assert claim is not None
    assert claim.number == 2
    claim.release(done=True)


def test_a_damaged_claim_is_taken_over(folder):
    (folder / "blocks" / "a.claim-3").write_bytes(b"\x00{")
    claim = Claims(folder).take("a")
    assert claim is not None
    assert claim.number == 4
    claim.release(done=True)
    assert newest_claims(folder) == {"a": 4}
    assert read_holder(folder, "b", 1) is None
