"""A prepared run for tests of the pages: pairs of clips with films of a moving square."""

import contextlib
import functools
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backflip.labelling.status import Status, write_status
from backflip.preferences.films import FILMS, Film, write_film
from backflip.preferences.labels import LabelStore, NewQuery

FRAMES = 30
SIDE = 48


def square_frames(colour: tuple[int, int, int], frames: int = FRAMES, side: int = SIDE):
    """Frames in which a square of a colour moves once from left to right."""
    drawn = np.full((frames, side, side, 3), 24, np.uint8)
    for frame in range(frames):
        left = round(frame * (side - 12) / max(1, frames - 1))
        drawn[frame, side // 2 - 6 : side // 2 + 6, left : left + 12] = colour
    return drawn


def colour_of(clip: int) -> tuple[int, int, int]:
    """A colour that clips of other pairs nearby do not have."""
    clip %= 48
    return (40 + clip * 37 % 216, 40 + clip * 91 % 216, 40 + clip * 151 % 216)


@functools.cache
def film_of(folder: Path, clip: int, **looks: Any) -> dict[str, Film]:
    colour = colour_of(clip)
    person = write_film(folder / FILMS, square_frames(colour, **looks), fps=30.0)
    grey = np.repeat(square_frames(colour, side=16).mean(-1, keepdims=True), 3, -1)
    agent = write_film(folder / FILMS, grey.astype(np.uint8), fps=30.0, pixelated=True)
    return {"person": person, "agent": agent}


def opinion_of(pair: int) -> dict[str, np.ndarray]:
    """An opinion that can be told from any other: its numbers occur nowhere else."""
    steps = np.arange(10)
    return {
        "left": np.stack([np.sin(steps / 3) + pair, np.full(10, 0.25)]).astype(np.float32),
        "right": np.stack([np.cos(steps / 3) - pair, np.full(10, 0.5)]).astype(np.float32),
    }


def ask(folder: Path, pairs: int, first: int = 0, opinions: bool = True, **looks: Any) -> list[int]:
    """Add pairs with films to the run in `folder`."""
    clip = {"obs": np.zeros((10, 2), np.float32)}
    queries = [
        NewQuery(
            seed=0,
            left=clip,
            right=clip,
            env_steps=100,
            films=(
                film_of(folder, 2 * n % 48, **looks),
                film_of(folder, (2 * n + 1) % 48, **looks),
            ),
            opinion=opinion_of(n) if opinions else None,
        )
        for n in range(first, first + pairs)
    ]
    with LabelStore.open(folder / "labels.sqlite") as store:
        return store.add_queries(queries)


def tell(folder: Path, doing: Any = "waiting", **more: Any) -> None:
    """Say what the trainer is doing; this process plays the trainer."""
    more = {"env": "dot", "budget": 100, "phases": 20, "pid": os.getpid()} | more
    write_status(folder, Status(doing, more.pop("since", time.time()), **more))


class Answered(NamedTuple):
    """What the server has answered."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body)


class Server:
    """A server process, and a plain client of it."""

    def __init__(
        self, folder: Path, process: "subprocess.Popen[str]", address: str, port: int
    ) -> None:
        self.folder = folder
        self.process = process
        self.address = address
        self.port = port
        self.token = ""

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        host: str = "127.0.0.1",
        **headers: str,
    ) -> Answered:
        """Send one request as it is; in names of headers, `_` stands for `-`."""
        connection = http.client.HTTPConnection(host, self.port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="Host" in named)
            length = {} if body is None else {"Content-Length": str(len(body))}
            for name, value in (length | named).items():
                connection.putheader(name, value)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.endheaders(body)
            answer = connection.getresponse()
            return Answered(answer.status, answer.headers, answer.read())

    def get(self, path: str, **headers: str) -> Answered:
        """Get a path."""
        return self.request("GET", path, **headers)

    def post(self, path: str, fields: Any, **headers: str) -> Answered:
        """Post JSON, as the page does."""
        if not self.token:
            page = self.get("/").body.decode()
            self.token = page.split('name="backflip-token" content="')[1].split('"')[0]
        usual = {"Content_Type": "application/json", "X_Backflip_Token": self.token}
        return self.request("POST", path, json.dumps(fields).encode(), **(usual | headers))

    def post_with(self, cookie: str, token: str) -> Answered:
        """Ask for pairs with a cookie and a token."""
        headers = {"Content_Type": "application/json", "Cookie": cookie, "X_Backflip_Token": token}
        return self.request("POST", "/api/take", b'{"who": "me"}', **headers)

    def take(self, who: str = "me", without: tuple[int, ...] = ()) -> list[Any]:
        """Take pairs, as a page does."""
        answered = self.post("/api/take", {"who": who, "without": list(without)})
        assert answered.status == 200, answered.body
        return answered.json["pairs"]

    def answer(self, query: int, answer: str = "left", who: str = "me", **more: Any) -> Answered:
        """Answer a pair."""
        attempt = more.pop("attempt", os.urandom(8).hex())
        fields = {"query": query, "answer": answer, "who": who, "seconds": 1.5, "attempt": attempt}
        return self.post("/api/answer", fields | more)

    @contextlib.contextmanager
    def events(self) -> Generator[Iterator[Any], None, None]:
        """The states that a page is told, as they come."""
        head = f"GET /api/events?who=me HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection,
            connection.makefile("rb") as lines,
        ):
            connection.sendall(head.encode())
            yield (json.loads(line[6:]) for line in lines if line.startswith(b"data: {"))

    def orphan(self) -> None:
        """End the server's standard input, as the death of its trainer does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def kill(self) -> None:
        """Kill the server's process, and see it dead."""
        self.process.kill()
        self.process.communicate()


def start(folder: Path, *options: str, stdin: int = subprocess.DEVNULL) -> Server:
    """Start a server process and wait until it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "backflip.labelling.page", str(folder), *options],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr and process.stderr.read()
    told = json.loads(line)
    return Server(folder, process, told["address"], told["port"])


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Generator[Server, None, None]:
    """A server process that is killed with the block; it has said nothing on stderr."""
    server = start(folder, *(options or ("--port", "0")))
    try:
        yield server
    finally:
        server.process.kill()
        _, errors = server.process.communicate(timeout=20)
    assert not errors, f"the server said: {errors}"
