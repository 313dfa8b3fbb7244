"""Tests of `runshelf.formatting`."""

import numpy as np
import pytest

from runshelf.formatting import ago, brief, number, roughly, short, shortened, size


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


def test_names_are_cut_where_they_are_alike_and_not_where_they_differ() -> None:
    names = [f"ppo CartPole-v1 hidden=64,64 learning_rate={rate} seed=0" for rate in (0.001, 0.01)]
    assert shortened(names, 60) == names
    assert shortened(names, 28) == ["…=64,64 learning_rate=0.001…", "…=64,64 learning_rate=0.01…"]
    assert shortened(["logs/a/run_1", "logs/b/run_1"], 10) == ["logs/a/…", "logs/b/…"]
    assert shortened(["x" * 9, "ab" * 9], 7) == ["xxx…xxx", "aba…bab"]
    assert shortened([f"{'a' * 20}{n}{'b' * 20}" for n in (1, 2, 1)], 9) == (
        ["…aaaaaa1…", "…aaaaaa2…", "…aaaaaa1…"]
    )
    assert shortened([], 9) == []


@pytest.mark.medium
def test_shortened_names_fit_and_stay_different() -> None:
    random = np.random.default_rng(0)
    for _ in range(500):
        lengths = random.integers(0, 40, random.integers(1, 12))
        names = ["".join(random.choice(list("ab _…·1"), n)) for n in lengths]
        most = int(random.integers(8, 30))
        found = shortened(names, most)
        assert max(map(len, found)) <= most
        assert len({*found}) == len({*names})
