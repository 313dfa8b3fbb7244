"""Tests of snapshots: stored files, reported omissions, and malicious lists of files."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.snapshot.code_snapshot import (
    Limits,
    materialise,
    read_object,
    read_snapshot,
    say_left_out,
    take_snapshot,
    write_snapshot,
)
from runshelf.snapshot.git import (
    describe,
    find_repository,
    without_credentials,
    write_patch,
)
from runshelf.snapshot.object_store import object_path, store
from runshelf.store.home import shared

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder, *command):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    identity += ["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


def write(path, text="text\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home" / "runs" / "R").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / "tree"
    for name in ("kept", "changed", "deleted", "sub/deep"):
        write(tree / name, f"{name} 1\n")
    write(tree / ".gitignore", "ignored\n")
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "first")
    return tree


def snapshot_of(home, cwd, **limits):
    return take_snapshot(home, cwd, find_repository(cwd), Limits(**limits))


def nothing(path):
    return False


def paths(snapshot):
    return [file.path for file in snapshot.files]


def left(snapshot):
    return {item.path: item.why for item in snapshot.left_out}


def test_the_snapshot_is_the_working_tree(home, tree):
    write(tree / "changed", "changed 2\n")
    (tree / "deleted").unlink()
    write(tree / "staged")
    git(tree, "add", "staged")
    write(tree / "untracked")
    write(tree / "ignored")
    (tree / "kept").chmod(0o755)
    (tree / "link").symlink_to("kept")
    snapshot = snapshot_of(home, tree / "sub")
    assert paths(snapshot) == [
        *(".gitignore", "changed", "kept", "link", "staged", "sub/deep", "untracked")
    ]
    assert (snapshot.root, snapshot.cwd, snapshot.left_out) == (str(tree), "sub", ())
    files = {file.path: file for file in snapshot.files}
    assert read_object(home, files["changed"]) == b"changed 2\n"
    assert files["kept"].mode == 0o755
    assert files["link"].link == "kept"


def test_a_snapshot_is_written_read_and_restored(home, tree):
    write(tree / "untracked", "u")
    (tree / "kept").chmod(0o755)
    (tree / "to-file").symlink_to("kept")
    (tree / "out").symlink_to("/etc/hostname")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "to-folder").symlink_to("sub")
    (tree / os.fsdecode(b"caf\xe9")).write_text("latin")
    (tree / "two\nlines").write_text("x")
    snapshot = snapshot_of(home, tree)
    write_snapshot(home / "runs" / "R", snapshot, Limits())
    assert read_snapshot(home / "runs" / "R") == snapshot
    target = home / "clean"
    materialise(home, home / "runs" / "R", target)
    subprocess.run(
        ["diff", "--recursive", "--no-dereference", "--exclude=.git", str(tree), str(target)],
        check=True,
    )
    assert (target / "kept").stat().st_mode & 0o777 == 0o755
    assert (target / "out").readlink() == Path("/etc/hostname")
    with pytest.raises(UserFacingError, match="File exists"):
        materialise(home, home / "runs" / "R", target)


@pytest.mark.medium
def test_submodules_and_nested_repositories_are_included(home, tree, tmp_path):
    other = tmp_path / "other"
    write(other / "of-submodule")
    git(other, "init")
    git(other, "add", ".")
    git(other, "commit", "-m", "x")
    git(tree, "submodule", "add", str(other), "module")
    write(tree / "module" / "untracked-there")
    shutil.copytree(other, tree / "nested")
    write(tree / "nested" / "untracked-too")
    found = paths(snapshot_of(home, tree))
    assert {"module/of-submodule", "module/untracked-there"} <= set(found)
    assert {"nested/of-submodule", "nested/untracked-too"} <= set(found)
    assert len(found) == len(set(found))


def test_without_git_files_that_are_not_code_are_left_out(home, tmp_path):
    tree = tmp_path / "plain"
    for name in ("a.py", "b/c.py", "__pycache__/a.pyc", "b/x.pyc", ".venv/y", "node_modules/z"):
        write(tree / name)
    write(tree / ".config" / "private")
    snapshot = snapshot_of(home, tree)
    assert paths(snapshot) == ["a.py", "b/c.py"]
    assert left(snapshot) == {".config": "a hidden folder outside of a git repository"}
    assert snapshot.cwd == "."


ULID = "01M80FDKW2EFCP7ECZZ3WYBW2X"
OF_A_HOME = (
    *(f"runs/{ULID}/run.json", f"runs/{ULID}/code/runs/x.py", "objects/sha256/ab/cd"),
    *(f"trash/{ULID}/run.json", f"reruns/{ULID}/x.py"),
)
THEIRS = (
    *("x.py", "runs/sweep.py", "objects/cube.py", "trash/old.py", "reruns/again.sh"),
    *("budget.json", "lib/index.sqlite", "runs/01M80FDKW2/x"),
)


@pytest.mark.parametrize("in_git", [True, False])
def test_a_home_inside_the_tree_is_left_out(tmp_path, in_git):
    tree = tmp_path / "t"
    for place in ("", "examples/"):
        for name in (*OF_A_HOME, "index.sqlite", "index.sqlite-wal"):
            write(tree / f"{place}{name}")
    for name in THEIRS:
        write(tree / name)
    if in_git:
        git(tree, "init")
    snapshot = snapshot_of(tree, tree)
    assert set(paths(snapshot)) == set(THEIRS)
    assert left(snapshot) == {"examples/runs/": "the runs of another home, which are not code"}


def test_tracked_files_are_kept_under_any_name(tmp_path):
    tree = tmp_path / "t"
    for name in (*OF_A_HOME, *THEIRS):
        write(tree / name)
    git(tree, "init")
    git(tree, "add", "-f", ".")
    assert set(paths(snapshot_of(tree, tree))) == {*OF_A_HOME, *THEIRS}


def test_secret_files_are_left_out_and_reported(home, tree):
    for name in (".env", "sub/.env.local", "server.pem", "id_rsa", "id_rsa.pub", ".env.example"):
        write(tree / name)
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0B\n" * 3
    write(tree / "deploy", key)
    git(tree, "add", "-f", ".")
    snapshot = snapshot_of(home, tree)
    assert {".env.example", "id_rsa.pub"} <= set(paths(snapshot))
    secret = {".env", "sub/.env.local", "server.pem", "id_rsa", "deploy"}
    assert left(snapshot) == dict.fromkeys(secret, "may hold secrets")
    said = []
    say_left_out(snapshot, said.append)
    assert said == [
        "not in the snapshot: `.env`, `deploy`, `id_rsa` and 2 more (all in code.json): "
        "may hold secrets"
    ]
    target = home / "code.patch"
    repository = find_repository(tree)
    assert repository is not None
    write(tree / "changed", "2\n")
    is_secret = set(map(str.encode, secret)).__contains__
    assert write_patch(repository, target, is_secret, 10**6)
    patch = target.read_text()
    assert "+2\n" in patch
    files = {line.split(" b/")[1] for line in patch.splitlines() if line.startswith("diff --git")}
    assert files == {"changed", "id_rsa.pub", ".env.example"}


def test_limits_are_reported_and_the_rest_is_kept(home, tree):
    with (tree / "huge").open("wb") as file:
        file.truncate(10 * 2**30)
    write(tree / "large", "x" * 2000)
    for index in range(30):
        write(tree / "many" / f"{index:02}")
    snapshot = snapshot_of(home, tree, file_bytes=10**6, total_bytes=1500, files=20)
    assert len(snapshot.files) == 20
    why = left(snapshot)
    assert why["huge"] == "larger than 1 MB"
    assert why["large"] == "all files have more than 0.0015 MB"
    assert len([path for path in why if path.startswith("many/")]) == 30 + 5 - 20
    assert next(i for i in snapshot.left_out if i.path == "huge").bytes == 10 * 2**30


@pytest.mark.medium
def test_very_many_left_out_files_are_counted(home, tree):
    for index in range(1100):
        (tree / f"f{index}").touch()
    snapshot = snapshot_of(home, tree, files=10)
    assert len(snapshot.left_out) == 1001
    assert snapshot.left_out[-1].path == "95 more"


def test_the_time_limit_is_reported(home, tree):
    snapshot = snapshot_of(home, tree, seconds=0.0)
    assert snapshot.files == ()
    assert any("took" in item.why for item in snapshot.left_out)


def test_pipes_and_unreadable_files_do_not_block(home, tree):
    os.mkfifo(tree / "pipe")
    git(tree, "config", "core.quotepath", "true")
    (tree / "kept").unlink()
    os.mkfifo(tree / "kept")  # tracked, and a pipe now
    assert left(snapshot_of(home, tree)) == {"kept": "not a file, link or folder"}


@pytest.mark.medium
def test_a_changing_file_is_named_by_its_stored_bytes(home, tmp_path):
    path, over = tmp_path / "log", threading.Event()
    path.write_bytes(b"0" * 3_000_000)

    def scribble():
        index = 0
        while not over.is_set():
            index += 1
            with path.open("r+b") as file:
                file.seek(index * 977 % 2_900_000)
                file.write(b"%09d" % index)

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        stored = [store(home, path) for _ in range(10)]
    finally:
        over.set()
        thread.join()
    for one in stored:
        assert store(home, object_path(home, one.sha256)).sha256 == one.sha256


def test_objects_are_written_once_and_repaired(home, tmp_path):
    one = store(home, write(tmp_path / "a", "hello"))
    path = object_path(home, one.sha256)
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    before = path.stat().st_ino
    store(home, write(tmp_path / "b", "hello"))
    assert path.stat().st_ino == before
    path.chmod(0o644)
    path.write_text("hel")  # what a power cut left
    store(home, tmp_path / "a")
    assert path.read_text() == "hello"
    assert [entry.name for entry in path.parent.iterdir()] == [one.sha256]


@pytest.mark.parametrize("size", [5, 3_000_000])
def test_a_damaged_object_is_refused_and_replaced_by_the_good_one(home, tmp_path, size):
    one = store(home, write(tmp_path / "a", "x" * size))
    run = listing(home, entry("a.py", one.sha256, bytes=size))
    path = object_path(home, one.sha256)
    path.chmod(0o644)
    path.write_text("y" * size)
    with pytest.raises(DamagedFile, match=r"`a\.py` is damaged: .*restore it from a copy"):
        materialise(home, run, home / "one")
    assert store(home, tmp_path / "a") == one
    assert path.read_text() == "x" * size
    path.unlink()
    path.symlink_to(tmp_path / "a")
    store(home, tmp_path / "a")
    assert not path.is_symlink()
    materialise(home, run, home / "two")


STORE_MANY = """
import sys
from pathlib import Path
from runshelf.snapshot.object_store import store
for path in sorted(Path(sys.argv[2]).iterdir()):
    store(Path(sys.argv[1]), path)
