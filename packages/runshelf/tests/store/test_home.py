"""Tests of `runshelf.store.home`: one folder that hides itself, and homes of older versions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid

from runshelf.cleanup.garbage import collect, disk_usage, find_garbage
from runshelf.cleanup.trash import remove, restore, trashed
from runshelf.cli.main import main
from runshelf.index.run_index import open_index
from runshelf.recorder.budget import read_weekly, write_weekly
from runshelf.snapshot.code_snapshot import materialise
from runshelf.snapshot.object_store import object_path, store
from runshelf.store.finding import find_run, list_runs
from runshelf.store.home import (
    has_runs,
    home_of,
    is_own_ignore_file,
    make_run_folder,
    make_shared,
    shared,
)
from runshelf.store.run import open_run


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_the_folder_of_runs_hides_itself_before_anything_else_is_in_it(tmp_path: Path) -> None:
    assert not has_runs(tmp_path)
    folder = make_run_folder(tmp_path, ulid(1))
    assert folder == tmp_path / "runs" / ulid(1)
    assert names(tmp_path / "runs") == {".gitignore", ulid(1)}
    assert names(folder) == set()
    lines = (tmp_path / "runs" / ".gitignore").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["*"]
    assert is_own_ignore_file(tmp_path / "runs" / ".gitignore")
    with pytest.raises(FileExistsError):
        make_run_folder(tmp_path, ulid(1))


@pytest.mark.parametrize("theirs", ["notes.md", "Nov23_host/events", ".gitkeep", ".gitignore"])
def test_a_folder_with_other_files_is_not_hidden_but_what_is_in_it(
    tmp_path: Path, theirs: str
) -> None:
    path = tmp_path / "runs" / theirs
    path.parent.mkdir(parents=True)
    path.write_text("theirs")
    folder, common = make_run_folder(tmp_path, ulid(1)), make_shared(tmp_path, "trash")
    assert path.read_text() == "theirs"
    assert not is_own_ignore_file(tmp_path / "runs" / ".gitignore")
    assert is_own_ignore_file(folder / ".gitignore")
    assert is_own_ignore_file(common.parent / ".gitignore")


def test_a_kill_while_the_folder_is_made_leaves_nothing_that_matters(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".gitignore.123-abcd").write_text("# Made")
    make_run_folder(tmp_path, ulid(1))
    assert is_own_ignore_file(tmp_path / "runs" / ".gitignore")


MAKE = """
import sys
from pathlib import Path
from runshelf.store.home import make_run_folder, make_shared
sys.stdin.readline()
make_shared(Path(sys.argv[1]), "objects/sha256")
make_run_folder(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.medium
def test_processes_that_make_one_home_at_once(tmp_path: Path) -> None:
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(tmp_path), ulid(number)], stdin=subprocess.PIPE
        )
        for number in range(6)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.close()
    assert [maker.wait(60) for maker in makers] == [0] * 6
    expected = {".gitignore", ".runshelf", *(ulid(number) for number in range(6))}
    assert names(tmp_path / "runs") == expected


def test_a_folder_that_cannot_be_written_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").write_text("a file")
    assert main(["run", "--home", str(tmp_path), "true"]) == 2
    said = capsys.readouterr().err
    assert "cannot write runs in" in said
    assert said.count("\n") == 1


# --- homes of versions before 2026-11-23 ------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a run of a program, and one in the trash, in the old layout."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = tmp_path / "code"
    code.mkdir()
    (code / "x.py").write_text("print('archived')\n")
    monkeypatch.chdir(code)
    home = tmp_path / "home"
    for _ in range(2):
        assert main(["run", "--home", str(home), sys.executable, "x.py"]) == 0
    write_weekly(home, 5.0)
    with open_index(home) as index:
        index.refresh()
    remove(home, find_run(home, "latest"))
    for path in shared(home, "").iterdir():
        if path.name != ".gitignore":
            path.rename(home / path.name)
    shutil.rmtree(shared(home, ""))
    (home / "runs" / ".gitignore").unlink()
    assert names(home / "runs") == set(list_runs(home))
    assert names(home) >= {"runs", "objects", "trash", "index.sqlite", "budget.json"}
    (code / "x.py").write_text("print('changed')\n")
    return home


@pytest.mark.medium
def test_an_old_home_is_read_and_its_runs_are_repeated(
    old: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    (run,) = list_runs(old)
    materialise(old, old / "runs" / run, tmp_path / "restored")
    assert (tmp_path / "restored" / "x.py").read_text() == "print('archived')\n"
    capfd.readouterr()
    assert main(["rerun", "--home", str(old), run]) == 0
    assert "archived" in capfd.readouterr().out
    assert read_weekly(old) == 5.0
    assert disk_usage(old).objects_bytes > 0
    with open_index(old) as index:
        index.refresh()
        assert index.path == shared(old, "index.sqlite")
        assert index.runs().total == 2
    for path, content in before.items():
        assert path.read_bytes() == content, "old files are not written"


@pytest.mark.medium
def test_the_old_trash_is_restored_and_emptied(old: Path) -> None:
    (removed,) = trashed(old)
    first = list_runs(old)[0]
    restore(old, removed)
    assert list_runs(old) == [first, removed]
    remove(old, find_run(old, removed))
    remove(old, find_run(old, first))
    assert trashed(old) == [first, removed]
    assert names(shared(old, "trash")) == {first, removed}
    assert home_of(shared(old, "trash") / first) == home_of(old / "trash" / first) == old
    assert collect(old, trash_days=0.0).trashed == [first, removed]
    assert find_garbage(old).objects == []
    assert not list((old / "objects").glob("sha256/??/*"))


@pytest.mark.slow
def test_old_code_that_a_run_needs_is_kept_and_the_old_index_is_removed(old: Path) -> None:
    (run,) = list_runs(old)
    garbage = collect(old)
    assert {path.name for path in garbage.old_index} >= {"index.sqlite"}
    assert not list(old.glob("index.sqlite*"))
    materialise(old, old / "runs" / run, old / "restored")


@pytest.mark.slow
def test_an_index_of_another_program_is_kept(old: Path) -> None:
    for path in old.glob("index.sqlite*"):
        path.unlink()
    (old / "index.sqlite").write_bytes(b"SQLite format 3\0" + b"theirs" * 20)
    assert collect(old).old_index == []
    assert (old / "index.sqlite").exists()


@pytest.mark.medium
def test_code_that_is_stored_in_the_old_place_is_not_stored_twice(old: Path) -> None:
    source = old / "x.py"
    source.write_text("print('archived')\n")
    one = store(old, source)
    path = object_path(old, one.sha256)
    assert path.is_relative_to(old / "objects")
    path.chmod(0o644)
    path.write_text("damaged")
    store(old, source)
    assert object_path(old, one.sha256).is_relative_to(shared(old, "objects"))
    assert object_path(old, one.sha256).read_text() == source.read_text()


def test_a_folder_with_runs_of_another_program_gets_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "runs" / "Nov23_host").mkdir(parents=True)
    assert main(["runs", "--home", str(tmp_path)]) == 0
    assert names(tmp_path / "runs") == {"Nov23_host"}


def test_the_folder_of_a_run_names_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(make_run(tmp_path, 1))
    monkeypatch.chdir(run.folder.parent)
    assert home_of(run.folder) == home_of(Path(run.folder.name)) == tmp_path
    assert os.fspath(shared(tmp_path, "trash")).startswith(os.fspath(tmp_path / "runs"))
