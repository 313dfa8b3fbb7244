"""Tests of the trash, garbage collection and disk usage."""

import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import CREATED, make_run, settle, ulid

from runshelf.cleanup.garbage import collect, disk_usage, find_garbage
from runshelf.cleanup.trash import remove, restore, trashed
from runshelf.cli.main import main
from runshelf.errors import UsageError, UserFacingError
from runshelf.recorder.rerun import _locked_folder
from runshelf.snapshot.object_store import object_path, snapshot_taken, store
from runshelf.store.home import make_shared, shared
from runshelf.store.run import create_run, list_runs, open_run
from runshelf.store.series import metric_names, read_series


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def keep(home: Path, content: bytes) -> str:
    """Store an object with this content; return its hash."""
    source = home.parent / "source"
    source.write_bytes(content)
    return store(home, source).sha256


def with_code(folder: Path, *hashes: str) -> Path:
    files = [{"path": h[:4], "sha256": h, "bytes": 1, "mode": 0o644} for h in hashes]
    code = {"root": "/x", "cwd": ".", "files": files, "left_out": []}
    (folder / "code.json").write_text(json.dumps(code))
    settle(folder)
    return folder


def test_a_removed_run_is_in_the_trash_and_can_be_restored(home: Path) -> None:
    folder = make_run(home, 1, name="mine", records=[{"loss": 1.0}])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    remove(home, open_run(folder))
    assert (list_runs(home), trashed(home)) == ([], [ulid(1)])
    run = restore(home, ulid(1)[:24].lower() + ulid(1)[24:])
    assert (list_runs(home), trashed(home)) == ([ulid(1)], [])
    assert {path.name: path.read_bytes() for path in run.folder.iterdir()} == before


def test_a_running_run_is_not_removed(home: Path) -> None:
    with create_run(home, command="run", config={}, argv=[]) as writer:
        with pytest.raises(UsageError, match=f"run {writer.run.short} is running: stop it first"):
            remove(home, writer.run)
        assert list_runs(home) == [writer.run.ulid]
        (writer.folder / "events.jsonl").write_text('{"status": "finished", "time": ""}\n')
        with pytest.raises(UsageError, match="is being written: stop it first"):
            remove(home, writer.run)
    assert trashed(home) == []


def test_only_runs_of_the_home_are_removed_and_links_are_not_followed(home: Path) -> None:
    elsewhere = make_run(home.parent / "other", 1)
    make_run(home, 2)
    with pytest.raises(UsageError, match="is not in"):
        remove(home, open_run(elsewhere))
    (make_shared(home) / "trash").symlink_to(home.parent / "other")
    with pytest.raises(UsageError, match="is a link"):
        remove(home, open_run(home / "runs" / ulid(2)))
    with pytest.raises(UsageError, match="is a link"):
        find_garbage(home)


