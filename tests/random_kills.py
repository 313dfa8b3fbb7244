"""Kills at random moments: how many, in which pieces, and children that are cheap to start.

`BACKFLIP_KILLS` is the number of all parts together, 1,000 by default. Each part runs in pieces of
their own processes, so a part that was cut off goes on with `pytest --last-failed`. A piece forks
its victims from a process that has imported everything, so most kills take a fraction of a second.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, final

# Of a thousand kills.
SHARES = {"log": 400, "recorder": 250, "page": 250, "trainer": 100}
PIECES = 5


class Figures(NamedTuple):
    """What a piece did: kills, and what was acknowledged before them, lost and doubled."""

    kills: int
    acknowledged: int
    lost: int
    doubled: int


def kills_of(part: str) -> int:
    """Return the kills of one piece of a part."""
    count = int(os.environ.get("BACKFLIP_KILLS", "1000"))
    return max(1, round(count * SHARES[part] / sum(SHARES.values()) / PIECES))


def attack(module: str, part: str, piece: int, home: Path) -> Figures:
    """Carry out a piece in a process of its own; return its figures."""
    seed = int(os.environ.get("BACKFLIP_TEST_SEED", random.SystemRandom().randrange(10**6)))
    sys.stdout.write(f"replay with BACKFLIP_TEST_SEED={seed}\n")
    command = [sys.executable, "-m", module, part, str(kills_of(part)), f"{seed}-{piece}"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [*command, str(home)], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def main(parts: dict[str, Callable[[Path, int, random.Random], Figures]]) -> None:
    """Carry out the piece that the command line names, and print its figures."""
    part, kills, seed, home = sys.argv[1:]
    figures = parts[part](Path(home), int(kills), random.Random(seed))
    sys.stdout.write(json.dumps(figures._asdict()) + "\n")


@final
class Fork:
    """A child that is this process until it runs a function; its standard output is a pipe.

    Args:
        act: what the child does; its end is the end of the child.
        errors: a file for its standard error.
    """

    def __init__(self, act: Callable[[], Any], errors: Path) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            _act(act, writer, errors)
        os.close(writer)
        self.output = os.fdopen(reader)
        self.status: int | None = None

    def kill(self) -> None:
        """Kill the child with SIGKILL, unless it has ended, and wait for its end."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def wait(self) -> int:
        """Wait for the end of the child; return its exit status, below 0 for a signal."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def ends_within(self, seconds: float) -> bool:
        """Return whether the child ends by itself in that time."""
        until = time.monotonic() + seconds
        while self.status is None and time.monotonic() < until:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.status = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.001)
        return self.status is not None

    def rest(self) -> list[str]:
        """Return the complete lines that the child printed and nobody read; close the pipe."""
        with self.output:
            return [line[:-1] for line in self.output if line.endswith("\n")]


def _act(act: Callable[[], Any], writer: int, errors: Path) -> None:
    status = 1
    try:
        os.dup2(writer, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        act()
        status = 0
    finally:
        os._exit(status)
