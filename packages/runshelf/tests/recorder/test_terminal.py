"""Tests of `runshelf run` at a real terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from runshelf.store.liveness import read_heartbeat

# JAX, if another test loaded it, warns of forks. The children forked here only start another
# program or wait, so they cannot deadlock.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

PYTHON = sys.executable


def at_terminal(bench, words, keys=(), seconds=30.0, command=None):
    """Run a command line at a terminal of 77 x 33, and type keys once a text has appeared.

    Instead of keys, a function may be given; it is called with the terminal and the recorder's id.

    Returns:
        What was shown, the exit status, and the terminal's settings before and after.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in (0, 1, 2):
            os.dup2(slave, descriptor)
        os.chdir(bench.work)
        os.execve(PYTHON, command or bench.command(*words), bench.env)
    seen, keys, end = b"", list(keys), time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([master], [], [], 0.05)[0]:
            seen += os.read(master, 65536)
            if keys and keys[0][0] in seen:
                act = keys.pop(0)[1]
                act(master, pid) if callable(act) else os.write(master, act)
        elif (found := os.waitpid(pid, os.WNOHANG))[0]:
            after = termios.tcgetattr(slave)
            os.close(master)
            os.close(slave)
            return seen, os.waitstatus_to_exitcode(found[1]), before, after
    os.kill(pid, 9)
    raise AssertionError(f"timed out: {seen!r}")


SHOW = """
import os, sys
print([os.isatty(n) for n in (0, 1, 2)], *os.get_terminal_size())
print(os.tcgetpgrp(0) == os.getpgrp(), file=sys.stderr)
"""


@pytest.mark.medium
def test_the_program_gets_a_terminal_of_the_same_size(bench):
    seen, status, before, after = at_terminal(bench, ["run", "--", PYTHON, "-c", SHOW])
    assert status == 0
    assert b"[True, True, True] 77 33\r\n" in seen
    assert sorted(bench.output()) == [("err", "True"), ("out", "[True, True, True] 77 33")]
    assert before == after


@pytest.mark.medium
def test_keys_reach_the_program(bench):
    seen, status, _, _ = at_terminal(
        bench, ["run", "sh", "-c", "printf 'name? '; read x; echo hello $x"], [(b"name? ", b"me\r")]
    )
    assert (status, b"hello me\r\n" in seen) == (0, True)
    assert bench.output() == [("out", "name? me"), ("out", "hello me")]


@pytest.mark.medium
@pytest.mark.parametrize(("handles", "status"), [(False, 130), (True, 0)])
def test_ctrl_c_reaches_the_program(bench, handles, status):
    trap = "trap 'echo saved; exit 0' INT; " if handles else ""
    words = ["run", "sh", "-c", f"{trap}echo up; sleep 60 & wait"]
    seen, ended, before, after = at_terminal(bench, words, [(b"up", b"\x03")])
    assert ended == status
    assert bench.end()["status"] == ("finished" if handles else "interrupted")
    assert (b"saved" in seen) == handles
    assert before == after


@pytest.mark.medium
def test_terminal_settings_are_restored_after_sigterm(bench):
    words = ["run", "sh", "-c", "echo up; kill -TERM $PPID; sleep 60 & wait"]
    _, ended, before, after = at_terminal(bench, words)
    assert ended == 143
    assert before == after


# Uses os.write, because a signal handler may not print while `print` runs.
TELLS_ITS_SIZE = """
import os, signal, time
told = []

def tell(*_):
    os.write(1, b"now %d %d\\n" % os.get_terminal_size())
    told.append(True)

signal.signal(signal.SIGWINCH, tell)
os.write(1, b"up\\n")
while not told:
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_resized_terminal_signals_the_program(bench):
    def resize(master, _):
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    words = ["run", "--", PYTHON, "-c", TELLS_ITS_SIZE]
    _, status, _, _ = at_terminal(bench, words, [(b"up", resize)])
    assert status == 0
    assert bench.output() == [("out", "up"), ("out", "now 120 40")]


def state_of_process(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.medium
def test_ctrl_z_stops_recorder_and_program_and_a_shell_continues_both(bench):
    """The shell starts a job, waits until it has stopped, then continues it."""
    done = []

    def suspend(master, shell):
        (recorder,) = children(shell)
        program = read_heartbeat(bench.last.folder).program.pid
        os.write(master, b"\x1a")
        wait_for(lambda: [state_of_process(pid) for pid in (recorder, program)] == ["T", "T"])
        done.append(termios.tcgetattr(master))
        os.kill(recorder, signal.SIGCONT)
        wait_for(lambda: state_of_process(program) != "T")
        os.write(master, b"more\r")

    words = ["run", "sh", "-c", "echo up; read x; echo got $x"]
    shell = [PYTHON, "-c", SHELL, *bench.command(*words)]
    seen, status, before, after = at_terminal(bench, words, [(b"up", suspend)], command=shell)
    assert (status, b"got more\r\n" in seen) == (0, True)
    assert before == done[0] == after
    assert bench.end()["status"] == "finished"


# Like a shell with job control: the job is a process group in the foreground.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
"""


def children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def wait_for(ready, seconds=30.0):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.005)
