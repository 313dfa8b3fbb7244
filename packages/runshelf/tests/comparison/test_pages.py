"""Groups over their seeds, in the file and on the page that compares them, in Chromium."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.comparison.homes import make_group, make_run
from packages.runshelf.tests.web.pages import page, serving

from runshelf.cli.main import main

pytestmark = pytest.mark.medium


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_group(tmp_path, "a group", [10, 11, 12, 13, 14, 15])
    make_group(tmp_path, "b group", [1, 2, 3, 4, 5, 6], config={"learning_rate": 0.01})
    make_run(tmp_path, "b group", 4.0, 11, status="failed")
    return tmp_path


def test_the_page_concludes_and_writes_nothing(home: Path) -> None:
    folders = [*home.glob("runs/[0-9]*")]
    before = {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}
    with serving(home) as server:
        text = page(server, "/compare?group=a+group&group=b+group")
        assert "a group is better than b group" in text
        assert "1 of 7 seeds count as failures" in text
        one = page(server, "/compare?run=latest&group=a+group")
        assert "Over the seeds" not in one
    after = {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}
    assert after == before


@pytest.mark.slow
def test_the_page_saves_the_file_of_the_command(
    home: Path, open_page: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    make_group(home, "far away", [1.0, 2.0], env="Pendulum-v1", first=40)
    ids = [path.name for path in sorted(home.glob("runs/[0-9]*"))]
    written, saved = home / "written.html", home / "saved.html"
    cases = {
        ("a group", "b group"): "group=a+group&group=b+group",
        (ids[0], ids[1]): f"run={ids[0]}&run={ids[1]}",
        ("a group", ids[7]): f"group=a+group&run={ids[7]}",
    }
    with serving(home) as server:
        for names, query in cases.items():
            assert main(["compare", *names, "--html", str(written), "--home", str(home)]) == 0
            shown = open_page(f"{server.address}compare?{query}", wait=False)
            with shown.expect_download() as download:
                shown.get_by_text("save as one file").click()
            download.value.save_as(saved)
            assert saved.read_bytes() == written.read_bytes()
            assert download.value.suggested_filename == "runshelf-comparison.html"
        # What cannot be compared over seeds is saved with its settings and curves.
        other = server.get("/report?group=a+group&group=far+away").body.decode()
        assert "<svg" in other
        assert "report" in other
    capsys.readouterr()


def test_the_file_is_drawn_without_errors(
    home: Path, open_page: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "c.html"
    assert main(["compare", "a group", "b group", "--html", str(path), "--home", str(home)]) == 0
    for width in (400, 1300):
        shown = open_page(path.as_uri(), wait=False, viewport={"width": width, "height": 900})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.locator("circle").count() == 12
        box = shown.locator(".rows-of").first.bounding_box()
        assert box["height"] == pytest.approx(60, abs=1)  # two rows
