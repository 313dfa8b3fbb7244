"""Settings are checked by the annotations of their dataclass, by name, type and bounds."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from backflip.core.settings import (
    Bounds,
    Count,
    Fraction,
    Names,
    Widths,
    name_problems,
    resolve,
    settings_of,
)
from runshelf.errors import UsageError


@dataclass(frozen=True)
class Example:
    """One setting of every kind."""

    epochs: Count = 4
    gae_lambda: Fraction = 0.95
    tau: Annotated[float, Bounds(0, 1, above=True)] = 0.005
    hidden: Widths = (64, 64)
    loss: Literal["huber", "squared"] = "huber"
    double: bool = True
    model: str = "linear"
    phases: int = 20


NAMES = Names(
    renamed={"decay": "gae_lambda", "warm_up": "learning_starts"},
    aliases={"lam": ("td_lambda", "gae_lambda"), "lr": ("learning_rate",)},
)


def test_a_setting_is_read_from_its_annotation() -> None:
    settings = settings_of(Example)
    assert [*settings] == [
        "epochs", "gae_lambda", "tau", "hidden", "loss", "double", "model", "phases",
    ]  # fmt: skip
    assert settings["tau"].bounds == Bounds(0, 1, above=True)
    assert settings["hidden"].kind is tuple
    assert settings["loss"].choices == ("huber", "squared")
    assert settings["phases"].bounds is None


@pytest.mark.parametrize(
    ("name", "given", "resolved"),
    [
        ("epochs", np.int64(3), 3),
        ("gae_lambda", 1, 1.0),
        ("gae_lambda", np.float32(0.5), 0.5),
        ("hidden", 32, (32,)),
        ("hidden", [8, 4], (8, 4)),
        ("hidden", "none", ()),
        ("loss", "squared", "squared"),
        ("double", False, False),
        ("model", "module:Class", "module:Class"),
        ("phases", -1, -1),
    ],
)
def test_a_valid_value_has_the_type_of_its_field(name: str, given: Any, resolved: Any) -> None:
    found = getattr(resolve(Example, {name: given}), name)
    assert found == resolved
    assert type(found) is type(resolved)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"epochs": 0}, "`epochs` must lie between 1 and 2,000,000,000, got 0"),
        ({"epochs": 1.5}, "`epochs` must be a whole number, got 1.5"),
        ({"epochs": True}, "`epochs` must be a whole number, got True"),
        ({"gae_lambda": "big"}, "`gae_lambda` must be a finite number, got 'big'"),
        ({"gae_lambda": math.nan}, "`gae_lambda` must be a finite number, got nan"),
        ({"gae_lambda": False}, "`gae_lambda` must be a finite number, got False"),
        ({"gae_lambda": 10**400}, "`gae_lambda` must be a finite number, got 1000"),
        ({"tau": 0.0}, "`tau` must be above 0 and at most 1, got 0.0"),
        (
            {"hidden": (0,)},
            "`hidden` must be whole numbers, at least 1 and at most 65,536, or",
        ),
        ({"hidden": "wide"}, "`hidden` must be whole numbers"),
        ({"hidden": (True,)}, "`hidden` must be whole numbers"),
        ({"loss": "l1"}, "`loss` must be huber or squared, got 'l1'"),
        ({"double": 1}, "`double` must be true or false, got 1"),
        ({"model": 1}, "`model` must be text, got 1"),
        ({"epoch": 1}, "unknown settings `epoch`, did you mean `epochs`? (known: epochs, gae_"),
        ({"lam": 0.9}, "unknown settings `lam`, did you mean `gae_lambda`? (known: "),
        ({"decay": 0.9}, "`decay` is now called `gae_lambda`; try --set gae_lambda=0.9"),
        ({"warm_up": 5}, "unknown settings `warm_up` (known: "),
    ],
)
def test_an_invalid_value_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve(Example, values, NAMES)
    assert str(refused.value).startswith(f"settings: {said}")


def test_all_problems_are_in_one_message() -> None:
    values = {"decay": 0.9, "foo": 1, "double": 1, "tau": 2.0}
    with pytest.raises(UsageError) as refused:
        resolve(Example, values, NAMES)
    for said in ("`decay` is now", "unknown settings `foo`", "`double` must be", "`tau` must be"):
        assert said in str(refused.value)


def test_a_renamed_setting_is_suggested_as_a_user_types_it() -> None:
    names = Names(renamed={"a": "x", "b": "y", "c": "z"})
    problems = name_problems({"a": (64, 32), "b": True, "c": ()}, ("x", "y", "z"), names)
    assert [problem.rpartition(" ")[2] for problem in problems] == ["x=64,32", "y=true", "z=none"]


def test_an_annotation_that_cannot_be_checked_is_an_error() -> None:
    @dataclass(frozen=True)
    class Wrong:
        many: dict[str, int] | None = None

    with pytest.raises(TypeError, match="setting `many` has the annotation"):
        settings_of(Wrong)


@pytest.mark.parametrize(
    ("bounds", "holds", "refuses", "words"),
    [
        (Bounds(1), (1, 10**30), (0, -5), "be at least 1"),
        (Bounds(0, above=True), (1e-9, 5.0), (0.0, -1.0), "be above 0"),
        (Bounds(0, 1), (0, 0.5, 1), (-0.1, 1.1), "lie between 0 and 1"),
        (Bounds(0, 1, above=True), (0.005, 1), (0, 1.5), "be above 0 and at most 1"),
        (Bounds(1, 2_000), (1, 2_000), (0, 2_001), "lie between 1 and 2,000"),
        (Bounds(-1e30, 1e30), (-1e30, 0, 1e30), (-2e30, 2e30), "lie between -1e+30 and 1e+30"),
    ],
)
def test_bounds_by_hand(bounds: Bounds, holds: Any, refuses: Any, words: str) -> None:
    assert all(map(bounds.holds, holds))
    assert not any(map(bounds.holds, refuses))
    assert str(bounds) == words
