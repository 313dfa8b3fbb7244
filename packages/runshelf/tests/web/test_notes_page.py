"""The page of notes and what may be decided, in Chromium, with hostile texts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.web.pages import page, serving
from packages.runshelf.tests.web.runs import begin, done, finish
from packages.runshelf.tests.web.test_browser import Open, visit
from playwright.sync_api import expect

from runshelf.store.run import open_run
from runshelf.worklog.notes import path_of, read_notes, write_note

__all__ = ["visit"]
pytestmark = pytest.mark.medium

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m \u202e "
    "{{ 7 * 7 }} </p></article>" + "w" * 3000
)


@pytest.mark.slow
def test_what_may_be_decided_stands_first_on_the_home_page(tmp_path: Path, visit: Open) -> None:
    run = open_run(done(tmp_path, points=5, question=HOSTILE))
    write_note(tmp_path, "work", "built", expected=HOSTILE)
    with serving(tmp_path) as server:
        shown = visit(server.address)
        items = shown.locator(".decisions li")
        expect(items).to_have_count(2)
        expect(items.first).to_contain_text("<script>alert(1)</script>")
        expect(items.first).to_contain_text(f"note 'the answer' --answers {run.short}")
        first = shown.locator("main h1, main h2").nth(1)
        expect(first).to_have_text("To decide now")
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        items.first.locator("a").click()
        shown.wait_for_url(f"**/runs/{run.ulid}")
        write_note(tmp_path, "runs", "yes", answers=run.short)
        shown.goto(server.address)
        expect(items).to_have_count(1)


def test_one_key_on_the_page_of_a_run_writes_a_note_about_it(tmp_path: Path, visit: Open) -> None:
    run = open_run(done(tmp_path, points=5))
    with serving(tmp_path) as server:
        shown = visit(f"{server.address}runs/{run.ulid}")
        shown.keyboard.press("n")
        shown.wait_for_url(f"**/notes?run={run.ulid}")
        expect(shown.locator("#note textarea")).to_be_focused()
        shown.keyboard.type(f"as run {run.short} shows, it learns")
        shown.keyboard.press("Control+Enter")
        expect(shown.locator("article .text")).to_contain_text("it learns")
        expect(shown.locator("article .text a")).to_have_attribute("href", f"/runs/{run.ulid}")
        (note,) = read_notes(tmp_path)
        assert (note.log, note.run) == ("runs", run.short)
        assert note.text == f"as run {run.short} shows, it learns"


def test_hostile_notes_are_shown_as_text(tmp_path: Path, visit: Open) -> None:
    write_note(tmp_path, "confusions", HOSTILE)
    path = path_of(tmp_path, "ideas")
    path.write_bytes(
        b"## 2026-01-01 10:00 \xc2\xb7 run <b>x</b> "
        b'\xc2\xb7 answers "><script>alert(3)</script>\n\n'
        b"by hand \x00\x07\x1b[2J\xff\xe2\x80\xae <svg onload=alert(4)>\n"
    )
    for size in ({"width": 1280, "height": 720}, {"width": 360, "height": 640}):
        with serving(tmp_path) as server:
            shown = visit(f"{server.address}notes", viewport=size)
            expect(shown.locator("article")).to_have_count(2)
            expect(shown.locator("article").first).to_contain_text("onerror=alert(2)")
            expect(shown.locator("article").first.locator(".badge")).to_have_text("open")
            expect(shown.locator("article").last).to_contain_text("<svg onload=alert(4)>")
            assert not set("\x00\x07\x1b\u202e") & set(shown.content())
            assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_notes_are_searched_and_an_error_is_said_and_keeps_the_text(
    tmp_path: Path, visit: Open
) -> None:
    write_note(tmp_path, "ideas", "larger batches")
    write_note(tmp_path, "ideas", "smaller rate")
    with serving(tmp_path) as server:
        shown = visit(f"{server.address}notes?q=BATCHES")
        expect(shown.locator("article .text")).to_have_text("larger batches")
        shown.locator("#note textarea").fill("kept")
        shown.locator("#note input[name=run]").fill("nowhere")
        shown.locator("#note button").click()
        expect(shown.locator("#note-error")).to_contain_text("there is no run `nowhere`")
        expect(shown.locator("#note textarea")).to_have_value("kept")
        assert len(read_notes(tmp_path)) == 2


def test_only_the_page_itself_can_write(tmp_path: Path) -> None:
    good = {"log": "ideas", "text": "x", "run": ""}

    def post(fields: Any, **headers: str) -> int:
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        kind = {"Content_Type": "application/json"} | headers
        return server.request("POST", "/notes", body, **kind).status

    with serving(tmp_path) as server:
        found = re.search(r'data-token="([^"]+)"', page(server, "/notes"))
        assert found
        token = {"X_Token": found[1]}
        assert post(good) == 403
        assert post(good, X_Token="x") == 403
        assert post(good, **token, Origin="http://evil") == 403
        assert post(good, **token | {"Content_Type": "text/plain"}) == 415
        for bad in (b"{", [], {}, good | {"log": "idea"}, good | {"text": 3}, good | {"text": " "}):
            assert post(bad, **token) in (400, 422)
        assert post(good | {"text": "\ud800"}, **token) == 422
        assert post(good | {"text": "x" * 17_000}, **token) == 413
        assert read_notes(tmp_path) == []
        assert post(good, **token) == 201
    assert [note.text for note in read_notes(tmp_path)] == ["x"]


@pytest.mark.slow
def test_a_home_whose_notes_cannot_be_read_still_has_a_home_page(tmp_path: Path) -> None:
    finish(begin(tmp_path, question="q?"))
    (tmp_path / "worklog").mkdir()
    path_of(tmp_path, "work").symlink_to("/etc/passwd")
    with serving(tmp_path) as server:
        assert "not a regular file" in page(server, "/")
        assert "root:" not in page(server, "/notes", 503)
