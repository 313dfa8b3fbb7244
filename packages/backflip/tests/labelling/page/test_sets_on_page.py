"""Ranking and rating sets of clips on the labelling page, in Chromium, with a real server."""

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    Server,
    add_clip_sets,
    colour_of,
    serving,
    set_status,
)
from packages.backflip.tests.labelling.page.test_page import SEEN, rows, until, wait_shown
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.medium

Open = Callable[..., Page]


def server_of(folder: Path, kind: str, clips: int) -> Generator[Server, None, None]:
    set_status(folder)
    add_clip_sets(folder, kind, 12, clips)
    with serving(folder) as server:
        yield server


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """A server with sets of four clips to rank."""
    yield from server_of(tmp_path_factory.mktemp("ranked"), "rank", 4)


@pytest.fixture(scope="module")
def rating(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """A server with sets of three clips to rate."""
    yield from server_of(tmp_path_factory.mktemp("rated"), "rate", 3)


def opened(open_page: Open, server: Server, who: str) -> tuple[Page, int]:
    """Open a page; return it with the first query of the set on the screen."""
    page = open_page(f"{server.address}?who={who}")
    page.wait_for_selector("html[data-shows=pair]")
    return page, int(page.evaluate("document.documentElement.dataset.pair"))


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def scores(server: Server, who: str) -> list[float]:
    """The newest scores of a person, in the order of the clips."""
    found = rows(server, "SELECT score FROM scores WHERE who = ? ORDER BY id", who)
    return [score for (score,) in found]


def labels(server: Server, query: int, count: int) -> list[str]:
    """The answers in force to so many queries from one on."""
    found = rows(
        server,
        "SELECT answer FROM effective WHERE query >= ? AND query < ? ORDER BY query",
        query,
        query + count,
    )
    return [answer for (answer,) in found]


def colours(page: Page) -> list[Any]:
    """The colours of the clips that can be seen."""
    visible = page.locator(".clip:visible").count()
    return [clip["colour"] for clip in page.evaluate(SEEN)[:visible]]


def test_number_keys_rank_the_clips_side_by_side(ranking: Server, open_page: Open) -> None:
    page, query = opened(open_page, ranking, "ann")
    expect(page.locator(".clip:visible")).to_have_count(4)
    assert colours(page) == [list(colour_of(clip)) for clip in range(4)]
    expect(page.locator("#asking")).to_contain_text("Which clip is the best?")
    press(page, "3")
    expect(page.locator("#asking")).to_contain_text("Which is the 2nd?")
    expect(page.locator(".clip canvas").nth(2)).to_have_attribute("aria-label", "clip 3, best")
    press(page, "3", "5", "1", "u", "4", "1")  # twice, unknown, taken back
    wait_shown(page, query + 6)
    until(lambda: scores(ranking, "ann") == [2.0, 1.0, 4.0, 3.0])
    assert labels(ranking, query, 6) == ["left", "right", "right", "right", "right", "left"]
    assert rows(ranking, "SELECT value FROM sayings WHERE who = 'ann' ORDER BY id") == [
        *(("[2]",), ("[2, 0]",), ("[2]",), ("[2, 3]",))
    ]
    assert rows(ranking, "SELECT min(seconds) > 0 FROM labels") == [(1,)]


@pytest.mark.slow
def test_undo_of_a_ranking_takes_back_one_key(ranking: Server, open_page: Open) -> None:
    page, query = opened(open_page, ranking, "bob")
    press(page, "1", "2", "ArrowUp")
    wait_shown(page, query + 6)
    until(lambda: labels(ranking, query, 6) == [*["left"] * 5, "tie"])
    press(page, "u")
    wait_shown(page, query)
    expect(page.locator("#asking")).to_contain_text("Which is the 3rd?")
    assert labels(ranking, query, 6) == []
    press(page, "r")
    wait_shown(page, query + 6)
    assert labels(ranking, query, 6) == [*["left"] * 5, "tie"]
    page.locator(".clip").nth(1).click(delay=400)
    expect(page.locator("#asking")).to_contain_text("Which is the 2nd?")
    press(page, "ArrowDown")
    until(lambda: labels(ranking, query + 6, 6) == ["skip"] * 6)


def test_number_keys_rate_one_clip_after_the_other(rating: Server, open_page: Open) -> None:
    page, query = opened(open_page, rating, "cem")
    expect(page.locator(".clip:visible")).to_have_count(1)
    assert colours(page) == [list(colour_of(0))]
    expect(page.locator("#asking")).to_contain_text("from 1, worst, to 9, best? Clip 1 of 3")
    expect(page.locator("#budget")).to_have_text("of 100 labels")  # three clips give three
    press(page, "7")
    expect(page.locator("#asking")).to_contain_text("Clip 2 of 3")
    assert colours(page) == [list(colour_of(1))]
    press(page, "ArrowUp", "ArrowLeft", "ArrowDown")  # only the last one rates
    expect(page.locator("#asking")).to_contain_text("Clip 3 of 3")
    press(page, "9")
    wait_shown(page, query + 3)
    until(lambda: scores(rating, "cem") == [7.0, 9.0])
    assert labels(rating, query, 3) == ["skip", "right", "skip"]
    press(page, "u")
    wait_shown(page, query)
    expect(page.locator("#asking")).to_contain_text("Clip 3 of 3")
    press(page, "u", "u", "5", "5")
    page.locator("[data-mark='4']").click(delay=400)
    until(lambda: labels(rating, query, 3) == ["tie", "left", "left"])


@pytest.mark.slow
def test_a_half_rated_set_survives_a_reload_and_a_kill(open_page: Open, tmp_path: Path) -> None:
    set_status(tmp_path)
    add_clip_sets(tmp_path, "rate", 2, 3)
    with serving(tmp_path) as first:
        page, query = opened(open_page, first, "dan")
        press(page, "2", "3")
        until(lambda: rows(first, "SELECT count(*) FROM sayings") == [(2,)])
        page.reload()
        expect(page.locator("#asking")).to_contain_text("Clip 3 of 3")
    with serving(tmp_path) as again:  # after SIGKILL
        page, same = opened(open_page, again, "dan")
        assert same == query
        expect(page.locator("#asking")).to_contain_text("Clip 3 of 3")
        press(page, "1")
        until(lambda: scores(again, "dan") == [2.0, 3.0, 1.0])
        time.sleep(0.1)
        assert labels(again, query, 3) == ["right", "left", "left"]


@pytest.mark.slow
def test_a_page_that_waits_for_its_first_set_has_no_buttons_of_comparisons(
    ranking: Server, open_page: Open
) -> None:
    page = open_page(f"{ranking.address}?who=dan")
    page.route("**/api/take*", lambda route: route.abort())
    page.reload()
    page.wait_for_selector("html[data-shows=waiting]")
    expect(page.locator("#answers")).to_be_hidden()
    expect(page.locator("#marks")).to_be_visible()


def test_the_list_of_keys_has_only_those_of_the_question(
    ranking: Server, rating: Server, open_page: Open
) -> None:
    """The keys 1 to 3 set the speed for pairs, and answer about sets."""
    said: dict[str, str] = {}
    for kind, server in (("rank", ranking), ("rate", rating)):
        page, _ = opened(open_page, server, f"{kind}-reader")
        press(page, "?")
        expect(page.locator("#keys")).to_be_visible()
        said[kind] = page.inner_text("#keys")
    for text in said.values():
        assert "left clip is better" not in text
        assert "slow (half)" not in text
        assert "shown twice" not in text
        assert text.count("1 … 9") == 1
    assert "the best first" in said["rank"]
    assert "1 is worst, 9 best" in said["rate"]
