"""Tests of `runshelf rerun`: it runs the archived code, not today's, and gives the same output."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runshelf.recorder.rerun import _without as without
from runshelf.recorder.rerun import records_itself
from runshelf.recorder.setting_changes import change as apply
from runshelf.recorder.setting_changes import parse_changes
from runshelf.snapshot.capture import capture
from runshelf.store.home import shared
from runshelf.store.run import Run, create_run

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]


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
    # A dirty tree: modified, untracked, staged, deleted and executable files, and a link.
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
def test_same_output_byte_for_byte_after_every_file_has_changed(project):
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
    assert b"data.txt data 1\nlink data 1\nstaged.txt staged\n../top.txt" in again.stdout
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


@pytest.mark.slow
def test_code_imported_by_absolute_path_is_the_archived_code(bench):
    """Covers editable installs and PYTHONPATH."""
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


@pytest.mark.slow
def test_a_script_keeps_its_name(bench):
    path = bench.write("s.sh", "#!/bin/sh\necho $0 $1\n")
    path.chmod(0o755)
    first = bench("run", "./s.sh", "x")
    path.unlink()
    again = bench("rerun", "latest")
    assert (first.stdout, again.stdout) == ("./s.sh x\n", "./s.sh x\n")


@pytest.mark.slow
def test_differences_of_the_environment_are_printed(bench):
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
    assert f"changed or removed since, in `{bench.work}`: uv.lock" in said


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
def test_change_one_setting(words, change, result):
    assert apply(["prog", *words], parse_changes([change])) == (["prog", *result], {})


@pytest.mark.slow
def test_an_unknown_setting_is_refused_and_no_run_is_made(bench):
    bench("run", "echo", "--rate", "1", "--on")
    done = bench("rerun", "latest", "--set", "rat=2")
    assert done.returncode == 2
    assert "has no setting `rat`, did you mean `rate`? (it has rate, on)" in done.stderr
    assert bench("rerun", "latest", "--set", "rate").returncode == 2
    assert "is a flag" in bench("rerun", "latest", "--set", "on=3").stderr
    assert bench("rerun", "latest", "--set", "rate=1", "--set", "rate=2").returncode == 2
    assert len(bench.runs()) == 1


def test_a_secret_must_be_given_again(bench):
    bench("run", "echo", "--api-key", "abcdefgh-1", "ghp_" + "a1" * 18)
    assert bench.last.manifest["argv"] == ["echo", "--api-key", "***", "***"]
    done = bench("rerun", "latest")
    assert done.returncode == 2
    assert "give them with --set api_key=... --set argument_3=..." in done.stderr
    done = bench("rerun", "latest", "--set", "api-key=new-key-22", "--set", "argument_3=x")
    assert done.stdout == "--api-key new-key-22 x\n"
    assert bench.last.manifest["argv"] == ["echo", "--api-key", "***", "x"]
    assert "new-key-22" not in (bench.last.folder / "run.json").read_text()


@pytest.mark.slow
def test_relevant_variables_have_their_recorded_values(bench):
    bench.env.pop("XLA_FLAGS", None)
    show = "import os; print(os.environ.get('OMP_NUM_THREADS'), os.environ.get('XLA_FLAGS'))"
    bench("run", "--", sys.executable, "-c", show, OMP_NUM_THREADS="3")
    again = bench("rerun", "latest", OMP_NUM_THREADS="9", XLA_FLAGS="--xla_y")
    assert again.stdout == "3 None\n"


def test_a_hostile_manifest_cannot_set_ld_preload(bench):
    bench("run", "env")
    manifest = bench.read("run.json")
    manifest["environment"] |= {"LD_PRELOAD": "/evil.so", "OMP_NUM_THREADS": "5"}
    (bench.last.folder / "run.json").write_text(json.dumps(manifest))
    again = bench("rerun", "latest").stdout
    assert "LD_PRELOAD" not in again
    assert "OMP_NUM_THREADS=5" in again


@pytest.mark.slow
def test_a_run_without_its_code_cannot_be_repeated(bench):
    bench("run", "true")
    (bench.last.folder / "code.json").unlink()
    done = bench("rerun", "latest")
    assert (done.returncode, "its code was not archived" in done.stderr) == (2, True)
    assert len(bench.runs()) == 1


OUTSIDE = """
import sys
from dataclasses import replace
from pathlib import Path
Path("made").write_text("x")
"""


def test_a_rerun_writes_into_the_clean_folder_only(bench):
    bench.write("w.py", OUTSIDE)
    bench("run", "--", sys.executable, str(bench.work / "w.py"))
    (bench.work / "made").unlink()
    bench("rerun", "latest")
    assert not (bench.work / "made").exists()
    assert (bench.last.folder / "code" / "made").exists()
    assert Path(bench.last.manifest["cwd"]) == bench.last.folder / "code"


@pytest.mark.slow
def test_a_program_found_on_path_is_the_archived_one(bench):
    bench.write("bin/tool", "#!/bin/sh\necho tool 1 $0 $PWD; helper\n").chmod(0o755)
    bench.write("bin/helper", "#!/bin/sh\necho helper 1\n").chmod(0o755)
    path = f"{bench.work}/bin:{os.environ['PATH']}"
    first = bench("run", "tool", PATH=path)
    assert first.stdout == f"tool 1 {bench.work}/bin/tool {bench.work}\nhelper 1\n"
    for name in ("bin/tool", "bin/helper"):
        bench.write(name, "#!/bin/sh\necho changed since\n")
    for _ in range(2):  # also a rerun of a rerun
        again = bench("rerun", "latest", PATH=path)
        code = bench.last.folder / "code"
        assert again.stdout == f"tool 1 {code}/bin/tool {code}\nhelper 1\n"


@pytest.mark.slow
def test_references_to_the_old_folder_are_printed(bench):
    for index in range(4):
        bench.write(f"{index}.cfg", f"[data]\npath = {bench.work}/data\n")
    bench.write("5.cfg", f"{bench.work}-2/data")
    bench.write("6.cfg", f"\0{bench.work}/data")
    (bench.work / "link").symlink_to(bench.work / "data")
    bench("run", "echo", f"import sys; x = '{bench.work}/lib'", f"{bench.work}/0.cfg")
    said = bench("rerun", "latest").stderr
    assert f"argument 1 names `{bench.work}`, which holds today's code\n" in said
    assert (
        f"archived files `0.cfg`, `1.cfg`, `2.cfg` and 2 more name `{bench.work}`, which holds"
    ) in said
    for name in ("0", "1", "2", "3"):
        (bench.work / f"{name}.cfg").unlink()
    (bench.work / "link").unlink()
    bench("run", "echo", f"{bench.work}/5.cfg")
    assert "today's code" not in bench("rerun", "latest").stderr


@pytest.mark.slow
def test_imports_from_outside_the_snapshot_are_printed(bench, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "lib").mkdir(parents=True)
    bench.write("lib/x.py", "")
    path = f"{elsewhere}/lib:{bench.work}/lib"
    first = bench("run", "--", sys.executable, "-c", "print(1)", PYTHONPATH=path)
    (line,) = [line for line in first.stderr.splitlines() if "also imports from" in line]
    assert f"not in the snapshot: Python also imports from `{elsewhere}/lib`" in line
    assert str(bench.work) not in line
    for _ in range(2):
        again = bench("rerun", "latest")
        (line,) = [line for line in again.stderr.splitlines() if "also imports from" in line]
        assert f"not archived: Python also imports from `{elsewhere}/lib`" in line
        assert str(bench.work) not in line


@pytest.mark.slow
def test_files_that_were_not_archived_are_counted(bench):
    for name in ("a.pem", "b.pem", "c.pem", "d.pem", "e.pem"):
        bench.write(name, "")
    bench("run", "true")
    said = bench("rerun", "latest").stderr
    assert "`c.pem` was not archived (may hold secrets)" in said
    assert "d.pem" not in said
    assert "2 more files were not archived" in said


@pytest.mark.slow
def test_input_that_is_not_archived_is_reported(bench):
    bench("run", "cat", input="text")
    assert bench.last.manifest["stdin"] == "piped"
    again = bench("rerun", "latest", input="other")
    assert "the recorded input was a pipe or a file, which is not archived" in again.stderr
    assert again.stdout == "other"
    for name in (os.devnull, bench.write("empty", "")):
        with open(name) as file:  # noqa: PTH123  (a device or a path)
            subprocess.run(
                bench.command("run", "cat"), cwd=bench.work, env=bench.env, stdin=file, check=True
            )
        assert "stdin" not in bench.last.manifest


@pytest.mark.medium
def test_a_rerun_with_other_settings_leaves_the_group(bench):
    bench("run", "--group", "A", "--", "true", "--rate", "1", "--seed", "1")
    bench("rerun", "latest", "--set", "seed=2")
    assert bench.last.manifest["group"] == "A"
    done = bench("rerun", "latest", "--set", "rate=2")
    assert "other settings, so it is not in the group `A`" in done.stderr
    assert bench.last.manifest.get("group") is None
    bench("rerun", bench.last.manifest["parent"], "--set", "rate=2", "--group", "A")
    assert bench.last.manifest["group"] == "A"


@pytest.mark.slow
def test_run_information_of_a_rerun_has_no_secrets(bench):
    bench("run", "true")
    bench("rerun", "latest", "--tag", "ghp_" + "a1" * 18, "--group", "ghp_" + "b2" * 18)
    assert bench.last.manifest["tags"] == ["***"]
    assert bench.last.manifest["group"] == "***"


def test_a_repository_that_git_refuses_is_reported(bench):
    (bench.work / ".git").mkdir()
    said = bench("run", "true").stderr
    assert f"git cannot read the repository of `{bench.work}`: fatal: not a git" in said
    assert bench.last.manifest["git"] is None


def test_an_option_is_removed_from_a_command_line(tmp_path):
    words = ["train", "--name", "a", "--home=x", "--seed", "3", "--name=b"]
    assert without("name", words) == ["train", "--home=x", "--seed", "3"]
    assert without("home", words) == ["train", "--name", "a", "--seed", "3", "--name=b"]


RECORDS_ITSELF = """
import json, os, pathlib, sys
if "--help" in sys.argv:
    print("--seed N, --set KEY=VALUE")
    sys.exit()
