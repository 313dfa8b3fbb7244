"""Kills of programs that log, and of the recorder, at random moments; see `tests.random_kills`."""

import pytest
from tests.random_kills import PIECES, attack


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("part", ["log", "recorder"])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path, part, piece, tried):
    figures = attack("packages.runshelf.tests.random_kills", part, piece, tmp_path)
    assert (figures.lost, figures.doubled) == (0, 0)
    assert figures.acknowledged > figures.kills
    tried(figures.kills, f"kills of the {part}")
    tried(figures.acknowledged, "values and lines that were acknowledged before a kill")
