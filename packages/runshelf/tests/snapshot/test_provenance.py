"""Tests that a repository is recorded as it is, and that a run leaves it as it was."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from packages.runshelf.tests.snapshot.repositories import KINDS, ULID, Place, git, made, write

from runshelf.cli.main import main
from runshelf.comparison.code import diff_code
from runshelf.snapshot.capture import capture
from runshelf.snapshot.code_snapshot import read_snapshot
from runshelf.snapshot.git import find_repository
from runshelf.store.finding import find_run, list_runs
from runshelf.store.home import SHARED
from runshelf.store.run import Run, create_run

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.medium,
]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the configuration and the cache of this machine's user out of the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for name in ("RUNSHELF_HOME", "BACKFLIP_HOME", "RUNSHELF_RUN", "BACKFLIP_RUN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


Call = Callable[..., str]

QUICK = (  # one of each: what git ignores, where runs are, and what is not committed
    *("everything is ignored", "with files in runs", "in a submodule", "home outside", "changed"),
)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def call(place: Place, command: str, *words: str) -> str:
        monkeypatch.chdir(place.cwd)
        for name, value in place.environ.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        assert main([command, *place.words, *words]) == 0
        return capsys.readouterr().out

    return call


def home_of(place: Place) -> Path:
    named = place.words[1] if place.words else place.environ.get("RUNSHELF_HOME", ".")
    return place.cwd / named


def status(place: Place) -> str:
    """Return what git says about the repository, without what Python compiles."""
    lines = git(
        place.repository, "status", "--porcelain", "-uall", environ=place.environ
    ).splitlines()
    return "\n".join(line for line in lines if "__pycache__" not in line)


def runs_of(place: Place) -> list[Run]:
    home = home_of(place)
    return [find_run(home, ulid) for ulid in list_runs(home) if ulid != ULID]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in KINDS]
)
def test_a_run_records_the_repository_and_leaves_it_as_it_was(
    tmp_path: Path, call: Call, kind: str
) -> None:
    place = KINDS[kind](tmp_path)
    before = status(place)
    call(place, "run", sys.executable, "train.py")
    assert status(place) == before
    call(place, "runs")  # makes the index
    assert status(place) == before
    call(place, "run", sys.executable, "train.py")
    assert status(place) == before
    one, other = runs_of(place)
    for run in (one, other):
        assert run.manifest["git"]["dirty"] is place.is_dirty
        paths = {file.path for file in read_snapshot(run.folder).files}
        assert paths >= set(place.code)
        assert not [path for path in paths if is_ours(path)]
    difference = diff_code(home_of(place), one.folder, other.folder)
    assert (difference.note, difference.files) == ("", [])
    assert difference.same


def is_ours(path: str) -> bool:
    marks = ("index.sqlite", "objects/", SHARED, ULID, "run.json", "budget.json", ".pyc")
    return any(mark in path for mark in marks)


@pytest.mark.parametrize(
    "kind",
    [
        "with files in runs",
        pytest.param("no ignore file", marks=pytest.mark.slow),
        pytest.param("with an ignore file in runs", marks=pytest.mark.slow),
    ],
)
def test_every_command_leaves_the_repository_as_it_was(
    tmp_path: Path, call: Call, kind: str
) -> None:
    place = KINDS[kind](tmp_path)
    before = status(place)
    write(tmp_path / "progress.csv", "time/total_timesteps,loss\n1,2\n")

    def unchanged(command: str, *words: str) -> None:
        call(place, command, *words)
        assert status(place) == before, command

    unchanged("budget", "--weekly", "100")
    unchanged("runs")
    unchanged("run", "--name", "first", sys.executable, "train.py")
    unchanged("import", str(tmp_path / "progress.csv"))
    for command in ("runs", "du", "reindex", "gc", "budget"):
        unchanged(command)
    unchanged("show", "first")
    unchanged("rerun", "first")
    first, imported, again = [run.ulid for run in runs_of(place)]
    unchanged("diff", first, again)
    unchanged("rm", first, imported)
    unchanged("restore", first)
    unchanged("rerun", first)
    unchanged("gc", "--trash", "0", "--yes")
    assert [entry.name for entry in place.cwd.iterdir() if entry.name not in known(place)] == []


def known(place: Place) -> set[str]:
    tracked = git(place.repository, "ls-files").splitlines()
    return {".git", "runs", "__pycache__"} | {name.partition("/")[0] for name in tracked}


def test_git_is_asked_before_the_run_writes_anything(tmp_path: Path) -> None:
    root = made(tmp_path / "repository")
    keep = capture(root, ["x"], say=print, cwd=root)
    write(root / "runs" / "of-a-run")  # as if nothing hid it
    with create_run(root, command="run", config={}, argv=["x"], cwd=root, capture=keep) as writer:
        assert writer.run.manifest["git"]["dirty"] is False


SCRIPT = "import model, runshelf\nrunshelf.log('loss', 1.0)\n"


def test_a_script_that_logs_leaves_the_repository_as_it_was(tmp_path: Path) -> None:
    root = made(tmp_path / "repository")
    write(root / "log.py", SCRIPT)
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    place = Place(root, root)
    for _ in range(2):
        subprocess.run([sys.executable, "log.py"], cwd=root, check=True, capture_output=True)
        assert status(place) == ""
    one, other = runs_of(place)
    assert [run.manifest["git"]["dirty"] for run in (one, other)] == [False, False]
    assert diff_code(root, one.folder, other.folder).files == []


def test_a_repository_without_commits_is_recorded_without_one(tmp_path: Path, call: Call) -> None:
    root = tmp_path / "repository"
    write(root / "train.py", "print(1)\n")
    git(root, "init", "-q")
    place = Place(root, root)
    for _ in range(2):
        call(place, "run", sys.executable, "train.py")
        call(place, "runs")
        assert status(place) == "?? train.py"
    one, other = runs_of(place)
    assert one.manifest["git"] is None
    assert [file.path for file in read_snapshot(one.folder).files] == ["train.py"]
    assert diff_code(root, one.folder, other.folder).files == []


@pytest.mark.parametrize(
    "refuses",
    [
        "owner",
        "no git",
        pytest.param("tree elsewhere", marks=pytest.mark.slow),
        pytest.param("damaged", marks=pytest.mark.slow),
    ],
)
def test_where_git_gives_no_answer_the_code_is_kept_without_it(
    tmp_path: Path,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    refuses: str,
) -> None:
    root = made(tmp_path / "repository", ignore="runs/\n")
    if refuses == "owner":
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    elif refuses == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif refuses == "tree elsewhere":
        (tmp_path / "tree").mkdir()
        git(root, "config", "core.worktree", str(tmp_path / "tree"))
    else:
        (root / ".git" / "HEAD").write_text("damaged")
    place = Place(root, root)
    for _ in range(2):
        call(place, "run", sys.executable, "train.py")
        call(place, "runs")
    one, other = runs_of(place)
    assert one.manifest["git"] is None
    assert {file.path for file in read_snapshot(other.folder).files} == {
        *(".gitignore", "model.py", "train.py")
    }
    assert diff_code(root, one.folder, other.folder).files == []


def test_a_plain_folder_has_no_files_of_ours_in_its_snapshots(tmp_path: Path, call: Call) -> None:
    root = tmp_path / "plain"
    write(root / "train.py", "print(1)\n")
    write(root / "runs" / "notes.md")
    place = Place(root, root)
    call(place, "run", sys.executable, "train.py")
    call(place, "runs")
    (root / "runs").rename(root / "older")
    call(place, "run", sys.executable, "train.py")
    call(place, "runs")
    call(place, "run", sys.executable, "train.py")
    for run in runs_of(place):
        paths = {file.path for file in read_snapshot(run.folder).files}
        assert paths == {"train.py", "older/notes.md"}


# --- filters ----------------------------------------------------------------------------------


def with_filter(root: Path, scope: Sequence[str], *, settled: bool) -> Path:
    """Return the log of a filter like Git LFS: what is committed is a hash of the content.

    Args:
        root: where to make the repository.
        scope: the option of `git config` for the filter.
        settled: whether files are older than the index; else git reads them again.
    """
    log = root.parent / "filtered"
    made(root)
    clean = write(root.parent / "clean.sh", f"#!/bin/sh\necho ran >> {log}\nsha256sum\n")
    clean.chmod(0o755)
    git(root, "config", *scope, "filter.large.clean", str(clean))
    git(root, "config", *scope, "filter.large.required", "true")
    write(root / ".gitattributes", "*.bin filter=large\n")
    write(root / "weights.bin", "large content\n")
    if settled:
        os.utime(root / "weights.bin", (1.6e9, 1.6e9))
    git(root, "add", ".")
    git(root, "commit", "-qm", "filtered")
    if not settled:
        stamp = (root / "weights.bin").stat().st_mtime_ns
        os.utime(root / ".git" / "index", ns=(stamp, stamp))
    log.unlink()
    return log


@pytest.mark.parametrize("scope", [pytest.param("--global", marks=pytest.mark.slow), "--local"])
@pytest.mark.parametrize("settled", [True, False])
def test_unchanged_filtered_files_are_clean_and_filters_never_run(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, scope: str, settled: bool
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(write(tmp_path / "config", "")))
    place = Place(tmp_path / "repository", tmp_path / "repository")
    log = with_filter(place.cwd, [scope], settled=settled)
    call(place, "run", "true")
    assert not log.exists()
    (run,) = runs_of(place)
    assert run.manifest["git"]["dirty"] is False
    assert not (run.folder / "code.patch").exists()
    for name in ("model.py", "weights.bin"):
        git(place.cwd, "checkout", "-q", "--", "model.py")
        write(place.cwd / name, "new")
        call(place, "run", "true")
        assert runs_of(place)[-1].manifest["git"]["dirty"] is True


def test_a_touched_file_with_a_filter_counts_as_changed_and_one_without_does_not(
    tmp_path: Path, call: Call
) -> None:
    root = tmp_path / "repository"
    with_filter(root, ["--local"], settled=True)
    os.utime(root / "model.py", (0, 0))
    call(Place(root, root), "run", "true")
    os.utime(root / "weights.bin", (0, 0))
    call(Place(root, root), "run", "true")
    one, other = runs_of(Place(root, root))
    assert (one.manifest["git"]["dirty"], other.manifest["git"]["dirty"]) == (False, True)


# --- hooks, old homes -------------------------------------------------------------------------


def test_a_nested_repository_is_read_although_a_hook_names_the_outer_one(
    tmp_path: Path, call: Call
) -> None:
    root = made(tmp_path / "repository", ignore="inner/\n")
    made(root / "inner")
    environ = {"GIT_DIR": str(root / ".git"), "GIT_WORK_TREE": str(root)}
    root_seen = Place(root, root, environ=environ)
    call(root_seen, "run", "true")
    (run,) = runs_of(root_seen)
    assert run.manifest["git"]["dirty"] is False
    repository = find_repository(root / "inner")
    assert repository is not None
    assert repository.root == root, "the environment names it"
