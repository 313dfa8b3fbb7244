"""Server-sent events to one page. A page that stops reading is dropped and delays nobody."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

# A page that takes nothing for so long is gone, even if its connection is open.
PATIENCE_SECONDS = 20.0
MOST_STREAMS = 48


@final
class EventStream(Response):
    """A response that lasts until the page goes away or stops reading.

    Args:
        events: the text of each event.
        count: called with 1 when the response begins and with -1 when it ends.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], count: Callable[[int], None]) -> None:
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