def test_names_that_cannot_be_restored(home: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no run `x` in the trash .*it is empty"):
        restore(home, "x")
    for number in (1, 2):
        remove(home, open_run(make_run(home, number)))
    with pytest.raises(UsageError, match=f"`01A` matches 2 runs .*{ulid(1)[-8:]}, {ulid(2)[-8:]}"):
        restore(home, "01A")
    for name in ("", "../..", "*", "x"):
        with pytest.raises(UsageError, match="there is no run"):
            restore(home, name)
    make_run(home, 1)
    with pytest.raises(UsageError, match="already"):
        restore(home, ulid(1))
    assert restore(home, "latest").ulid == ulid(2)


def test_only_objects_that_no_run_refers_to_are_removed(home: Path) -> None:
    ours, theirs, both, removed, unused = (keep(home, name.encode()) for name in "abcde")
    with_code(make_run(home, 1), ours, both)
    with_code(make_run(home, 2), theirs, both)
    remove(home, open_run(with_code(make_run(home, 3), removed)))
    (with_code(make_run(home, 4), both) / "run.json").write_text("damaged")
    damaged = keep(home, b"damaged")
    (home / "runs" / ulid(4) / "code.json").write_text(f'{{"files": [{{"sha256": "{damaged}"')
    garbage = find_garbage(home)
    assert garbage.objects == [object_path(home, unused)]
    assert object_path(home, unused).exists(), "find_garbage must change nothing"
    collect(home)
    assert not object_path(home, unused).exists()
    for sha256 in (ours, theirs, both, removed, damaged):
        assert object_path(home, sha256).exists()
    assert find_garbage(home).objects == []


def test_runs_removed_long_ago_are_deleted_from_the_trash(home: Path) -> None:
    sha256 = keep(home, b"a")
    for number in (1, 2):
        remove(home, open_run(with_code(make_run(home, number), sha256)))
    long_ago = time.time() - 31 * 86400
    os.utime(shared(home, "trash") / ulid(1), (long_ago, long_ago))
    assert find_garbage(home).trashed == [ulid(1)]
    assert find_garbage(home, trash_days=40.0).trashed == []
    collect(home)
    assert trashed(home) == [ulid(2)]
    assert object_path(home, sha256).exists(), "the other run may be restored"
    collect(home, trash_days=0.0)
    assert trashed(home) == []
    assert not object_path(home, sha256).exists()


def test_emptying_the_trash_follows_no_links_and_removes_protected_folders(home: Path) -> None:
    precious = home.parent / "precious"
    precious.mkdir()
    (precious / "file").write_text("data")
    folder = make_run(home, 1)
    (folder / "outputs" / "closed").mkdir(parents=True)
    (folder / "outputs" / "closed" / "file").write_text("x")
    (folder / "outputs" / "link").symlink_to(precious)
    (folder / "outputs" / "hard").hardlink_to(precious / "file")
    (folder / "outputs" / "closed").chmod(0o500)
    remove(home, open_run(folder))
    (shared(home, "trash") / ulid(9)).symlink_to(precious)
    collect(home, trash_days=0.0)
    assert (precious / "file").read_text() == "data"
    assert not (shared(home, "trash") / ulid(1)).exists()


def test_links_among_the_objects_are_not_followed(home: Path) -> None:
    precious = home.parent / "precious"
    precious.mkdir()
    (precious / ("f" * 64)).write_text("data")
    os.utime(precious / ("f" * 64), (0, 0))
    keep(home, b"a")
    (shared(home, "objects") / "sha256" / "ff").symlink_to(precious)
    collect(home)
    assert (precious / ("f" * 64)).exists()
    shutil.rmtree(shared(home, "objects"))
    shared(home, "objects").symlink_to(precious)
    with pytest.raises(UsageError, match="is a link"):
        collect(home)


def test_objects_of_a_run_that_is_being_prepared_are_kept(home: Path) -> None:
    """The run's objects are stored already, but its list of files is not written yet."""
    sha256 = keep(home, b"shared by chance")
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(collect(home)))

    def capture(folder: Path, cwd: Path) -> dict[str, object]:
        with snapshot_taken(home):
            thread.start()
            thread.join(0.2)
            assert not done, "collect must wait for the snapshot"
            with_code(folder, sha256)
        return {}

    with create_run(home, command="run", config={}, argv=[], capture=capture):
        thread.join(30)
    assert len(done) == 1
    assert object_path(home, sha256).read_bytes() == b"shared by chance"


