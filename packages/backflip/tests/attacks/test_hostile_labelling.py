"""A received labelling run with hostile content: the page answers, and shows the sound parts."""

import asyncio
import contextlib
import json
import random
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packages.backflip.tests.labelling.page.prepared_run import add_pairs, set_status
from packages.runshelf.tests.attacks.commands import no_hang
from packages.runshelf.tests.attacks.mutations import HOSTILE, mutations
from tests.asgi_client import Answer, get, post
from tests.attack_figures import Tried
from tests.coroutines import finished

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.page_app import LabellingApp
from backflip.labelling.service import LabelService
from backflip.labelling.status import read_status
from backflip.preferences.exchange import export_labels, read_labels
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from runshelf.errors import DamagedFile, UserFacingError
from runshelf.web.serving.address import Endpoint

pytestmark = pytest.mark.attack

# Statements that leave a file which SQLite accepts, with values that no program of ours writes.
ROWS = {
    "a label without a date": "UPDATE labels SET at = 'yesterday'",
    "a label after the last date": "UPDATE labels SET at = '9999-12-31T23:59:59-23:59'",
    "a label of infinite seconds": "UPDATE labels SET seconds = 9e999",
    "a label of negative seconds": "UPDATE labels SET seconds = -1",
    "a label by a long name": "UPDATE labels SET who = printf('%.*c', 1000000, 'x')",
    "a label by a name of controls": "UPDATE labels SET who = char(0, 27, 8238)",
    "a label by a name that is not UTF-8": "UPDATE labels SET who = CAST(x'ff41' AS TEXT)",
    "a film that is not UTF-8": "UPDATE films SET about = CAST(x'ff41' AS TEXT)",
    "a query of the largest seed": "UPDATE queries SET seed = 9223372036854775807",
    "a query without a date": "UPDATE queries SET asked_at = ''",
    "a query that repeats itself": "UPDATE queries SET repeats = id",
    "an opinion that is no opinion": "UPDATE queries SET opinion = x'00'",
    "a clip that is no clip": "UPDATE clips SET arrays = x'78'",
    "negative env steps": "UPDATE clips SET env_steps = -1",
    "a take in the far future": "INSERT INTO takes (query, who, at) VALUES (1, 'me', 9e999)",
    "a goal of a megabyte": "INSERT INTO sayings (key, value, who, at)"
    " VALUES ('goal', printf('%.*c', 1000000, 'x'), '', '')",
    "a goal of controls": "INSERT INTO sayings (key, value, who, at)"
    " VALUES ('goal', char(0, 27, 8238, 10), '', '')",
    "the largest id": "INSERT INTO queries (id, seed, left_clip, right_clip, asked_at)"
    " SELECT 9223372036854775807, seed, left_clip, right_clip, asked_at FROM queries WHERE id = 2",
    **{
        f"a film that is {text[:20]}": f"UPDATE films SET about = '{text}'"
        for text in ("", "{}", "[]", "null", "[" * 5000, "{" * 5000, '{"file": 1}', "\ufffd")
    },
}
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
SCHEMAS = {
    "an endless view": f"DROP VIEW effective; CREATE VIEW effective AS {ENDLESS}",
    "an endless standing": f"DROP VIEW standing; CREATE VIEW standing AS {ENDLESS}",
    "an endless trigger": f"CREATE TRIGGER t AFTER INSERT ON takes BEGIN {ENDLESS}; END",
    "another endless view": f"CREATE VIEW other AS {ENDLESS}",
    "a view as a table": f"DROP TABLE takes; CREATE VIEW takes AS {ENDLESS}",
    "a table of other columns": "DROP TABLE takes; CREATE TABLE takes (id, query, who, at)",
    "a virtual table": "CREATE VIRTUAL TABLE words USING fts5(text)",
    "an index that computes": "CREATE INDEX i ON takes (hex(zeroblob(100000000)))",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with six pairs, two of them answered, and an opinion on each."""
    folder = tmp_path_factory.mktemp("sound")
    add_pairs(folder, 6, frames=4)
    set_status(folder, "finished", result="done")
    with LabelStore.open(folder / LABELS) as store:
        for query in (1, 3):
            store.add_label(query, "left", "me", 1.0)
    return folder


@pytest.fixture
def received(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run"))


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Change a label file without its triggers, as an attacker can."""
    with contextlib.closing(sqlite3.connect(folder / LABELS)) as file, file:
        triggers = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        kept = file.execute(triggers).fetchall()
        for name, _ in kept:
            file.execute(f"DROP TRIGGER {name}")
        yield file
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_schema")}
        for name, statement in kept:
            if name.partition("_no_")[0] in tables and "takes" not in name:
                file.execute(statement)


def answers_of(folder: Path) -> list[Answer]:
    """Return what the page answers to everything that it is asked when a person labels."""

    async def ask() -> list[Answer]:
        service = await LabelService.open(folder, 0.5)
        try:
            app: Any = LabellingApp(
                service, Endpoint("127.0.0.1", 1, bytes(32), Path("unused")), "me"
            ).app()
            found = [await get(app, path) for path in ("/", "/api/state", "/api/answers")]
            found += [await post(app, path, body) for path, body in _requests()]
            return [*found, await get(app, "/api/state?who=me"), await get(app, "/api/events")]
        finally:
            await service.close()

    with no_hang():
        return finished(asyncio.wait_for(ask(), 50))


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "/api/take", {"who": "me", "without": [], "place": "here"}
    for query in (1, 2, 4, 5):
        answer = {"query": query, "answer": "right", "who": "me", "seconds": 1.0}
        yield "/api/answer", answer | {"attempt": f"attempt-{query}"}
    yield "/api/undo", {"who": "me", "attempt": "attempt-undo"}
    yield "/api/redo", {"who": "me", "attempt": "attempt-redo"}
    correct = {"label": 1, "answer": "tie", "who": "me", "attempt": "attempt-correct"}
    yield "/api/correct", correct
    yield "/api/stay", {"who": "me", "place": "here"}
    yield "/api/give_back", {"who": "me", "queries": [1, 2]}
    yield "/api/goal", {"who": "me", "text": "run"}


def check(folder: Path, what: str) -> None:
    answers = answers_of(folder)
    bad = [one for one in answers if one.status >= 500 and one.status != 503]
    assert not bad, (what, bad[:2])
    assert [one.status for one in answers[:2]] == [200, 200], (what, answers[:2])


@pytest.mark.medium
@pytest.mark.parametrize("what", ROWS)
def test_hostile_rows_do_not_fail_the_page(received: Path, what: str, tried: Tried) -> None:
    with changing(received) as file:
        file.execute(ROWS[what])
    check(received, what)
    with LabelStore.open(received / LABELS) as store:
        out = received.parent / "out.jsonl"
        with no_hang(), contextlib.suppress(DamagedFile):
            assert export_labels(store, out) == len(read_labels(out))
    tried(1, "hostile rows of a label file")


@pytest.mark.medium
def test_an_answer_is_confirmed_though_its_opinion_is_damaged(received: Path) -> None:
    """The answer is stored, so a refusal would be wrong."""
    with changing(received) as file:
        file.execute(ROWS["an opinion that is no opinion"])
    asked = [path for path, _ in _requests()]
    answers = answers_of(received)[3:]
    answered = [answers[place] for place, path in enumerate(asked) if path == "/api/answer"]
    assert [one.status for one in answered] == [409, 200, 200, 200]  # the first had an answer
    assert all(json.loads(one.body)["opinion"] is None for one in answered[1:])


@pytest.mark.parametrize("what", SCHEMAS)
def test_a_label_file_that_runs_without_end_is_refused(
    received: Path, what: str, tried: Tried
) -> None:
    with contextlib.closing(sqlite3.connect(received / LABELS)) as file:
        file.executescript(SCHEMAS[what])
    with no_hang(), pytest.raises(DamagedFile, match="not those of a label store"):
        LabelStore.open(received / LABELS)
    tried(1, "label files with other views, triggers or tables")


@pytest.mark.slow
def test_a_clip_that_is_a_bomb_is_refused(received: Path, tried: Tried) -> None:
    bomb = zlib.compress(bytes(200 * 2**20), 9)
    with changing(received) as file:
        file.execute("UPDATE clips SET arrays = ?", (bomb,))
        file.execute("UPDATE queries SET opinion = ?", (bomb,))
    with LabelStore.open(received / LABELS) as store:
        with pytest.raises(DamagedFile, match="larger than"):
            store.clips(2)
        with pytest.raises(DamagedFile, match="larger than"):
            store.opinion(2)
    check(received, "a bomb")
    tried(3, "clips that are bombs")


def test_one_damaged_film_hides_only_its_pair(received: Path) -> None:
    with changing(received) as file:
        left_clip = "SELECT left_clip FROM queries WHERE id = 2"
        file.execute(f"UPDATE films SET about = '[' WHERE clip = ({left_clip})")
    with LabelStore.open(received / LABELS) as store:
        taken = LabelQueue(store).take("me")
        assert taken
        assert all(pair.query > 2 for pair in taken)
        assert all(film for pair in taken for clip in pair.clips for film in clip.values())


@pytest.mark.medium
@pytest.mark.parametrize(
    "field", ["doing", "since", "pid", "phase", "budget", "result", "episode", "film", "more"]
)
def test_a_hostile_status_does_not_fail_the_page(received: Path, field: str, tried: Tried) -> None:
    path = received / "status.json"
    fields = json.loads(path.read_text())
    for hostile in HOSTILE:
        path.write_text(json.dumps(fields | {field: "MARK"}).replace('"MARK"', hostile))
        status = read_status(received)
        assert status.doing in ("finished", "stopped", "waiting"), hostile
        json.dumps(status._asdict(), allow_nan=False, ensure_ascii=False).encode()
    check(received, field)
    tried(len(HOSTILE), "hostile values in the status of a run")


@pytest.mark.slow
def test_mutated_files_do_not_fail_the_page(sound: Path, tmp_path: Path, tried: Tried) -> None:
    rng, count = random.Random(20261123), 60
    for number in range(count):
        folder = Path(shutil.copytree(sound, tmp_path / str(number)))
        name = rng.choice(["status.json", LABELS, LABELS])
        mutation = next(mutations((folder / name).read_bytes(), name, rng))
        (folder / name).write_bytes(mutation.data)
        with contextlib.suppress(UserFacingError):
            answers = answers_of(folder)
            bad = [one for one in answers if one.status >= 500 and one.status != 503]
            assert not bad, (name, mutation.how, bad[:2])
    tried(count, "files of a labelling run with a mutation")
