"""Attacks on the file of the index: any damage leads to a new index, and one line says so."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid
from tests.attack_figures import Tried

from runshelf.index.database import VERSION
from runshelf.index.run_index import Index, open_index
from runshelf.store.home import make_shared, shared

RUNS = 6
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with runs and their index."""
    home = tmp_path / "home"
    for number in range(RUNS):
        about = {"tags": ["a", "b"], "seeds": [number], "env": "dot", "algorithm": "ppo"}
        records = [{"step": n, "loss": n / 2, "seed": number} for n in range(20)]
        config = {f"key{n}": n for n in range(30)}
        make_run(home, number, records=records, config=config, question="why?", **about)
    with open_index(home) as index:
        index.refresh()
    return home


def contents(index: Index) -> tuple[Any, ...]:
    """Return what the index says, through each of its methods."""
    runs = index.runs(columns=["key3", "loss", "result"], sort="-loss,key3,id")
    return (
        [
            (row.ulid, row.tags, row.seeds, row.question, row.values, row.result)
            for row in runs.rows
        ],
        [(row.group, row.runs, row.values) for row in index.groups(sort="-result").rows],
        index.keys(),
        index.run(ulid(1)) is not None,
        [row.ulid for row in index.called("latest")],
        index.runs("key3=3 loss>=0 env=dot tag=a").total,
    )


def read(home: Path) -> tuple[Any, ...]:
    with open_index(home) as index:
        assert index.refresh() == []
        return contents(index)


def flip(path: Path, chance: random.Random, count: int) -> None:
    """Change bytes of a file."""
    data = bytearray(path.read_bytes())
    for _ in range(count):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def said_once(capture: Capture) -> bool:
    error = capture.readouterr().err
    return error.count("\n") == 1 and error.startswith("runshelf: ") and "is built again" in error


@pytest.mark.attack
@pytest.mark.slow
def test_flipped_bits(home: Path, capfd: Capture, tried: Tried) -> None:
    expected, chance, file = read(home), random.Random(22), shared(home, "index.sqlite")
    for number in range(150):
        flip(file, chance, count=1 if number % 2 else 50)
        assert read(home) == expected
        assert said_once(capfd)
        assert read(home) == expected
        assert capfd.readouterr().err == ""
    tried(150, "indexes with flipped bits")


@pytest.mark.attack
@pytest.mark.slow
def test_flipped_bits_of_an_index_whose_server_was_killed(
    home: Path, capfd: Capture, tried: Tried
) -> None:
    """It has no seal. What SQLite and the checks of rows notice is repaired; nothing fails."""
    chance, file = random.Random(23), shared(home, "index.sqlite")
    whole = file.read_bytes()
    for _ in range(150):
        for other in file.parent.glob("index.sqlite?*"):
            other.unlink()
        file.write_bytes(whole)
        flip(file, chance, count=40)
        found = read(home)
        assert len(found[0]) == RUNS
        assert capfd.readouterr().err.count("\n") <= 1
    tried(150, "indexes with flipped bits and no seal")


@pytest.mark.attack
@pytest.mark.medium
def test_flipped_bits_while_the_index_is_open(home: Path, tried: Tried) -> None:
    """As in a server, with a second connection that refreshes."""
    chance = random.Random(24)
    for number in range(40):
        with open_index(home) as pages, open_index(home) as refreshed:
            flip(shared(home, "index.sqlite"), chance, count=200)
            for _ in range(2):
                assert len(contents(pages)[0]) == RUNS
                refreshed.refresh()
            if number % 4 == 0:
                shared(home, "index.sqlite").unlink()
                refreshed.refresh()
                assert len(contents(pages)[0]) == RUNS
        assert len(read(home)[0]) == RUNS
    tried(40, "open indexes with flipped bits")


