"""`backflip play` in a real browser: keys, sliders, views, and the recorded score."""

import base64
import io
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from packages.backflip.tests.inspect.play.playing import playing
from PIL import Image
from playwright.sync_api import Page

from runshelf.store.metrics import read_metrics
from runshelf.store.run import open_run

pytestmark = pytest.mark.medium
READY = "html[data-shows=ready]"


def test_episode_is_played_and_its_score_is_recorded(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    with playing(tmp_path, "CartPole-v1", "--seed", "3") as play:
        page = open_page(play.address, wait=False)
        page.wait_for_selector(READY)
        assert page.locator("#legend button").all_inner_texts() == ["0 ← left", "1 → right"]
        page.keyboard.press("Enter")
        page.keyboard.down("ArrowRight")
        page.wait_for_selector("#over:not([hidden])", timeout=60_000)
        assert page.inner_text("#over-title") == "Episode terminated"
        score = float(page.inner_text("#return"))
        assert 5 <= score <= 12  # pushing one way makes the pole fall
        assert page.inner_text("#length") == f"{score:.0f} / 500"
        canvas = page.locator("#person canvas")
        assert canvas.evaluate("c => [c.width, c.height]") == [320, 240]
        told = play.interrupt()
    assert told["returns"] == [score]
    run = open_run(Path(told["folder"]))
    assert run.manifest["command"] == "play"
    assert run.manifest["env"] == "CartPole-v1"
    assert run.events()[-1]["status"] == "finished"
    (record,) = read_metrics(run.folder, "play").records
    assert record["episode_return"] == record["episode_length"] == score


@pytest.mark.slow
def test_turn_based_mode_waits_for_keys_and_views_change(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    with playing(tmp_path, "dot") as play:
        page = open_page(play.address, wait=False)
        page.wait_for_selector(READY)
        assert page.locator("#person").is_hidden()  # images show the agent's observation first
        page.keyboard.press("t")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-length='0']")
        for number, key in enumerate(["ArrowLeft", "ArrowUp", "0"], 1):
            page.keyboard.press(key)
            page.wait_for_selector(f"html[data-length='{number}']")
        page.wait_for_timeout(300)
        assert page.inner_text("#length").startswith("3 /")
        agent = page.locator("#agent canvas")
        assert agent.evaluate("c => [c.width, c.height]") == [339, 84]
        assert agent.evaluate("c => getComputedStyle(c).imageRendering") == "pixelated"
        page.keyboard.press("v")
        page.wait_for_selector("#person canvas[width]")  # it has been drawn on
        assert page.locator("#person").is_visible()
        page.locator("#legend button").nth(3).click()
        page.wait_for_selector("html[data-length='4']")


@pytest.mark.slow
def test_sliders_and_keys_move_a_continuous_action(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    with playing(tmp_path, "Pendulum-v1") as play:
        page = open_page(play.address, wait=False)
        page.wait_for_selector(READY)
        page.keyboard.press("t")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-length='0']")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("html[data-length='1']")
        assert page.inner_text("#legend output") == "2.00"
        page.locator("#legend input").fill("-1.5")
        page.locator("#legend input").blur()
        page.wait_for_selector("html[data-length='2']")  # moving a slider takes an env step
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("html[data-length='3']")
        assert page.inner_text("#legend output") == "-2.00"
        page.locator("#legend input").click()  # and does not keep the keyboard focus
        page.wait_for_selector("html[data-length='4']")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("html[data-length='5']")
        assert page.inner_text("#legend output") == "2.00"


@pytest.mark.slow
def test_letter_released_with_shift_is_released(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    """The third dimension has letter keys. The game waits: an env step's duration is unknown."""
    with playing(tmp_path, "packages.backflip.tests.inspect.faulty_envs:ThreeDimensions") as play:
        page = open_page(play.address, wait=False)
        page.wait_for_selector(READY)
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-length='0']")
        page.keyboard.down("a")
        page.wait_for_selector("html[data-length='1']")
        assert page.locator("#legend output").all_inner_texts() == ["0.00", "0.00", "-1.00"]
        page.keyboard.down("Shift")
        page.keyboard.up("A")
        page.keyboard.up("Shift")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("html[data-length='2']")
        assert page.locator("#legend output").all_inner_texts() == ["1.00", "0.00", "0.00"]


def test_server_refuses_foreign_and_invalid_requests(tmp_path: Path) -> None:
    with playing(tmp_path, "CartPole-v1") as play:
        status, headers, _ = play.get("/")
        assert status == 200
        assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
        assert play.get("/static/play.js").status == 200
        assert play.get("/static/page.js").status == 404  # the labelling page's
        assert play.get("/static/..%2fplay.html").status == 404
        me = {"player": "me", "view": "agent"}
        assert play.post("/api/begin", me, X_Token="0").status == 403
        assert play.post("/api/begin", me, Origin="http://evil.example").status == 403
        assert play.post("/api/act", {**me, "action": 0}).status == 409  # no episode has begun
        begun = play.post("/api/begin", me)
        assert begun.status == 200
        assert Image.open(io.BytesIO(base64.b64decode(begun.json["agent"]))).size == (320, 240)
        assert "person" not in begun.json
        for fields, says in (
            ({"action": 7}, "`action` must be a whole number below 2"),
            ({"action": "left"}, "`action` must be a whole number"),
            ({"actions": ["x"]}, "`actions` must be a list"),
            ({}, "`actions` is missing"),
            ({"action": 0, "view": "x"}, "`view` must be one of both, person, agent"),
        ):
            answered = play.post("/api/act", me | fields)
            assert answered.status == 422
            assert answered.json["error"].startswith(says)
        assert play.post("/api/act", {**me, "action": 1}).json["length"] == 1
        assert play.post("/api/begin", {"player": "other", "view": "x"}).status == 422
        assert play.post("/api/act", {**me, "action": 1}).status == 200  # still this page's
        other = {"player": "other", "view": "agent"}
        assert play.post("/api/begin", other).json["episode"] == 2
        answered = play.post("/api/act", {**me, "action": 1})
        assert (answered.status, answered.json["problem"]) == (409, "another page")
        assert "another window" in answered.json["error"]
        assert play.interrupt()["episodes"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_episodes_are_saved_however_the_game_ends(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "shown.npz"
    with playing(tmp_path, "CartPole-v1", "--save", str(path)) as play:
        me = {"player": "me", "view": "agent"}
        play.post("/api/begin", me)
        while not play.post("/api/act", {**me, "action": 1}).json["ended"]:
            pass
        play.post("/api/begin", me)
        play.post("/api/act", {**me, "action": 0})
        play.process.send_signal(number)
        assert play.process.wait(60) == (-number if number == signal.SIGKILL else 0)
    ends = np.load(path)["terminations"].tolist()
    assert ends.count(True) == 1
    assert ends[-1] == (number == signal.SIGKILL), "the second episode is in the file, or lost"
