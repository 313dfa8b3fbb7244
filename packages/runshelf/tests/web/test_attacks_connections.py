"""Attacks with many and slow connections: the pages keep answering, and little is printed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from packages.runshelf.tests.web.pages import serving, start, until
from tests.attack_figures import Tried
from tests.connection_attacks import (
    ATTACKS,
    Attack,
    descriptors,
    drops_all,
    idle,
    open_descriptors,
    unread_streams,
    withstands,
)

from runshelf.web.serving.bounded_log import MOST_LINES, PERIOD_SECONDS, BoundedLog
from runshelf.web.serving.connections import Connections, address_key

STREAMS = unread_streams("/stream")


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.parametrize(
    "attacks",
    [
        pytest.param(ATTACKS[:2], id="heads"),
        pytest.param([*ATTACKS[2:], STREAMS], id="all others", marks=pytest.mark.slow),
    ],
)
def test_pages_answer_while_connections_are_held(
    tmp_path: Path, tried: Tried, attacks: Sequence[Attack]
) -> None:
    with descriptors(4096), serving(tmp_path) as server:
        for attack in attacks:
            tried(withstands(server, attack), "connections held against the pages of all runs")


@pytest.mark.attack
@pytest.mark.slow
def test_few_descriptors_print_nothing(tmp_path: Path, tried: Tried) -> None:
    """The log of asyncio had a page for each connection that found no descriptor."""
    with descriptors(128):
        server = start(tmp_path)
    with descriptors(4096):
        count = sum(withstands(server, idle) for _ in range(5))
    server.process.kill()
    _, errors = server.process.communicate(timeout=20)
    assert errors == ""
    tried(count, "connections held against a server with 128 descriptors")


@pytest.mark.attack
@pytest.mark.slow
def test_slow_clients_are_dropped(tmp_path: Path, tried: Tried) -> None:
    with descriptors(4096), serving(tmp_path) as server:
        tried(drops_all(server, *ATTACKS), "slow connections that a server dropped itself")


@pytest.mark.slow
@pytest.mark.attack
def test_connections_of_clients_that_left_are_closed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        before = open_descriptors(server)
        withstands(server, STREAMS)
        until(lambda: open_descriptors(server) <= before)


class Waiting:
    """A connection, as `Connections` uses it."""

    is_waiting = True

    def __init__(self, address: str, since: float) -> None:
        self.address, self.since, self.dropped = address, since, False

    def is_late(self, now: float) -> bool:
        """Return false: it may wait for ever."""
        return False

    def drop(self) -> None:
        """Note that it was dropped."""
        self.dropped = True


def held(known: Connections, *connections: Waiting) -> None:
    for connection in connections:
        known.add(connection)


def test_the_client_with_most_connections_loses_one() -> None:
    known = Connections(4, 10)
    many = [Waiting("10.0.0.1", since) for since in (3.0, 2.0, 4.0)]
    other = Waiting("10.0.0.2", 1.0)
    held(known, *many, other)
    assert known.has_room("10.0.0.3")
    assert [one.dropped for one in (*many, other)] == [False, True, False, False]


def test_a_client_beyond_its_share_loses_its_own_connection() -> None:
    known = Connections(10, 2)
    own, other = [Waiting("10.0.0.1", 5.0), Waiting("10.0.0.1", 6.0)], Waiting("10.0.0.2", 1.0)
    held(known, *own, other)
    assert known.has_room("10.0.0.1")
    assert [one.dropped for one in (*own, other)] == [True, False, False]


def test_connections_in_use_are_not_dropped() -> None:
    known = Connections(2, 2)
    busy = [Waiting("10.0.0.1", 1.0), Waiting("10.0.0.2", 2.0)]
    for one in busy:
        one.is_waiting = False
    held(known, *busy)
    assert not known.has_room("10.0.0.3")
    assert not any(one.dropped for one in busy)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8::5:6:7:8", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("", ""),
    ],
)
def test_clients_of_one_network_of_ipv6_count_as_one(address: str, key: str) -> None:
    assert address_key(address) == key


def lines_of(clock: Callable[[], float], messages: int) -> tuple[BoundedLog, list[str]]:
    written: list[str] = []
    log = BoundedLog(written.append, clock)
    for number in range(messages):
        log.line(f"error {number}")
    return log, written


@pytest.mark.attack
def test_a_log_is_bounded_and_says_what_it_left_out(tried: Tried) -> None:
    now = 0.0
    log, written = lines_of(lambda: now, 100_000)
    assert len(written) == MOST_LINES
    now = PERIOD_SECONDS
    log.line("a\x1b[2J\nb" + "x" * 10_000)
    assert written[MOST_LINES] == "runshelf.web: 99980 more messages like these\n"
    assert written[-1].startswith(r"a\x1b[2J bx")
    assert len(written[-1]) < 600
    tried(100_000, "messages to a server's log")
