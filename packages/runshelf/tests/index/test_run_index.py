"""The index of real run folders: its rows, the folders it skips, and its place."""

import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import CREATED, make_run, settle, ulid, write_lines

from runshelf.errors import UsageError
from runshelf.index import database, refresh
from runshelf.index.location import cache_folder, is_on_network, places
from runshelf.index.refresh import Progress
from runshelf.index.rows import Repeat
from runshelf.index.run_index import Index, open_index
from runshelf.store.home import make_shared, shared
from runshelf.store.run import create_run, resume_run


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "runs").mkdir(parents=True)
    return home


def listed(index: Index, filter: str = "", sort: str = "id") -> list[str]:
    return [row.ulid for row in index.runs(filter, sort).rows]


def numbers(*which: int) -> list[str]:
    return [ulid(number) for number in which]


# --- the content of a row ---------------------------------------------------------------------


def test_a_row_has_the_content_of_the_folder(home: Path) -> None:
    config = {"lr": 0.1, "net": {"width": 64, "sizes": [1, 2]}, "on": True, "none": None}
    folder = make_run(
        home,
        1,
        name="n",
        question="why?",
        tags=["a", "b"],
        seeds=[4, 5],
        env="dot",
        algorithm="ppo",
        parent=ulid(0),
        cost_per_hour=3.0,
        config=config,
        records=[{"step": 0, "loss": 2.0, "a b": 1}, {"step": 1, "loss": "NaN"}],
    )
    with open_index(home) as index:
        assert index.refresh() == []
        columns = [
            "lr",
            "width",
            "net.sizes",
            "on",
            "none",
            "loss",
            "loss.min",
            "a b",
            "env",
            "seed",
        ]
        (row,) = index.runs(columns=columns).rows
    assert (row.ulid, row.folder, row.command) == (ulid(1), folder, "run")
    assert (row.name, row.question, row.tags) == ("n", "why?", ["a", "b"])
    assert row.group.startswith("ppo dot ")
    assert (row.seeds, row.env, row.algorithm, row.parent) == ([4, 5], "dot", "ppo", ulid(0))
    assert (row.state, row.since, row.note) == ("finished", "2026-11-21T11:00:00.000+00:00", "")
    assert (row.created, row.seconds, row.cost) == (1795255200.0, 3600.0, 3.0)
    assert math.isnan(float(str(row.values.pop("loss"))))
    assert row.values == {
        "lr": 0.1,
        "width": 64,
        "net.sizes": "1,2",
        "on": True,
        "none": "null",
        "loss.min": 2.0,
        "a b": 1.0,
        "env": "dot",
        "seed": [4, 5],
    }
    assert row.values["on"] is True


def test_seconds_and_cost_are_sums_over_all_sittings(home: Path) -> None:
    events = [
        {"status": "started", "time": "2026-11-21T10:00:00+00:00"},
        {"status": "interrupted", "time": "2026-11-21T10:10:00+00:00", "seconds": 540, "cost": 7},
        {"event": "budget", "time": "2026-11-21T10:15:00+00:00"},
        {"status": "resumed", "time": "2026-11-21T12:00:00+00:00"},
        {"status": "failed", "time": "2026-11-21T12:01:00+00:00", "exit_status": 3},
    ]
    make_run(home, 1, events=events, cost_per_hour=60)
    with open_index(home) as index:
        index.refresh()
        (row,) = index.runs().rows
    assert (row.seconds, row.cost) == (600.0, 8.0)
    assert (row.state, row.note) == ("failed", "exit status 3")


def test_keys_are_those_of_existing_runs(home: Path) -> None:
    make_run(home, 1, config={"a": 1}, tags=["t"], env="dot", records=[{"m": 1.0}])
    gone = make_run(home, 2, config={"b": 1}, tags=["u"], env="e", records=[{"n": 1.0}])
    with open_index(home) as index:
        index.refresh()
        assert index.keys().config == ["a", "b"]
        shutil.rmtree(gone)
        index.refresh()
        keys = index.keys()
    assert (keys.config, keys.metrics, keys.tags) == (["a"], ["m"], ["t"])
    assert (keys.envs, keys.states, len(keys.groups)) == (["dot"], ["finished"], 1)


# --- sorting and pages ------------------------------------------------------------------------


