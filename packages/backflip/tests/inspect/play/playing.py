"""A process of `backflip play` and an HTTP client for it."""

import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

REAL = "import sys; from backflip.cli.main import main; sys.exit(main())"


class Play:
    """A running process of `backflip play`."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process = process
        self.address = address
        self.port = int(address.rstrip("/").rpartition(":")[2])

    def get(self, path: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Return status, headers and body of a GET request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def post(self, path: str, fields: Any, **headers: str) -> tuple[int, Any]:
        """POST JSON with the page's token; `_` in names of `headers` stands for `-`."""
        token = re.findall('name="backflip-token" content="([0-9a-f]+)"', self.get("/")[2].decode())
        usual = {"Content-Type": "application/json", "X-Backflip-Token": token[0]}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(fields), usual | given)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def interrupt(self) -> dict[str, Any]:
        """Send SIGINT; return the JSON that the process prints at its end."""
        self.process.send_signal(signal.SIGINT)
        out, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        return json.loads(out.splitlines()[-1])


@contextlib.contextmanager
def playing(home: Path, env: str, *options: str) -> Generator[Play, None, None]:
    """Start `backflip play` and kill it at the end of the block."""
    command = [sys.executable, "-c", REAL, "play", env, "--no-open", "--json", "--home", str(home)]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://\S+?/", line):
                yield Play(process, found[0])
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        process.kill()
        process.communicate(timeout=20)
