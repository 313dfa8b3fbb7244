"""Five minutes of load on both servers: memory and descriptors stay as they were."""

import contextlib
import http.client
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from packages.backflip.tests.labelling.page.prepared_run import add_pairs, serving, set_status
from packages.runshelf.tests.index.homes import make_run, ulid
from packages.runshelf.tests.web import pages
from tests.attack_figures import Tried
from tests.connection_attacks import (
    Attack,
    garbage,
    half_a_head,
    idle,
    open_descriptors,
    unread,
    unread_streams,
)
from tests.server_client import Server

SECONDS = 300.0
WARM_SECONDS = 60.0  # caches fill
MOST_GROWTH = 24 * 2**20  # bytes of memory after that
FAILED = (OSError, http.client.HTTPException, AssertionError, ValueError, KeyError)
Client = Callable[[random.Random], object]


def visits(server: Server) -> list[Client]:
    """Return what clients do with the pages of all runs."""
    paths = ["/", "/?show=runs", "/group?name=g", "/table.csv", "/report?group=g", "/nowhere"]
    paths += [f"/runs/{ulid(number)}{tab}" for number in range(20) for tab in ("", "/files")]
    streams = unread_streams("/stream")
    return [
        lambda chance: server.get(chance.choice(paths)),
        lambda chance: server.get(f"/?filter=x{chance.random()}"),
        lambda chance: server.get("/", Host=f"evil{chance.random()}"),
        *(leaving(attack, server) for attack in (streams, idle, half_a_head, unread, garbage)),
    ]


def labels(server: Server) -> list[Client]:
    """Return what clients do with the labelling page."""
    streams = unread_streams("/api/events?who=me")

    def label(chance: random.Random) -> None:
        who = f"person {chance.randrange(30)}"
        for pair in server.take(who)[:1]:
            server.answer(pair["query"], who=who)
            server.post("/api/undo", {"who": who, "attempt": f"undo-{chance.random()}"})

    return [
        label,
        label,
        lambda chance: server.get("/"),
        lambda chance: server.post("/api/answer", {"query": chance.random()}),
        *(leaving(attack, server) for attack in (streams, idle, garbage)),
    ]


def leaving(attack: Attack, server: Server) -> Client:
    """Return a client that opens many connections, and then leaves."""

    def leave(chance: random.Random) -> None:
        for connection in attack(server):
            connection.close()

    return leave


class Load:
    """Clients that use servers until told to stop; they count what they did."""

    def __init__(self, clients: list[Client]) -> None:
        self.done, self._over = 0, threading.Event()
        self._threads = [
            threading.Thread(target=self._use, args=(client, random.Random(seed)))
            for seed, client in enumerate(clients)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _use(self, client: Client, chance: random.Random) -> None:
        while not self._over.wait(0.05):
            with contextlib.suppress(*FAILED):  # refused, since others hold all connections
                client(chance)
                self.done += 1


def memory(server: Server) -> int:
    return psutil.Process(server.process.pid).memory_info().rss


@pytest.mark.attack
@pytest.mark.slow
def test_load_leaves_memory_and_descriptors_flat(tmp_path: Path, tried: Tried) -> None:
    home, run = tmp_path / "home", tmp_path / "run"
    for number in range(20):
        records = [{"step": step, "loss": step / 2} for step in range(500)]
        make_run(home, number, records=records, seeds=[number], group="g")
    run.mkdir()
    set_status(run)
    add_pairs(run, 40)
    with pages.serving(home) as archive, serving(run) as page:
        servers = (archive, page)
        before = [open_descriptors(server) for server in servers]
        with Load([*visits(archive), *labels(page)]) as load:
            time.sleep(WARM_SECONDS)
            warm = [memory(server) for server in servers]
            time.sleep(SECONDS - WARM_SECONDS)
            hot = [memory(server) for server in servers]
        pages.until(
            lambda: all(
                open_descriptors(server) <= count + 2
                for server, count in zip(servers, before, strict=True)
            ),
            200.0,
        )
        for server in servers:
            assert server.get("/").status == 200
    growth = [after - first for after, first in zip(hot, warm, strict=True)]
    assert max(growth) < MOST_GROWTH, growth
    tried(load.done, "requests and bursts of connections in five minutes of load")
    tried(
        max(0, max(growth)) // 1024, "KiB of memory that a server gained from them after a minute"
    )
