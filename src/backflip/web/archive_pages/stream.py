"""The one stream of a page: what changed, as server-sent events, and nothing that did not.

Nothing is queued for a page: each time there is room, the state of now is compared with what the
page was told last. A page that does not read holds back nobody, and is dropped after a while.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
# A page that takes nothing for so long has gone, whatever its connection says.
PATIENCE_SECONDS = 20.0
MOST_STREAMS = 48


def event(name: str, data: Mapping[str, Any], position: str = "") -> str:
    """Return an event as it is sent; JSON has no line breaks of its own."""
    head = f"id: {position}\n" if position else ""
    return f"{head}event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


@final
class EventStream(Response):
    """An answer that goes on until the page goes away or stops reading."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], count: Callable[[int], None]) -> None:
        """Take what is to be sent.

        Args:
            events: each as `event` returns it.
            count: told 1 when the answer begins and -1 when it is over.
        """
        super().__init__()
        del self.headers["content-length"]
        self._events = events
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        self._count(1)
        sending = asyncio.ensure_future(self._send(start, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            self._count(-1)

    async def _send(self, start: Message, send: Send) -> None:
        try:
            await send(start)
            async for text in self._events:
                body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await send(body)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            pass
        finally:
            close = getattr(self._events, "aclose", None)
            if close:
                await close()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@final
class Pace:
    """How often a chart is worth being sent: when it has moved by about a pixel."""

    _PIXELS = 340
    _LEAST_SECONDS = 3.0

    def __init__(self) -> None:
        """Begin with nothing sent."""
        self._sent = 0.0

    def due(self, age: float, *, ended: bool) -> bool:
        """Return whether to send again, and take it that this is done.

        Args:
            age: how long the run has gone on, in seconds.
            ended: it has just ended: then what is drawn is final.
        """
        now = time.monotonic()
        if not ended and now - self._sent < max(self._LEAST_SECONDS, age / self._PIXELS):
            return False
        self._sent = now
        return True
