"""Tests of the labelling page in Chromium, with a real server."""

import json
import re
import sqlite3
import time
from collections.abc import Callable, Generator
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    Server,
    add_pairs,
    colour_of,
    film_of,
    holding,
    serving,
    set_status,
    start,
)
from playwright.sync_api import Page, expect

from backflip.labelling.label_queue import LabelQueue
from backflip.preferences.films import FILMS
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from runshelf.durations import duration
from runshelf.index.location import cache_folder

pytestmark = pytest.mark.medium

Open = Callable[..., Page]

SHOWN = "document.documentElement.dataset.pair"
# For each canvas: the frame number it reports, the position of the square and its colour.
SEEN = """() => [...document.querySelectorAll('.clip canvas')].map(canvas => {
    const row = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data;
    const at = x => [...row.slice(4 * x, 4 * x + 3)];
    let left = 0;
    while (left < canvas.width && at(left).every(value => value === 24)) left++;
    return {frame: Number(canvas.dataset.frame), left, colour: at(left + 2)};
})"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """A server with many pairs, for tests that use a name of their own."""
    folder = tmp_path_factory.mktemp("run")
    set_status(folder)
    add_pairs(folder, 300)
    with serving(folder) as server:
        yield server


@pytest.fixture
def mine(shared: Server, open_page: Open, request: pytest.FixtureRequest) -> Page:
    """A page of the shared server for a person with the name of the test."""
    return open_page(f"{shared.address}?who={who_of(request)}")


@pytest.fixture
def who(request: pytest.FixtureRequest) -> str:
    return who_of(request)


def who_of(request: pytest.FixtureRequest) -> str:
    return request.node.name.removeprefix("test_")[:40]


def shown(page: Page) -> int:
    """The query on the screen, 0 if none."""
    return int(page.evaluate(SHOWN) or 0)


def until(fact: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until `fact()` is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := fact()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)
    return found


def wait_shown(page: Page, query: int) -> None:
    page.wait_for_selector(f"html[data-pair='{query}']")


def press(page: Page, *keys: str) -> list[int]:
    """Press each key when a pair is shown; return the pairs."""
    pairs: list[int] = []
    for key in keys:
        page.wait_for_selector("html[data-shows=pair]")
        pairs.append(shown(page))
        page.keyboard.press(key)
    return pairs


def wait_for_pairs(page: Page, count: int) -> None:
    """Wait until the films of the first `count` pairs are there: the page loads them ahead."""
    films = (
        "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/films/'))"
    )
    page.wait_for_function(f"() => {films}.length >= {2 * count}")


def rows(server: Server, statement: str, *values: Any) -> list[Any]:
    connection = sqlite3.connect(f"file:{server.folder}/labels.sqlite?mode=ro", uri=True)
    found = connection.execute(statement, values).fetchall()
    connection.close()
    return found


def answers(server: Server, who: str = "me") -> list[tuple[int, str]]:
    """The current answers of a person, in order."""
    return rows(server, "SELECT query, answer FROM effective WHERE who = ? ORDER BY id", who)


def write(folder: Path, statement: str, *values: Any) -> None:
    """Write to the label file without the server."""
    with LabelStore.open(folder / "labels.sqlite") as store, store.file.transaction() as records:
        records.execute(statement, values)


# --- answering -----------------------------------------------------------------------------------


def test_arrows_answer(shared: Server, mine: Page, who: str) -> None:
    pairs = press(mine, "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
    expected = list(zip(pairs, ("left", "right", "tie", "skip"), strict=True))
    assert until(lambda: len(answers(shared, who)) == 4)
    assert answers(shared, who) == expected
    seconds = rows(shared, "SELECT seconds FROM labels WHERE who = ?", who)
    assert all(0 < value < 30 for (value,) in seconds)


def test_next_pair_is_drawn_within_the_key_event(shared: Server, mine: Page) -> None:
    """So the next painted frame shows it."""
    loaded = "performance.getEntriesByType('resource').filter(e => e.name.includes('/films/'))"
    mine.wait_for_function(f"() => {loaded}.length >= 8")
    mine.wait_for_timeout(200)
    press = """(key, see) => {
        const before = Number(document.documentElement.dataset.pair);
        document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        const after = Number(document.documentElement.dataset.pair);
        return {before, after, seen: see()};
    }"""
    for key in ("ArrowLeft", "ArrowRight"):
        at_once = mine.evaluate(f"key => ({press})(key, {SEEN})", key)
        assert at_once["after"] > at_once["before"]
        assert [side["frame"] for side in at_once["seen"]] == [0, 0]
        check_colours(shared, mine)


def check_colours(server: Server, page: Page) -> None:
    """Both canvases show the films of the current pair."""
    query = shown(page)
    (clips,) = rows(server, "SELECT left_clip, right_clip FROM queries WHERE id = ?", query)
    expected = [list(colour_of(clip - 1)) for clip in clips]
    assert [side["colour"] for side in page.evaluate(SEEN)] == expected


@pytest.mark.slow
def test_every_pair_shows_its_own_films(shared: Server, mine: Page) -> None:
    for _ in range(20):
        mine.wait_for_selector("html[data-shows=pair]")
        check_colours(shared, mine)
        mine.keyboard.press("ArrowLeft")


@pytest.mark.slow
def test_keys_with_modifiers_or_in_a_field_do_nothing(shared: Server, mine: Page, who: str) -> None:
    first = shown(mine)
    for keys in ("Control+ArrowLeft", "Alt+ArrowLeft", "Meta+ArrowLeft", "x", "Enter"):
        mine.keyboard.press(keys)
    for field in ("#goal", "#who"):
        mine.focus(field)
        for key in ("ArrowLeft", "ArrowRight", "u", "1", " ", "?"):
            mine.keyboard.press(key)
        mine.keyboard.press("Escape")
    mine.keyboard.press("?")
    mine.keyboard.press("ArrowLeft")
    mine.keyboard.press("Escape")
    assert (shown(mine), answers(shared, who)) == (first, [])
    mine.keyboard.press("ArrowLeft")
    assert until(lambda: answers(shared, who)) == [(first, "left")]


@pytest.mark.slow
def test_a_key_held_down_answers_once(shared: Server, mine: Page, who: str) -> None:
    first = shown(mine)
    for _ in range(5):  # the second and later ones repeat
        mine.keyboard.down("ArrowRight")
    mine.keyboard.up("ArrowRight")
    mine.wait_for_selector("html[data-shows=pair]")
    mine.focus("[data-answer=left]")
    for _ in range(5):
        mine.keyboard.down("Enter")
    mine.keyboard.up("Enter")
    until(lambda: len(answers(shared, who)) == 2)
    mine.wait_for_timeout(200)
    assert [answer for _, answer in answers(shared, who)] == ["right", "left"]
    assert answers(shared, who)[0][0] == first


@pytest.mark.slow
def test_clicks_answer(shared: Server, mine: Page, who: str) -> None:
    pairs: list[int] = []
    for target in ("[data-answer=tie]", "#right", "[data-answer=skip]", "#left"):
        mine.wait_for_selector("html[data-shows=pair]")
        mine.wait_for_timeout(350)  # a click right after a new pair is ignored
        pairs.append(shown(mine))
        mine.click(target)
        mine.wait_for_selector("html[data-shows=pair]")
        mine.keyboard.press(" ")  # pauses, rather than press the button again
        expect(mine.locator("#pause")).to_contain_text("Play")
    until(lambda: len(answers(shared, who)) == 4)
    expected = list(zip(pairs, ("tie", "right", "skip", "left"), strict=True))
    assert answers(shared, who) == expected


@pytest.mark.slow
def test_a_double_tap_answers_once(shared: Server, mine: Page, who: str) -> None:
    mine.wait_for_timeout(350)
    mine.evaluate("""() => {
        const button = document.querySelector('[data-answer=left]');
        for (const detail of [1, 2])
            button.dispatchEvent(new MouseEvent("click", {bubbles: true, detail}));
    }""")
    until(lambda: answers(shared, who))
    mine.wait_for_timeout(200)
    assert len(answers(shared, who)) == 1


def test_all_controls_have_names_and_are_reachable_by_tab(mine: Page) -> None:
    names: list[str] = []
    press(mine, "ArrowLeft")  # an answer, so that all buttons are enabled
    mine.wait_for_selector("html[data-shows=pair]")
    mine.keyboard.press("u")
    expect(mine.locator("#redo")).to_be_enabled()
    for _ in range(22):
        mine.keyboard.press("Tab")
        names.append(
            mine.evaluate("document.activeElement.innerText || document.activeElement.id").replace(
                "\n", " "
            )
        )
    for expected in (
        "goal",
        "who",
        "Left is better",
        "Equally good",
        "Can’t tell",
        "Right is better",
        "Pause",
        "Undo",
        "slow",
        "normal",
        "fast",
        "Agent’s view",
        "Redo",
        "Your answers",
        "Stop teaching now",
    ):
        assert any(expected in name for name in names), (expected, names)
    assert mine.get_by_role("button", name="Keyboard shortcuts").is_visible()
    assert mine.get_by_role("img", name="left clip").is_visible()
    assert mine.get_by_role("textbox", name="Goal").is_visible()


@pytest.mark.slow
def test_changes_are_announced_to_screen_readers(mine: Page) -> None:
    expect(mine.locator("#live")).to_have_text("Pair 1.")
    press(mine, "ArrowLeft")
    expect(mine.locator("#live")).to_have_text(re.compile("left is better"))


# --- undo ----------------------------------------------------------------------------------------


def test_answers_are_undone_one_by_one(shared: Server, mine: Page, who: str) -> None:
    pairs = press(mine, "ArrowLeft", "ArrowLeft", "ArrowLeft")
    for query in reversed(pairs):
        mine.keyboard.press("u")
        wait_shown(mine, query)
        check_colours(shared, mine)
    assert until(lambda: not answers(shared, who))
    assert press(mine, "ArrowRight", "ArrowUp", "ArrowDown") == pairs
    until(lambda: len(answers(shared, who)) == 3)
    expected = list(zip(pairs, ("right", "tie", "skip"), strict=True))
    assert answers(shared, who) == expected


def test_undo_right_after_an_answer_undoes_that_answer(
    shared: Server, mine: Page, who: str
) -> None:
    """The keys are faster than the server: no unseen pair is answered."""
    held: list[Any] = []
    mine.context.route("**/api/undo", lambda route: held.append(route))
    (first,) = press(mine, "ArrowLeft")
    mine.keyboard.press("u")
    mine.keyboard.press("ArrowRight")  # ignored during the undo
    expect(mine.locator("#said")).to_have_text("Not done yet: that answer did not count.")
    until(lambda: mine.wait_for_timeout(10) or held)
    held[0].continue_()
    wait_shown(mine, first)
    assert press(mine, "ArrowUp") == [first]
    assert until(lambda: answers(shared, who)) == [(first, "tie")]
    assert rows(shared, "SELECT count(*) FROM labels WHERE who = ?", who) == [(3,)]


def test_undos_and_redos_that_are_faster_than_the_server_are_all_done(
    shared: Server, mine: Page, who: str
) -> None:
    held: list[Any] = []
    pairs = press(mine, "ArrowLeft", "ArrowLeft", "ArrowLeft")
    until(lambda: len(answers(shared, who)) == 3)
    mine.context.route("**/api/undo", lambda route: held.append(route))
    for key in ("u", "u", "u", "r"):
        mine.keyboard.press(key)
    for count in (1, 2, 3):
        until(lambda count=count: mine.wait_for_timeout(10) or len(held) == count)
        held[-1].continue_()
    wait_shown(mine, pairs[1])
    assert until(lambda: answers(shared, who)) == [(pairs[0], "left")]


def test_nothing_to_undo(mine: Page) -> None:
    first = shown(mine)
    mine.keyboard.press("u")
    expect(mine.locator("#said")).to_have_text("There is no answer to undo.")
    assert press(mine, "ArrowLeft") == [first]


# --- playing -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_both_clips_show_the_same_frame(mine: Page) -> None:
    """In 1,000 samples the frame numbers are equal, and they change."""
    sampled = mine.evaluate("""async () => {
        const canvases = [...document.querySelectorAll('.clip canvas')];
        const samples = [];
        while (samples.length < 1000) {
            await new Promise(resolve => setTimeout(resolve, 1));
            samples.push(canvases.map(canvas => Number(canvas.dataset.frame)));
        }
        return samples;
    }""")
    assert len(sampled) == 1000
    assert all(left == right for left, right in sampled)
    assert len({left for left, _ in sampled}) > 20


def test_canvas_shows_the_reported_frame(mine: Page) -> None:
    seen, looks, end = set[int](), 0, time.monotonic() + 60
    while looks < 30 or (len(seen) <= 3 and time.monotonic() < end):
        looks += 1
        for side in mine.evaluate(SEEN):
            assert side["left"] == round(side["frame"] * 36 / 29)
            seen.add(side["frame"])
    assert len(seen) > 3


@pytest.mark.slow
def test_speeds_pause_and_replay(shared: Server, open_page: Open, browser: Any) -> None:
    """With a simulated clock: 30 frames per second, looping after a break."""
    page = open_page("about:blank", wait=False)
    page.clock.install()
    page.goto(f"{shared.address}?who=clock")
    page.wait_for_selector("html[data-shows=pair]")
    # From here on only the test advances the clock.
    page.clock.pause_at(datetime.fromtimestamp(page.evaluate("Date.now()") / 1000 + 30))

    def frame_after(milliseconds: int) -> int:
        page.clock.run_for(milliseconds)
        return page.evaluate("Number(document.querySelector('#left canvas').dataset.frame)")

    def pressed_after(key: str) -> tuple[int, int]:
        """The frames at the start of a new pair and 0.4 s later."""
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("html[data-shows=pair]")
        page.keyboard.press(key)
        return frame_after(16), frame_after(400)

    for key, rate in (("2", 1.0), ("1", 0.5), ("3", 2.0)):
        before, after = pressed_after(key)
        assert after - before == pytest.approx(400 / 1000 * 30 * rate, abs=1.5)
        assert page.locator(f"[data-speed='{key}']").get_attribute("aria-pressed") == "true"
    page.keyboard.press(" ")
    stands = frame_after(0)
    assert frame_after(1000) == stands
    page.keyboard.press(" ")
    assert frame_after(100) != stands
    while frame_after(16) < 29:
        pass
    assert frame_after(40) == 29  # the last frame has been shown for as long as any other
    page.keyboard.press(" ")
    assert frame_after(2000) == 29  # paused in the break at the end
    page.keyboard.press(" ")
    assert frame_after(32) < 5  # replays from the start


def test_view_of_the_agent(shared: Server, mine: Page) -> None:
    width = "document.querySelector('#right canvas').width"
    assert mine.evaluate(width) == 48
    mine.keyboard.press("v")
    mine.wait_for_function(f"() => {width} === 16")
    assert "pixelated" in (mine.locator("#right canvas").get_attribute("class") or "")
    press(mine, "ArrowLeft")
    mine.wait_for_selector("html[data-shows=pair]")
    mine.wait_for_function(f"() => {width} === 16")
    mine.keyboard.press("v")
    mine.wait_for_function(f"() => {width} === 48")
    check_colours(shared, mine)


@pytest.mark.slow
def test_shorter_clip_holds_its_last_frame(tmp_path: Path, open_page: Open) -> None:
    set_status(tmp_path)
    clip = {"obs": np.zeros((2, 2), np.float32)}
    films = (film_of(tmp_path, 0), film_of(tmp_path, 1, frames=10))
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        store.add_queries([NewQuery(0, clip, clip, 0, films=films)])
    with serving(tmp_path) as server:
        page = open_page(server.address)
        frames = page.wait_for_function("""() => {
            const canvases = [...document.querySelectorAll('.clip canvas')];
            const frames = canvases.map(canvas => Number(canvas.dataset.frame));
            return frames[0] > 15 && frames;
        }""").json_value()
    assert frames[0] > 15
    assert frames[1] == 9


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_answer_flashes(shared: Server, open_page: Open, motion: Any) -> None:
    page = open_page(f"{shared.address}?who={motion}", reduced_motion=motion)
    flashes = page.evaluate("""() => {
        document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
        const effects = document.getAnimations().map(animation => animation.effect);
        return effects.filter(effect => effect.target.className === 'flash').map(effect => [
            effect.target.parentElement.id, effect.getTiming().duration,
            ...effect.getKeyframes().map(frame => Number(frame.opacity))]);
    }""")
    ((side, duration, begin, end),) = flashes
    assert side == "left"
    assert 100 <= duration <= 200
    assert (begin, end) == ((1, 1) if motion == "reduce" else (1, 0))


# --- words ---------------------------------------------------------------------------------------


MARKUP = "<img src=x onerror=\"document.title='owned'\">"


@pytest.mark.slow
def test_goal_is_edited_in_place_and_stored(server: Server, open_page: Open) -> None:
    page, other = (open_page(f"{server.address}?who={who}") for who in ("ann", "bob"))
    page.fill("#goal", "stand on  one leg")
    page.keyboard.press("Enter")
    expect(other.locator("#goal")).to_have_value("stand on one leg")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.fill("#goal", "something else")
    page.keyboard.press("Escape")
    expect(page.locator("#goal")).to_have_value("stand on one leg")
    page.reload()
    expect(page.locator("#goal")).to_have_value("stand on one leg")
    assert rows(server, "SELECT value, who FROM sayings") == [("stand on one leg", "ann")]


@pytest.mark.attack
def test_typed_text_is_never_markup(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    page.fill("#goal", MARKUP)
    page.keyboard.press("Enter")
    page.fill("#who", MARKUP[:40])
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-shows=pair]")
    page.keyboard.press("ArrowLeft")
    until(lambda: answers(server, MARKUP[:40]))
    set_status(server.folder, "finished", env=MARKUP, result=MARKUP)
    expect(page.locator("#env")).to_have_text(MARKUP)
    page.reload()
    expect(page.locator("#goal")).to_have_value(MARKUP)
    expect(page.locator("#who")).to_have_value(MARKUP[:40])
    assert page.locator("img").count() == 1  # the page's own
    assert page.title() == f"{MARKUP} · backflip"


@pytest.mark.slow
def test_browser_remembers_the_name(server: Server, open_page: Open) -> None:
    page = open_page(f"{server.address}?who=bob")
    expect(page.locator("#who")).to_have_value("bob")
    page.fill("#who", "  Ann ")
    page.keyboard.press("Enter")
    page.reload()  # the name in the address was for the first time
    expect(page.locator("#who")).to_have_value("Ann")
    press(page, "ArrowLeft")
    until(lambda: answers(server, "Ann"))


@pytest.mark.slow
def test_progress_is_shown(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    press(page, "ArrowLeft", "ArrowLeft", "ArrowRight")
    expect(page.locator("#labels")).to_have_text("3")
    expect(page.locator("#budget")).to_have_text("of 100 answers")
    expect(page.locator("#rate")).to_contain_text(" a minute")
    expect(page.locator("#rate")).to_contain_text("to go")
    assert page.locator("#progress").get_attribute("aria-valuenow") == "3"


@pytest.mark.slow
def test_repeats_are_not_marked_and_are_counted(server: Server, open_page: Open) -> None:
    """The sides of the repeat are swapped, so the opposite answer agrees."""
    page = open_page(server.address)
    press(page, "ArrowLeft")
    until(lambda: answers(server))
    write(
        server.folder,
        "INSERT INTO queries (id, seed, left_clip, right_clip, asked_at, repeats)"
        " SELECT 1000, seed, right_clip, left_clip, asked_at, id FROM queries WHERE id = 1",
    )
    write(server.folder, "INSERT INTO takes (query, who, at) VALUES (1000, 'me', 0)")
    page.reload()
    while not any(query == 1000 for query, _ in answers(server)):
        press(page, "ArrowRight")
        page.wait_for_timeout(50)
    expect(page.locator("#agreement")).to_have_text("Same answer when a pair came again: 1 of 1")


def test_opinion_is_shown_only_after_the_answer(shared: Server, open_page: Open) -> None:
    page = open_page("about:blank", wait=False)
    received: list[str] = []
    page.on("response", lambda r: received.append(r.url.split(str(shared.port))[1].split("?")[0]))
    page.goto(f"{shared.address}?who=opinion")
    page.wait_for_selector("html[data-shows=pair]")
    assert page.locator("#opinion-strip svg").count() == 0
    assert "/api/answer" not in received
    press(page, "ArrowLeft")
    expect(page.locator("#opinion-strip svg")).to_have_count(2)
    expect(page.locator("#opinion-said")).to_have_text(
        "The reward model prefers left: so did you ✓"
    )
    press(page, "ArrowRight")
    expect(page.locator("#opinion-said")).to_contain_text("you chose right ✗")
    page.keyboard.press("u")
    expect(page.locator("#opinion-strip svg")).to_have_count(0)


@pytest.mark.slow
def test_untrained_reward_model_has_no_opinion(tmp_path: Path, open_page: Open) -> None:
    set_status(tmp_path)
    add_pairs(tmp_path, 4, opinions=False)
    with serving(tmp_path) as server:
        page = open_page(server.address)
        press(page, "ArrowLeft")
        expect(page.locator("#opinion-said")).to_have_text("The reward model is not trained yet.")


@pytest.mark.slow
def test_latest_episode_is_shown(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    assert not page.locator("#episode").is_visible()
    film = film_of(server.folder, 40)["person"]
    set_status(server.folder, episode=film, episode_env_steps=12000)
    expect(page.locator("#episode-when")).to_have_text("after 12,000 env steps")
    page.wait_for_function("() => document.querySelector('#episode canvas').dataset.frame > 3")


def test_keyboard_shortcuts_are_listed(mine: Page) -> None:
    mine.keyboard.press("?")
    expect(mine.locator("#keys")).to_be_visible()
    mine.keyboard.press("Escape")
    expect(mine.locator("#keys")).not_to_be_visible()
    mine.click("#help")
    mine.click("#keys button")
    expect(mine.locator("#keys")).not_to_be_visible()


# --- waiting -------------------------------------------------------------------------------------


def test_durations_are_those_of_runshelf(mine: Page) -> None:
    values = [-1, 0, 0.04, 4.46, 9.94, 9.96, 59.6, 60, 90, 3599.6, 3660, 7200, 90_000, 273_600]
    words = "async values => values.map((await import('/static/words.js')).duration)"
    assert mine.evaluate(words, values) == [duration(value) for value in values]


WAITS = {
    "setting up": ({"expected_seconds": 30.0}, "Setting up", "of about 30 s"),
    "drawing": ({}, "Drawing the next clips", "so far"),
    "learning": (
        {"phase": 3, "env_steps": 12000, "expected_seconds": 6.0},
        "The agent is learning from your answers",
        "Training phase 4 of 20, after 12,000 env steps",
    ),
    "waiting": ({}, "Waiting for the next pair", "will add pairs soon"),
    "evaluating": ({}, "Rating the agent", "new episodes"),
    "stopped": ({"result": "the disk is full"}, "is not running", "the disk is full"),
}


# Whether the page shows the time since `since` to the second, and at least `least`.
WAITED = r"""([since, least]) => {
    const said = parseInt(document.querySelector('#wait-time').innerText.match(/\d+(?= s so far)/));
    return said >= Math.floor(least) && Math.abs(said - (Date.now() / 1000 - since)) <= 1.5;
}"""


@pytest.mark.slow
def test_waiting_panel(tmp_path: Path, open_page: Open) -> None:
    set_status(tmp_path, "setting up")
    with serving(tmp_path) as server:
        page = open_page(server.address, wait=False)
        for doing, (facts, title, words) in WAITS.items():
            set_status(tmp_path, doing, since=time.time() - 5, **facts)
            expect(page.locator("#wait-title")).to_contain_text(title)
            expect(page.locator("#wait")).to_contain_text(words)
            assert not page.locator("#left").is_visible()
            assert page.locator("[data-answer=left]").is_disabled()
        expect(page.locator("#banner")).to_contain_text(f"backflip resume {tmp_path.name}")
        since = time.time() - 5
        set_status(tmp_path, "learning", since=since)
        expect(page.locator("#wait-time")).to_have_text(re.compile(r"\d s so far"))
        for later in (0, 2):
            page.wait_for_function(WAITED, arg=[since, time.time() - since + later])
        expect(page.locator("#banner")).not_to_be_visible()
        add_pairs(tmp_path, 1)
        wait_shown(page, 1)
        check_colours(server, page)
        assert page.locator("#left").is_visible()
        press(page, "ArrowLeft")
        expect(page.locator("#wait-title")).to_contain_text(
            "The agent is learning from your answers"
        )
        assert not page.locator("#left").is_visible()


@pytest.mark.slow
def test_complete_budget_is_shown(tmp_path: Path, open_page: Open) -> None:
    set_status(tmp_path, "learning", budget=1)
    add_pairs(tmp_path, 1)
    with serving(tmp_path) as server:
        page = open_page(server.address)
        press(page, "ArrowLeft")
        expect(page.locator("#wait-title")).to_have_text("All answers are given")
        expect(page.locator("#wait-why")).to_contain_text("1 answer, thank you.")


@pytest.mark.slow
def test_stop_teaching_and_continue(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    expect(page.locator("#stop")).to_contain_text(
        "learns from the answers so far, then it is rated"
    )
    first = shown(page)
    page.click("#enough")
    expect(page.locator("#sure")).to_contain_text("There is no answer yet: the agent learns")
    page.click("#sure button[value='']")
    assert rows(server, "SELECT value FROM sayings") == []
    page.click("#enough")
    page.click("#sure button[value='yes']")
    assert until(lambda: rows(server, "SELECT key, value FROM sayings")) == [("enough", "yes")]
    expect(page.locator("#enough")).not_to_be_visible()
    expect(page.locator("#wait-title")).to_have_text("You stopped teaching")
    page.keyboard.press("ArrowLeft")
    page.click("#resume-teaching")
    wait_shown(page, first)
    assert page.locator("html[data-shows=pair]").count() == 1
    expect(page.locator("#enough")).to_be_visible()
    assert answers(server) == []
    assert press(page, "ArrowRight") == [first]
    assert until(lambda: answers(server)) == [(first, "right")]


def test_teaching_cannot_be_continued_when_nothing_will_be_learned(
    tmp_path: Path, open_page: Open
) -> None:
    add_pairs(tmp_path, 2)
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        LabelQueue(store).finish_labelling("me")
    set_status(tmp_path, "learning", phase=18, phases=20)
    with serving(tmp_path) as server:
        page = open_page(server.address, wait=False)
        expect(page.locator("#resume-teaching")).to_be_visible()
        set_status(tmp_path, "learning", phase=19, phases=20)  # its fit is done
        expect(page.locator("#resume-teaching")).not_to_be_visible()


@pytest.mark.slow
def test_pairs_held_by_others_are_reported(tmp_path: Path, open_page: Open) -> None:
    set_status(tmp_path)
    add_pairs(tmp_path, 1)
    with serving(tmp_path) as server, holding(tmp_path, "ann", 1):
        page = open_page(server.address, wait=False)
        expect(page.locator("#wait-why")).to_contain_text("1 open pair is held by other people")


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pair_with_a_damaged_film_is_skipped(folder: Path, open_page: Open) -> None:
    damaged = film_of(folder, 2)["person"].file  # of pair 2
    (folder / FILMS / damaged).write_bytes(b"nothing")
    missing = film_of(folder, 5)["person"].file  # of pair 3
    (folder / FILMS / missing).unlink()
    with serving(folder) as server:
        page = open_page(server.address)
        assert press(page, "ArrowLeft") == [1]
        expect(page.locator("#said")).to_contain_text("could not be shown")
        wait_shown(page, 4)
        assert press(page, "ArrowLeft", "ArrowLeft") == [4, 5]
        until(lambda: len(answers(server)) == 3)
    film_of.cache_clear()


def test_killed_server_loses_and_doubles_no_answer(folder: Path, open_page: Open) -> None:
    server = start(folder, "--port", "0")
    page = open_page(server.address)
    wait_for_pairs(page, 3)
    given = press(page, "ArrowLeft")
    server.kill()
    given += press(page, "ArrowRight", "ArrowDown")
    expect(page.locator("#saving")).to_contain_text("answers stored here")
    expect(page.locator("#banner")).to_contain_text("Connection lost")
    server = start(folder)
    expect(page.locator("#banner")).not_to_be_visible()
    expect(page.locator("#saving")).to_have_text("")
    given += press(page, "ArrowUp")
    until(lambda: len(answers(server)) == 4)
    assert [query for query, _ in answers(server)] == given
    assert [answer for _, answer in answers(server)] == ["left", "right", "skip", "tie"]
    assert len(rows(server, "SELECT id FROM labels")) == 4
    server.kill()


def test_unsent_answers_survive_a_reload(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    page.context.route("**/api/answer", lambda route: route.abort())
    given = press(page, "ArrowLeft", "ArrowRight")
    expect(page.locator("#saving")).to_contain_text("2 answers stored")
    page.reload()
    page.wait_for_selector("html[data-shows=pair]")
    assert answers(server) == []
    page.context.unroute("**/api/answer")
    assert until(lambda: len(answers(server)) == 2)
    assert answers(server) == list(zip(given, ("left", "right"), strict=True))


@pytest.mark.slow
def test_answer_with_a_lost_response_counts_once(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    lost: list[bool] = []

    def lose(route: Any) -> None:
        route.fetch()  # the server receives it; the response is lost
        lost.append(True)
        route.abort()

    page.context.route("**/api/answer", lose, times=2)
    (query,) = press(page, "ArrowLeft")
    until(lambda: len(lost) == 2 or page.wait_for_timeout(20))
    expect(page.locator("#labels")).to_have_text("1")
    until(lambda: page.locator("#saving").inner_text() == "")
    assert page.locator("#said").inner_text() == ""
    assert rows(server, "SELECT query, answer FROM labels") == [(query, "left")]


@pytest.mark.slow
def test_refused_answer_is_dropped_with_a_message(server: Server, open_page: Open) -> None:
    page = open_page(server.address)
    wait_for_pairs(page, 2)
    page.context.route("**/api/take", lambda route: route.abort())  # the page does not learn of it
    with LabelStore.open(server.folder / "labels.sqlite") as store:
        write(server.folder, "INSERT INTO takes (query, who, at) VALUES (1, 'ann', 0)")
        LabelQueue(store).answer(1, "right", "ann", 1.0, "ann was first")
    assert press(page, "ArrowLeft", "ArrowLeft") == [1, 2]
    expect(page.locator("#said")).to_contain_text("did not count: prompt 1 was answered by ann")
    assert until(lambda: answers(server)) == [(2, "left")]
    until(lambda: page.evaluate("Object.keys(localStorage)") == ["backflip:who"])


@pytest.mark.slow
def test_page_with_an_old_token_reloads(folder: Path, open_page: Open) -> None:
    server = start(folder, "--port", "0")
    page = open_page(server.address)
    server.kill()
    path = cache_folder(folder) / "page.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"secret": "00" * 32}))
    (query,) = press(page, "ArrowLeft")
    server = start(folder)
    assert until(lambda: answers(server)) == [(query, "left")]
    server.kill()


def test_two_people_never_get_the_same_pair(server: Server, open_page: Open) -> None:
    pages = {who: open_page(f"{server.address}?who={who}") for who in ("ann", "bob")}
    given: dict[str, list[int]] = {"ann": [], "bob": []}
    for _ in range(4):
        for who, page in pages.items():
            given[who] += press(page, "ArrowLeft")
            page.wait_for_timeout(30)
    assert not set(given["ann"]) & set(given["bob"])
    for who, queries in given.items():
        until(lambda who=who: len(answers(server, who)) == 4)
        assert [query for query, _ in answers(server, who)] == queries


@pytest.mark.slow
def test_new_name_gets_the_pairs_of_the_old_name(tmp_path: Path, open_page: Open) -> None:
    set_status(tmp_path)
    add_pairs(tmp_path, 3)  # the first name holds all of them
    with serving(tmp_path) as server:
        page = open_page(f"{server.address}?who=ann")
        page.fill("#who", "bob")
        page.press("#who", "Enter")
        wait_shown(page, 1)
        assert press(page, "ArrowLeft") == [1]
        until(lambda: answers(server, "bob") == [(1, "left")])


AWAY = 31 * 60_000  # milliseconds


@pytest.mark.slow
def test_pairs_of_an_absent_person_become_free(server: Server, open_page: Open) -> None:
    """Pairs taken by others are dropped; the key that ends the pause answers nothing."""
    page = open_page("about:blank", wait=False)
    films: list[str] = []
    page.on("response", lambda one: films.append(one.url) if "/films/" in one.url else None)
    page.clock.install()
    page.goto(server.address)
    page.wait_for_selector("html[data-shows=pair]")
    # The clock must not jump while the page loads films: it would take them for late.
    until(lambda: page.wait_for_timeout(20) or len(films) >= 8)
    page.clock.fast_forward(AWAY)
    page.clock.run_for(1000)
    assert page.evaluate("document.documentElement.dataset.shows") == "away"
    expect(page.locator("#wait-title")).to_have_text("Paused while you are away")
    until(lambda: present(server) == 0)
    with holding(server.folder, "ann", 1):
        page.keyboard.press("ArrowLeft")
        wait_shown(page, 2)
        expect(page.locator("#said")).to_contain_text("answered in another tab, or by another")
        assert answers(server) == []
        assert press(page, "ArrowLeft") == [2]


def present(server: Server) -> int:
    """How many people are present."""
    return server.get("/api/state").json["people"]


@pytest.mark.slow
def test_page_of_an_absent_person_requests_nothing(tmp_path: Path, open_page: Open) -> None:
    """Even if it could hold more pairs and new ones arrive."""
    set_status(tmp_path)
    add_pairs(tmp_path, 2)
    with serving(tmp_path) as server:
        page = open_page("about:blank", wait=False)
        page.clock.install()
        page.goto(server.address)
        page.wait_for_selector("html[data-shows=pair]")
        page.clock.fast_forward(AWAY)
        page.clock.run_for(1000)
        expect(page.locator("#wait-title")).to_have_text("Paused while you are away")
        until(lambda: present(server) == 0)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        add_pairs(tmp_path, 1, first=20)
        page.wait_for_timeout(600)
        assert asked == []
        page.mouse.move(5, 5)
        page.wait_for_selector("html[data-shows=pair]")
        assert press(page, "ArrowLeft") == [1]


@pytest.mark.slow
def test_two_pages_of_one_person_stay_in_sync(server: Server, open_page: Open) -> None:
    """They hold the same pairs; an answer on one removes the pair from the other."""
    here, there = open_page(server.address), open_page(server.address)
    assert shown(here) == shown(there) == 1
    press(here, "ArrowLeft")
    wait_shown(there, 2)


# --- network and size ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.attack
def test_address_with_token_opens_the_page_beyond_loopback(folder: Path, open_page: Open) -> None:
    with serving(folder, "--port", "0", "--host", "0.0.0.0") as server:
        token = server.address.partition("?")[2]
        page = open_page(f"http://127.0.0.1:{server.port}/?{token}", wait=False)
        expect(page.locator("#name")).to_be_visible()
        assert "token" not in page.url
        page.fill("#first-name", "Ann")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-shows=pair]")
        press(page, "ArrowLeft")
        until(lambda: answers(server, "Ann"))


@pytest.mark.attack
def test_page_makes_no_requests_to_other_hosts(shared: Server, open_page: Open) -> None:
    page = open_page("about:blank", wait=False)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{shared.address}?who=requests")
    page.wait_for_selector("html[data-shows=pair]")
    press(page, "ArrowLeft", "u")
    page.keyboard.press("?")
    page.wait_for_timeout(200)
    assert len(asked) > 10
    assert all(url.startswith((shared.address, "blob:")) for url in asked)


def test_static_files_are_small(shared: Server) -> None:
    static = resources.files("backflip.labelling") / "static"
    names = [item.name for item in static.iterdir()]
    weight = sum(len(shared.get(f"/static/{name}").body) for name in names)
    assert weight <= 150_000


SIZES = [(1280, 720), (1366, 768), (1920, 1080)]


@pytest.mark.parametrize(
    "size", [SIZES[0], *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])]
)
def test_page_fits_a_screen_without_scrolling(
    server: Server, open_page: Open, size: tuple[int, int]
) -> None:
    width, height = size
    film = film_of(server.folder, 40)["person"]
    set_status(server.folder, episode=film, episode_env_steps=12000)
    page = open_page(server.address, viewport={"width": width, "height": height})
    press(page, "ArrowLeft")
    expect(page.locator("#opinion-strip svg")).to_have_count(2)
    expect(page.locator("#episode")).to_be_visible()
    page.wait_for_timeout(100)
    extent = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert page.evaluate(extent) == [width, height]


@pytest.mark.slow
def test_page_fits_an_upright_phone(server: Server, open_page: Open) -> None:
    page = open_page(server.address, viewport={"width": 390, "height": 844}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    left, right = page.evaluate(
        "['left', 'right'].map(i => document.getElementById(i).getBoundingClientRect().toJSON())"
    )
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert left["width"] > 170
    for button in page.locator("[data-answer]").all():
        box = button.bounding_box()
        assert box
        assert box["y"] + box["height"] < 844
        assert box["height"] >= 48
    page.wait_for_timeout(350)
    page.tap("#right")
    assert until(lambda: answers(server)) == [(1, "right")]
