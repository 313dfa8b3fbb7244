"""Attacks on the files that SQLite opens: links, pipes and folders in a received run."""

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from backflip.preferences.exchange import labels_of_run
from backflip.preferences.label_file import LABELS, LabelFile
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from runshelf.errors import DamagedFile

NAMES = (LABELS, f"{LABELS}-wal", f"{LABELS}-shm", f"{LABELS}-journal")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A received run folder with labels, beside a file of ours."""
    folder = tmp_path / "received"
    folder.mkdir()
    clip = {"obs": np.zeros((5, 2), np.float32)}
    with LabelStore.open(folder / LABELS) as store:
        (query,) = store.add_queries([NewQuery(0, clip, clip, 0)])
        store.add_label(query, "left", "me", 1.0)
    return folder


def planted(path: Path, kind: str, ours: Path) -> None:
    """Put something else in the place of a file."""
    path.unlink(missing_ok=True)
    match kind:
        case "symbolic link":
            path.symlink_to(ours)
        case "dangling link":
            path.symlink_to(ours.with_name("new"))
        case "hard link":
            os.link(ours, path)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()


OPENERS = (
    LabelStore.open,
    LabelStore.open_existing,
    LabelFile.open_to_read,
    lambda path: labels_of_run(path.parent),
)


@pytest.mark.medium
@pytest.mark.attack
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "hard link", "pipe", "folder"])
def test_nothing_but_a_regular_file_with_one_name_is_opened(folder, tmp_path, name, kind, tried):
    ours = tmp_path / "ours"
    with sqlite3.connect(ours) as connection:  # SQLite would open and change it
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = ours.read_bytes()
    planted(folder / name, kind, ours)
    for opened in OPENERS:
        with pytest.raises(DamagedFile, match="regular file") as caught:
            opened(folder / LABELS)
        assert "\n" not in str(caught.value)
    assert ours.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "received"]
    tried(len(OPENERS), "links, pipes and folders in the place of a label file")


@pytest.mark.attack
def test_a_missing_label_file_is_not_made_and_its_log_is_not_removed(folder, tried):
    path, log = folder / LABELS, folder / f"{LABELS}-wal"
    for lose in (path.unlink, lambda: path.write_bytes(b"")):
        lose()
        log.write_bytes(b"what can be recovered")
        for opened in OPENERS[1:3]:
            with pytest.raises(DamagedFile, match="labels of this run are lost; restore"):
                opened(path)
        assert log.read_bytes() == b"what can be recovered"
    assert path.stat().st_size == 0
    tried(4, "missing or empty label files beside a log")