@pytest.mark.attack
@pytest.mark.medium
def test_cut_files(home: Path, capfd: Capture, tried: Tried) -> None:
    expected, file = read(home), shared(home, "index.sqlite")
    size = file.stat().st_size
    sizes = [*range(1, 600, 60), *range(600, size, size // 40)]
    for kept in sizes:
        os.truncate(file, kept)
        assert read(home) == expected
        assert said_once(capfd)
    os.truncate(file, 0)
    assert read(home) == expected
    tried(len(sizes) + 1, "indexes that were cut")


STATEMENTS = [
    "ALTER TABLE runs DROP COLUMN question",
    "ALTER TABLE runs RENAME COLUMN question TO answer",
    "DROP TABLE settings",
    "DROP TABLE seed_summaries",
    "DROP INDEX runs_by_group",
    "CREATE TABLE more(x)",
    "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM runs; END",
    "CREATE VIEW v AS SELECT * FROM runs",
    "UPDATE runs SET tags = 'no JSON'",
    "UPDATE runs SET tags = '[1, 2]'",
    "UPDATE runs SET tags = '{}'",
    "UPDATE runs SET seeds = '[\"x\"]'",
    "UPDATE runs SET seeds = 'null'",
    "UPDATE runs SET seeds = ''",
    "UPDATE runs SET ulid = '../../../etc' WHERE number = 1",
    "UPDATE runs SET ulid = '/etc' WHERE number = 1",
    "UPDATE runs SET question = CAST(x'ff41' AS TEXT)",
    "UPDATE runs SET words = CAST(x'ff41' AS TEXT)",
    "UPDATE keys SET name = CAST(x'ff41' || number AS TEXT)",
    "DELETE FROM runs",
]
# The tables without STRICT accept values of any type.
LOOSE = [
    "UPDATE runs SET created = 'yesterday'",
    "UPDATE runs SET created = NULL",
    "UPDATE runs SET name = x'ff'",
    "UPDATE runs SET stamp = 'x'",
    "UPDATE runs SET seconds = 'long'",
    "UPDATE runs SET tags = NULL",
    "UPDATE runs SET grouping = 7.5",
    "UPDATE keys SET name = x'ff' || number",
    "UPDATE summaries SET last = 'high'",
    "UPDATE settings SET text = x'ff'",
]


# Only the seal shows that these are wrong.
SILENT = [
    "DELETE FROM metrics",
    "DELETE FROM settings",
    "UPDATE runs SET result = 1234",
    "UPDATE runs SET question = 'how?'",
    "UPDATE summaries SET last = last + 1",
]


def change(file: Path, statement: str, *, loose: bool) -> None:
    """Change an index as another program can, and leave it without a seal."""
    connection = sqlite3.connect(file)
    if loose:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(replace(sql, ' STRICT', ''), ' NOT NULL', '')"
        )
        connection.commit()
        connection.close()
        connection = sqlite3.connect(file)
    connection.execute(statement)
    connection.commit()
    connection.close()


def break_seal(home: Path) -> None:
    """Remove the seal, as a server that was killed leaves an index."""
    shared(home, "index.sqlite.seal").unlink()


@pytest.mark.medium
@pytest.mark.attack
@pytest.mark.parametrize(
    ("statement", "loose"),
    [(each, False) for each in STATEMENTS] + [(each, True) for each in LOOSE],
)
def test_changed_tables(
    home: Path, capfd: Capture, statement: str, loose: bool, tried: Tried
) -> None:
    expected = read(home)
    change(shared(home, "index.sqlite"), statement, loose=loose)
    break_seal(home)
    assert read(home)[0] == expected[0]
    assert capfd.readouterr().err.count("\n") <= 1
    assert read(home)[0] == expected[0]
    assert capfd.readouterr().err == ""
    tried(1, "indexes with changed tables or values")


@pytest.mark.medium
@pytest.mark.attack
@pytest.mark.parametrize("statement", [*STATEMENTS, *SILENT])
def test_changed_tables_of_a_sealed_index(
    home: Path, capfd: Capture, statement: str, tried: Tried
) -> None:
    expected = read(home)
    change(shared(home, "index.sqlite"), statement, loose=False)
    assert read(home) == expected
    assert said_once(capfd)
    assert read(home) == expected
    assert capfd.readouterr().err == ""
    tried(1, "indexes with changed tables or values")


@pytest.mark.medium
@pytest.mark.attack
@pytest.mark.parametrize("name", ["/etc", "../../../etc", "..", ""])
def test_no_row_leads_out_of_the_home(home: Path, name: str, tried: Tried) -> None:
    """Also not before the first refresh, when a server already answers."""
    change(
        shared(home, "index.sqlite"),
        f"UPDATE runs SET ulid = '{name}' WHERE number = 1",
        loose=False,
    )
    break_seal(home)
    with open_index(home) as index:
        folders = {row.folder for row in index.runs().rows}
        assert index.run(name) is None
        assert folders == {home / "runs" / ulid(number) for number in range(RUNS)}
    tried(1, "indexes with changed tables or values")


def as_folder(path: Path) -> None:
    path.mkdir()
    (path / "precious").write_text("data")


def as_link(path: Path) -> None:
    precious = path.parent / "precious"
    precious.write_text("data")
    path.symlink_to(precious)


def as_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.medium
@pytest.mark.attack
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal", ".lock", ".seal", ".damaged"])
@pytest.mark.parametrize("make", [as_folder, as_link, as_dangling_link, os.mkfifo])
def test_something_else_in_its_place(
    home: Path, capfd: Capture, ending: str, make: Callable[[Path], None], tried: Tried
) -> None:
    expected, path = read(home), shared(home, f"index.sqlite{ending}")
    path.unlink(missing_ok=True)
    if ending == ".damaged":  # where the damaged file would go
        flip(shared(home, "index.sqlite"), random.Random(1), 1000)
    make(path)
    for _ in range(2):
        assert read(home) == expected
        assert capfd.readouterr().err.count("\n") <= 1
    for precious in shared(home, "").parent.rglob("precious"):
        assert precious.read_text() == "data"
    tried(1, "folders, links and pipes in the place of an index or of its files")


@pytest.mark.medium
@pytest.mark.attack
@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1, 2**31 - 1, -1])
@pytest.mark.parametrize("statement", ["DROP TABLE runs", "CREATE VIEW w AS SELECT 1", ""])
def test_an_index_of_another_version(
    home: Path, version: int, statement: str, tried: Tried
) -> None:
    expected = read(home)
    change(shared(home, "index.sqlite"), f"PRAGMA user_version = {version}", loose=False)
    break_seal(home)
    with sqlite3.connect(shared(home, "index.sqlite")) as other:
        other.execute(statement)
    other.close()
    assert read(home) == expected
    tried(1, "indexes of other versions")


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_damaged_index_in_a_read_only_home(home: Path) -> None:
    expected = read(home)
    flip(shared(home, "index.sqlite"), random.Random(2), 1000)
    folder = shared(home, "")
    folder.chmod(0o500)
    try:
        assert read(home) == expected
    finally:
        folder.chmod(0o700)


@pytest.mark.attack
def test_an_index_that_another_home_was_copied_with(home: Path, tmp_path: Path) -> None:
    """A copy has other time stamps; that is no damage."""
    expected = read(home)
    shutil.copytree(home, tmp_path / "copied")
    with open_index(tmp_path / "copied") as index:
        assert contents(index)[0] == expected[0]


@pytest.mark.attack
def test_a_link_in_the_place_of_the_lock_creates_nothing(home: Path, tmp_path: Path) -> None:
    make_shared(home)
    lock = shared(home, "index.sqlite.lock")
    lock.unlink(missing_ok=True)
    lock.symlink_to(tmp_path / "created")
    read(home)
    assert not (tmp_path / "created").exists()
