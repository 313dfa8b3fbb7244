"""Streams that are not read, and the cache that pages share."""

import asyncio

import pytest

from backflip.web.archive_pages import event_stream
from backflip.web.archive_pages.cache import Cache
from backflip.web.archive_pages.event_stream import EventStream
from tests.coroutines import finished


def test_the_cache_drops_the_least_recently_used() -> None:
    cache = Cache(capacity=3 * 1256)
    for key in "abc":
        cache.put(key, key.upper(), size=1000)
    assert cache.get("a") == "A"
    cache.put("d", "D", size=1000)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    cache.put("e", "E", size=10_000_000)
    assert cache.get("e") is None
    assert cache.bytes <= 3 * 1256


def test_a_page_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its generator is closed and it is counted no more; nothing was queued for it."""
    monkeypatch.setattr(event_stream, "PATIENCE_SECONDS", 0.05)
    made, counted = [], []

    async def events():  # type: ignore[no-untyped-def]
        try:
            while True:
                made.append(1)
                yield "data: x\n\n"
        finally:
            made.append("closed")

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    async def send(message: dict[str, object]) -> None:
        if len(made) >= 3:
            await asyncio.Event().wait()

    async def answer() -> None:
        await EventStream(events(), counted.append)({"type": "http"}, receive, send)  # type: ignore[arg-type]

    finished(asyncio.wait_for(answer(), 10))
    assert made == [1, 1, 1, "closed"]
    assert sum(counted) == 0
