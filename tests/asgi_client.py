"""Requests to an application in this process, without a server."""

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import unquote

STREAM_SECONDS = 0.2  # after which an endless answer is closed


class Answer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes


async def get(app: Any, address: str) -> Answer:
    """Send one GET request; an error of a handler is raised."""
    return await _answer(app, "GET", address, b"")


async def post(app: Any, address: str, fields: Any) -> Answer:
    """Send one POST request of JSON; an error of a handler is raised."""
    return await _answer(app, "POST", address, json.dumps(fields).encode())


async def _answer(app: Any, method: str, address: str, content: bytes) -> Answer:
    path, _, query = address.partition("?")
    status, body, asked = 0, b"", False
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [],
        "scheme": "http",
        "root_path": "",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": content}
        await asyncio.sleep(STREAM_SECONDS)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")

    await app(scope, receive, send)
    return Answer(status, body)
