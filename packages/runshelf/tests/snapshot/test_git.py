"""Tests of `runshelf.snapshot.git`: the commit, and whether files differ from it."""

import os
import re
import shutil
import subprocess
import tempfile

import pytest

from runshelf.cli.main import main
from runshelf.snapshot.git import describe, find_repository, why_no_repository


def git(folder, *command):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_and_whether_files_differ_from_it(tmp_path):
    assert find_repository(tmp_path) is None
    assert why_no_repository(tmp_path) is None
    git(tmp_path, "init")
    repository = find_repository(tmp_path)
    assert repository is not None
    assert describe(repository) is None, "no commit yet"
    (tmp_path / "x").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    os.utime(tmp_path / "x", (0, 0))
    index = (tmp_path / ".git" / "index").read_bytes()
    clean = describe(repository)
    assert (tmp_path / ".git" / "index").read_bytes() == index, "took the index's lock"
    assert clean is not None
    assert re.fullmatch("[0-9a-f]{40}", clean["commit"])
    assert clean["dirty"] is False
    (tmp_path / "x").write_text("2")
    assert describe(repository) == clean | {"dirty": True}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    root, temporary = tmp_path / "repository", tmp_path / "temporary"
    root.mkdir()
    temporary.mkdir()
    git(root, "init")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    repository = find_repository(root)
    assert len(list(temporary.iterdir())) == 1
    del repository
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert find_repository(root) is None
    said = why_no_repository(root)
    assert said is not None
    assert "no folder for its settings" in said


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_settings_of_git_are_gone_before_the_program_starts(tmp_path, monkeypatch, capfd):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    git(tmp_path, "init")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert main(["run", "--home", str(tmp_path / "home"), "--", "ls", str(temporary)]) == 0
    assert "git-settings" not in capfd.readouterr().out


def test_without_git_there_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert find_repository(tmp_path) is None
    assert why_no_repository(tmp_path) is None
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    said = why_no_repository(tmp_path / "sub")
    assert said == f"`{tmp_path}` has a git repository, but there is no program `git` to read it"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_repository_that_git_refuses_is_reported(tmp_path, monkeypatch):
    git(tmp_path, "init")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    assert find_repository(tmp_path) is None
    said = why_no_repository(tmp_path)
    assert said is not None
    assert "dubious ownership" in said
    assert "\n" not in said
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    monkeypatch.setenv("GIT_DIR", "/nowhere/.git")
    said = why_no_repository(tmp_path)
    assert said is not None
    assert "not a git repository: '/nowhere/.git'" in said
