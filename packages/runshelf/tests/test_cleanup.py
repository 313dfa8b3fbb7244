"""Tests of the trash, garbage collection and disk usage."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import CREATED, make_run, settle, ulid
from tests.attack_figures import Tried

from runshelf.cleanup.garbage import collect, disk_usage, find_garbage
from runshelf.cleanup.trash import remove, restore, trashed
from runshelf.cli.main import main
from runshelf.errors import UsageError, UserFacingError
from runshelf.recorder.output_files import list_outputs
from runshelf.recorder.rerun import _locked_folder
from runshelf.snapshot.object_store import object_path, snapshot_taken, store
from runshelf.store.finding import list_runs
from runshelf.store.home import make_shared, shared
from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import create_run, open_run
from runshelf.store.series import metric_names, read_series
from runshelf.store.trees import remove_tree, tree_bytes


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


def test_a_kill_right_after_the_move_leaves_the_time_of_removal(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(home, 1)
    os.utime(folder, (0, 0))
    move = Path.rename

    def killed(path: Path, target: Path) -> None:
        move(path, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(home, open_run(folder))
    monkeypatch.undo()
    collect(home, trash_days=30.0)
    assert trashed(home) == [ulid(1)]


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


def test_metrics_that_were_compacted_twice_are_not_compacted_again(home: Path) -> None:
    """Each compaction leaves one more empty line."""
    over = make_run(home, 1)
    for updates in (1, 2, 3):
        with MetricsWriter(over, "train") as metrics:
            metrics.write({"seed": 0, "updates": updates, "loss": 1.0})
        settle(over)
        assert collect(home).compactable == [ulid(1)]
        assert find_garbage(home).compactable == collect(home).compactable == []


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
        ulid(1): sizes[both],
        ulid(2): sizes[both] + sizes[own],
        ulid(3): sizes[both],
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


# Runs a command without root's right to ignore permissions.
WITHOUT_RIGHTS = """
import ctypes, os, sys
for capability in (1, 2, 3):  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.argv[1], sys.argv[1:])
"""


def gc_read_only(home: Path, *folders: Path) -> tuple[int, dict[str, Any], str]:
    """Run `gc --yes` while some folders are read-only; return status, answer and messages."""
    modes = {
        path: path.stat().st_mode for folder in folders for path in [folder, *folder.rglob("*")]
    }
    for path in modes:
        path.chmod(modes[path] & ~0o222)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
    command = [sys.executable, "-m", "runshelf", "gc", "--yes", "--trash", "0", "--json"]
    if os.geteuid() == 0:
        command = [sys.executable, "-c", WITHOUT_RIGHTS, *command]
    done = subprocess.run(
        [*command, "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    for path, mode in modes.items():
        os.chown(path, os.geteuid(), -1)
        path.chmod(mode)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="drops capabilities of Linux")
def test_gc_claims_only_what_it_did(home: Path, tried: Tried) -> None:
    """Folders that cannot be changed: of a run, of the trash, of the objects, the whole home."""
    records = [{"step": n, "loss": 0.5} for n in range(20)]
    runs = [make_run(home, number, records=records) for number in (1, 2)]
    remove(home, open_run(make_run(home, 3)))
    sha256 = keep(home, b"unused")
    trash = shared(home, "trash")

    status, done, said = gc_read_only(home, home / "runs")
    assert (status, done) == (1, {}), "the lock of the objects cannot be taken"
    assert said.count("\n") == 1

    places = runs[0], trash, object_path(home, sha256).parent
    status, done, said = gc_read_only(home, *places)
    assert (status, done.get("done")) == (1, False), said
    assert done["compactable"] == [ulid(2)]
    assert (done["trashed"], done["objects"], len(done["failed"])) == ([], 0, 3)
    assert "is not removed: Permission denied" in said
    assert (trash / ulid(3) / "run.json").exists(), "nor is it emptied"
    assert (trash / ulid(3)).exists()
    assert object_path(home, sha256).exists()
    assert not list(runs[0].glob("*.npz"))

    status, done, said = gc_read_only(home)
    assert (status, done["done"], done["failed"], said) == (0, True, [], "")
    assert (done["compactable"], done["trashed"], done["objects"]) == ([ulid(1)], [ulid(3)], 1)
    tried(3, "read-only homes that gc is to clean up")


DEPTH = 3000


def make_deep(folder: Path) -> None:
    """Make folders inside each other, deeper than a path may be long, with a file at the bottom."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)


@pytest.fixture
def removed_at_end(tmp_path: Path) -> Generator[None, None, None]:
    """Pytest cannot remove deep folders that a failed test leaves."""
    yield
    remove_tree(tmp_path)


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.usefixtures("removed_at_end")
def test_a_deep_folder_spoils_no_command(home: Path, tried: Tried) -> None:
    folder, leftover = make_run(home, 1), home / "runs" / ulid(2)
    for place in (folder / "outputs", leftover):
        make_deep(place)
    assert list_outputs(folder) == []
    settle(leftover)
    os.utime(leftover, (0, 0))
    commands = (
        *(["runs"], ["show", ulid(1)], ["du"], ["gc", "--yes"], ["rm", ulid(1)], ["du"]),
        *(["restore", ulid(1)], ["rm", ulid(1)], ["gc", "--yes", "--trash", "0"], ["gc"]),
    )
    for argv in commands:
        assert main([*argv, "--home", str(home)]) == 0, argv
    assert not folder.exists()
    assert not leftover.exists()
    assert trashed(home) == []
    tried(len(commands), "commands on a run with a folder 3,000 deep")


@pytest.mark.slow
@pytest.mark.usefixtures("removed_at_end")
def test_disk_usage_counts_all_of_a_deep_folder(tmp_path: Path) -> None:
    make_deep(tmp_path / "deep")
    (tmp_path / "flat").mkdir()
    one = (tmp_path / "flat").stat().st_blocks * 512
    assert tree_bytes(tmp_path / "deep") == DEPTH * one
    remove_tree(tmp_path / "deep")
    assert not (tmp_path / "deep").exists()


def test_a_removed_tree_changes_nothing_that_its_links_lead_to(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (outside / "below").mkdir(parents=True)
    (outside / "file").write_text("kept")
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "link").symlink_to(outside)
    (folder / "a" / "b" / "link").symlink_to(outside / "file")
    (folder / "a" / "b" / "hard").hardlink_to(outside / "file")
    os.mkfifo(folder / "a" / "pipe")
    (folder / "a" / "b").chmod(0)
    (folder / "a").chmod(0o500)
    remove_tree(folder)
    assert not folder.exists()
    assert (outside / "file").read_text() == "kept"
    assert (outside / "below").is_dir()
    (tmp_path / "alias").symlink_to(outside)
    with pytest.raises(OSError, match="alias"):
        remove_tree(tmp_path / "alias")
    assert (outside / "file").exists()


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
