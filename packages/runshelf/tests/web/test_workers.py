"""The processes that read folders and large runs for the server: frozen, killed, and too large."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid, write_lines
from packages.runshelf.tests.web.pages import serving, shown_total, start, until
from tests.asgi_client import get
from tests.attack_figures import Tried
from tests.coroutines import finished
from tests.server_client import Response

from runshelf.errors import UserFacingError
from runshelf.index.run_index import open_index
from runshelf.web.app import Pages
from runshelf.web.reader import Reader
from runshelf.web.serving.large_runs import LARGE_BYTES, are_large, parsed_bytes
from runshelf.web.serving.worker_process import WorkerProcess
from runshelf.web.subjects import outlines_of, with_parents

LARGE, SMALL = f"/runs/{ulid(2)}", f"/runs/{ulid(1)}"
OTHERS = ("/", "/?show=runs", SMALL, f"{SMALL}/files", "/group?name=g", f"/chart?run={ulid(1)}")
INDEX_WORKER, PAGE_WORKER = "runshelf.web.serving.index_worker", "runshelf.web.serving.page_worker"


def a_home(folder: Path) -> Path:
    """Return a home with a small run, and a large one."""
    records = [{"step": n, "loss": n / 2} for n in range(20)]
    make_run(folder, 1, records=records, group="g", seeds=[1])
    large = make_run(folder, 2, records=records, group="large", seeds=[2])
    (large / "summary.json").write_bytes(bytes(LARGE_BYTES))  # damaged: read quickly
    return folder


def workers_of(home: Path, program: str) -> list[int]:
    """Return the processes that run a program for a home."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if program.encode() in words and os.fsencode(home) in words:
                found.append(int(folder.name))
    return found


def without_marks(html: bytes) -> str:
    """Return a page without what two servers of a home never share."""
    return re.sub(r"/static/[^/]+/", "/static/", html.decode())


@pytest.mark.slow
def test_a_large_run_has_the_same_pages_from_its_own_process(tmp_path: Path) -> None:
    home = a_home(tmp_path)
    pages = [f"{LARGE}{tab}" for tab in ("", "/code", "/output", "/files", "/environment")]
    pages += [f"/chart?run={ulid(2)}&metric=loss", f"/report?run={ulid(2)}", "/group?name=large"]
    pages += [f"/compare?run={ulid(1)}&run={ulid(2)}", f"/chart?run={ulid(2)}&metric=%E9%ff"]

    async def made_here() -> list[tuple[int, bytes]]:
        reader = await Reader.open(home)
        app = Pages(reader).app()
        found = [await get(app, page) for page in pages]
        await reader.close()
        return [(one.status, one.body) for one in found]

    with serving(home) as server:
        assert not workers_of(home, PAGE_WORKER)
        served = [server.get(page) for page in pages]
        assert len(workers_of(home, PAGE_WORKER)) == 1
    for page, here, there in zip(pages, finished(made_here()), served, strict=True):
        assert here[0] == there.status, page
        assert without_marks(here[1]) == without_marks(there.body), page


@pytest.mark.attack
@pytest.mark.slow
def test_other_pages_answer_while_a_large_run_never_ends(tmp_path: Path, tried: Tried) -> None:
    """The process of large runs is frozen, then killed: its page says so, the next one works."""
    home = a_home(tmp_path)
    waiting: list[Response] = []
    with serving(home) as server:
        whole = server.get(LARGE)
        (worker,) = workers_of(home, PAGE_WORKER)
        os.kill(worker, signal.SIGSTOP)
        visitor = threading.Thread(target=lambda: waiting.append(server.get(LARGE)))
        visitor.start()
        for _ in range(5):
            for page in OTHERS:
                assert server.get(page).status == 200, page
        assert not waiting
        os.kill(worker, signal.SIGKILL)
        visitor.join()
        assert waiting[0].status == 503
        assert "the process that shows large runs ended: try again" in waiting[0].body.decode()
        assert server.get(LARGE).body == whole.body
    tried(5 * len(OTHERS), "pages asked for while the process that shows large runs was frozen")


@pytest.mark.attack
@pytest.mark.slow
def test_pages_answer_while_reading_folders_never_ends(tmp_path: Path, tried: Tried) -> None:
    """The process that reads folders is frozen, then killed: a new one reads what is new."""
    home = a_home(tmp_path)
    server = start(home)
    try:
        (worker,) = until(lambda: workers_of(home, INDEX_WORKER))
        os.kill(worker, signal.SIGSTOP)
        make_run(home, 3, records=[{"step": 1, "loss": 1.0}])
        for _ in range(5):
            for page in (*OTHERS, LARGE):
                assert server.get(page).status == 200, page
        os.kill(worker, signal.SIGKILL)
        until(lambda: shown_total(server) == 3)
        assert workers_of(home, INDEX_WORKER) != [worker]
    finally:
        server.process.terminate()
        _, errors = server.process.communicate(timeout=20)
    assert errors.splitlines() == [
        "runshelf: the process that reads run folders ended: try again in a moment"
    ]
    tried(5 * (len(OTHERS) + 1), "pages asked for while the process that reads folders was frozen")


