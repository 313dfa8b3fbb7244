"""`make battery`: which figures no longer hold, on rows of one short training."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # its programs import each other

import measure_rows  # noqa: E402
import rows  # noqa: E402

CHEAP = 40  # seconds of two cores, machine to itself
ROW = rows.Row(
    "backflip train ppo CartPole-v1 --seeds 2 --env-steps 512",
    commit="0" * 40,
    seeds=[0, 1],
    **rows.of_scores([20.0, 30.0]),
    bar={"mean": 24.0, "worst": 20.0, "seconds": 5.0},
)


def again(*returns: float) -> rows.Row:
    return replace(ROW, **rows.of_scores(list(returns)))


def test_the_same_returns_hold() -> None:
    assert measure_rows.verdict(ROW, again(20.0, 30.0)) == "same"


@pytest.mark.parametrize(
    ("returns", "start"),
    [
        ((21.0, 31.0), "within tolerance"),
        ((20.0, 400.0), "DIFFERS by more than 63.5"),
        ((19.0, 30.0), "MISSES the bar (worst)"),
        ((20.0, 25.0), "MISSES the bar (mean)"),
    ],
)
def test_other_returns_hold_within_the_tolerance_and_above_the_bar(
    returns: tuple[float, ...], start: str
) -> None:
    found = measure_rows.verdict(ROW, again(*returns))
    assert found.startswith(start)
    assert measure_rows.held(found) == start.startswith("within")


def test_a_bar_that_was_missed_before_is_no_news() -> None:
    before = replace(ROW, bar={"mean": 1000.0})
    assert measure_rows.verdict(before, replace(again(21.0, 30.0), bar=before.bar)).startswith(
        "within"
    )


def test_better_figures_differ_too() -> None:
    assert not measure_rows.held(measure_rows.verdict(ROW, again(500.0, 500.0)))


def test_times_are_not_compared() -> None:
    assert measure_rows.verdict(ROW, replace(again(20.0, 31.0), seconds=1e6)).startswith("within")


def test_cheap_rows_come_first_and_stop_at_the_budget() -> None:
    of = {"a": replace(ROW, seconds=20), "b": replace(ROW, seconds=5), "by-hand": ROW, "c": ROW}
    of["by-hand"] = replace(ROW, seconds=1, by_hand=True)
    assert list(measure_rows.chosen(of, ["*"], 30)) == ["b", "a"]
    assert list(measure_rows.chosen(of, ["a", "c"], float("inf"))) == ["a", "c"]


@pytest.mark.slow
def test_the_battery_measures_a_row_writes_it_and_sees_a_change(tmp_path: Path) -> None:
    file = tmp_path / "short.json"
    file.write_text(json.dumps({"command": ROW.command}))
    first = run_battery(tmp_path)
    assert first.returncode == 0, first.stdout
    assert "new: " in first.stdout
    now = measure_rows.measured(rows.read_rows(tmp_path)["short"])
    rows.write_row("short", replace(now, commit="0" * 40), tmp_path)
    assert "1 of 1 rows hold" in run_battery(tmp_path).stdout
    rows.write_row("short", replace(now, commit="0" * 40, **rows.of_scores([90.0, 91.0])), tmp_path)
    changed = run_battery(tmp_path)
    assert changed.returncode == 1
    assert "FAILS  short" in changed.stdout


def run_battery(folder: Path) -> subprocess.CompletedProcess[str]:
    command: list[Any] = [sys.executable, ROOT / "benchmarks" / "measure_rows.py"]
    return subprocess.run(
        [*command, "--again", "--scores", folder], stdout=subprocess.PIPE, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n, row in rows.read_rows().items() if measure_rows.cost(row) <= CHEAP]
)
def test_a_cheap_figure_of_the_docs_holds(name: str) -> None:
    row = rows.read_rows()[name]
    found = measure_rows.verdict(row, measure_rows.measured(row))
    assert measure_rows.held(found), f"{found}: type make battery"
