"""A server process under test with an HTTP client."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Response(NamedTuple):
    """A response of the server."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


class Server:
    """A server process with an HTTP client."""

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
    ) -> Response:
        """Send one request; in header names, `_` stands for `-`."""
        connection = http.client.HTTPConnection(host, self.port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="Host" in named)
            length = {} if body is None else {"Content-Length": str(len(body))}
            for name, value in (length | named).items():
                connection.putheader(name, value)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.endheaders(body)
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())

    def get(self, path: str, **headers: str) -> Response:
        """Send a GET request."""
        return self.request("GET", path, **headers)

    def post(self, path: str, fields: Any, **headers: str) -> Response:
        """Post JSON with the token, like the page."""
        if not self.token:
            page = self.get("/").body.decode()
            self.token = page.split('name="token" content="')[1].split('"')[0]
        defaults = {"Content_Type": "application/json", "X_Token": self.token}
        return self.request("POST", path, json.dumps(fields).encode(), **(defaults | headers))

    def post_with(self, cookie: str, token: str) -> Response:
        """Request pairs with a cookie and a token."""
        headers = {"Content_Type": "application/json", "Cookie": cookie, "X_Token": token}
        return self.request("POST", "/api/take", b'{"who": "me"}', **headers)

    def take(self, who: str = "me", without: tuple[int, ...] = ()) -> list[Any]:
        """Request pairs like a page; return them."""
        response = self.post("/api/take", {"who": who, "without": list(without)})
        assert response.status == 200, response.body
        return response.json["pairs"]

    def answer(self, query: int, answer: str = "left", who: str = "me", **more: Any) -> Response:
        """Answer a query."""
        attempt = more.pop("attempt", os.urandom(8).hex())
        fields = {"query": query, "answer": answer, "who": who, "seconds": 1.5, "attempt": attempt}
        return self.post("/api/answer", fields | more)

    @contextlib.contextmanager
    def events(self) -> Generator[Iterator[Any], None, None]:
        """Open the event stream of a page; yield an iterator over the states sent."""
        head = f"GET /api/events?who=me HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection,
            connection.makefile("rb") as lines,
        ):
            connection.sendall(head.encode())
            yield (json.loads(line[6:]) for line in lines if line.startswith(b"data: {"))

    def orphan(self) -> None:
        """Close the server's standard input, as if its trainer had died."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def kill(self) -> None:
        """Kill the server's process; wait for its end."""
        self.process.kill()
        self.process.communicate()