"""


@pytest.mark.medium
def test_concurrent_writers_of_the_same_objects(home, tmp_path):
    for index in range(200):
        write(tmp_path / "files" / str(index), str(index) * 3000)
    command = [sys.executable, "-c", STORE_MANY, str(home), str(tmp_path / "files")]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [(b"", 0)] * 4
    files = [p for p in shared(home, "objects").rglob("*") if p.is_file()]
    assert len(files) == 200
    for path in files:
        assert store(home, path).sha256 == path.name


@pytest.mark.attack
def test_a_link_is_never_followed_when_storing(home, tmp_path):
    write(tmp_path / "secret", "secret")
    (tmp_path / "link").symlink_to("secret")
    with pytest.raises(OSError, match="symbolic"):
        store(home, tmp_path / "link")


HOSTILE = [
    "../escaped",
    "/etc/escaped",
    "a/../../escaped",
    "a//b",
    "./a",
    "",
    "a/",
    "nul\0byte",
    3,
]


def listing(home, *files, **fields):
    fields = {"root": "/r", "cwd": ".", "files": list(files), "left_out": [], "limits": {}} | fields
    (home / "runs" / "R" / "code.json").write_text(json.dumps(fields))
    return home / "runs" / "R"


def entry(path, sha256="0" * 64, **fields):
    return {"path": path, "sha256": sha256, "bytes": 0, "mode": 0o644} | fields


@pytest.mark.attack
@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_that_leads_out_is_refused(home, path):
    with pytest.raises(DamagedFile, match=r"code\.json.*damaged"):
        materialise(home, listing(home, entry(path)), home / "clean")
    if path not in ("./a",):
        with pytest.raises(DamagedFile):
            read_snapshot(listing(home, cwd=path))
    assert not (home / "clean").exists()


@pytest.mark.attack
@pytest.mark.parametrize("sha256", ["../../x", "0" * 63, "Z" * 64, "", None, 3])
def test_an_invalid_hash_is_refused(home, sha256):
    with pytest.raises(DamagedFile):
        materialise(home, listing(home, entry("a", sha256)), home / "clean")


@pytest.mark.attack
def test_nothing_is_written_through_a_link_of_the_snapshot(home, tmp_path):
    one = store(home, write(tmp_path / "a", "evil"))
    outside = tmp_path / "outside"
    outside.mkdir()
    evil = entry("link/evil", one.sha256, bytes=4)
    link = entry("link", "", link=str(outside))
    for files in ((link, evil), (evil, link)):
        shutil.rmtree(home / "clean", ignore_errors=True)
        with pytest.raises(UserFacingError):
            materialise(home, listing(home, *files), home / "clean")
        assert list(outside.iterdir()) == []
    shutil.rmtree(home / "clean")
    twice = [entry("x", one.sha256, bytes=4), entry("x", one.sha256, bytes=4)]
    with pytest.raises(UserFacingError, match="exists"):
        materialise(home, listing(home, *twice), home / "clean")


@pytest.mark.attack
def test_setuid_bits_are_dropped(home, tmp_path):
    one = store(home, write(tmp_path / "a", "tool"))
    run = listing(home, entry("tool", one.sha256, bytes=4, mode=0o4755))
    materialise(home, run, home / "clean")
    assert stat.S_IMODE((home / "clean" / "tool").stat().st_mode) == 0o755


@pytest.mark.attack
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, '{"root": 1, "cwd": ".", "files": 3, "left_out": []}']
)
def test_a_damaged_list_raises_one_line(home, text):
    (home / "runs" / "R" / "code.json").write_text(text)
    with pytest.raises(DamagedFile, match="restore it from a copy") as caught:
        read_snapshot(home / "runs" / "R")
    assert "\n" not in str(caught.value)


@pytest.mark.medium
@pytest.mark.attack
def test_a_huge_list_or_a_linked_list_is_refused(home, tmp_path):
    path = home / "runs" / "R" / "code.json"
    with path.open("w") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(DamagedFile, match="has more than 67_108_864 bytes"):
        read_snapshot(path.parent)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="its code was not archived"):
        read_snapshot(path.parent)


def test_a_missing_or_short_object_is_reported(home, tmp_path):
    one = store(home, write(tmp_path / "a", "text"))
    run = listing(home, entry("a.py", one.sha256, bytes=4))
    path = object_path(home, one.sha256)
    path.chmod(0o644)
    path.write_text("te")
    with pytest.raises(DamagedFile, match="should have 4 bytes"):
        materialise(home, run, home / "one")
    path.unlink()
    with pytest.raises(DamagedFile, match=r"`a\.py` is missing in the archive"):
        materialise(home, run, home / "two")
    with pytest.raises(UsageError, match=r"has no `code\.json`"):
        read_snapshot(home)


def test_git_is_described_without_credentials(home, tree):
    repository = find_repository(tree / "sub")
    assert repository is not None
    git(tree, "remote", "add", "origin", "https://me:ghp_abc@example.com/a/b.git")
    said = describe(repository)
    assert said is not None
    assert said["branch"] == "main"
    assert said["remote"] == "https://example.com/a/b.git"
    assert (said["root"], said["dirty"]) == (str(tree), False)
    assert without_credentials("git@example.com:a/b.git") == "git@example.com:a/b.git"
    write(tree / "changed", "2")
    again = describe(repository)
    assert again is not None
    assert again["dirty"]


def test_the_patch_has_all_changes_and_truncation_is_reported(home, tree):
    repository = find_repository(tree)
    assert repository is not None
    assert write_patch(repository, home / "none", nothing, 10**6)
    assert not (home / "none").exists()
    write(tree / "changed", "2\n")
    write(tree / "staged", "new\n")
    git(tree, "add", "staged")
    assert write_patch(repository, home / "patch", nothing, 10**6)
    assert "+2\n" in (home / "patch").read_text()
    assert "+new\n" in (home / "patch").read_text()
    assert not write_patch(repository, home / "cut", nothing, 20)
    assert (home / "cut").stat().st_size == 20


def test_the_git_index_is_not_changed(home, tree):
    os.utime(tree / "kept", (0, 0))
    index = (tree / ".git" / "index").read_bytes()
    repository = find_repository(tree)
    assert repository is not None
    describe(repository)
    write_patch(repository, home / "patch", nothing, 10**6)
    snapshot_of(home, tree)
    assert (tree / ".git" / "index").read_bytes() == index
