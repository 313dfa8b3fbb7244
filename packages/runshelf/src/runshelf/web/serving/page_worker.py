"""The process that makes pages of large runs, so that other pages never wait for them.

A request has the path and the query of a page; one argument names the home. The pages are those of
the server, which makes the pages of all other runs itself.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from starlette.types import ASGIApp, Message

from runshelf.web.app import Pages
from runshelf.web.pages.run_tabs import RunTab, RunTabs
from runshelf.web.reader import Reader
from runshelf.web.serving.worker_loop import Answer, Say, answer_requests


@final
class PageMaker:
    """Makes pages of a home.

    Args:
        home: the folder whose `runs/` holds runs.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._loop = asyncio.new_event_loop()
        self._app: ASGIApp | None = None

    def make(self, request: Mapping[str, Any], _: Say) -> Answer:
        """Return a page: its status, its headers, and as the body its content."""
        tabs = [RunTab(*fields) for fields in request["tabs"]]
        return self._loop.run_until_complete(self._make(request["path"], request["query"], tabs))

    async def _make(self, path: str, query: str, tabs: Sequence[RunTab]) -> Answer:
        if self._app is None:
            reader = await Reader.open(self._home)
            self._app = Pages(reader, tabs=RunTabs(self._home, tabs)).app()
        return await _response_of(self._app, path, query)


async def _response_of(app: ASGIApp, path: str, query: str) -> Answer:
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "path": path,
        "raw_path": b"",
        "root_path": "",
        "query_string": query.encode("latin-1"),
        "headers": [],
        "server": ("127.0.0.1", 80),
        "client": None,
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *parts = sent
    headers = [
        [name.decode("latin-1"), value.decode("latin-1")] for name, value in start["headers"]
    ]
    body = b"".join(part.get("body", b"") for part in parts)
    return Answer({"status": start["status"], "headers": headers}, body)


if __name__ == "__main__":
    answer_requests(PageMaker(Path(sys.argv[1])).make)
