"""The streams that tell open pages what changes."""

import asyncio
from collections.abc import AsyncIterator
from typing import final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runshelf.web.parameters import chosen_subjects
from runshelf.web.reader import Reader
from runshelf.web.serving.live_updates import LiveUpdates, Watched

MOST_STREAMS = 48


@final
class EventStreams:
    """The streams of one home.

    Args:
        reader: reads the home.
        ending: is set when the server ends, and ends all streams.
    """

    def __init__(self, reader: Reader, ending: asyncio.Event) -> None:
        self._reader, self._ending = reader, ending
        self._open = 0

    async def stream(self, request: Request) -> Response:
        """A stream with an event for each change of a page."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self._open >= MOST_STREAMS:
            raise HTTPException(503, "too many pages are open: close some")
        query = request.query_params
        chosen = chosen_subjects(request, 0, "watched")
        watched = Watched(chosen, query.get("output") == "1" and len(chosen) == 1)
        since = request.headers.get("last-event-id") or query.get("since", "")
        events = self._counted(LiveUpdates(self._reader, watched).events(since, self._ending))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _counted(self, events: AsyncIterator[str]) -> AsyncIterator[str]:
        self._open += 1
        try:
            async for event in events:
                yield event
        finally:
            self._open -= 1
