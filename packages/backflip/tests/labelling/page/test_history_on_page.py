"""Tests of redo and of the list of one's own answers, in Chromium with a real server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    Server,
    add_pairs,
    film_of,
    serving,
    set_status,
)
from packages.backflip.tests.labelling.page.test_page import (
    answers,
    press,
    rows,
    shown,
    until,
    wait_shown,
)
from playwright.sync_api import Page, expect

from backflip.preferences.films import FILMS

pytestmark = pytest.mark.medium

Open = Callable[..., Page]


def listed(page: Page) -> list[tuple[int, str]]:
    """The pairs and answers in the open list."""
    found = page.evaluate(
        "[...document.querySelectorAll('#history-list li')].map(r => [r.dataset.query, r.answer])"
    )
    return [(int(query), answer) for query, answer in found]


# --- redo ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_redo_restores_the_answers_and_shows_the_next_pair(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    given = press(page, "ArrowLeft", "ArrowRight", "ArrowUp")
    until(lambda: len(answers(server)) == 3)
    before = answers(server)
    for query in (given[2], given[1]):
        page.keyboard.press("u")
        wait_shown(page, query)
    expect(page.locator("#redo")).to_be_enabled()
    page.keyboard.press("r")
    wait_shown(page, given[2])
    expect(page.locator("#said")).to_have_text("Restored: right is better.")
    page.click("#redo")
    page.wait_for_function(f"() => document.documentElement.dataset.pair > {given[2]}")
    assert answers(server) == before
    expect(page.locator("#redo")).to_be_disabled()
    page.keyboard.press("r")
    page.wait_for_timeout(200)
    assert rows(server, "SELECT count(*) FROM labels") == [(7,)]


@pytest.mark.slow
def test_new_answer_ends_redoing(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    (first,) = press(page, "ArrowLeft")
    page.keyboard.press("u")
    wait_shown(page, first)
    expect(page.locator("#redo")).to_be_enabled()
    press(page, "ArrowRight")
    expect(page.locator("#redo")).to_be_disabled()
    until(lambda: answers(server) == [(first, "right")])


@pytest.mark.slow
def test_redo_is_known_after_a_reload(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    (first,) = press(page, "ArrowLeft")
    page.keyboard.press("u")
    wait_shown(page, first)
    page.reload()
    page.wait_for_selector("html[data-shows=pair]")
    expect(page.locator("#redo")).to_be_enabled()
    page.keyboard.press("r")
    until(lambda: answers(server) == [(first, "left")])


@pytest.mark.slow
def test_redo_with_a_lost_response_counts_once(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    (first,) = press(page, "ArrowLeft")
    page.keyboard.press("u")
    wait_shown(page, first)

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    page.context.route("**/api/redo", lose, times=1)
    page.keyboard.press("r")
    until(lambda: page.wait_for_timeout(20) or shown(page) != first)
    assert answers(server) == [(first, "left")]
    assert rows(server, "SELECT count(*) FROM labels") == [(3,)]


# --- the list of own answers ---------------------------------------------------------------------


def test_older_answer_is_corrected_from_the_list(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    given = press(page, "ArrowLeft", "ArrowRight", "ArrowUp")
    until(lambda: len(answers(server)) == 3)
    on_screen = shown(page)
    page.keyboard.press("l")
    expect(page.locator("#history-list li")).to_have_count(3)
    expected = list(zip(reversed(given), ("tie", "right", "left"), strict=True))
    assert listed(page) == expected
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")  # nothing is between an answer and its choice on the screen
    page.keyboard.press("Enter")
    expect(page.locator("#history-said")).to_contain_text("The agent learns from it the next time")
    assert sorted(answers(server)) == sorted([(given[0], "skip"), *expected[:2]])
    assert rows(server, "SELECT count(*) FROM labels") == [(4,)]
    row = page.locator(f"#history-list li[data-query='{given[0]}']")
    expect(row).to_contain_text("corrected")
    row.locator("[data-choice=right]").click()  # again, now by the mouse
    until(lambda: (given[0], "right") in answers(server))
    page.keyboard.press("Escape")
    assert shown(page) == on_screen
    page.keyboard.press("u")
    expect(page.locator("#said")).to_contain_text(f"Pair {given[0]} again: can’t tell")
    assert (given[0], "skip") in answers(server)
    assert shown(page) == on_screen


@pytest.mark.slow
def test_list_has_strips_of_both_clips(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    press(page, "ArrowLeft")
    until(lambda: answers(server))
    page.click("#list")
    page.wait_for_function("""() => {
        const strips = [...document.querySelectorAll('#history-list canvas')];
        return strips.length === 2 && strips.every(strip => {
            const data = strip.getContext('2d').getImageData(0, 0, strip.width, strip.height).data;
            const colours = new Set();
            for (let at = 0; at < data.length; at += 4) colours.add(data[at] + 256 * data[at + 1]);
            return strip.width > 300 && colours.size > 1;
        });
    }""")


@pytest.mark.slow
def test_missing_film_leaves_the_answer_correctable(folder: Path, open_page: Open) -> None:
    with serving(folder) as server:
        page = open_page(server.address)
        (first,) = press(page, "ArrowLeft")
        until(lambda: answers(server))
        (folder / FILMS / film_of(folder, 0)["person"].file).unlink()
        film_of.cache_clear()
        page = open_page(server.address)  # this browser has no copy of the film
        page.keyboard.press("l")
        row = page.locator("#history-list li")
        row.get_by_role("img", name="picture is missing").wait_for()
        row.locator("[data-choice=tie]").click()
        assert until(lambda: answers(server) == [(first, "tie")])


@pytest.mark.slow
def test_list_has_only_own_answers_and_shows_more_on_request(
    tmp_path: Path, open_page: Open
) -> None:
    set_status(tmp_path)
    add_pairs(tmp_path, 30)
    with serving(tmp_path) as server:
        for who, count in (("bob", 2), ("ann", 23)):
            for _ in range(count):
                query = server.take(who)[0]["query"]
                assert server.answer(query, who=who).status == 200
        page = open_page(f"{server.address}?who=ann")
        page.keyboard.press("l")
        expect(page.locator("#history-list li")).to_have_count(20)
        page.click("#history-more")
        expect(page.locator("#history-list li")).to_have_count(23)
        expect(page.locator("#history-more")).not_to_be_visible()
        assert {query for query, _ in listed(page)} == {
            query for query, _ in answers(server, "ann")
        }


@pytest.mark.slow
def test_correction_survives_a_killed_connection(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    (first,) = press(page, "ArrowLeft")
    until(lambda: answers(server))
    page.keyboard.press("l")
    expect(page.locator("#history-list li")).to_have_count(1)
    page.context.route("**/api/correct", lambda route: route.abort())
    page.locator("[data-choice=right]").click()
    page.wait_for_timeout(300)
    page.reload()
    page.wait_for_selector("html[data-shows=pair]")
    assert answers(server) == [(first, "left")]
    page.context.unroute("**/api/correct")
    assert until(lambda: answers(server) == [(first, "right")])


@pytest.mark.slow
def test_refused_correction_is_reported(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    press(page, "ArrowLeft")
    until(lambda: answers(server))
    page.keyboard.press("l")
    expect(page.locator("#history-list li")).to_have_count(1)
    fields = {"label": 1, "answer": "tie", "who": "me", "attempt": "elsewhere"}
    assert server.post("/api/correct", fields).status == 200
    page.locator("[data-choice=right]").click()
    expect(page.locator("#history-said")).to_contain_text("Not changed: answer 1 does not exist")


@pytest.mark.slow
def test_list_is_usable_on_a_phone_and_by_tab(server: Server, open_page: Open) -> None:
    page = open_page(server.address, viewport={"width": 390, "height": 844}, has_touch=True)
    for choice in ("left", "tie"):
        page.wait_for_timeout(350)
        page.tap(f"[data-answer={choice}]")
    until(lambda: len(answers(server)) == 2)
    page.tap("#list")
    expect(page.locator("#history-list li")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator("#history").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    for button in page.locator("[data-choice]").all():
        size = button.bounding_box()
        assert size
        assert size["height"] >= 44
    page.tap("#history-list li >> nth=1 >> [data-choice=skip]")
    until(lambda: answers(server)[-1][1] == "skip")
    focused = "document.activeElement.dataset.choice ?? document.activeElement.textContent"
    page.focus("#history-list li >> nth=0 >> [data-choice=tie]")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "skip", "one stop for each answer"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Close"
