"""Kills of the labelling page and of the trainer at random moments; see `tests.random_kills`."""

import pytest
from tests.random_kills import PIECES, attack


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("part", ["page", "trainer"])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path, part, piece, tried):
    figures = attack("packages.backflip.tests.labelling.random_kills", part, piece, tmp_path)
    assert (figures.lost, figures.doubled) == (0, 0)
    assert figures.acknowledged > figures.kills // 10
    tried(figures.kills, f"kills of the {part}")
    tried(figures.acknowledged, "labels that were acknowledged before a kill")
