"""Tests of the JSON interface of the labelling page, with a real server process.

A refusal has a 4xx status and a sentence, writes nothing, and the server continues.
"""

import json
import socket
import sqlite3
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    Server,
    add_pairs,
    opinion_of,
    serving,
    set_status,
)
from tests.attack_figures import Tried
from tests.server_client import Response

from backflip.preferences.films import FILMS
from backflip.preferences.labels import LabelStore
from runshelf.web.serving.guard import LARGEST_BODY

WORDS = 8  # minimum length of a sentence


@pytest.fixture(scope="module")
def standing(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[Server, Path], None, None]:
    """A server for all refusals: pair 1 is answered, 2 is held by Ann, 3 to 6 by me."""
    folder = tmp_path_factory.mktemp("run")
    set_status(folder)
    add_pairs(folder, 12)
    with serving(folder) as server:
        assert [pair["query"] for pair in server.take("me")] == [1, 2, 3, 4]
        assert server.answer(1, attempt="given before").status == 200
        with (
            LabelStore.open(folder / "labels.sqlite") as store,
            store.file.transaction() as records,
        ):
            records.execute("INSERT INTO takes (query, who, at) VALUES (2, 'ann', 1e12)")
        yield server, folder


def contents(folder: Path) -> dict[str, list[Any]]:
    """Everything in the label file."""
    with sqlite3.connect(f"file:{folder}/labels.sqlite?mode=ro", uri=True) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
    connection.close()
    return found


def answer_with(**changes: Any) -> Callable[[Server], Response]:
    fields = {"query": 3, "answer": "left", "who": "me", "seconds": 1.0, "attempt": "attempt-1"}
    fields |= changes
    fields = {name: value for name, value in fields.items() if value is not ...}
    return lambda server: server.post("/api/answer", fields)


def posted(path: str, **fields: Any) -> Callable[[Server], Response]:
    return lambda server: server.post(path, fields)


def raw_body(body: bytes) -> Callable[[Server], Response]:
    def send(server: Server) -> Response:
        server.get("/")
        headers = {"Content_Type": "application/json", "X_Token": token_of(server)}
        return server.request("POST", "/api/answer", body, **headers)

    return send


def with_headers(**headers: str) -> Callable[[Server], Response]:
    fields = {"query": 3, "answer": "left", "who": "me", "seconds": 1.0, "attempt": "attempt-1"}
    return lambda server: server.post("/api/answer", fields, **headers)


def getting(path: str, **headers: str) -> Callable[[Server], Response]:
    return lambda server: server.get(path, **headers)


def token_of(server: Server) -> str:
    return server.get("/").body.decode().split('name="token" content="')[1].split('"')[0]