def test_an_unreadable_list_of_files_keeps_everything(home: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read every file")
    sha256 = keep(home, b"a")
    (with_code(make_run(home, 1), sha256) / "code.json").chmod(0)
    with pytest.raises(UserFacingError, match="cannot be read: make it readable"):
        collect(home)
    assert object_path(home, sha256).exists()


def test_a_folder_of_a_run_that_never_began_is_removed_after_an_hour(home: Path) -> None:
    for number in (1, 2):
        (home / "runs" / ulid(number)).mkdir(parents=True)
    (home / "runs" / "notes").mkdir()
    for name in (ulid(1), "notes"):
        os.utime(home / "runs" / name, (0, 0))
    assert find_garbage(home).leftovers == [ulid(1)]
    collect(home)
    assert {path.name for path in (home / "runs").iterdir()} == {ulid(2), "notes"}


def test_metrics_of_runs_that_ended_are_compacted(home: Path) -> None:
    records = [{"step": n, "loss": 1 / (n + 1)} for n in range(1000)]
    over = make_run(home, 1, records=records)
    lost = make_run(home, 2, records=records, events=[{"status": "started", "time": CREATED}])
    before = read_series(over, ["loss"], "step")["loss"][None]
    assert find_garbage(home).compactable == [ulid(1)]
    told: list[tuple[int, int]] = []
    garbage = collect(home, report=lambda done, total: told.append((done, total)))
    assert (garbage.compactable, told) == ([ulid(1)], [(0, 1), (1, 1)])
    after = read_series(over, ["loss"], "step")["loss"][None]
    assert (list(after.x), list(after.y), after.end) == (list(before.x), list(before.y), before.end)
    assert not list(lost.glob("*.npz"))
    assert metric_names(lost) == ["loss"]
    assert find_garbage(home).compactable == []


def test_metrics_with_invalid_lines_are_not_compacted_and_are_reported(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = make_run(home, 1, records=[{"step": n, "loss": 0.5} for n in range(20)])
    (path,) = over.glob("metrics-*.jsonl")
    with path.open("ab") as file:
        file.write(b"<html>\n")
    before = path.read_bytes()
    assert find_garbage(home).compactable == [ulid(1)]
    assert main(["gc", "--yes", "--home", str(home)]) == 0
    assert f"{path} is not compacted: line 21 is not a metric record" in capsys.readouterr().out
    assert path.read_bytes() == before
    assert not list(over.glob("*.npz"))
    garbage = find_garbage(home)
    assert (garbage.compactable, garbage.lines_bytes, garbage.kept) == ([], 0, [(path, 21)])
    with path.open("ab") as file:
        file.write(b'{"loss": 1}\n')
    assert find_garbage(home).compactable == [ulid(1)]


def test_damaged_metrics_do_not_stop_collection(home: Path) -> None:
    folder = make_run(home, 1, records=[{"loss": 1.0}])
    (folder / "metrics-log-1.npz").write_bytes(b"PK damaged")
    sha256 = keep(home, b"a")
    collect(home)
    assert (folder / "metrics-log-1.npz").read_bytes() == b"PK damaged"
    assert not object_path(home, sha256).exists()


def test_an_empty_home_has_no_garbage(home: Path) -> None:
    assert find_garbage(home) == collect(home) == ([], 0, [], 0, [], [], 0, [], [], [])
    assert disk_usage(home).total_bytes == 0
    assert not home.exists()


def test_disk_usage_counts_shared_code_once(home: Path) -> None:
    both, own = keep(home, b"s" * 100_000), keep(home, b"o" * 50_000)
    with_code(make_run(home, 1), both)
    with_code(make_run(home, 2), both, own)
    remove(home, open_run(with_code(make_run(home, 3), both)))
    (home / "runs" / ulid(2) / "outputs").mkdir()
    (home / "runs" / ulid(2) / "outputs" / "big").write_bytes(b"x" * 1_000_000)
    (home / "runs" / ulid(1) / "link").symlink_to("/usr")
    usage = disk_usage(home)
    sizes = {sha256: object_path(home, sha256).stat().st_blocks * 512 for sha256 in (both, own)}
    assert usage.runs[0].run == ulid(2)
    assert {row.run: row.code_bytes for row in usage.runs} == {
        **{ulid(1): sizes[both], ulid(2): sizes[both] + sizes[own], ulid(3): sizes[both]},
    }
    assert [row.run for row in usage.runs if row.is_trashed] == [ulid(3)]
    assert usage.objects_bytes == sum(sizes.values())
    assert usage.runs[0].bytes >= 1_000_000
    assert usage.runs_bytes < 2_000_000, "links must not be followed"
    assert usage.total_bytes == usage.runs_bytes + usage.trash_bytes + usage.objects_bytes


def test_a_home_that_cannot_be_written_gives_a_one_line_error(home: Path) -> None:
    folder = make_run(home, 1)
    (make_shared(home) / "trash").write_text("a file")
    with pytest.raises(UserFacingError, match="trash") as caught:
        remove(home, open_run(folder))
    assert "\n" not in str(caught.value)
    assert folder.exists()


@pytest.mark.attack
def test_folders_of_killed_reruns_are_removed(tmp_path):
    top = make_shared(tmp_path, "reruns")
    killed, lock = _locked_folder(top)
    os.close(lock)
    running, held = _locked_folder(top)
    (killed / "x.py").write_text("")
    assert find_garbage(tmp_path).reruns == [killed]
    collect(tmp_path)
    assert [path.name for path in top.iterdir()] == [running.name]
    os.close(held)
    assert find_garbage(tmp_path).reruns == [running]
