"""Tests of what the page says about the run: the next learning, the first paint, the end."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    Server,
    add_pairs,
    film_of,
    serving,
    set_status,
)
from packages.backflip.tests.labelling.page.test_page import answers, press
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.medium

Open = Callable[..., Page]


@pytest.mark.slow
def test_page_counts_to_the_next_learning(server: Server, open_page: Open) -> None:
    set_status(server.folder, learned_labels=0, needed_labels=4, phase_seconds=40.4)
    page = open_page(server.address)
    expect(page.locator("#until")).to_have_text(
        "0 of 4 answers, then the agent learns for about 40 s"
    )
    press(page, "ArrowLeft", "ArrowUp")
    expect(page.locator("#until")).to_contain_text("2 of 4 answers")
    page.keyboard.press("u")
    expect(page.locator("#until")).to_contain_text("1 of 4 answers")
    set_status(server.folder, "learning", phase=2, learned_labels=1, needed_labels=9)
    expect(page.locator("#until")).to_have_text("0 of 8 answers, then the agent learns again")
    expect(page.locator("#training")).to_contain_text("training phase 3 of 20")
    set_status(server.folder, needed_labels=None)
    expect(page.locator("#until")).to_have_text("")


def test_first_paint_shows_the_present_state(server: Server, open_page: Open) -> None:
    """Also while the event stream is silent."""
    since = time.time()
    server.take("me")
    for query in (1, 2):
        assert server.answer(query).status == 200
    set_status(server.folder, "learning", since=since, phase=6, needed_labels=12, env="Acrobot-v1")
    page = open_page("about:blank", wait=False)
    page.route("**/api/events*", lambda route: None)
    page.route("**/api/take", lambda route: None)
    page.goto(server.address)
    expect(page.locator("#labels")).to_have_text("2")
    expect(page.locator("#training")).to_contain_text("training phase 7 of 20")
    expect(page.locator("#until")).to_contain_text("of 12 answers")
    expect(page.locator("#wait-title")).to_have_text("Loading the next pair")
    assert page.title().startswith("Acrobot-v1")


FINISHED = {"phase": 20, "result": "dot: mean return 0.97", "more": "backflip more <latest>"}


def test_end_shows_film_result_and_commands(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    film = film_of(server.folder, 40)["person"]
    set_status(server.folder, "evaluating", film=film)
    page.wait_for_function("() => document.querySelector('#end-film canvas').width === 48")
    set_status(server.folder, "finished", film=film, **FINISHED)
    expect(page.locator("#end")).to_be_visible()
    expect(page.locator("#end-result")).to_have_text("dot: mean return 0.97")
    expect(page.locator("#end-watch")).to_have_text(f"backflip watch {server.folder.name}")
    expect(page.locator("#end-more")).to_have_text("backflip more <latest>")
    expect(page.locator("#end-page")).not_to_be_visible()
    for hidden in ("#stop", "#undo", "#list", "[data-answer=left]"):
        expect(page.locator(hidden)).not_to_be_visible()
    page.wait_for_function("() => document.querySelector('#end-film canvas').dataset.frame > 3")
    page.keyboard.press(" ")
    expect(page.locator("#pause")).to_contain_text("Play")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("u")
    page.wait_for_timeout(200)
    assert answers(server) == []


@pytest.mark.slow
def test_film_plays_after_the_server_has_ended(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    film = film_of(server.folder, 40)["person"]
    set_status(server.folder, "finished", film=film, **FINISHED)
    page.wait_for_function("() => document.querySelector('#end-film canvas').dataset.frame > 3")
    server.kill()
    page.wait_for_timeout(1500)
    expect(page.locator("#banner")).not_to_be_visible()
    page.wait_for_function("() => document.querySelector('#end-film canvas').dataset.frame < 3")


@pytest.mark.slow
def test_end_without_a_film(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    set_status(server.folder, "finished", result="done")
    expect(page.locator("#end-result")).to_have_text("done")
    expect(page.locator("#end-film")).not_to_be_visible()
    expect(page.locator("#end-more")).not_to_be_visible()


@pytest.mark.slow
def test_end_links_the_page_of_the_run_if_it_is_served(
    server: Server, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(server.address)
    state = server.get("/api/state").json
    page.route(
        "**/api/state*",
        lambda route: route.fulfill(json=state | {"run_page": "http://127.0.0.1:1/"}),
    )
    html = (
        server.get("/").body.decode().replace('"run_page": ""', '"run_page": "http://127.0.0.1:1/"')
    )
    html = html.replace('"doing": "waiting"', '"doing": "finished"')
    page.route("**/api/events*", lambda route: None)
    page.route(server.address, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.reload()
    assert page.locator("#end-page a").get_attribute("href") == "http://127.0.0.1:1/"
    expect(page.locator("#end-page")).to_be_visible()


@pytest.mark.parametrize("size", [pytest.param((1280, 720), marks=pytest.mark.slow), (390, 844)])
def test_end_fits_the_screen(tmp_path: Path, open_page: Open, size: tuple[int, int]) -> None:
    set_status(tmp_path, "finished", film=film_of(tmp_path, 40)["person"], **FINISHED)
    add_pairs(tmp_path, 1)
    with serving(tmp_path) as server:
        width, height = size
        page = open_page(server.address, wait=False, viewport={"width": width, "height": height})
        page.wait_for_selector("html[data-shows=ending]")
        expect(page.locator("#end-film canvas")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if width > 1000:
            assert page.evaluate("document.documentElement.scrollHeight") == height
        box = page.locator("#end-film canvas").bounding_box()
        assert box
        assert box["width"] > 200
