"""A process of `backflip play` and an HTTP client for it."""

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tests.server_client import Server

ROOT = Path(__file__).parents[5]
COMMAND = "import sys; from backflip.cli.main import main; sys.exit(main())"


class Play(Server):
    """A running process of `backflip play`."""

    def interrupt(self) -> dict[str, Any]:
        """Send SIGINT; return the JSON that the process prints at its end."""
        self.process.send_signal(signal.SIGINT)
        out, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        return json.loads(out.splitlines()[-1])


@contextlib.contextmanager
def playing(home: Path, env: str, *options: str) -> Generator[Play, None, None]:
    """Start `backflip play` and kill it at the end of the block."""
    command = [sys.executable, "-c", COMMAND, "play", env, "--no-open", "--json"]
    process = subprocess.Popen(
        [*command, "--home", str(home), *options],
        cwd=ROOT,  # where the environments of tests are found
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://\S+?:(\d+)/", line):
                yield Play(home, process, found[0], int(found[1]))
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        process.kill()
        process.communicate(timeout=20)