def test_runs_without_the_value_come_last_in_both_directions(home: Path) -> None:
    make_run(home, 1, config={"lr": 2}, records=[{"m": 1.0}], name="b")
    make_run(home, 2, config={"lr": 10}, records=[{"m": "NaN"}])
    make_run(home, 3, config={"lr": "auto"}, records=[{"m": "-Infinity"}], name="a")
    make_run(home, 4)
    with open_index(home) as index:
        index.refresh()
        assert listed(index, sort="lr") == numbers(1, 2, 3, 4)
        assert listed(index, sort="-lr") == numbers(2, 1, 3, 4)
        assert listed(index, sort="m") == numbers(3, 1, 2, 4)
        assert listed(index, sort="-m") == numbers(1, 3, 2, 4)
        assert listed(index, sort="name,-id") == numbers(3, 1, 4, 2)
        assert listed(index, sort="-name,id") == numbers(1, 3, 2, 4)
        assert listed(index, sort="") == numbers(4, 3, 2, 1)


def test_pages_are_parts_of_one_order(home: Path) -> None:
    for number in range(7):
        make_run(home, number)
    with open_index(home) as index:
        index.refresh()
        pages = [index.runs(sort="id", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [[row.ulid for row in page.rows] for page in pages] == [
            *(numbers(0, 1, 2), numbers(3, 4, 5), numbers(6), []),
        ]
        assert {page.total for page in pages} == {7}
        assert index.runs(limit=-1, offset=-5).rows == []


def test_groups(home: Path) -> None:
    for number, (group, seeds, loss) in enumerate(
        [("a", [1], 1.0), ("a", [1, 2], 3.0), ("b", [], 9.0), ("b", [], 9.5), ("a", [3], 100.0)]
    ):
        make_run(
            home,
            number,
            group=group,
            seeds=seeds,
            config={"lr": number, "same": 7},
            created=f"2026-11-2{number}T00:00:00+00:00",
            question="which?" if number == 0 else None,
            records=[{"loss": loss}],
        )
    with open_index(home) as index:
        index.refresh()
        page = index.groups("loss<50", columns=["loss", "lr", "same", "seconds"])
        b, a = page.rows
        assert (page.total, a.group, b.group) == (2, "a", "b")
        assert (a.runs, a.seeds, a.n, a.states) == (2, [1, 2], 2, {"finished": 2})
        assert (b.runs, b.seeds, b.n, a.question, b.question) == (2, [], 2, "which?", None)
        # The newest run has both seeds; the older run of seed 1 is a repeat of it.
        assert a.repeats == [Repeat(ulid(0), 1, ulid(1), "seed")]
        assert a.values == {"loss": 3.0, "lr": "2 values", "same": 7, "seconds": 7200.0}
        names = {
            sort: [row.group for row in index.groups(sort=sort).rows]
            for sort in ("-created", "created", "-loss", "loss", "-runs", "group", "-group", "lr")
        }
        assert names == {
            "-created": ["a", "b"],
            "created": ["b", "a"],
            "-loss": ["a", "b"],
            "loss": ["b", "a"],
            "-runs": ["a", "b"],
            "group": ["a", "b"],
            "-group": ["b", "a"],
            "lr": ["a", "b"],
        }
        assert [row.ulid for row in index.members("a")] == numbers(4, 1, 0)
        assert index.members("A") == []


def test_find_a_run_by_name_id_or_latest(home: Path) -> None:
    make_run(home, 1, name="mine")
    with open_index(home) as index:
        assert index.run(ulid(1)) is None
        assert index.find("mine").ulid == ulid(1)
        assert index.find("latest").ulid == ulid(1)
        assert index.run("\ud800") is None
        with pytest.raises(UsageError, match="no run `other`"):
            index.find("other")


# --- staying up to date -----------------------------------------------------------------------


def test_an_ended_run_is_read_again_only_when_its_folder_changes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(home, 1)
    make_run(home, 2)
    read: list[str] = []
    original = refresh.read_entry

    def spied(folder: Path) -> object:
        read.append(folder.name)
        return original(folder)

    monkeypatch.setattr(refresh, "read_entry", spied)
    with open_index(home) as index:
        index.refresh()
        index.refresh()
        assert read == numbers(1, 2)
        (folder / "note").write_text("")
        index.refresh()
    assert read == numbers(1, 2, 1)


def test_a_recently_changed_folder_is_read_again(home: Path) -> None:
    """File system clocks are coarse: content may change without a new time stamp."""
    folder = make_run(home, 1, settled=False)
    before = folder.stat()
    with open_index(home) as index:
        index.refresh()
        write_lines(folder / "events.jsonl", [{"status": "failed", "time": CREATED}])
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
        index.refresh()
        assert index.runs().rows[0].state == "failed"


def test_a_running_run_is_updated_and_a_removed_one_disappears(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "SUMMARY_SHARE", 1e9)
    with open_index(home) as index:
        with create_run(home, command="run", config={}, argv=[]) as writer:
            index.refresh()
            assert [row.state for row in index.runs().rows] == ["running"]
            write_lines(writer.folder / "metrics-log-1.jsonl", [{"loss": 3.0}])
            index.refresh()
            assert index.runs(columns=["loss"]).rows[0].values == {"loss": 3.0}
            write_lines(writer.folder / "metrics-log-1.jsonl", [{"loss": 3.0}, {"loss": 2.0}])
            index.refresh()
            assert index.runs(columns=["loss"]).rows[0].values == {"loss": 2.0}
            writer.record("stopped")
        index.refresh()
        assert [row.state for row in index.runs().rows] == ["stopped"]
        with resume_run(writer.run):
            index.refresh()
            assert [row.state for row in index.runs().rows] == ["running"]
        shutil.rmtree(writer.folder)
        index.refresh()
        assert index.runs().total == 0


def test_metrics_of_a_running_run_are_not_read_every_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    original = refresh.summarise

    def slow(folder: Path) -> object:
        nonlocal count
        count += 1
        time.sleep(0.2)
        return original(folder)

    monkeypatch.setattr(refresh, "summarise", slow)
    with open_index(home) as index, create_run(home, command="run", config={}, argv=[]) as writer:
        for value in range(3):
            write_lines(writer.folder / "metrics-log-1.jsonl", [{"loss": 1.0}] * (value + 1))
            index.refresh()
        assert count == 1
        writer.record("finished")
        index.refresh()
        assert count == 2
        assert index.runs(columns=["loss.count"]).rows[0].values == {"loss.count": 3}


@pytest.mark.medium
def test_a_killed_run_is_lost(home: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from runshelf.store.run import *\n"
        "create_run(Path(sys.argv[1]), command='run', config={}, argv=[])\n"
        "print('made', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(home)]
    with open_index(home) as index, subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"made\n"
        (folder,) = home.glob("runs/0*")
        settle(folder)
        index.refresh()
        assert [row.state for row in index.runs().rows] == ["running"]
        child.send_signal(signal.SIGKILL)
        child.wait()
        index.refresh()
        (row,) = index.runs().rows
        assert (row.state, row.note) == ("lost", "its process is gone without a recorded reason")
        settle(row.folder)
        index.refresh()
        assert index.runs("state=lost").total == 1


def test_a_run_of_another_machine_with_a_new_heartbeat_is_no_longer_lost(home: Path) -> None:
    folder = make_run(home, 1, events=[{"status": "started", "time": CREATED}])
    other = {"pid": 1, "started": "1", "machine": "elsewhere", "host": "node7"}
    beat = folder / "heartbeat.json"
    beat.write_text(json.dumps({"recorder": other, "program": None}))
    settle(folder)
    with open_index(home) as index:
        index.refresh()
        assert index.runs().rows[0].note.startswith("no sign of life from node7 for 3")
        os.utime(beat)
        index.refresh()
        assert index.runs().rows[0].state == "running"


@pytest.mark.medium
def test_progress_is_reported_with_the_remaining_time(home: Path) -> None:
    for number in range(refresh.BATCH + 5):
        make_run(home, number)
    reports: list[Progress] = []
    with open_index(home) as index:
        index.refresh(reports.append)
        assert [(each.done, each.total) for each in reports] == [(0, 205), (200, 205), (205, 205)]
        assert reports[1].to_go == pytest.approx(reports[1].seconds / 200 * 5)
        reports.clear()
        index.refresh(reports.append)
        assert reports == []
        index.rebuild(reports.append)
        assert len(reports) == 3


# --- folders that are not runs ----------------------------------------------------------------


def test_damaged_and_foreign_folders_are_reported_and_the_rest_is_indexed(home: Path) -> None:
    runs = home / "runs"
    make_run(home, 0)
    broken = {
        1: b"",
        2: b'{"schema": 1, "ul',
        3: b"[1, 2]",
        4: b'"text"',
        5: b"\xff\xfe\x00",
        6: b'{"schema": 99}',
        7: b'{"schema": 1, "ulid": 5}',
        8: b"[" * 100_000,
        9: b'{"schema":1,"ulid":"' + ulid(0).encode() + b'","created":"","command":"",'
        b'"config":{},"seeds":[]}',
    }
    for number, content in broken.items():
        (make_run(home, number) / "run.json").write_bytes(content)
    os.mkfifo(remade(make_run(home, 10) / "run.json"))
    os.mkfifo(remade(make_run(home, 11) / "events.jsonl"))
    os.mkfifo(make_run(home, 12) / "heartbeat.json")
    os.mkfifo(remade(make_run(home, 13) / "lock"))
    os.mkfifo(make_run(home, 14) / "metrics-log-2.jsonl")
    os.mkfifo(make_run(home, 15) / "summary.json")
    remade(make_run(home, 16) / "run.json").symlink_to("/dev/zero")
    with (make_run(home, 17) / "run.json").open("r+b") as file:
        file.truncate(2**40)
    remade(make_run(home, 18) / "run.json").mkdir()
    (runs / ulid(19)).symlink_to(runs / ulid(19))
    (runs / ulid(20)).symlink_to(runs / ulid(0))
    (runs / ulid(21)).write_text("a file")
    shutil.rmtree(remade_folder(runs / ulid(22)))
    (runs / "wandb").mkdir()
    (runs / "\udcff\n").mkdir()
    deep = make_run(home, 23)
    manifest = json.loads((deep / "run.json").read_text())
    nested = '{"a":' * 900 + "1" + "}" * 900
    (deep / "run.json").write_text(
        json.dumps(manifest).replace('"config": {}', f'"config": {nested}')
    )
    for folder in runs.iterdir():
        if folder.is_dir() and not folder.is_symlink():
            os.utime(folder, (0, 0))
    with open_index(home) as index:
        problems = index.refresh()
        names = {problem.folder.name for problem in problems}
        assert listed(index, sort="id")[0] == ulid(0)
        assert set(listed(index)) <= {ulid(0), ulid(23)}
        assert names >= {*(ulid(n) for n in range(1, 22)), "wandb", "\udcff\n"}
        for problem in problems:
            assert "\n" not in problem.message
            problem.message.encode()
        assert {p.folder for p in index.refresh()} == {p.folder for p in problems}


def remade(path: Path) -> Path:
    path.unlink(missing_ok=True)
    return path


def remade_folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_an_unreadable_folder_is_reported(home: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    folder = make_run(home, 1)
    folder.chmod(0)
    try:
        with open_index(home) as index:
            assert [problem.folder for problem in index.refresh()] == [folder]
    finally:
        folder.chmod(0o700)


def test_a_starting_run_is_not_reported_and_an_old_empty_folder_is(home: Path) -> None:
    folder = home / "runs" / ulid(1)
    folder.mkdir()
    with open_index(home) as index:
        assert index.refresh() == []
        os.utime(folder, (0, 0))
        assert [problem.folder for problem in index.refresh()] == [folder]


def test_a_run_that_is_damaged_later_leaves_the_index(home: Path) -> None:
    folder = make_run(home, 1)
    with open_index(home) as index:
        index.refresh()
        (folder / "run.json").write_text("no")
        os.utime(folder)
        assert [problem.folder for problem in index.refresh()] == [folder]
        assert index.runs().total == 0


def test_values_of_wrong_types_and_invalid_text_are_left_out_or_replaced(home: Path) -> None:
    make_run(
        home,
        1,
        name=5,
        tags="x",
        seeds=["a", True, 2**70, 3],
        env=["e"],
        group={},
        question="\ud800 <script>\x1b[31m",
        cost_per_hour="dear",
        parent=7,
        config={"\ud800": "\ud800", "big": 10**400, "x" * 5000: "y" * 5000, "deep": {"a": [[1]]}},
        records=[{"\ud800": 1.0, "": 2.0}],
        created="not a time",
    )
    with open_index(home) as index:
        assert index.refresh() == []
        (row,) = index.runs(columns=["big", "deep.a"]).rows
        assert (row.name, row.tags, row.seeds, row.env, row.created) == (None, [], [3], None, 0.0)
        assert row.question == "? <script>\x1b[31m"
        assert row.values == {"big": math.inf, "deep.a": "[[1]]"}
        assert max(map(len, index.keys().config)) <= 2000


def test_an_index_needs_no_runs_and_no_home(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    with open_index(home) as index:
        assert index.refresh() == []
        assert index.runs() == ([], 0)
        assert index.groups() == ([], 0)
    assert not (tmp_path / "new").exists(), "reading must not create the home"


# --- the file ---------------------------------------------------------------------------------


def test_the_file_may_be_deleted_at_any_time(home: Path) -> None:
    make_run(home, 1, config={"lr": 1})
    with open_index(home) as index:
        index.refresh()
        assert index.path == shared(home, "index.sqlite")
    for file in shared(home, "").glob("index.sqlite*"):
        file.unlink()
    with open_index(home) as index:
        index.refresh()
        assert index.runs("lr=1").total == 1


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\xff" * 5000, b""])
def test_a_file_that_is_not_a_database_is_moved_aside(home: Path, content: bytes) -> None:
    make_run(home, 1)
    (make_shared(home) / "index.sqlite").write_bytes(content)
    with open_index(home) as index:
        index.refresh()
        assert index.runs().total == 1
        assert index.path == shared(home, "index.sqlite")
    if content:
        assert shared(home, "index.sqlite.damaged").read_bytes() == content


@pytest.mark.medium
def test_reindexing_repairs_damaged_pages(home: Path) -> None:
    for number in range(50):
        make_run(home, number, config={f"key{n}": n for n in range(50)})
    with open_index(home) as index:
        index.refresh()
    file = shared(home, "index.sqlite")
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.seek(8192)
        stream.write(b"\xa5" * (size - 12288))
    with open_index(home) as index:
        index.rebuild()
        assert index.runs("key3=3").total == 50


def test_tables_of_another_version_are_replaced(home: Path) -> None:
    make_run(home, 1)
    with open_index(home) as index:
        index.refresh()
    with sqlite3.connect(shared(home, "index.sqlite")) as other:
        other.execute("DROP TABLE runs")
        other.execute("PRAGMA user_version = 77")
    other.close()
    with open_index(home) as index:
        index.refresh()
        assert index.runs().total == 1


def test_a_database_of_another_program_is_not_changed(home: Path, cache: Path) -> None:
    make_run(home, 1)
    with sqlite3.connect(make_shared(home) / "index.sqlite") as theirs:
        theirs.execute("CREATE TABLE runs(precious TEXT)")
        theirs.execute("INSERT INTO runs VALUES ('data')")
    theirs.close()
    with open_index(home) as index:
        index.rebuild()
        assert index.runs().total == 1
        assert index.path is not None
        assert cache in index.path.parents
    with sqlite3.connect(shared(home, "index.sqlite")) as theirs:
        assert theirs.execute("SELECT precious FROM runs").fetchall() == [("data",)]
    theirs.close()


def test_a_link_instead_of_the_file_is_not_followed(home: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"data")
    (make_shared(home) / "index.sqlite").symlink_to(precious)
    with open_index(home) as index:
        index.refresh()
    assert precious.read_bytes() == b"data"
    assert shared(home, "index.sqlite").is_symlink()


def test_without_a_writable_place_the_index_is_in_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(home, 1)
    (make_shared(home) / "index.sqlite").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with open_index(home) as index:
        index.refresh()
        assert index.path is None
        assert index.runs().total == 1


def test_a_home_on_a_network_file_system_has_its_index_in_the_cache(
    home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = home / "mounts"
    mounts.write_text(
        f"server:/x {home.parent} nfs4 rw 0 0\nbroken\n"
        f"b {str(home).replace('home', 'ho')} ext4 rw 0 0\n"
        f"d {home.parent}/a\\040b fuse.sshfs rw 0 0\ne {home.parent}/a\\040b/local xfs rw 0 0\n"
        "root / ext4 rw 0 0\n"
    )
    assert is_on_network(home, mounts)
    assert is_on_network(home.parent / "a b" / "x", mounts)
    assert not is_on_network(home.parent / "a b" / "local" / "x", mounts)
    assert not is_on_network(Path("/usr"), mounts)
    assert not is_on_network(home, home / "no such file")
    monkeypatch.setattr("runshelf.index.location.is_on_network", lambda home: True)
    assert places(home) == [cache_folder(home) / "index.sqlite"]
    assert cache in cache_folder(home).parents
    (home.parent / "linked").mkdir()
    (home.parent / "linked" / "runs").symlink_to(home)
    monkeypatch.setattr(
        "runshelf.index.location.is_on_network", lambda path: path.resolve() == home
    )
    assert places(home.parent / "linked") == [cache_folder(home.parent / "linked") / "index.sqlite"]
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder(home).is_relative_to(Path.home() / ".cache" / "runshelf")


# --- concurrent use ---------------------------------------------------------------------------

REFRESHES = """
import sys
from pathlib import Path
from runshelf.index import database
from runshelf.index.run_index import open_index
database.BUSY_SECONDS = 60  # six at once, on two cores
for _ in range(int(sys.argv[2])):
    with open_index(Path(sys.argv[1])) as index:
        problems = index.refresh()
        assert problems == [], problems
print(index.path)
"""


@pytest.mark.slow
def test_many_processes_refresh_one_home_while_runs_come_and_go(home: Path) -> None:
    for number in range(100):
        make_run(home, number, config={f"k{n}": n for n in range(10)}, records=[{"a": 1, "b": 2}])
    command = [sys.executable, "-c", REFRESHES, str(home), "10"]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for number in range(100, 130):
        make_run(home, number, settled=False)
        shutil.rmtree(home / "runs" / ulid(number - 100))
    for child in children:
        out, error = child.communicate(timeout=120)
        assert (child.returncode, error) == (0, "")
        assert out.strip() == str(shared(home, "index.sqlite"))
    with open_index(home) as index:
        index.refresh()
        assert listed(index) == numbers(*range(30, 130))
        assert listed(index, "k3=3") == numbers(*range(30, 100))


def test_a_locked_index_can_be_read_and_the_problem_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    make_run(home, 1)
    with open_index(home) as index, open_index(home) as other:
        index.refresh()
        make_run(home, 2)
        with database.writing(other._connection):
            (problem,) = index.refresh()
            assert "may be out of date" in problem.message
            assert listed(index) == numbers(1)
        assert index.refresh() == []
        assert listed(index) == numbers(1, 2)


@pytest.mark.medium
def test_a_refresh_continues_after_a_kill(home: Path) -> None:
    for number in range(300):
        make_run(home, number)
    program = (
        "import os, sys; from pathlib import Path; from runshelf.index.run_index import *\n"
        "from runshelf.index import refresh\n"
        "refresh.BATCH_SECONDS = 1e9  # a slow machine stores smaller batches\n"
        "def stop(progress):\n    if progress.done >= 200: os.kill(os.getpid(), 9)\n"
        "open_index(Path(sys.argv[1])).refresh(stop)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(home)], check=False)
    assert done.returncode == -signal.SIGKILL
    with open_index(home) as index:
        assert index.runs().total == 200
        index.refresh()
        assert index.runs().total == 300


@pytest.mark.medium
def test_threads_share_one_index(home: Path) -> None:
    for number in range(30):
        make_run(home, number, config={"lr": number})
    errors: list[BaseException] = []
    with open_index(home) as index:
        index.refresh()

        def work() -> None:
            try:
                for _ in range(20):
                    assert index.runs("lr>=10").total == 20
                    index.refresh()
                    assert index.groups().total == 30
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


@pytest.mark.medium
def test_on_a_full_disk_the_index_moves_to_the_cache(home: Path, cache: Path) -> None:
    make_run(home, 1)
    with open_index(home) as index:
        index.refresh()
        index._connection.execute("PRAGMA max_page_count = 1")
        for number in range(2, 60):
            make_run(home, number, config={f"k{n}": "x" * 500 for n in range(20)})
        assert index.refresh() == []
        assert index.path is not None
        assert cache in index.path.parents
        assert index.runs().total == 59


@pytest.mark.medium
def test_the_version_changes_when_another_index_writes(tmp_path: Path) -> None:
    make_run(tmp_path, 0)
    with open_index(tmp_path) as reader, open_index(tmp_path) as writer:
        writer.refresh()
        before = reader.version()
        assert before is not None
        writer.refresh()
        assert reader.version() == before, "nothing has changed"
        make_run(tmp_path, 1)
        writer.refresh()
        assert reader.version() != before
