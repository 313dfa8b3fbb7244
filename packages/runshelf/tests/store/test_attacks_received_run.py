"""A received run folder: no command writes outside of it, hangs, or ends with a traceback."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np
import pytest
from packages.runshelf.tests.store.hostile_folders import (
    TRAPS,
    must_end,
    plant_link,
    seen,
)
from tests.attack_figures import Tried

from runshelf.cli.main import main
from runshelf.errors import UserFacingError
from runshelf.learning_curve import write_curve
from runshelf.logger.script import open_lines
from runshelf.recorder.lines import Line
from runshelf.recorder.output_files import list_outputs
from runshelf.recorder.output_log import OutputWriter
from runshelf.recorder.spool import Spool
from runshelf.store.compacting import compact, finish_metrics
from runshelf.store.finding import find_run
from runshelf.store.media import save_image
from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import create_run, open_run, resume_run
from runshelf.store.state import state_of
from runshelf.store.writing import make_folder, open_in_place, remove_file, replace_file

pytestmark = pytest.mark.attack

NAMES = [
    *("run.json", "events.jsonl", "lock", "heartbeat.json", "summary.json", "output.log"),
    *("metrics-train.jsonl", "metrics-train.npz", "metrics-system.jsonl", "metrics-log-1.jsonl"),
    *("metrics-log-1.npz", "curve.svg", "curve.csv", "code.json", "code.patch", "outputs.json"),
    *("outputs", "spool", "media", ".gitignore"),
]
PARTIALS = [f"{name}.partial" for name in NAMES if "." in name or name == "lock"]


def make_run(home: Path) -> Path:
    """Make a finished run, with lines that `gc` compacts."""
    with create_run(home, command="script", config={"x": 1}, seeds=[1], argv=["python"]) as writer:
        for name in ("train", "log-1"):
            with MetricsWriter(writer.folder, name) as metrics:
                for n in range(50):
                    record = {"seed": 1, "updates": n, "env_steps": n, "episode_return_mean": n}
                    metrics.write(record)
        for name in ("train", "log-1"):  # columns and lines
            compact(writer.folder)
            with MetricsWriter(writer.folder, name) as metrics:
                metrics.write({"seed": 1, "updates": 60, "env_steps": 60, "loss": 1})
        (writer.folder / "outputs").mkdir()
        (writer.folder / "code.patch").write_text("diff")
    return writer.folder


def resume(folder: Path) -> None:
    """Write what a resumed run writes."""
    with resume_run(open_run(folder)) as writer:
        writer.heartbeat.name_program(os.getpid())
        with MetricsWriter(folder, "train") as metrics:
            metrics.write({"seed": 1, "updates": 61, "env_steps": 61, "episode_return_mean": 2})


def print_output(folder: Path) -> None:
    output = OutputWriter(folder)
    output.write(0.0, [Line("out", 5, b"text", b"")])
    output.close()


def log(folder: Path) -> None:
    """Log as a script does whose RUNSHELF_RUN is the folder."""
    descriptor = open_lines(str(folder))
    os.write(descriptor, b'{"loss": 1}\n')
    os.close(descriptor)
    save_image(str(folder), np.zeros((2, 2), np.uint8))


WRITERS: list[Callable[[Path], object]] = [
    resume,
    print_output,
    log,
    list_outputs,
    lambda folder: Spool(folder).remove(),
    lambda folder: write_curve(folder, title="x"),
    finish_metrics,
    lambda folder: state_of(open_run(folder)),
]


QUICK_TRAPS = (plant_link,)  # the others are alike


def reading(folder: Path, other: str, out: Path) -> list[list[str]]:
    name = str(folder)
    return [
        ["runs"],
        ["show", name, "--output", "--code"],
        ["diff", name, other],
        ["export", name, str(out / "export.csv")],
        ["report", name, str(out / "report.html")],
        ["du"],
    ]


def changing(folder: Path) -> list[list[str]]:
    return [
        ["gc", "--yes"],
        ["rm", str(folder)],
        ["restore", folder.name],
        ["rm", folder.name],
        ["gc", "--yes", "--trash", "0"],
    ]


def check_command(argv: list[str], home: Path) -> None:
    """Run a command; it ends, and an error is one line."""
    err = io.StringIO()
    with must_end(), redirect_stdout(io.StringIO()), redirect_stderr(err):
        status = main([*argv, "--home", str(home)])
    lines = err.getvalue().splitlines()
    assert status in (0, 1, 2), (argv, lines)
    assert sum("error:" in line for line in lines) <= 1, (argv, lines)
    assert status == 0 or lines, argv
    assert "Traceback" not in err.getvalue(), argv


@pytest.fixture(scope="module")
def received(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two runs, to be copied."""
    home = tmp_path_factory.mktemp("received")
    make_run(home)
    make_run(home)
    return home


