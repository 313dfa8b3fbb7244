"""The rows of `benchmarks/teach.py`: command lines, references, bars, the picture."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from runshelf.errors import UsageError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # its programs import each other

import backflips  # noqa: E402
import figures  # noqa: E402
import measure_rows  # noqa: E402
import rows  # noqa: E402
import taught_picture  # noqa: E402
import teach  # noqa: E402
import teach_rows  # noqa: E402

PLANNED: dict[str, Any] = teach_rows.planned()
ENVS = sorted({teach_rows.parsed(row.command).env for row in PLANNED.values()})
QUICK = ("dot", "Pendulum-v1", "MinAtar/Breakout-v1")


@pytest.mark.medium
@pytest.mark.parametrize(
    "env", [pytest.param(env, marks=() if env in QUICK else pytest.mark.slow) for env in ENVS]
)
def test_every_command_line_is_accepted_and_its_reference_is_the_same_learner(env: str) -> None:
    """Nothing is learned: the environment is made, and all settings are resolved."""
    references: dict[str, str] = {}
    for name, row in PLANNED.items():
        if teach_rows.parsed(row.command).env != env:
            continue
        settings = teach_rows.resolved(row.command)
        full = teach_rows.reference(row)
        if full is None:
            continue
        assert teach_rows.resolved(full.command) == settings, name
        taught, own = (teach_rows.parsed(one.command) for one in (row, full))
        for of in ("env", "env_arg", "algorithm", "seeds", "first_seed"):
            assert getattr(own, of) == getattr(taught, of), name
        assert references.setdefault(row.against, full.command) == full.command


def test_a_command_line_that_does_not_fit_is_noticed() -> None:
    with pytest.raises(UsageError, match="gaol"):
        teach_rows.resolved("backflip teach dot --labels 10 --env-arg gaol=1,2")
    with pytest.raises(UsageError, match="labells"):
        teach_rows.resolved("backflip teach dot --labels 10 --set labells=3")


def test_a_row_that_was_measured_has_the_command_and_the_bar_of_its_plan() -> None:
    for name, row in rows.read_rows().items():
        if name in PLANNED:
            plan = PLANNED[name]
            kept = (row.command, row.bar, row.against, row.unit, row.folder)
            assert kept == (plan.command, plan.bar, plan.against, plan.unit, plan.folder), name


def of(*returns: float, **more: Any) -> rows.Row:
    return replace(rows.Row("backflip teach dot"), **rows.of_scores(list(returns)), **more)


def test_a_share_is_the_way_from_random_actions_to_the_reference() -> None:
    """-10 at random and -4 with the true reward: a mean of -5 is 5 / 6 of the way."""
    row = of(-4.0, -6.0, full=-4.0, floor=-10.0, against="own", bar={"share": 0.8})
    assert row.share == pytest.approx(5 / 6)
    assert row.missed == []
    assert replace(row, bar={"share": 0.9}).missed == ["share"]
    assert replace(row, full=None).missed == ["share"]
    assert "83% of `own`" in measure_rows.verdict(rows.Row(row.command), row)
    assert figures.bar(row) == "80% of `own`"


def test_a_share_has_the_errors_of_both_rows() -> None:
    """Margins of 3 and of 4 · 1.5 over a distance of 10: √(9 + 36) / 10."""
    row = rows.Row("", mean=5.0, margin=3.0, full=0.0, full_margin=4.0, floor=-10.0)
    assert row.share == 1.5
    assert row.share_margin == pytest.approx(0.67082, abs=1e-5)
    assert figures.share(row) == " (150% ± 67%)"
    assert figures.share(replace(row, full_margin=None)) == " (150%)"
    assert figures.share(replace(row, mean=-10.01, full_margin=None)) == " (0%)"


def test_the_margin_of_the_other_row_is_read_and_not_written(tmp_path: Path) -> None:
    rows.write_row("own", of(-3.0, -5.0), tmp_path)
    rows.write_row("taught", of(-4.0, -6.0, full=-4.0, floor=-10.0, against="own"), tmp_path)
    found = rows.read_rows(tmp_path)
    assert found["taught"].full_margin == found["own"].margin
    assert found["own"].full_margin is None
    rows.write_row("taught", found["taught"], tmp_path)
    assert "full_margin" not in (tmp_path / "taught.json").read_text()


def test_all_but_one_seed_must_reach_a_bar() -> None:
    assert of(5.0, 0.0, 7.0, bar={"all_but_one": 5.0}).missed == []
    assert of(5.0, 0.0, 4.9, bar={"all_but_one": 5.0}).missed == ["all_but_one"]
    assert of(9.0, bar={"all_but_one": 5.0}).missed == ["all_but_one"]


@pytest.mark.parametrize(
    ("angles", "turns"),
    [
        ([0.0, -2.0, -6.2], 0),
        ([0.0, -2.0, -6.3], 1),
        ([0.0, -13.0], 2),
        ([0.0, -3.0, 0.0, -3.0, 0.0, -3.0], 0),  # rocks to and fro
        ([0.0, 6.3, 0.0], 1),  # a turn forward, then one backward
        ([0.0, -6.3, 0.0, -6.3], 2),  # and the other way round
        ([1.0, 2.0, -4.0, -4.4], 1),
    ],
)
def test_complete_backward_turns_by_hand(angles: list[float], turns: int) -> None:
    assert backflips.complete_turns(np.array(angles)) == turns


def test_a_reference_is_measured_first_unless_it_is_known() -> None:
    row = PLANNED["teach-Pendulum-150-wrong"]
    right = PLANNED[row.against]
    name = "teach-Pendulum-150-wrong"
    assert list(teach.with_references({name: row}, {})) == [row.against, name]
    known = {row.against: replace(right, mean=-150.0)}
    assert list(teach.with_references({name: row}, known)) == [name]
    other = {row.against: replace(right, command=f"{right.command} --env-steps 5")}
    assert list(teach.with_references({name: row}, other)) == [row.against, name]
    assert measure_rows.with_full(row, known).full == -150.0


@pytest.mark.medium
def test_the_picture_shows_every_seed_of_every_measured_row_with_a_bar() -> None:
    measured = {
        "a": of(1.0, 2.0, 3.0, bar={"mean": 2.0}),
        "b<": of(-4.0, -6.0, full=-4.0, floor=-10.0, against="own", bar={"share": 0.9}),
        "without a bar": of(1.0),
        "not measured": rows.Row("backflip teach dot", bar={"mean": 1.0}),
    }
    svg = ET.fromstring(taught_picture.taught_svg(measured))
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{space}circle")) == 5
    said = [text.text for text in svg.findall(f"{space}text")]
    assert "b<" in said
    assert "-5 (83%), missed" in said
    assert "2, met" in said
    assert taught_picture.asked_mean(measured["b<"]) == pytest.approx(-4.6)
