"""Files of W&B: blocks, parts, names, and damage."""

import random
from pathlib import Path

import pytest
from packages.runshelf.tests.interop.wandb_writer import (
    BLOCK,
    history_record,
    in_blocks,
    wandb_file,
)

from runshelf.errors import DamagedFile, UsageError
from runshelf.interop import wandb_files
from runshelf.interop.wandb_files import find_wandb_files, read_wandb


def rows(count: int) -> list[dict[str, float]]:
    return [{"_step": at, "losses/entropy": 0.5 * at} for at in range(count)]


def test_numbers_names_and_configuration(tmp_path: Path) -> None:
    row = {"a": 1.5, "deep.x": 2, "inf": float("inf"), "text": "no number", "on": True}
    config = {"gamma": 0.99, "nested": {"a": [1]}, "env": "x"}
    log = read_wandb(wandb_file(tmp_path / "r.wandb", [row], "my run", **config))
    assert log.rows == [{"a": 1.5, "deep.x": 2.0, "inf": float("inf")}]
    assert (log.name, log.config, log.damage.count) == ("my run", config, 0)


def test_records_cross_blocks(tmp_path: Path) -> None:
    large = {"x" * 3 * BLOCK: 1.0}
    log = read_wandb(wandb_file(tmp_path / "r.wandb", [*rows(900), large, *rows(3)]))
    assert log.rows == [*rows(900), large, *rows(3)]
    assert log.damage.count == 0


@pytest.mark.parametrize("size", range(BLOCK - 60, BLOCK - 20))
def test_a_block_that_is_nearly_full_ends_with_zeros(size: int, tmp_path: Path) -> None:
    path = tmp_path / "r.wandb"
    path.write_bytes(in_blocks([history_record({"x" * size: 1.0}), history_record({"y": 2.0})]))
    assert read_wandb(path).rows == [{"x" * size: 1.0}, {"y": 2.0}]


def test_a_file_that_is_still_written_is_read_up_to_there(tmp_path: Path) -> None:
    path = wandb_file(tmp_path / "r.wandb", rows(50))
    whole = path.read_bytes()
    for cut in (10, 3, 40):
        path.write_bytes(whole[:-cut])
        log = read_wandb(path)
        assert log.rows == rows(50)[: len(log.rows)]
        assert len(log.rows) in (48, 49)
        assert "torn" in log.damage.first


@pytest.mark.medium
def test_a_damaged_record_costs_the_rest_of_its_block(tmp_path: Path) -> None:
    path = wandb_file(tmp_path / "r.wandb", rows(3000))
    data = bytearray(path.read_bytes())
    data[BLOCK + 500] ^= 1
    path.write_bytes(data)
    log = read_wandb(path)
    assert log.damage.count == 1
    assert "checksum" in log.damage.first
    assert log.rows[:100] == rows(3000)[:100]
    assert log.rows[-100:] == rows(3000)[-100:]


@pytest.mark.medium
@pytest.mark.attack
def test_mutated_files_are_refused_or_read(tmp_path: Path) -> None:
    path = wandb_file(tmp_path / "r.wandb", rows(200), "run", gamma=0.9)
    whole, draw = path.read_bytes(), random.Random(0)
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data[: draw.randint(0, len(data))])
        try:
            log = read_wandb(path)
        except DamagedFile:
            continue
        assert all(isinstance(value, float) for row in log.rows for value in row.values())


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.wandb"
    path.write_bytes(b"")
    with pytest.raises(DamagedFile, match="does not begin as a file of W&B"):
        read_wandb(path)


def test_links_are_not_followed_and_there_is_a_limit(tmp_path: Path, monkeypatch) -> None:
    inside = wandb_file(tmp_path / "a" / "r.wandb", rows(1))
    (tmp_path / "a" / "link.wandb").symlink_to(inside)
    wandb_file(tmp_path / "a" / "b" / "s.wandb", rows(1))
    assert [file.name for file in find_wandb_files(tmp_path)] == ["r.wandb", "s.wandb"]
    assert find_wandb_files(inside) == [inside]
    assert find_wandb_files(Path(__file__)) == []
    monkeypatch.setattr(wandb_files, "MOST_FILES", 1)
    with pytest.raises(UsageError, match="more than 1 files of W&B"):
        find_wandb_files(tmp_path)
