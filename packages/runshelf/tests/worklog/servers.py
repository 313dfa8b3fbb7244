"""Servers on this machine that receive mail and webhooks, and misbehave on request."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """Where a server listens, and what it has received."""

    port: int
    messages: list[Any]


@contextlib.contextmanager
def webhook(answer: Callable[[BaseHTTPRequestHandler], None] | None = None) -> Generator[Received]:
    """Receive webhooks; `answer` sends the response, by default 204."""
    messages: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            messages.append(json.loads(body))
            if answer:
                answer(self)
            else:
                self.send_response(204)
                self.end_headers()

        def do_GET(self) -> None:
            messages.append("GET")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Received(server.server_port, messages)
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def mail_server(*, refuses: bool = False, login: bool = False) -> Generator[Received]:
    """Receive mail by SMTP: (the commands of a client, the message)."""
    messages: list[Any] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError, ValueError):
                    messages.append(_talk(connection, refuses, login))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield Received(listener.getsockname()[1], messages)
    finally:
        listener.close()


def _talk(connection: socket.socket, refuses: bool, login: bool) -> tuple[list[str], str]:
    file, said = connection.makefile("rwb"), list[str]()

    def answer(line: str) -> None:
        file.write(f"{line}\r\n".encode())
        file.flush()

    def heard() -> str:
        line = file.readline()
        if not line:
            raise ValueError
        return line.decode().rstrip("\r\n")

    answer("220 here")
    while True:
        line = heard()
        said.append(line)
        word = line.split(" ")[0].upper()
        if word == "EHLO":
            answer("250-here")
            answer("250 AUTH PLAIN" if login else "250 8BITMIME")
        elif word == "AUTH":
            answer("235 fine")
        elif word == "RCPT" and refuses:
            answer("550 nobody of that name")
        elif word == "DATA":
            answer("354 go on")
            lines = [*iter(heard, ".")]
            answer("250 kept")
            return said, "\n".join(lines)
        else:
            answer("221 bye" if word == "QUIT" else "250 fine")
