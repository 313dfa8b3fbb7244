"""Equal groups are rarely called different, end to end through files: a small version."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("looks", [1, 3])
def test_of_forty_equal_pairs_few_are_called_different(
    looks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    from false_positives import DISTRIBUTIONS, says  # noqa: PLC0415  (found by the path above)

    draw = DISTRIBUTIONS["lognormal, sigma .8"]
    false = sum(says(draw, pair, 5, looks) for pair in range(40))
    assert false <= 6  # more than 6 of 40 has probability .003 at a rate of .05
