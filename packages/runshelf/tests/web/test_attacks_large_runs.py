"""Attacks with runs that are slow to read: other pages stay fast while they are read and shown."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid
from packages.runshelf.tests.web.pages import serving, shown_total, until
from tests.attack_figures import Tried
from tests.server_client import Server

MANY = 100_000


def lines_of(*records: dict[str, object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def large_logs() -> tuple[bytes, ...]:
    return (
        b'{"a\n' * (2**21 // 4),
        b"{}}\n" * (2**21 // 4),
        b"\n\n\xff\xfe\x00\n" * (2**21 // 6),
        lines_of(*({f"m{n}": 1.0, "step": n} for n in range(MANY))),
        lines_of({f"m{n}": 1.0 for n in range(MANY)}),
        lines_of(*({"loss": 1.0, "step": n, "seed": n} for n in range(MANY))),
    )


def large_run(home: Path, number: int, data: bytes) -> None:
    folder = make_run(home, number, records=[{"step": 0, "loss": 1.0}])
    (folder / "metrics-log-2.jsonl").write_bytes(data)


@pytest.mark.attack
@pytest.mark.slow
def test_other_pages_answer_while_large_runs_are_read_and_shown(
    tmp_path: Path, tried: Tried
) -> None:
    """The time is printed, and no limit is checked: it depends on the machine."""
    logs = large_logs()
    for number in range(20):
        records = [{"step": step, "loss": step / 2} for step in range(200)]
        make_run(tmp_path, number, records=records, seeds=[number], group="g")
    with serving(tmp_path) as server:
        others = ["/", "/?show=runs", f"/runs/{ulid(5)}", "/group?name=g"]
        for path in others:
            server.get(path)  # the first time, templates are loaded
        for number, data in enumerate(logs, 100):
            large_run(tmp_path, number, data)
        read, asked = watched(server, others, lambda: shown_total(server) == 20 + len(logs))
        visitors = [
            threading.Thread(target=visit, args=(server, f"/runs/{ulid(100 + number)}"))
            for number in range(len(logs))
        ]
        for visitor in visitors:
            visitor.start()
        shown, more = watched(server, others, lambda: not any(v.is_alive() for v in visitors))
    tried(asked + more, "pages asked for while 6 very large runs were read and shown")
    tried(round(read * 1000), "ms: the slowest of these pages while the runs were read")
    tried(round(shown * 1000), "ms: the slowest of these pages while the runs were shown")


def visit(server: Server, path: str) -> None:
    """Ask for the page of a large run; it may take longer than this client waits."""
    with contextlib.suppress(OSError):
        server.get(path)


def watched(server: Server, paths: list[str], over: Callable[[], bool]) -> tuple[float, int]:
    """Ask for pages until something is over; return the longest time and the number."""
    slowest, asked = 0.0, 0
    while asked < 40 or not over():
        for path in paths:
            began = time.perf_counter()
            assert server.get(path).status == 200
            slowest, asked = max(slowest, time.perf_counter() - began), asked + 1
        time.sleep(0.05)
    return slowest, asked


@pytest.mark.attack
@pytest.mark.slow
def test_pages_of_a_large_run(tmp_path: Path, tried: Tried) -> None:
    """Each page of it answers."""
    make_run(tmp_path, 1, records=[{"step": 1, "loss": 1.0}])
    large_run(tmp_path, 2, lines_of(*({"loss": 1.0, "step": n, "seed": n} for n in range(3_000))))
    large_run(tmp_path, 3, large_logs()[0][: 2**16])
    with serving(tmp_path) as server:
        for number in (2, 3):
            for tab in ("", "/code", "/output", "/files", "/environment"):
                assert server.get(f"/runs/{ulid(number)}{tab}").status == 200
            assert server.get(f"/report?run={ulid(number)}").status == 200
        text = server.get(f"/runs/{ulid(2)}").body.decode()
        assert "at most 1000 seeds of a run are drawn" in text
        until(lambda: server.get("/?show=groups").status == 200)
    tried(12, "pages of runs with thousands of seeds and broken lines")