@pytest.mark.medium
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        *(pytest.param(how, marks=pytest.mark.slow) for how in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_the_processes_end_with_the_server(tmp_path: Path, how: signal.Signals) -> None:
    home = a_home(tmp_path)
    server = start(home)
    assert server.get(LARGE).status == 200
    assert [len(workers_of(home, each)) for each in (INDEX_WORKER, PAGE_WORKER)] == [1, 1]
    server.process.send_signal(how)
    _, errors = server.process.communicate(timeout=20)
    assert "Traceback" not in errors
    until(lambda: not workers_of(home, INDEX_WORKER) + workers_of(home, PAGE_WORKER))


@pytest.mark.medium
def test_a_process_says_nothing_if_the_server_is_killed_before_its_answer(tmp_path: Path) -> None:
    """Its pipe for answers closes before the one for requests."""
    command = [sys.executable, "-P", "-m", INDEX_WORKER, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == b""


def test_what_is_large(tmp_path: Path) -> None:
    """All that a page parses counts: lines, columns and JSON; of the run that it repeats, too."""
    files = {
        "lines": "metrics-a.jsonl",
        "summary": "summary.json",
        "output": "output.log",
        "weights": "policy.npz",
    }
    for number, (name, file) in enumerate(files.items()):
        folder = make_run(tmp_path, number, name=name)
        (folder / file).touch()
        os.truncate(folder / file, LARGE_BYTES)
    linked = make_run(tmp_path, 20, name="linked")
    (linked / "metrics-a.jsonl").symlink_to(tmp_path / "runs" / ulid(0) / "metrics-a.jsonl")
    make_run(tmp_path, 21, name="repeat", parent=ulid(0))
    columns = make_run(tmp_path, 22) / "metrics-a.npz"  # damaged: not in the index
    columns.write_bytes(bytes(LARGE_BYTES))
    assert parsed_bytes(columns.parent) > LARGE_BYTES
    assert parsed_bytes(linked) < LARGE_BYTES
    for number in (30, 31):
        half = make_run(tmp_path, number, name=f"half {number}", group="two halves")
        (half / "metrics-a.jsonl").touch()
        os.truncate(half / "metrics-a.jsonl", LARGE_BYTES // 2)
    with open_index(tmp_path) as index:
        index.refresh()
        rows = index.runs(limit=100).rows
        alone = {row.name: outlines_of(index, [("run", row.ulid)]) for row in rows}
        large = {name for name, found in alone.items() if are_large(found)}
        assert large == {"lines", "summary"}
        assert are_large(with_parents(index, alone["repeat"]))
        assert are_large(outlines_of(index, [("group", "two halves")]))


@pytest.mark.medium
def test_the_index_keeps_the_first_seeds_of_a_run(tmp_path: Path) -> None:
    """Pages with such a run stay fast. Its chart draws as many seeds."""
    folder = make_run(tmp_path, 1)
    write_lines(folder / "metrics-log-1.jsonl", [{"loss": 1.0, "seed": n} for n in range(1_500)])
    with open_index(tmp_path) as index:
        index.refresh()
        assert index.runs().rows[0].seeds == list(range(1_000))
        assert index.path is not None
        with contextlib.closing(sqlite3.connect(index.path)) as database:
            stored = database.execute("SELECT seed FROM seed_summaries ORDER BY seed").fetchall()
    assert stored == [(seed,) for seed in range(1_000)]


def asked(program: str, home: Path, seconds: float) -> str:
    """Return the error of a request to a process."""

    async def ask() -> str:
        worker = WorkerProcess(program, home, "that is tested", seconds)
        try:
            await worker.ask({})
        except UserFacingError as error:
            return str(error)
        finally:
            await worker.close()
        return ""

    return finished(ask())


@pytest.mark.medium
def test_a_process_that_ends_or_hangs_is_an_error(tmp_path: Path) -> None:
    assert "that is tested ended: try again" in asked("json.tool", tmp_path / "no such file", 60.0)
    os.mkfifo(tmp_path / "pipe")
    assert "took longer than 1 s" in asked("json.tool", tmp_path / "pipe", 1.0)


def test_a_request_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    """Also an error, and what is printed meanwhile: the next request is answered."""
    program = """
from runshelf.web.serving.worker_loop import Answer, answer_requests
def handle(request, say):
    print("not an answer", flush=True)
    say("begun")
    if "bytes" in request:
        bytearray(request["bytes"])
    return Answer({"made": 1 / request["by"]}, b"body")
answer_requests(handle)
"""
    requests = [b'{"by": 1, "bytes": 9000000000}', b'{"by": 0}', b'{"by": 2}']
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n".join([*requests, b""]))
    process.stdin.flush()
    lines = [json.loads(process.stdout.readline()) for _ in range(2 * len(requests))]
    body = process.stdout.read(4)
    _, errors = process.communicate(timeout=20)
    assert lines[::2] == [{"said": "begun"}] * 3
    assert lines[1::2] == [
        {"refused": "it takes more than 4 GiB of memory", "bytes": 0},
        {"failed": "ZeroDivisionError: division by zero", "bytes": 0},
        {"made": 0.5, "bytes": 4},
    ]
    assert body == b"body"
    assert errors == b"not an answer\n" * 3
