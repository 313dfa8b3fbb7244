"""Durations are formatted by one function."""

import math
from pathlib import Path

import pytest

from runshelf.durations import duration

PACKAGES = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((None, ""), (math.nan, ""), (math.inf, ""), (-3.0, "0 s"), (0.0, "0 s"), (0.04, "0 s")),
        *((1.5, "1.5 s"), (4, "4 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s")),
        *((59.6, "1 min"), (61.0, "1 min 1 s"), (1800, "30 min"), (3599.7, "1 h")),
        *((3700.0, "1 h 1 min"), (7200, "2 h"), (86_399, "23 h 59 min"), (9e4, "1 d 1 h")),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.medium
def test_durations_are_formatted_in_one_place():
    defining = [
        p.name for p in PACKAGES.glob("*/src/**/*.py") if "\ndef duration(seconds" in p.read_text()
    ]
    assert defining == ["durations.py"]
