"""Files of untrusted folders: no path leads out of the folder, and no file blocks the reader."""

import os
import socket
from pathlib import Path

import pytest

from runshelf.store import opening
from runshelf.store.opening import NoFile

NAMES = [
    "../secret",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a/../../secret",
    "a//b",
    "./a",
    "..\\secret",
    "a\\b",
    "a\0b",
    "a\r\nb",
    "a\x7fb",
    "x" * 300,
    "/".join("a" * 40),
    "../" * 50 + "etc/passwd",
]


@pytest.mark.parametrize("name", NAMES)
def test_invalid_paths_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "run"
    (folder / "a").mkdir(parents=True)
    with pytest.raises(NoFile):
        opening.read(folder, name, 100)


@pytest.mark.parametrize("name", ["a;b", "a#b", "%2e%2e", "é", "\u202ea", "a b", "~", "CON", "a:b"])
def test_unusual_names_are_allowed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("kept")
    assert opening.read(tmp_path, name, 100) == b"kept"


def test_links_are_not_followed(tmp_path: Path) -> None:
    """The file, a folder on its path, or the run's folder may be a link."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    run = tmp_path / "run"
    run.mkdir()
    (run / "file").symlink_to(tmp_path / "outside" / "secret")
    (run / "folder").symlink_to(tmp_path / "outside")
    (tmp_path / "alias").symlink_to(tmp_path / "outside")
    for folder, name in ((run, "file"), (run, "folder/secret"), (tmp_path / "alias", "secret")):
        with pytest.raises(NoFile):
            opening.read(folder, name, 100)


def test_a_folder_swapped_for_a_link_is_refused(tmp_path: Path) -> None:
    """Folders are opened relative to each other, so a swap has no effect."""
    run, outside = tmp_path / "run", tmp_path / "outside"
    (run / "outputs").mkdir(parents=True)
    outside.mkdir()
    (outside / "x").write_text("secret")
    (run / "outputs" / "x").write_text("mine")
    for _ in range(50):
        (run / "outputs").rename(run / "kept")
        (run / "outputs").symlink_to(outside)
        with pytest.raises(NoFile):
            opening.read(run, "outputs/x", 100)
        (run / "outputs").unlink()
        (run / "kept").rename(run / "outputs")
        assert opening.read(run, "outputs/x", 100) == b"mine"


def test_pipes_sockets_and_folders_are_refused_without_blocking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # a socket's path may not be long
        listener.bind("socket")
        for name in ("pipe", "folder", "socket"):
            with pytest.raises(NoFile):
                opening.read(tmp_path, name, 100)


def test_parts_and_sizes_of_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert opening.read(tmp_path, "file", 4) == b"0123"
    assert opening.read_part(tmp_path, "file", 8, 4) == (b"89", 10)
    assert opening.size_of(tmp_path, "file") == 10
    assert opening.size_of(tmp_path, "none") is None
