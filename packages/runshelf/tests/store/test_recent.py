"""Tests of `runshelf.store.recent`, and that metrics are read once."""

import os
import threading
import time
from pathlib import Path

import pytest

from runshelf.store.metrics import read_columns, read_written
from runshelf.store.recent import Recent


def test_a_value_is_read_once_until_it_is_forgotten() -> None:
    recent: Recent[str] = Recent(100)
    read: list[str] = []

    def get(key: str, size: int = 40) -> str:
        return recent.get(key, size, lambda: read.append(key) or key.upper())

    assert [get("a"), get("b"), get("a"), get("c"), get("a")] == ["A", "B", "A", "C", "A"]
    assert read == ["a", "b", "c"]
    get("b")
    assert read == ["a", "b", "c", "b"], "`b` was used least recently"
    assert [get("large", 101), get("large", 101)] == ["LARGE", "LARGE"]
    assert read[-2:] == ["large", "large"]


def test_a_failure_is_not_kept() -> None:
    recent: Recent[int] = Recent(100)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", 1, lambda: 1 // 0)
    assert recent.get("a", 1, lambda: 2) == 2


def test_two_threads_read_a_value_once() -> None:
    recent: Recent[int] = Recent(100)
    read: list[int] = []

    def slowly() -> int:
        time.sleep(0.05)
        read.append(1)
        return len(read)

    threads = [threading.Thread(target=recent.get, args=("a", 1, slowly)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [1]


def test_metrics_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "metrics-train.jsonl"
    path.write_text('{"loss": 1.0}\n')
    fresh = read_written(tmp_path, "train")
    assert read_written(tmp_path, "train") is not fresh, "its time stamp may not be final"
    os.utime(path, (1e9, 1e9))
    settled = read_written(tmp_path, "train")
    assert read_written(tmp_path, "train") is settled
    columns = read_columns(tmp_path)
    assert read_columns(tmp_path) is columns
    with path.open("a") as file:
        file.write('{"loss": 2.0}\n')
    assert read_columns(tmp_path)["loss"].values.tolist() == [1.0, 2.0]
    os.utime(path, (1e9, 1e9))
    assert read_columns(tmp_path)["loss"].values.tolist() == [1.0, 2.0]
    path.unlink()
    assert list(read_columns(tmp_path)) == []
