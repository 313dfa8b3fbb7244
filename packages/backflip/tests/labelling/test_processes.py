"""Tests of `backflip.labelling.processes` with real processes."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from backflip.labelling.processes import PageProcess, TerminalProcess
from runshelf.errors import UsageError, UserFacingError

# Prints its address, appends its process id to a file, and ends when its standard input does.
PROGRAM = """
import json, os, sys
print(json.dumps({"address": "http://here/"}), flush=True)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
sys.stdin.read()
"""


def lines(path):
    return path.read_text().split() if path.exists() else []


def wait_for(condition, seconds=20.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_page_is_restarted_and_ends_with_the_context(tmp_path):
    born = tmp_path / "born"
    with PageProcess(["-c", PROGRAM, str(born)], tmp_path / "log") as page:
        assert page.address == "http://here/"
        wait_for(lambda: len(lines(born)) == 1)
        os.kill(int(lines(born)[0]), signal.SIGKILL)
        wait_for(lambda: len(lines(born)) == 2)
        page.check()
    assert not any(alive(int(pid)) for pid in lines(born))


@pytest.mark.medium
def test_page_ends_when_the_trainer_is_killed(tmp_path):
    born = tmp_path / "born"
    trainer = (
        "import sys, time\nfrom pathlib import Path\n"
        "from backflip.labelling.processes import PageProcess\n"
        f"with PageProcess(['-c', {PROGRAM!r}, {str(born)!r}], Path({str(tmp_path / 'log')!r})):\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", trainer])
    wait_for(lambda: len(lines(born)) == 1)
    process.kill()
    process.wait()
    wait_for(lambda: not alive(int(lines(born)[0])))


def test_page_that_does_not_start_reports_its_own_error(tmp_path):
    program = "import sys; sys.exit('backflip.web: error: port 80 is taken')"
    with (
        pytest.raises(UsageError, match=r"^port 80 is taken$"),
        PageProcess(["-c", program], tmp_path / "log"),
    ):
        pass


@pytest.mark.medium
def test_page_that_keeps_crashing_is_not_restarted(tmp_path):
    first = tmp_path / "first"
    program = (
        "import json, os, sys\n"
        f"if not os.path.exists({str(first)!r}):\n"
        f"    open({str(first)!r}, 'w').close()\n"
        "    print(json.dumps({'address': 'x'}), flush=True)\n"
        "sys.exit('error: something broke')\n"
    )
    with PageProcess(["-c", program], tmp_path / "log") as page:
        wait_for(lambda: page._failed)
        with pytest.raises(UserFacingError, match="crashed repeatedly: something broke"):
            page.check()


@pytest.mark.parametrize(
    ("status", "error"), [(0, KeyboardInterrupt), (1, KeyboardInterrupt), (2, UsageError)]
)
def test_the_trainer_is_interrupted_when_the_terminal_program_ends(status, error):
    program = ["-c", f"import sys; sys.exit({status})"]
    with pytest.raises(error), TerminalProcess(program):
        time.sleep(60)  # a phase of learning


@pytest.mark.parametrize(("status", "error"), [(0, KeyboardInterrupt), (2, UsageError)])
def test_a_trainer_in_a_thread_finds_that_the_terminal_program_has_ended(status, error):
    found = []

    def train():
        with TerminalProcess(["-c", f"import sys; sys.exit({status})"]) as terminal:
            wait_for(lambda: terminal._process.poll() is not None)
            with pytest.raises(error) as caught:
                terminal.check()
            found.append(caught.type)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join(30)
    assert found == [error]


def test_the_terminal_program_may_end_after_training():
    with TerminalProcess(["-c", "pass"]) as terminal:
        terminal.let_end()
        wait_for(lambda: terminal._process.poll() is not None)
        time.sleep(0.2)  # an interrupt would come now


def test_terminal_program_ends_with_the_context(tmp_path):
    with TerminalProcess(["-c", "import time; time.sleep(60)"]) as terminal:
        terminal.check()
        process = terminal._process
    assert process.poll() == -signal.SIGTERM
