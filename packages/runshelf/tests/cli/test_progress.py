"""The line of progress: what a terminal shows, and what a file of messages holds."""

import os
import pty
import subprocess
import sys

PROGRAM = """
import sys, time
from runshelf.cli import progress
progress._PATIENCE_SECONDS = float(sys.argv[1])
line = progress.ProgressLine("reading")
for done in (0, 1, 2, 3):
    line(done, 3)
    time.sleep(0.02)
print("table", file=sys.stderr)
"""


def on_a_terminal(patience: float) -> str:
    """Return what a terminal gets."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, str(patience)]
    subprocess.run(command, stderr=slave, timeout=60, check=True)
    os.close(slave)
    text = os.read(master, 65536).decode()
    os.close(master)
    return text


def test_on_a_terminal_the_last_text_is_removed() -> None:
    assert on_a_terminal(0.0) == "\r\x1b[Kreading 0 of 3 runs\r\x1b[Ktable\r\n"


def test_a_short_operation_shows_nothing() -> None:
    assert on_a_terminal(60.0) == "table\r\n"


def test_elsewhere_each_text_is_a_line() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, "0"], stderr=subprocess.PIPE, check=True)
    assert done.stderr.decode().splitlines() == ["reading 0 of 3 runs", "table"]
