"""The doctor's tab on the pages of a run, in a real browser, with hostile runs."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid
from packages.runshelf.tests.web.pages import shown_total, until
from playwright.sync_api import expect
from tests.server_client import Server

COMMAND = (sys.executable, "-m", "backflip", "serve", "--no-open", "--home")
HOSTILE = "<img src=x onerror=alert(1)>"
LARGE_BYTES = 2**20


def of_ppo(home: Path, number: int, name: str = "", **values: float) -> Path:
    """Make a run whose updates are far too large, and that logs nothing else."""
    records = [
        {"env_steps": 1000 * at, "seed": 7, "approx_kl": 50.0, "clip_fraction": 0.99} | values
        for at in range(1, 40)
    ]
    about = {"algorithm": "ppo", "env": HOSTILE, "name": name or None}
    return make_run(home, number, records=records, seeds=[7], **about)


@contextlib.contextmanager
def serving(home: Path) -> Generator[Server, None, None]:
    process = subprocess.Popen(
        [*COMMAND, str(home)], stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True
    )
    assert process.stdout is not None
    found = re.search(r"http://\S+:(\d+)/\S*", process.stdout.readline())
    assert found
    server = Server(home, process, found[0], int(found[1]))
    try:
        until(lambda: shown_total(server) == len(list(home.glob("runs/*/run.json"))))
        yield server
    finally:
        process.kill()
        process.communicate(timeout=20)


@pytest.mark.medium
def test_the_tab_shows_findings_with_curves(tmp_path, open_page):
    of_ppo(tmp_path, 1)
    with serving(tmp_path) as server:
        page = open_page(f"{server.address}runs/{ulid(1)}/doctor", wait=False)
        expect(page.locator("nav.tabs a[aria-current=page]")).to_have_text("Doctor")
        expect(page.locator(".verdict")).to_contain_text("Something is wrong")
        figures = page.locator("figure.figure")
        assert figures.count() >= 2
        expect(figures.first.locator("svg.plot")).to_be_visible()
        expect(page.locator("pre").last).to_contain_text("next experiment")
        assert page.locator("img[src=x]").count() == 0


@pytest.mark.slow
def test_a_large_run_has_the_tab_too(tmp_path):
    folder = of_ppo(tmp_path, 1)
    (folder / "summary.json").write_bytes(bytes(LARGE_BYTES))
    with serving(tmp_path) as server:
        assert b">Doctor</a>" in server.get(f"/runs/{ulid(1)}").body
        assert b"Something is wrong" in server.get(f"/runs/{ulid(1)}/doctor").body


@pytest.mark.slow
def test_a_run_that_cannot_be_diagnosed_gives_a_sentence(tmp_path):
    make_run(tmp_path, 1, seeds=[])
    damaged = of_ppo(tmp_path, 2)
    (damaged / "metrics-log-1.jsonl").write_bytes(b"\xff\x00" * 50)
    with serving(tmp_path) as server:
        empty, broken = (server.get(f"/runs/{ulid(number)}/doctor") for number in (1, 2))
        assert (empty.status, broken.status) == (200, 200)
        assert b"Too little is logged to say anything." in empty.body
        assert b"Too little is logged to say anything." in broken.body
        assert server.get(f"/runs/{ulid(9)}/doctor").status == 404
