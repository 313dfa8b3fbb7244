"""Tests that a run says which files of its command line are not in the snapshot."""

import shutil
from collections.abc import Callable
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


@pytest.mark.attack
@pytest.mark.medium
def test_no_secret_of_a_tracked_file_is_in_anything_that_a_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: Callable[[int, str], None]
) -> None:
    names = ("SECRETS.TOML", "sub/Id_Rsa", "conf/.kube/config", "[x]/hf_token", "deploy")
    root = made(tmp_path / "repository", tracked=names)
    key = "-----BEGIN PRIVATE KEY-----\nhunter2hunter2hunter2hunter2\n"
    for name in names:
        write(root / name, key if name == "deploy" else "hunter2\n")
    write(root / "model.py", "x = 'changed'\n")
    monkeypatch.chdir(root)
    home = tmp_path / "home"
    assert main(["run", "--home", str(home), "--", "true"]) == 0
    (patch,) = home.rglob("code.patch")
    assert "changed" in patch.read_text()
    for path in home.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes(), path
    tried(len(names), "tracked files with a secret")