@pytest.mark.slow
@pytest.mark.parametrize(
    "trap",
    [pytest.param(trap, marks=() if trap in QUICK_TRAPS else pytest.mark.slow) for trap in TRAPS],
)
def test_no_command_writes_outside_of_a_received_run(
    received: Path, tmp_path: Path, trap: Callable[[Path, Path], None], tried: Tried
) -> None:
    """Each kind of trap under each name that a command writes, then all commands."""
    attacks = 0
    for number, names in enumerate([*([name] for name in NAMES), PARTIALS]):
        place = tmp_path / str(number)
        home, outside, out = place / "home", place / "outside", place / "out"
        shutil.copytree(received, home)
        outside.mkdir()
        out.mkdir()
        folder, other = sorted(home.glob("runs/0*"))
        for name in names:
            trap(folder / name, outside)
        attacks += len(names) * attack(folder, other.name, out, outside)
        shutil.rmtree(place)
    tried(attacks, "commands on a received run with a link, pipe or folder in a file's place")


def attack(folder: Path, other: str, out: Path, outside: Path) -> int:
    """Run everything that writes and every command; return how many."""
    before, home = seen(outside), folder.parents[1]
    for write in WRITERS:
        with must_end(), suppress(UserFacingError):
            write(folder)
        assert seen(outside) == before, write
    acts = [*reading(folder, other, out), *changing(folder)]
    for argv in acts:
        check_command(argv, home)
        assert seen(outside) == before, argv
    return len(WRITERS) + len(acts)


IDS = [
    "../../x",
    "/tmp/x",
    "..",
    ".",
    "",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV/..",
    "01arz3ndektsv4rrffq69g5fav",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV\n",
    "01ARZ3NDEKTSV4RRFFQ69G5FA\N{FULLWIDTH DIGIT ONE}",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "~",
    "x" * 300,
    7,
    None,
    ["../x"],
]


@pytest.mark.medium
@pytest.mark.parametrize("field", ["run", pytest.param("ulid", marks=pytest.mark.slow)])
@pytest.mark.parametrize("ulid", IDS)
def test_no_command_believes_an_id_that_is_not_the_folders(
    received: Path, tmp_path: Path, field: str, ulid: object, tried: Tried
) -> None:
    home, out = tmp_path / "a" / "b" / "home", tmp_path / "out"
    shutil.copytree(received, home)
    out.mkdir()
    folder, other = sorted(home.glob("runs/0*"))
    manifest = json.loads((folder / "run.json").read_text())
    del manifest["run"]
    (folder / "run.json").write_text(json.dumps(manifest | {field: ulid}))
    around = {path for path in tmp_path.rglob("*") if not path.is_relative_to(home / "runs")}
    before = (other / "run.json").read_bytes()
    for name in (folder.name, str(folder)):
        for argv in (["rm", name], ["show", name], ["export", name, str(out / "x")]):
            check_command(argv, home)
    with pytest.raises(UserFacingError):
        open_run(folder)
    check_command(["runs"], home)
    check_command(["gc", "--yes"], home)
    (home / "runs" / ".runshelf" / "trash").mkdir(parents=True, exist_ok=True)
    folder.rename(home / "runs" / ".runshelf" / "trash" / folder.name)
    check_command(["restore", folder.name], home)
    left = {path for path in tmp_path.rglob("*") if not path.is_relative_to(home / "runs")}
    assert left == around
    assert (other / "run.json").read_bytes() == before
    tried(10, "commands on a run whose id is not its folder's")


@pytest.mark.parametrize("seed", ["../../x", "/../x", "0/../../../x", "\0", "x" * 300])
def test_no_value_of_a_run_leads_out_of_its_folder(tmp_path: Path, seed: str) -> None:
    """A seed is a part of the name of a folder, and could be text."""
    run = tmp_path / "home" / "run"
    run.mkdir(parents=True)
    (run / "watch" / "seed-0").mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)}
    for act in (
        lambda: make_folder(run, f"watch/seed-{seed}"),
        lambda: replace_file(run, f"watch/seed-{seed}", b"x"),
        lambda: remove_file(run, f"watch/seed-{seed}"),
        lambda: open_in_place(run, f"watch/seed-{seed}"),
    ):
        with pytest.raises(UserFacingError):
            act()
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)} == before


@pytest.mark.medium
def test_a_run_opens_through_a_link_that_the_user_gives(received: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(received, home)
    (folder, _) = sorted(home.glob("runs/0*"))
    (tmp_path / "alias").symlink_to(folder)
    assert find_run(home, str(tmp_path / "alias")).folder == folder


@pytest.mark.medium
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_rerun_copies_no_target_of_a_link(tmp_path: Path, tried: Tried) -> None:
    """`code.patch` and `code.json` of the rerun run may be links to files of the user."""
    home, secret = tmp_path / "home", tmp_path / "secret"
    (tmp_path / "x.py").write_text("print(1)\n")
    secret.write_text("key")
    run = ["run", "--home", str(home), "--", sys.executable, "-c", "print(1)"]
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        assert main(run) == 0
    (folder,) = home.glob("runs/0*")
    for trap in ("link", "pipe"):
        (folder / "code.patch").unlink(missing_ok=True)
        if trap == "link":
            (folder / "code.patch").symlink_to(secret)
        else:
            os.mkfifo(folder / "code.patch")
        with must_end(), redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            main(["rerun", folder.name, "--home", str(home)])
    again = [path for path in home.glob("runs/0*") if path != folder]
    assert len(again) == 2, "both were run again"
    assert not [path for path in again if (path / "code.patch").exists()]
    tried(2, "reruns of a run with a link or a pipe as its patch")
