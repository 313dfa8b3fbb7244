"""Attacks with many and slow connections on the labelling page."""

from pathlib import Path

import pytest
from packages.backflip.tests.labelling.page.prepared_run import add_pairs, serving
from tests.attack_figures import Tried
from tests.connection_attacks import (
    ATTACKS,
    descriptors,
    drops_all,
    unread_streams,
    withstands,
)

STREAMS = unread_streams("/api/events?who=me")


@pytest.mark.attack
@pytest.mark.slow
def test_the_page_answers_while_connections_are_held(folder: Path, tried: Tried) -> None:
    with descriptors(4096), serving(folder) as server:
        for number, attack in enumerate((*ATTACKS, STREAMS)):
            tried(withstands(server, attack), "connections held against the labelling page")
            (pair, *_) = server.take(f"person {number}")
            assert server.answer(pair["query"], who=f"person {number}").status == 200


@pytest.mark.attack
@pytest.mark.slow
def test_slow_clients_are_dropped(tmp_path: Path, tried: Tried) -> None:
    add_pairs(tmp_path, 2)
    with descriptors(4096), serving(tmp_path) as server:
        tried(drops_all(server, *ATTACKS), "slow connections that a server dropped itself")
