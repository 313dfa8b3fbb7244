"""Tests of `runshelf.formatting`."""

import pytest

from runshelf.formatting import ago, brief, number, roughly, short, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (0.0003, "0.0003"),
        (3e-5, "3e−5"),
        (-1234.5678, "−1235"),
        (1234567, "1 234 567"),
        (10**400, "10000... (401 digits)"),
        (float("nan"), "NaN"),
        (float("-inf"), "−∞"),
        (True, "true"),
        (None, ""),
        ("text", "text"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert number(value) == text


def test_sizes_and_times() -> None:
    assert [short(v) for v in (0.0, 20e3, 1.5e6, -0.5, 2e-4)] == (
        ["0", "20 k", "1.5 M", "−0.5", "2e−4"]
    )
    assert [brief(v) for v in (0.12345, 1234.5, 1.5e6)] == ["0.123", "1234", "1.5e6"]
    assert [roughly(s) for s in (10.0, 700.0, 1e4, 4e5)] == (
        ["less than a minute", "about 12 minutes", "about 3 hours", "about 5 days"]
    )
    assert [ago(s) for s in (5.0, 61.0, 7300.0, 9e4)] == (
        ["just now", "1 minute ago", "2 hours ago", "1 day ago"]
    )
    assert [size(n) for n in (None, 12, 1000, 1536, 2**34, 2**50)] == (
        ["", "12 B", "1.0 KiB", "1.5 KiB", "16.0 GiB", "1024.0 TiB"]
    )