home = pathlib.Path(sys.argv[sys.argv.index("--home") + 1])
seen = {"words": sys.argv[1:], "parent": os.environ["BACKFLIP_PARENT"]}
(home / "seen").write_text(json.dumps(seen))
sys.exit(7)
"""


def test_a_run_that_its_own_program_recorded_is_repeated_by_that_program(bench, monkeypatch):
    """Both command lines decide this by the recorded command line."""
    module = bench.write("tiny.py", RECORDS_ITSELF)
    monkeypatch.chdir(bench.work)
    argv = ["tiny", "train", "--lr", "1", "--name", "a", "--home", "elsewhere"]
    keep = capture(bench.home, argv, say=print, interpreter=sys.executable)
    with create_run(bench.home, command="train", config={}, argv=argv, capture=keep) as writer:
        pass
    help_line = RECORDS_ITSELF.partition("home =")[0]
    module.write_text(help_line + "raise SystemExit('changed since')")
    changes = [f"--set={change}" for change in ("lr=2", "depth=3", "seed=4")]
    done = bench("rerun", "latest", *changes, "--tag", "x")
    assert done.returncode == 7, done.stderr
    given = ["--lr", "2", "--set", "depth=3", "--seed", "4", "--tag", "x"]
    assert json.loads((bench.home / "seen").read_text()) == {
        "words": ["train", *given, "--home", str(bench.home)],
        "parent": writer.run.ulid,
    }
    assert len(bench.runs()) == 1, "runshelf makes no run of its own"
    assert not list(shared(bench.home, "reruns").iterdir()), "the clean folder must be removed"


@pytest.mark.parametrize(
    ("command", "argv", "expected"),
    [
        ("train", ["backflip", "train", "ppo", "dot"], True),
        ("train", ["script.py", "x"], False),
        ("run", ["./tool", "run"], False),
        ("script", ["python", "script"], False),
        ("train", [], False),
    ],
)
def test_which_runs_record_themselves(tmp_path, command, argv, expected):
    run = Run(tmp_path, {"command": command, "argv": argv})
    assert records_itself(run) is expected
