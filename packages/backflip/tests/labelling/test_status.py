"""Tests of `backflip.labelling.status`."""

import os
import subprocess
import sys

import pytest

from backflip.labelling.status import Status, read_status, write_status
from backflip.preferences.films import Film

FILM = Film(f"{0:064}.webp", 3, 2, 10, 20, 30.0, 1.0, True)


def test_round_trip(tmp_path):
    status = Status("learning", 12.5, 3.0, "dot", 1, 20, 4096, 100, os.getpid(), FILM, 2048)
    write_status(tmp_path, status)
    assert read_status(tmp_path) == status
    write_status(tmp_path, status._replace(episode=None))
    assert read_status(tmp_path).episode is None


def test_dead_trainer_is_stopped(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    dead = int(child.stdout)
    write_status(tmp_path, Status("learning", 0.0, pid=dead, phase=3))
    assert read_status(tmp_path).doing == "stopped"
    assert read_status(tmp_path).phase == 3
    write_status(tmp_path, Status("finished", 0.0, pid=dead))
    assert read_status(tmp_path).doing == "finished"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"doing": "learning"}', '{"x": 1}'])
def test_unreadable_status_is_stopped(tmp_path, text):
    assert read_status(tmp_path).doing == "stopped"
    (tmp_path / "status.json").write_text(text)
    assert read_status(tmp_path).doing == "stopped"
