"""Attacks with many and slow connections on the page of a game."""

from pathlib import Path

import pytest
from packages.backflip.tests.inspect.play.playing import playing
from tests.attack_figures import Tried
from tests.connection_attacks import ATTACKS, descriptors, withstands


@pytest.mark.attack
@pytest.mark.slow
def test_the_game_answers_while_connections_are_held(tmp_path: Path, tried: Tried) -> None:
    with descriptors(4096), playing(tmp_path, "dot") as game:
        for attack in ATTACKS:
            tried(withstands(game, attack), "connections held against the page of a game")
