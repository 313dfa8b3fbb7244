"""The server's process: where it listens, what it remembers, how it ends; errors are one line."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    add_pairs,
    serving,
    set_status,
    start,
)

from runshelf.index.location import cache_folder


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "backflip.labelling.page", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def one_line(result: "subprocess.CompletedProcess[str]") -> str:
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


@pytest.mark.slow
def test_taken_port_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(str(folder), "--port", str(port))
    assert result.returncode == 2
    assert f"port {port} is taken" in one_line(result)
    assert f"--port {port + 1}" in result.stderr


@pytest.mark.medium
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "no such host"], "`no such host` is not an address"),
        pytest.param(
            ["--host", "192.0.2.1", "--port", "0"],
            "cannot listen at `192.0.2.1`",
            marks=pytest.mark.slow,
        ),
        pytest.param(["--overlap", "2"], "`overlap` is 2.0", marks=pytest.mark.slow),
    ],
)
def test_invalid_options_are_a_one_line_error(folder: Path, options: list[str], words: str) -> None:
    result = run(str(folder), *options)
    assert (result.returncode, words in one_line(result)) == (2, True), result.stderr


@pytest.mark.slow
def test_missing_folder_is_named(tmp_path: Path) -> None:
    result = run(str(tmp_path / "nowhere"))
    assert (result.returncode, "nowhere" in one_line(result)) == (2, True)


@pytest.mark.medium
def test_damaged_labels_are_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "labels.sqlite").write_bytes(b"not a label file at all" * 100)
    result = run(str(tmp_path), "--port", "0")
    assert (result.returncode, "is damaged" in one_line(result)) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "port", ["x", *(pytest.param(port, marks=pytest.mark.slow) for port in ("65536", "-1", "٣"))]
)
def test_invalid_port_is_refused(folder: Path, port: str) -> None:
    result = run(str(folder), "--port", port)
    assert result.returncode == 2
    assert "is not a port" in result.stderr or "expected one argument" in result.stderr


@pytest.mark.medium
def test_restarted_server_keeps_address_and_token(folder: Path) -> None:
    """The same address and the same tokens, at once, though a client was connected."""
    first = start(folder, "--port", "0")
    with socket.create_connection(("127.0.0.1", first.port)):
        (query, *_) = (pair["query"] for pair in first.take())
        first.kill()
    with serving(folder, "--who", "me") as second:
        assert second.address == first.address
        second.token = first.token
        assert second.answer(query).status == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "kept",
    [
        '{"port": 0, "secret": "ab"}',
        *(pytest.param(kept, marks=pytest.mark.slow) for kept in ("", "{}", '["port"]')),
    ],
)
def test_damaged_page_file_is_replaced(folder: Path, kept: str) -> None:
    path = cache_folder(folder) / "page.json"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(kept)
    with serving(folder, "--host", "127.0.0.1") as server:
        told = json.loads(path.read_text())
    assert told["port"] == server.port
    assert server.port >= 8765
    assert len(bytes.fromhex(told["secret"])) == 32


@pytest.mark.slow
def test_secrets_differ_between_runs(tmp_path: Path) -> None:
    secrets = set[str]()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with serving(tmp_path / name):
            secrets.add(
                json.loads((cache_folder(tmp_path / name) / "page.json").read_text())["secret"]
            )
    assert len(secrets) == 2


@pytest.mark.medium
def test_server_ends_with_its_parent_after_the_last_state(folder: Path) -> None:
    """Pages show a trainer that has exited as stopped, after any last status."""
    set_status(folder, "learning")
    server = start(folder, "--port", "0", "--parent", stdin=subprocess.PIPE)
    with server.events() as states:
        assert next(states)["status"]["doing"] == "learning"
        server.orphan()
        assert next(states)["status"]["doing"] == "stopped"
    _, errors = server.process.communicate(timeout=60)
    assert (server.process.returncode, errors) == (0, "")


@pytest.mark.slow
def test_finished_run_stays_finished_when_the_trainer_ends(folder: Path) -> None:
    set_status(folder, "finished", result="a share of .97 of the optimum")
    server = start(folder, "--port", "0", "--parent", stdin=subprocess.PIPE)
    with server.events() as states:
        next(states)
        server.orphan()
        assert next(states)["status"]["doing"] == "finished"
    server.process.communicate(timeout=60)


@pytest.mark.slow
def test_with_a_parent_ctrl_c_is_ignored(folder: Path) -> None:
    server = start(folder, "--port", "0", "--parent", stdin=subprocess.PIPE)
    os.kill(server.process.pid, 2)
    time.sleep(0.3)
    assert server.get("/api/state").status == 200
    server.process.communicate(timeout=60)


@pytest.mark.slow
def test_without_a_parent_ctrl_c_ends_the_server(folder: Path) -> None:
    server = start(folder, "--port", "0")
    os.kill(server.process.pid, 2)
    _, errors = server.process.communicate(timeout=60)
    assert (server.process.returncode, errors) == (130, "")


@pytest.mark.slow
def test_two_servers_of_one_run_give_different_pairs(tmp_path: Path) -> None:
    """One that its trainer left behind, and the one that came after it."""
    add_pairs(tmp_path, 8)
    set_status(tmp_path)
    with serving(tmp_path) as one, serving(tmp_path, "--port", "0") as other:
        held = [pair["query"] for s, who in ((one, "ann"), (other, "bob")) for pair in s.take(who)]
    assert len(held) == len(set(held)) >= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "host", ["::1", *(pytest.param(host, marks=pytest.mark.slow) for host in ("127.0.0.2", "::"))]
)
def test_printed_address_works(folder: Path, host: str) -> None:
    with serving(folder, "--host", host, "--port", "0") as server:
        parts = urlsplit(server.address)
        path = f"{parts.path}?{parts.query}"
        assert server.request("GET", path, host=parts.hostname or "").status in (200, 303)


@pytest.mark.slow
def test_second_server_does_not_change_the_address(folder: Path) -> None:
    kept = cache_folder(folder) / "page.json"
    with serving(folder, "--port", "0", "--parent"):
        before = kept.read_text()
        with serving(folder, "--port", "0") as second:
            assert second.get("/").status == 200
            assert kept.read_text() == before
