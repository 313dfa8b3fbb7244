"""Tests of `backflip rerun`: the archived code, not today's, with the same output."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backflip.archive.recorder.changes import change as apply
from backflip.archive.recorder.changes import parse_changes

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder, *command):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    identity += ["-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


MAIN = """
import os, sys
import helper, untracked_module
for name in ("data.txt", "link", "staged.txt", "../top.txt", "../module/of-submodule"):
    print(name, open(name).read().strip())
print(os.path.exists("../gone.txt"), os.access("tool.sh", os.X_OK), os.path.islink("link"))
print(os.popen("./tool.sh").read())
print(helper.VALUE, untracked_module.VALUE, sys.argv, hash("x"), file=sys.stderr)
os.write(1, bytes(range(256)))
"""


@pytest.fixture
def project(bench, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "of-submodule").write_text("submodule 1")
    git(other, "init")
    git(other, "add", ".")
    git(other, "commit", "-m", "x")
    bench.write("sub/main.py", MAIN)
    bench.write("sub/helper.py", "VALUE = 1")
    bench.write("sub/data.txt", "data 1")
    bench.write("sub/tool.sh", "#!/bin/sh\necho tool 1 $0\n")
    bench.write("top.txt", "top 1")
    bench.write("gone.txt", "gone")
    git(bench.work, "init")
    git(bench.work, "submodule", "add", str(other), "module")
    git(bench.work, "add", ".")
    git(bench.work, "commit", "-m", "x")
    # A dirty tree: changed, untracked, staged only, deleted, made executable, a link.
    bench.write("sub/helper.py", "VALUE = 2")
    bench.write("sub/untracked_module.py", "VALUE = 'untracked'")
    bench.write("sub/staged.txt", "staged")
    git(bench.work, "add", "sub/staged.txt")
    (bench.work / "gone.txt").unlink()
    (bench.work / "sub" / "tool.sh").chmod(0o755)
    (bench.work / "sub" / "link").symlink_to("data.txt")
    bench.write("module/of-submodule", "submodule 2")
    return bench


def change_everything(bench):
    for path in bench.work.rglob("*"):
        if path.is_file() and ".git" not in path.parts and not path.is_symlink():
            path.write_text("raise SystemExit('changed since')")
    (bench.work / "sub" / "untracked_module.py").unlink()
    (bench.work / "sub" / "link").unlink()
    git(bench.work, "commit", "-am", "all is new")


@pytest.mark.medium
def test_the_same_output_byte_for_byte_after_everything_has_changed(project):
    sub = project.work / "sub"
    command = ["run", "--", sys.executable, "main.py", "--lr", "1"]
    first = subprocess.run(
        project.command(*command), cwd=sub, env=project.env | {"PYTHONHASHSEED": "7"},
        capture_output=True,
    )  # fmt: skip
    assert first.returncode == 0, first.stderr
    change_everything(project)
    again = subprocess.run(
        project.command("rerun", "latest"), cwd=project.home, env=project.env, capture_output=True
    )
    assert again.stdout == first.stdout
    assert again.stdout.startswith(b"data.txt data 1\nlink data 1\nstaged.txt staged\n../top.txt")
    one, two = project.runs()
    for stream in ("out", "err"):
        lines = [[text for of, text in project.output(run) if of == stream] for run in (one, two)]
        assert lines[0] == lines[1]
        assert lines[0]
    assert two.manifest["parent"] == one.ulid
    assert two.manifest["argv"] == one.manifest["argv"]
    assert two.manifest["cwd"] == str(two.folder / "code" / "sub")
    third = project("rerun", two.ulid, "--set", "lr=2")
    assert "'--lr', '2'" in third.stderr
    assert project.last.manifest["parent"] == two.ulid
    assert project.last.config == {"lr": 2}


@pytest.mark.medium
def test_code_that_is_imported_by_its_absolute_path_is_the_archived_one_too(bench):
    """As with a package installed to be edited, and with PYTHONPATH."""
    bench.write("src/package.py", "print('package 1')")
    bench.write("lib/module.py", "print('module 1')")
    path = bench.write("scripts/run.py", "import package, module, sys; print(sys.argv[1:])")
    venv = bench.work / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "editable.pth").write_text(f"{bench.work}/src\n")
    git(bench.work, "init")
    bench.write(".gitignore", ".venv\n")
    words = [".venv/bin/python", str(path), f"--data={bench.work}/lib/module.py"]
    first = bench("run", "--", *words, PYTHONPATH=f"{bench.work}/lib")
    assert first.returncode == 0, first.stderr
    for name in ("src/package.py", "lib/module.py", "scripts/run.py"):
        bench.write(name, "print('changed since')")
    again = bench("rerun", "latest")
    code = bench.last.folder / "code"
    assert again.stdout.splitlines() == [
        *("package 1", "module 1", f"['--data={code}/lib/module.py']"),
    ]
    assert bench.last.manifest["executable"] == f"{bench.work}/.venv/bin/python"


def test_a_script_is_called_by_the_same_name(bench):
    path = bench.write("s.sh", "#!/bin/sh\necho $0 $1\n")
    path.chmod(0o755)
    first = bench("run", "./s.sh", "x")
    path.unlink()
    again = bench("rerun", "latest")
    assert (first.stdout, again.stdout) == ("./s.sh x\n", "./s.sh x\n")


def test_what_differs_is_said(bench):
    bench.write("uv.lock", "one")
    bench("run", "--", sys.executable, "-c", "print(1)")
    manifest = bench.read("run.json")
    manifest["python"]["version"] = "3.1.4"
    manifest["python"]["packages"] |= {"numpy": "1.0", "gone-since": "2"}
    manifest["hardware"] |= {"gpus": [{"name": "H900", "driver": "1"}]}
    (bench.last.folder / "run.json").write_text(json.dumps(manifest))
    bench.write("uv.lock", "two")
    said = bench("rerun", "latest").stderr
    assert "Python then: 3.1.4; now: 3." in said
    assert "gone-since 2 -> absent" in said
    assert "numpy 1.0 -> " in said
    assert "GPUs then: H900 (driver 1); now: none" in said
    assert f"changed or gone since, in `{bench.work}`: uv.lock" in said


@pytest.mark.parametrize(
    ("words", "change", "result"),
    [
        (["--lr", "1"], "lr=2", ["--lr", "2"]),
        (["--lr=1"], "lr=2", ["--lr=2"]),
        (["lr=1", "x"], "lr=2", ["lr=2", "x"]),
        (["--max-steps", "5"], "max-steps=6", ["--max-steps", "6"]),
        (["--max-steps", "5"], "max_steps=6", ["--max-steps", "6"]),
        (["--fast", "--n=1"], "fast=false", ["--n=1"]),
        (["--name", "a"], "name=b c=d", ["--name", "b c=d"]),
    ],
)
def test_one_thing_is_changed(words, change, result):
    assert apply(["prog", *words], parse_changes([change])) == (["prog", *result], {})


def test_an_unknown_setting_is_refused_before_anything_is_made(bench):
    bench("run", "echo", "--rate", "1", "--on")
    done = bench("rerun", "latest", "--set", "rat=2")
    assert done.returncode == 2
    assert "has no setting `rat`, did you mean `rate`? (it has rate, on)" in done.stderr
    assert bench("rerun", "latest", "--set", "rate").returncode == 2
    assert "is a flag" in bench("rerun", "latest", "--set", "on=3").stderr
    assert bench("rerun", "latest", "--set", "rate=1", "--set", "rate=2").returncode == 2
    assert len(bench.runs()) == 1


def test_a_secret_has_to_be_given_again(bench):
    bench("run", "echo", "--api-key", "abcdefgh-1", "ghp_" + "a1" * 18)
    assert bench.last.manifest["argv"] == ["echo", "--api-key", "***", "***"]
    done = bench("rerun", "latest")
    assert done.returncode == 2
    assert "give them by --set api_key=... --set argument_3=..." in done.stderr
    done = bench("rerun", "latest", "--set", "api-key=new-key-22", "--set", "argument_3=x")
    assert done.stdout == "--api-key new-key-22 x\n"
    assert bench.last.manifest["argv"] == ["echo", "--api-key", "***", "x"]
    assert "new-key-22" not in (bench.last.folder / "run.json").read_text()


def test_the_environment_that_mattered_is_as_it_was(bench):
    show = "import os; print(os.environ.get('OMP_NUM_THREADS'), os.environ.get('XLA_FLAGS'))"
    bench("run", "--", sys.executable, "-c", show, OMP_NUM_THREADS="3")
    again = bench("rerun", "latest", OMP_NUM_THREADS="9", XLA_FLAGS="--xla_y")
    assert again.stdout == "3 None\n"


def test_a_hostile_manifest_cannot_preload_anything(bench):
    bench("run", "env")
    manifest = bench.read("run.json")
    manifest["environment"] |= {"LD_PRELOAD": "/evil.so", "OMP_NUM_THREADS": "5"}
    (bench.last.folder / "run.json").write_text(json.dumps(manifest))
    again = bench("rerun", "latest").stdout
    assert "LD_PRELOAD" not in again
    assert "OMP_NUM_THREADS=5" in again


def test_a_run_without_its_code_cannot_be_run_again(bench):
    bench("run", "true")
    (bench.last.folder / "code.json").unlink()
    done = bench("rerun", "latest")
    assert (done.returncode, "its code was not kept" in done.stderr) == (2, True)
    assert len(bench.runs()) == 1


OUTSIDE = """
import sys
from pathlib import Path
Path("made").write_text("x")
"""


def test_the_old_tree_is_not_written_to(bench):
    bench.write("w.py", OUTSIDE)
    bench("run", "--", sys.executable, str(bench.work / "w.py"))
    (bench.work / "made").unlink()
    bench("rerun", "latest")
    assert not (bench.work / "made").exists()
    assert (bench.last.folder / "code" / "made").exists()
    assert Path(bench.last.manifest["cwd"]) == bench.last.folder / "code"
