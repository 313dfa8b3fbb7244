"""What pages are told: only changes, never more than is remembered, and the same words for all."""

import asyncio

import pytest

from backflip.web.archive_pages import stream
from backflip.web.archive_pages.changes import REMEMBERED, Changes
from backflip.web.archive_pages.shelf import Shelf
from backflip.web.archive_pages.stream import EventStream, event
from backflip.web.archive_pages.words import ago, brief, number, roughly, short, size
from tests.coroutines import finished


def running(n: int) -> dict[str, object]:
    return {"state": "running", "n": n}


def test_a_page_hears_what_changed_since_and_nothing_else() -> None:
    changes = Changes()
    changes.note([("a", running(1)), ("b", running(1))], total=2)
    here = changes.position
    changes.note([("a", running(1)), ("b", {"state": "finished"})], total=2)
    news = changes.since(here)
    assert (news.runs, news.total, news.reset) == ({"b": {"state": "finished"}}, 2, False)
    again = changes.since(news.position)
    assert (again.runs, again.position) == ({}, news.position)


def test_a_new_run_is_news_even_if_it_is_over_already() -> None:
    changes = Changes()
    here = changes.position
    changes.note([], total=1)
    assert changes.since(here).position != here


@pytest.mark.parametrize("position", ["", "x", "other-3", "-1", "٣", f"x-{'9' * 400}"])
def test_a_position_of_another_server_means_the_page_is_fetched_anew(position: str) -> None:
    assert Changes().since(position).reset


def test_an_hour_of_changes_is_not_remembered_whole() -> None:
    """Every two seconds ten runs of ten thousand change: the memory stays as it is."""
    changes = Changes()
    first = changes.position
    for second in range(0, 3600, 2):
        changes.note([(str((second * 5 + n) % 10_000), running(second)) for n in range(10)], 10_000)
    assert changes.since(first).reset
    lately = changes.position
    changes.note([("x", running(0))], 10_000)
    assert len(changes.since(lately).runs) == 1
    assert len(changes._runs) == REMEMBERED


def test_a_shelf_throws_away_what_was_used_longest_ago() -> None:
    shelf = Shelf(room=3 * 1256)
    for key in "abc":
        shelf.put(key, key.upper(), size=1000)
    assert shelf.get("a") == "A"
    shelf.put("d", "D", size=1000)
    assert [shelf.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    shelf.put("e", "E", size=10_000_000)
    assert shelf.get("e") is None
    assert shelf.taken <= 3 * 1256


def test_an_event_is_one_line_whatever_is_in_it() -> None:
    assert event("now", {"html": "a\n\ndata: b\r"}, "7") == (
        'id: 7\nevent: now\ndata: {"html":"a\\n\\ndata: b\\r"}\n\n'
    )


def test_a_page_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its generator is closed and it is counted no more; nothing was queued for it."""
    monkeypatch.setattr(stream, "PATIENCE_SECONDS", 0.05)
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


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (0.0003, "0.0003"),
        (3e-5, "3e−5"),
        (-1234.5678, "−1235"),
        (1234567, "1 234 567"),
        (10**400, "10000... (401 digits)"),
        (float("nan"), "NaN"),
        (float("-inf"), "−∞"),
        (True, "true"),
        (None, ""),
        ("text", "text"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert number(value) == text


def test_other_words() -> None:
    assert [short(v) for v in (0.0, 20e3, 1.5e6, -0.5, 2e-4)] == (
        ["0", "20 k", "1.5 M", "−0.5", "2e−4"]
    )
    assert [brief(v) for v in (0.12345, 1234.5, 1.5e6)] == ["0.123", "1234", "1.5e6"]
    assert [roughly(s) for s in (10.0, 700.0, 1e4, 4e5)] == (
        ["less than a minute", "about 12 min", "about 3 h", "about 5 days"]
    )
    assert [ago(s) for s in (5.0, 61.0, 7300.0, 9e4)] == (
        ["just now", "1 minute ago", "2 hours ago", "1 day ago"]
    )
    assert [size(n) for n in (12.0, 1500.0, 2.5e6)] == ["12 B", "1.5 kB", "2.5 MB"]
