"""The doctor's tab on the pages of a run, in a real browser, with hostile runs."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from packages.backflip.tests.doctor.check_samples import SAMPLES, T, log
from packages.runshelf.tests.index.homes import make_run, ulid
from packages.runshelf.tests.web.pages import shown_total, until
from playwright.sync_api import expect
from tests.server_client import Server

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.page import page

COMMAND = (sys.executable, "-m", "backflip", "serve", "--no-open", "--home")
WIDTH = "document.documentElement.scrollWidth"
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
        shown = open_page(f"{server.address}runs/{ulid(1)}/doctor", wait=False)
        expect(shown.locator("nav.tabs a[aria-current=page]")).to_have_text("Doctor")
        expect(shown.locator(".verdict")).to_contain_text("Something is wrong")
        figures = shown.locator("figure.figure")
        assert figures.count() >= 2
        expect(figures.first.locator("svg.plot")).to_be_visible()
        expect(shown.locator("pre").last).to_contain_text("next experiment")
        assert shown.locator("img[src=x]").count() == 0
        shown.set_viewport_size({"width": 390, "height": 800})
        assert shown.evaluate(WIDTH) <= 390, "the report wraps"


@pytest.mark.medium
def test_the_page_of_a_file_is_as_wide_as_a_telephone(tmp_path, open_page):
    name = tmp_path / ("a_name_without_any_place_to_break_it_" * 3)
    found = diagnose(replace(SAMPLES["PI-KL-HIGH"].broken, name=str(name)))
    assert found.findings
    file = tmp_path / "diagnosis.html"
    file.write_text(page([found]), encoding="utf-8")
    shown = open_page(f"file://{file}", wait=False, viewport={"width": 390, "height": 800})
    assert shown.evaluate(WIDTH) <= 390


def test_a_page_draws_a_signal_once_and_shows_no_healthy_log_in_full_beside_a_bad_one():
    falls = log("ppo", episode_return_mean=100.0 - 100.0 * T)
    bad = diagnose(falls)
    seen = [*bad.findings, *bad.remarks]
    assert sum("episode_return_mean" in one.check.needs for one in seen) > 1
    good = diagnose(log("ppo", episode_return_mean=100.0 * T))
    made = page([good, bad])
    assert made.count(">episode_return_mean</text>") == 1
    assert (made.count("<h2>"), page([good]).count("<h2>")) == (1, 1)
    assert "…" not in made


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