REFUSALS = {
    "unknown query": (answer_with(query=999), 404, "no prompt 999"),
    "negative query": (answer_with(query=-1), 404, "no prompt -1"),
    "answered twice": (answer_with(query=1), 409, "was answered by me"),
    "somebody else's": (answer_with(query=2), 403, "ann has it"),
    "taken by nobody": (answer_with(query=9), 403, "take it first"),
    "by another name": (answer_with(who="bob"), 403, "me has it"),
    "not one of the four": (answer_with(answer="up"), 422, "`up` is not an answer"),
    "markup as answer": (answer_with(answer="<b>left</b>"), 422, "is not an answer"),
    "answer of no type": (answer_with(answer=None), 422, "`answer` must be text or a list"),
    "answer as a list": (answer_with(answer=["left"]), 422, "is not an answer"),
    "marks of a comparison": (posted("/api/mark", who="me", query=3, marks=[0]), 422, "not marks"),
    "marks as text": (posted("/api/mark", who="me", query=3, marks="0"), 422, "must be a list"),
    "marks of nothing": (posted("/api/mark", who="me", query=999, marks=[]), 404, "no prompt 999"),
    "query as text": (answer_with(query="3"), 422, "`query` must be a whole number"),
    "query as truth": (answer_with(query=True), 422, "`query` must be a whole number"),
    "query as fraction": (answer_with(query=3.0), 422, "`query` must be a whole number"),
    "query too large": (answer_with(query=2**63), 422, "`query` is too large"),
    "no query": (answer_with(query=...), 422, "`query` is missing"),
    "seconds as text": (answer_with(seconds="1"), 422, "`seconds` must be a number"),
    "seconds negative": (answer_with(seconds=-1), 422, "`seconds` is -1"),
    "seconds no number": (answer_with(seconds=float("nan")), 422, "`seconds` is nan"),
    "seconds too large": (answer_with(seconds=10**400), 422, "`seconds` is too large"),
    "seconds infinite": (answer_with(seconds=float("inf")), 422, "`seconds` is inf"),
    "no name": (answer_with(who=""), 422, "a name has"),
    "long name": (answer_with(who="x" * 41), 422, "a name has"),
    "name unprintable": (answer_with(who="a\x00b"), 422, "a name has"),
    "name cut short": (answer_with(who="\ud800"), 422, "`who` is not text"),
    "name as number": (answer_with(who=5), 422, "`who` must be text"),
    "attempt too short": (answer_with(attempt="a"), 422, "`attempt` must be"),
    "attempt as number": (answer_with(attempt=12345678), 422, "`attempt` must be text"),
    "attempt used before": (answer_with(attempt="given before"), 422, "used for something else"),
    "not JSON": (raw_body(b"{query: 3}"), 400, "not JSON"),
    "not UTF-8": (raw_body(b'{"who": "\xff"}'), 400, "not JSON"),
    "nested too deep": (raw_body(b"[" * 16_000), 400, "not JSON"),
    "empty body": (raw_body(b""), 400, "not JSON"),
    "not an object": (raw_body(b"[1, 2]"), 400, "must be a JSON object"),
    "too large": (raw_body(b" " * (LARGEST_BODY + 1)), 413, "too large"),
    "far too large": (raw_body(b" " * 3_000_000), 413, "too large"),
    "without without": (posted("/api/take", who="me", without=3), 422, "`without` must be a list"),
    "without of texts": (posted("/api/take", who="me", without=["3"]), 422, "whole numbers"),
    "without of truths": (posted("/api/take", who="me", without=[True]), 422, "whole numbers"),
    "without too many": (posted("/api/take", who="me", without=[1] * 1001), 422, "1001 entries"),
    "take without a name": (posted("/api/take"), 422, "`who` is missing"),
    "nothing to undo": (posted("/api/undo", who="eve", attempt="attempt-2"), 404, "no answer"),
    "undo as an answer": (posted("/api/undo", who="eve", attempt="given before"), 422, "else"),
    "goal too long": (posted("/api/goal", text="x" * 201, who="me"), 422, "201 characters"),
    "goal as number": (posted("/api/goal", text=1, who="me"), 422, "`text` must be text"),
    "goal cut short": (posted("/api/goal", text="\udfff", who="me"), 422, "`text` is not text"),
    "enough as text": (posted("/api/enough", who="me", enough="yes"), 422, "true or false"),
    "enough as number": (posted("/api/enough", who="me", enough=1), 422, "true or false"),
    "no token": (with_headers(X_Token=""), 403, "missing or wrong"),
    "wrong token": (with_headers(X_Token="0" * 64), 403, "missing or wrong"),
    "token not ASCII": (with_headers(X_Token="\xe4" * 64), 403, "missing or wrong"),
    "a form": (with_headers(Content_Type="text/plain"), 415, "application/json"),
    "foreign origin": (with_headers(Origin="http://evil.example"), 403, "evil.example"),
    "origin null": (with_headers(Origin="null"), 403, "`null`"),
    "origin by https": (with_headers(Origin="https://127.0.0.1:1"), 403, "not answered"),
    "foreign host": (with_headers(Host="evil.example"), 421, "`evil.example` is not this server"),
    "host's other port": (with_headers(Host="127.0.0.1:1"), 421, "is not this server"),
    "host without port": (with_headers(Host="127.0.0.1"), 421, "is not this server"),
    "foreign host reads": (getting("/", Host="evil.example:8765"), 421, "is not this server"),
    "foreign origin reads": (getting("/api/state", Origin="http://evil.example"), 403, "evil"),
    "film unknown": (getting(f"/films/{'0' * 64}.webp"), 404, "no such film"),
    "film's name no name": (getting("/films/labels.sqlite"), 404, "no such film"),
    "film upwards": (getting("/films/../labels.sqlite"), 404, "nothing at this address"),
    "film upwards, hidden": (getting("/films/..%2Flabels.sqlite"), 404, "nothing at"),
    "film, absolute": (getting("/films/%2Fetc%2Fpasswd"), 404, "nothing at this address"),
    "film with zero": (getting(f"/films/{'0' * 64}.webp%00"), 404, "no such film"),
    "static upwards": (getting("/static/..%2Fguard.py"), 404, "nothing at this address"),
    "static unknown": (getting("/static/nothing.js"), 404, "nothing at this address"),
    "no such page": (getting("/labels.sqlite"), 404, "nothing at this address"),
    "state without a name": (getting("/api/state?who="), 422, "a name has"),
    "events without a name": (getting("/api/events?who=%00"), 422, "a name has"),
    "answer by get": (getting("/api/answer"), 405, "not allowed"),
    "page by put": (lambda s: s.request("PUT", "/"), 403, "missing or wrong"),
    "asked beforehand": (
        lambda s: s.request("OPTIONS", "/api/answer", Origin="http://evil.example"),
        403,
        "evil.example",
    ),
}


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.parametrize("refusal", REFUSALS)
def test_refusals_have_a_sentence_and_write_nothing(
    standing: tuple[Server, Path], refusal: str, tried: Tried
) -> None:
    server, folder = standing
    send, status, words = REFUSALS[refusal]
    before = contents(folder)
    answered = send(server)
    assert (answered.status, words in answered.json["error"]) == (status, True), answered.body
    assert len(answered.json["error"]) > WORDS
    assert b"Traceback" not in answered.body
    assert contents(folder) == before
    assert server.get("/api/state").status == 200
    tried(1, "kinds of invalid requests to the labelling page")


