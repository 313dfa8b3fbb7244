"""Attacks: repositories that make git run a program when a run is recorded."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from packages.runshelf.tests.snapshot.hostile_repositories import (
    HOSTILE,
    USER_SETTINGS,
    Hostile,
)
from packages.runshelf.tests.snapshot.repositories import git, made, write

from runshelf.snapshot.code_snapshot import read_snapshot
from runshelf.store.finding import find_run, list_runs

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.attack,
    pytest.mark.medium,
]
Tried = Callable[[int, str], None]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the user a configuration that is known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(write(tmp_path / "user", USER_SETTINGS)))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for name in ("RUNSHELF_HOME", "BACKFLIP_HOME", "RUNSHELF_RUN", "BACKFLIP_RUN"):
        monkeypatch.delenv(name, raising=False)


def older_git(folder: Path) -> Path:
    """Return a folder with a git that knows neither GIT_NO_LAZY_FETCH nor GIT_CONFIG_COUNT."""
    words = f'unset GIT_NO_LAZY_FETCH GIT_CONFIG_COUNT\nexec {shutil.which("git")} "$@"'
    write(folder / "git", f"#!/bin/sh\n{words}\n").chmod(0o755)
    return folder


def hostile(folder: Path, attack: Hostile) -> tuple[Path, Path]:
    """Return a hostile repository, and the file that its program makes."""
    mark = folder / "ran"
    evil = write(folder / "evil.sh", f"#!/bin/sh\n: > {mark}\nexit 1\n")
    evil.chmod(0o755)
    root = made(folder / "repository", tracked=("x",))
    attack.build(root, str(evil))
    mark.unlink(missing_ok=True)
    return root, mark


def run_in_terminal(root: Path, words: tuple[str, ...], mark: Path) -> None:
    """Run git as a person does, in a terminal, until it ends, `mark` is there or 5 s are over."""
    ours, terminal = pty.openpty()
    process = subprocess.Popen(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "TERM": "xterm"},
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(b"protocol=https\nhost=example.com\n\n")
        until = time.monotonic() + 5
        while process.poll() is None and not mark.exists() and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(terminal)
        os.close(ours)


# A tenth of them in `make test`, all in `make attack`: each starts git some fifty times.
SPREAD = [
    pytest.param(name, marks=[pytest.mark.slow] if place % 20 else [])
    for place, name in enumerate(HOSTILE)
]


@pytest.mark.parametrize("name", SPREAD)
def test_a_hostile_repository_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: Tried, name: str
) -> None:
    attack = HOSTILE[name]
    monkeypatch.setenv("PATH", f"{older_git(tmp_path / 'bin')}:{os.environ['PATH']}")
    shown, mark = hostile(tmp_path / "shown", attack)
    run_in_terminal(shown, attack.shown_by, mark)
    assert mark.exists(), "git does not run the program: this is no attack"
    root, mark = hostile(tmp_path / "attacked", attack)
    command = [sys.executable, "-m", "runshelf", "run", "--home", str(tmp_path / "home"), "true"]
    subprocess.run(command, cwd=root / attack.cwd, check=True, capture_output=True, timeout=60)
    assert not mark.exists()
    tried(1, "hostile git repositories")


def elsewhere(root: Path, where: str, ignore: str) -> None:
    """Set the working tree of a repository."""
    git(root, "config", "core.worktree", where)
    write(root / ".git" / "info" / "exclude", ignore)


TREES = {
    "above": lambda root: elsewhere(root, str(root.parent), ""),
    "above, all is ignored": lambda root: elsewhere(root, str(root.parent), "*\n"),
    "the root of the disk": lambda root: elsewhere(root, "/", "*\n"),
    "below": lambda root: elsewhere(root, str(write(root / "sub" / "x").parent), ""),
    "beside": lambda root: elsewhere(root, str(write(root.parent / "other" / "x").parent), ""),
    "nowhere": lambda root: elsewhere(root, str(root / "nowhere"), ""),
    "relative": lambda root: elsewhere(root, "../..", "*\n"),
    "a damaged index": lambda root: write(root / ".git" / "index", "damaged"),
    "no index, all is ignored": lambda root: (
        (root / ".git" / "index").unlink(),
        write(root / ".git" / "info" / "exclude", "*\n"),
    ),
}

QUICK_TREES = ("above", "a damaged index")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK_TREES else pytest.mark.slow) for name in TREES],
)
def test_no_repository_empties_the_snapshot(tmp_path: Path, tried: Tried, name: str) -> None:
    root = made(tmp_path / "tree" / "repository")
    TREES[name](root)
    home = tmp_path / "home"
    command = [sys.executable, "-m", "runshelf", "run", "--home", str(home), "true"]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=60)
    (run,) = (find_run(home, ulid) for ulid in list_runs(home))
    kept = {Path(file.path).name for file in read_snapshot(run.folder).files}
    assert {"train.py", "model.py"} <= kept
    tried(1, "working trees that empty a snapshot")


def test_an_index_that_leads_out_brings_no_file_into_the_snapshot(
    tmp_path: Path, tried: Tried
) -> None:
    root = made(tmp_path / "repository")
    write(tmp_path / "private" / "diary", "of mine\n")
    (root / "link").symlink_to(tmp_path / "private")
    (root / "inner").mkdir()
    (root / "inner" / "link").symlink_to("../..")
    name = git(root, "rev-parse", "HEAD:train.py").strip()
    paths = ("link/diary", "inner/link/private/diary")
    for path in paths:
        git(root, "update-index", "--add", "--cacheinfo", f"100644,{name},{path}")
    home = tmp_path / "home"
    command = [sys.executable, "-m", "runshelf", "run", "--home", str(home), "true"]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=60)
    (run,) = (find_run(home, ulid) for ulid in list_runs(home))
    snapshot = read_snapshot(run.folder)
    assert not {file.path for file in snapshot.files}.intersection(paths)
    assert {left.path: left.why for left in snapshot.left_out} == dict.fromkeys(
        paths, "leads out of the folder"
    )
    tried(len(paths), "paths of an index that lead out")
