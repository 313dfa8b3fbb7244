"""Attacks with the bodies of requests to the labelling page: the server refuses and goes on."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages.backflip.tests.labelling.page.prepared_run import serving
from tests.attack_figures import Tried
from tests.server_client import Server

from backflip.preferences.labels import LabelStore

PATHS = (
    "take",
    "give_back",
    "answer",
    "undo",
    "redo",
    "correct",
    "stay",
    "leave",
    "goal",
    "enough",
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**63, -(2**63), 10**400, 1e308, float("nan"), float("inf")),
    *(
        "",
        "x" * 10_000,
        "\ud800",
        "\0",
        "../../etc",
        "'; DROP TABLE labels; --",
        "<b>",
        "\u202e",
        "😀",
    ),
    *([], [[]], [None] * 500, {}, {"a": {"b": []}}, [1, "x", None], {"__proto__": 1}),
)
FIELDS: dict[str, Any] = {
    "query": 3,
    "answer": "left",
    "who": "eve",
    "seconds": 1.0,
    "attempt": "attempt-1",
    "queries": [3],
    "without": [],
    "label": 1,
    "text": "goal",
    "enough": True,
    "place": "here",
}


def changed(chance: random.Random) -> bytes:
    """Return the body of a request with some odd fields."""
    fields = dict(FIELDS)
    for name in chance.sample(sorted(FIELDS), chance.randrange(1, 4)):
        if chance.random() < 0.3:
            del fields[name]
        else:
            fields[name] = chance.choice(ODD)
    return json.dumps(fields).encode()


def damaged(chance: random.Random) -> bytes:
    """Return the body of a request with changed bytes."""
    data = bytearray(json.dumps(FIELDS).encode())
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data[: chance.randrange(len(data) + 1)])


def nested(chance: random.Random) -> bytes:
    """Return a body that is nested deeply, repeats a field, or is another kind of text."""
    return chance.choice(
        (
            b"[" * chance.randrange(1, 16_000),
            b'{"who":' * chance.randrange(1, 2_000),
            b'{"who": "eve", "who": {}}',
            "{}".encode(chance.choice(("utf-16", "utf-32", "utf-8-sig"))),
            b"9" * chance.randrange(1, 16_000),
            b'"' + b"\\u0000" * chance.randrange(1, 2_000) + b'"',
            chance.randbytes(chance.randrange(4_000)),
        )
    )


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (changed, 2_000),
        pytest.param(damaged, 1_500, marks=pytest.mark.slow),
        pytest.param(nested, 500, marks=pytest.mark.slow),
    ],
)
def test_odd_bodies(
    folder: Path, make: Callable[[random.Random], bytes], count: int, tried: Tried
) -> None:
    chance = random.Random(count)
    with serving(folder) as server:
        (mine, *_) = server.take("me")
        headers = {"Content_Type": "application/json", "X_Token": server.token}
        for number in range(count):
            body = make(chance)
            answered = server.request("POST", f"/api/{chance.choice(PATHS)}", body, **headers)
            assert answered.status in (200, 400, 403, 404, 409, 413, 422), (body, answered.body)
            assert b"Traceback" not in answered.body
            if number % 200 == 0:
                assert server.get("/").status == 200
        assert others_are_untouched(server, mine["query"])
    tried(count, "odd bodies sent to the labelling page")


def others_are_untouched(server: Server, query: int) -> bool:
    """Return whether only `eve`, whose name the requests have, has answered."""
    with LabelStore.open(server.folder / "labels.sqlite") as store:
        people = {who for (who,) in store.file.rows("SELECT DISTINCT who FROM labels")}
        asked = [number for (number,) in store.file.rows("SELECT id FROM queries")]
    return people <= {"eve"} and query in asked
