"""Tests that a run says which files of its command line are not in the snapshot."""

import shutil
from pathlib import Path

import pytest
from packages.runshelf.tests.snapshot.repositories import made, write

from runshelf.cli.main import main

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def test_an_ignored_file_of_the_command_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    root = made(tmp_path / "repository", ignore="ignored*\n")
    write(root / "ignored.py")
    write(root / "secrets.toml")
    write(tmp_path / "outside.py")
    (root / "link.py").symlink_to("train.py")
    monkeypatch.chdir(root)
    files = ["train.py", "link.py", "ignored.py", "secrets.toml", "../outside.py", "nothing.py"]
    assert main(["run", "--home", str(tmp_path / "home"), "--", "true", *files]) == 0
    said = [line for line in capfd.readouterr().err.splitlines() if "not in the snapshot" in line]
    assert said == [
        "runshelf: not in the snapshot: `secrets.toml`: may hold secrets",
        "runshelf: not in the snapshot: `ignored.py`, which is ignored",
        f"runshelf: not in the snapshot: `../outside.py`, which is outside of `{root}`",
    ]