@pytest.mark.medium
@pytest.mark.attack
def test_body_too_large_in_chunks_is_refused(standing: tuple[Server, Path]) -> None:
    server, folder = standing
    before = contents(folder)
    head = [
        "POST /api/answer HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"X-Token: {token_of(server)}",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
        "",
        "",
    ]
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    said = spoken(server, "\r\n".join(head).encode() + 20 * chunk + b"0\r\n\r\n")
    assert b" 413 " in said.split(b"\r\n")[0]
    assert contents(folder) == before


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.parametrize("length", [str(10**9), str(LARGEST_BODY + 1), "9" * 30])
def test_wrong_content_length_is_refused(standing: tuple[Server, Path], length: str) -> None:
    """The body never comes: the answer does."""
    server, _ = standing
    head = [
        "POST /api/answer HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"X-Token: {token_of(server)}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "",
        "{}",
    ]
    said = spoken(server, "\r\n".join(head).encode())
    assert said.split(b"\r\n")[0].split()[1] in (b"413", b"400")


@pytest.mark.attack
def test_two_host_headers_are_refused(standing: tuple[Server, Path]) -> None:
    server, _ = standing
    here = f"127.0.0.1:{server.port}"
    said = spoken(server, f"GET / HTTP/1.1\r\nHost: {here}\r\nHost: {here}\r\n\r\n".encode())
    assert b" 4" in said.split(b"\r\n")[0]


