"""Outlines: the same numbers as from all values, in a file that may be missing or damaged."""

import math
from pathlib import Path

import numpy as np
import pytest

from runshelf.store import outlines
from runshelf.store.metrics import MetricsWriter
from runshelf.store.outlines import PARTS, outline, read_outlines, write_outlines
from runshelf.store.series import Series
from runshelf.store.summary import write_summary


def curve(x: np.ndarray, y: np.ndarray) -> outlines.Outline:
    found = outline(Series(x.astype(float), y.astype(float)), "step")
    assert found
    return found


def write(folder: Path, values: int, seeds: tuple[int, ...] = (0, 1), first: int = 0) -> None:
    with MetricsWriter(folder, "train") as file:
        for n in range(first, first + values):
            for seed in seeds:
                file.write(
                    {"seed": seed, "env_steps": 7 * n, "updates": n, "score": math.sin(n) + seed}
                )


@pytest.mark.parametrize("window", [1, 7, 10, 50, 100])
def test_the_last_window_is_the_mean_of_the_values_in_it(window: int) -> None:
    rng = np.random.default_rng(window)
    x, y = np.sort(rng.uniform(3, 90, 5000)), rng.normal(size=5000)
    # The part is computed as in the definition: ⌊share * 100⌋, in exact order of operations.
    inside = [
        value
        for at, value in zip(x, y, strict=True)
        if min(int((at / 2 - x[0] / 2) / (x[-1] / 2 - x[0] / 2) * 100), 99) >= 100 - window
    ]
    assert curve(x, y).last(window) == pytest.approx(sum(inside) / len(inside), rel=1e-12)


def test_by_hand() -> None:
    found = curve(np.array([0, 10, 20, 100]), np.array([0, 1, 1, 5]))
    # Trapezoids: 5, 10 and 240, over a width of 100.
    assert found.area == pytest.approx(2.55)
    assert (found.last(10), found.last(100), found.begin, found.end) == (5.0, 1.75, 0.0, 100.0)
    single = curve(np.array([3]), np.array([4]))
    assert (single.last(1), single.area, single.n[PARTS - 1]) == (4.0, 4.0, 1.0)


def test_a_nan_in_the_window_is_seen_and_one_before_it_is_not() -> None:
    y = np.arange(200.0)
    y[10] = math.nan
    found = curve(np.arange(200), y)
    assert (found.invalid, found.last(10), math.isnan(found.area)) == (1, 189.5, True)
    y[199] = math.nan
    assert math.isnan(curve(np.arange(200), y).last(1))


def test_both_routes_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 300)
    direct = read_outlines(tmp_path, "score")
    assert not write_outlines(tmp_path)  # few values: they are read from the metrics
    monkeypatch.setattr(outlines, "MANY", 100)
    write_summary(tmp_path)
    assert outlines.is_outlined(tmp_path)
    cached = read_outlines(tmp_path, "score")
    assert list(direct) == list(cached) == [0, 1]
    for seed, one in direct.items():
        other = cached[seed]
        assert one[:6] == other[:6]
        assert all((a == b).all() for a, b in zip(one[6:], other[6:], strict=True))
    assert read_outlines(tmp_path, "nothing") == {}


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"no json\n1234", None])
def test_a_damaged_or_old_file_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    monkeypatch.setattr(outlines, "MANY", 100)
    write(tmp_path, 100)
    write_outlines(tmp_path)
    if damage is None:
        write(tmp_path, 1, first=100)
    else:
        (tmp_path / outlines.FILE).write_bytes(damage)
    found = read_outlines(tmp_path, "score")[1]
    assert not outlines.is_outlined(tmp_path)
    assert found.values == (101 if damage is None else 100)


def test_records_without_env_steps_lie_along_steps_as_logged(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path, "log-1") as file:
        for n in range(5):
            file.write({"score": n})
    found = read_outlines(tmp_path, "score")[None]
    assert (found.axis, found.end, found.values) == ("step", 4.0, 5)