def spoken(server: Server, said: bytes) -> bytes:
    """What the server says on a plain connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(said)
        return connection.recv(65536)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """A server of 60 pairs for tests that bring a name of their own."""
    folder = tmp_path_factory.mktemp("run")
    set_status(folder)
    add_pairs(folder, 60)
    with serving(folder) as server:
        yield server


@pytest.mark.medium
def test_every_response_has_the_security_headers(shared: Server) -> None:
    film = shared.take("policy")[0]["clips"][0]["person"]["url"]
    for path in ("/", "/static/page.js", "/api/state", "/nothing", film):
        headers = shared.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Server" not in headers
        assert "Access-Control-Allow-Origin" not in headers
        kept = "immutable" if path == film else "no-store"
        assert kept in headers["Cache-Control"]


@pytest.mark.medium
def test_pairs_are_taken_and_answered(shared: Server) -> None:
    pairs = shared.take("answers")
    assert len(pairs) == 4
    query, film = pairs[0]["query"], pairs[0]["clips"][0]["person"]
    assert film.keys() == {
        *("url", "frames", "columns", "width", "height", "fps", "slowdown", "pixelated")
    }
    path = shared.folder / FILMS / film["url"].split("/")[-1]
    assert shared.get(film["url"]).body == path.read_bytes()
    told = shared.answer(query, "left", "answers").json
    assert told["tally"]["mine"] == 1
    expected = opinion_of(query - 1)["right"][0]
    assert told["opinion"]["right"][0] == pytest.approx(expected, abs=1e-4)
    with LabelStore.open(shared.folder / "labels.sqlite") as store:
        pair = next(pair for pair in store.labelled(0) if pair.query == query)
    assert (pair.label, pair.answer, pair.who) == (told["label"], "left", "answers")


def test_repeated_answer_counts_once(shared: Server) -> None:
    query = shared.take("again")[0]["query"]
    sent = [shared.answer(query, who="again", attempt="one keystroke") for _ in range(2)]
    assert [told.status for told in sent] == [200, 200]
    assert sent[0].json["label"] == sent[1].json["label"]
    assert sum(row[1] == query for row in contents(shared.folder)["labels"]) == 1


def test_each_attempt_undoes_one_answer(shared: Server) -> None:
    first, second = (pair["query"] for pair in shared.take("undoes")[:2])
    for query in (first, second):
        shared.answer(query, who="undoes")
    attempts = ["undo first", "undo first", "undo second"]
    undone = [shared.post("/api/undo", {"who": "undoes", "attempt": name}) for name in attempts]
    assert [told.json["pair"]["query"] for told in undone] == [second, second, first]
    assert undone[-1].json["tally"]["mine"] == 0


def test_opinion_is_not_sent_before_the_answer(shared: Server) -> None:
    pairs = shared.take("unbiased")
    said = json.dumps([pairs, shared.get("/api/state").json]) + shared.get("/").body.decode()
    for pair in pairs:
        for side in ("left", "right"):
            for value in opinion_of(pair["query"] - 1)[side][0][1:5]:
                assert f"{value:.3f}" not in said
    assert "opinion" not in json.dumps(pairs)
    query = pairs[0]["query"]
    after = json.dumps(shared.answer(query, who="unbiased").json)
    assert f"{opinion_of(query - 1)['left'][0][1]:.3f}" in after


def test_pairs_that_cannot_be_shown_are_left_out(shared: Server) -> None:
    held = [pair["query"] for pair in shared.take("damaged")]
    again = [pair["query"] for pair in shared.take("damaged", (held[0], held[2]))]
    assert again[:2] == [held[1], held[3]]
    assert len(again) == 4
    assert not {held[0], held[2]} & set(again)


def test_people_get_different_pairs(shared: Server) -> None:
    held = {who: {pair["query"] for pair in shared.take(who)} for who in ("ann", "bob", "cem")}
    assert all(held.values())
    assert not held["ann"] & held["bob"]
    assert not (held["ann"] | held["bob"]) & held["cem"]


def test_typed_text_is_escaped(shared: Server) -> None:
    typed = "</title><img src=x onerror=alert(1)>\"'"
    shared.post("/api/goal", {"text": typed, "who": "me"})
    page = shared.get("/").body.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_goal_and_finish_are_stored(shared: Server) -> None:
    told = shared.post("/api/goal", {"text": "  stand on\none leg ", "who": "me"})
    assert told.json == {"goal": "stand on one leg"}
    for enough in (True, False):
        shared.post("/api/enough", {"who": "me", "enough": enough})
        state = shared.get("/api/state").json
        assert (state["goal"], state["enough"]) == ("stand on one leg", enough)


@pytest.mark.medium
def test_pair_without_an_opinion_can_be_answered(tmp_path: Path) -> None:
    set_status(tmp_path)
    add_pairs(tmp_path, 1, opinions=False)
    with serving(tmp_path) as server:
        server.take()
        assert server.answer(1).json["opinion"] is None


@pytest.mark.slow
def test_damaged_opinion_does_not_block_the_answer(folder: Path) -> None:
    with sqlite3.connect(folder / "labels.sqlite") as connection:
        connection.execute("DROP TRIGGER queries_no_update")
        connection.execute("UPDATE queries SET opinion = x'00'")
    connection.close()
    with serving(folder) as server:
        server.take()
        told = server.answer(1)
    assert (told.status, told.json["opinion"]) == (200, None)


def test_other_files_are_not_served_as_films(shared: Server) -> None:
    for name in ("notes.txt", f"{'0' * 64}.damaged", f".{'0' * 64}.webp"):
        path = shared.folder / FILMS / name
        path.write_text("kept")
        assert shared.get(f"/films/{name}").status == 404
        assert path.read_text() == "kept"


@pytest.mark.slow
def test_damaged_film_is_moved_aside_and_reported_as_gone(server: Server, folder: Path) -> None:
    url = server.take()[0]["clips"][0]["person"]["url"]
    path = folder / FILMS / url.split("/")[-1]
    path.write_bytes(path.read_bytes()[:-1])
    answered = server.get(url)
    assert answered.status == 410
    assert "is damaged" in answered.json["error"]
    assert answered.headers["Cache-Control"] == "no-store"
    assert server.get(url).status == 404


@pytest.mark.medium
def test_environment_name_is_escaped(folder: Path) -> None:
    set_status(folder, env="<script>alert(1)</script>")
    with serving(folder) as server:
        page = server.get("/").body.decode()
    assert "<script>alert" not in page


@pytest.mark.medium
def test_events_report_changes(server: Server, folder: Path) -> None:
    with server.events() as states:
        assert next(states)["tally"]["labels"] == 0
        server.take()
        server.answer(1)
        assert next(states)["tally"]["labels"] == 1
        set_status(folder, "learning", phase=3)
        assert next(states)["status"]["phase"] == 3
        add_pairs(folder, 2, first=20)  # as the trainer does, in another process than the server
        assert next(states)["tally"]["open"] == 13


@pytest.mark.slow
def test_state_has_the_seconds_left(server: Server) -> None:
    """Four answers within a moment: the rest of a hundred at that pace."""
    server.take()
    for query in range(1, 5):
        server.answer(query)
    state = server.get("/api/state").json
    pace = state["tally"]["per_minute"]
    assert state["seconds_left"] == pytest.approx(60 * 96 / pace)
    assert state["status"]["doing"] == "waiting"
    assert "pid" not in state["status"]


@pytest.mark.medium
def test_dead_trainer_is_stopped(folder: Path) -> None:
    set_status(folder, pid=2**22 + 1)  # more than there are
    with serving(folder) as server:
        assert server.get("/api/state").json["status"]["doing"] == "stopped"


# --- beyond loopback -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """A server for other machines as well."""
    folder = tmp_path_factory.mktemp("run")
    set_status(folder)
    add_pairs(folder, 12)
    with serving(folder, "--port", "0", "--host", "0.0.0.0") as server:
        yield server


def query_of(server: Server) -> str:
    return "/?" + server.address.partition("?")[2]


@pytest.mark.medium
@pytest.mark.attack
def test_beyond_loopback_every_request_needs_the_cookie(beyond: Server) -> None:
    before = contents(beyond.folder)
    for path in ("/", "/static/page.js", "/api/state", f"/films/{'0' * 64}.webp"):
        answered = beyond.get(path)
        assert answered.status == 401
        assert "?token=" in answered.json["error"]
        assert "Set-Cookie" not in answered.headers
    assert beyond.request("POST", "/api/take", b"{}").status == 401
    assert beyond.get("/", Cookie=f"runshelf_{beyond.port}={'0' * 64}").status == 401
    assert contents(beyond.folder) == before


@pytest.mark.medium
@pytest.mark.attack
def test_beyond_loopback_the_token_sets_the_cookie(beyond: Server) -> None:
    assert "?token=" in beyond.address
    wrong = beyond.get("/?token=" + "0" * 64)
    assert (wrong.status, "Set-Cookie" in wrong.headers) == (403, False)
    right = beyond.get(query_of(beyond))
    assert (right.status, right.headers["Location"]) == (303, "/")
    cookie, *flags = right.headers["Set-Cookie"].split("; ")
    assert {flag.lower() for flag in flags} == {"httponly", "samesite=strict", "path=/"}
    assert beyond.address.partition("token=")[2] not in cookie
    assert beyond.get("/", Cookie=cookie).status == 200
    page = beyond.get("/", Cookie=cookie).body.decode()
    assert 'data-ask-name="yes"' in page
    # The cookie alone changes nothing: that needs the page's token as well.
    assert beyond.post_with(cookie, token="").status == 403
    assert beyond.post_with(cookie, token=page.split('token" content="')[1][:64]).status == 200


@pytest.mark.medium
@pytest.mark.attack
def test_beyond_loopback_other_host_names_are_refused(beyond: Server) -> None:
    cookie = beyond.get(query_of(beyond)).headers["Set-Cookie"].split(";")[0]
    for host in (f"{socket.gethostname()}:{beyond.port}", f"127.0.0.1:{beyond.port}"):
        assert beyond.get("/", Host=host, Cookie=cookie).status == 200
    assert beyond.get("/", Host=f"evil.example:{beyond.port}", Cookie=cookie).status == 421


@pytest.mark.medium
def test_on_loopback_no_token_is_in_the_address(shared: Server) -> None:
    assert shared.address == f"http://127.0.0.1:{shared.port}/"
    for host in (f"localhost:{shared.port}", f"LOCALHOST:{shared.port}", f"[::1]:{shared.port}"):
        assert shared.get("/", Host=host).status == 200


@pytest.mark.medium
@pytest.mark.attack
def test_body_far_too_large_gets_a_sentence(shared: Server) -> None:
    shared.take("large")  # so that the token is known
    headers = {"Content_Type": "application/json", "X_Token": shared.token}
    answered = shared.request("POST", "/api/take", b" " * 2_000_000, **headers)
    assert answered.status == 413
    assert "error" in answered.json


@pytest.mark.medium
def test_head_of_events_is_answered_at_once(shared: Server) -> None:
    answered = shared.request("HEAD", "/api/events?who=me")
    assert (answered.status, answered.body) == (200, b"")


@pytest.mark.medium
def test_attempt_of_an_answer_undoes_nothing(server: Server) -> None:
    server.take()
    assert server.answer(1, attempt="attempt-a").status == 200
    for who in ("me", "eve"):
        refused = server.post("/api/undo", {"who": who, "attempt": "attempt-a"})
        assert refused.status == 422
        assert "something else" in refused.json["error"]
    assert server.answer(1, "right", attempt="attempt-a").status == 422
