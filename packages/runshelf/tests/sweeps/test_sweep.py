"""The command `sweep`: real programs, real workers, kill -9, and every way to get it wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

from runshelf.cli.main import main
from runshelf.cli.sweeping import _numbers
from runshelf.errors import UsageError
from runshelf.sweeps.block_run import BlockRun

PROGRAM = """
import os, sys, time
lr, seed = float(sys.argv[1]), int(sys.argv[2])
time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
print(f"score = {lr * 10 + seed % 7}")
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "toy.py").write_text(PROGRAM)
    return tmp_path


TOY = ("--metric", "score", "--", sys.executable, "toy.py", "{lr}", "{seed}")


def command(*words):
    return [sys.executable, "-m", "runshelf", "sweep", *map(str, words)]


def swept(capsys, *words, status=0):
    assert main(["sweep", *map(str, words)]) == status
    return capsys.readouterr()


def fields_of(capsys, *words):
    return json.loads(swept(capsys, "--json", *words).out)


def manifests(work):
    return [json.loads(path.read_text()) for path in work.glob("runs/*/run.json")]


def finished_blocks(work):
    return Counter(
        json.loads(path.read_text())["sweep"]["block"]
        for path in work.glob("runs/*/run.json")
        if '"finished"' in path.with_name("events.jsonl").read_text()
    )


@pytest.mark.medium
def test_a_sweep_ranks_configurations_then_reports_the_best_on_fresh_seeds(work, capsys):
    found = fields_of(capsys, "toy", "--over", "lr=1,3,2", "--seeds", "2", "--workers", "2", *TOY)
    assert found["complete"]
    assert [one["values"]["lr"] for one in found["configurations"]] == [3, 2, 1]
    best = found["best"]
    # Seeds 1,000,000 and 1,000,001: 1,000,000 % 7 = 1.
    assert best["scores"] == {"1000000": 31.0, "1000001": 32.0}
    assert (best["n"], best["mean"]) == (2, 31.5)
    assert best["low"] == pytest.approx(31.5 - 12.7062 * 0.5, rel=1e-5)
    assert found["notes"][-1].endswith("on fresh seeds: runshelf sweep toy --report")
    report = fields_of(capsys, "toy", "--report", "--seeds", "2", "--configurations", "0")
    assert [one["configuration"] for one in report["report"]] == [1, 0]
    assert report["report"][0]["scores"] == {"0": 30.0, "1": 31.0}
    assert len(manifests(work)) == 6 + 4
    member = next(m["sweep"] for m in manifests(work) if m["sweep"]["block"] == "r0001-0000")
    assert (member["name"], member["purpose"], member["tried"]) == ("toy", "report", 3)
    assert swept(capsys, "toy", "--seeds", "3", status=2).err.endswith("make another sweep\n")


@pytest.mark.slow
def test_a_program_that_ignores_its_placeholders_is_found_out(work, capsys):
    program = ("--metric", "score", "--", sys.executable, "-c", "print('score = 1')")
    found = fields_of(
        capsys, "same", "--over", "lr=1,2", "--seeds", "2", *program, "{lr}", "{seed}"
    )
    seeds, values = [note for note in found["notes"] if note.startswith("identical")]
    assert "does the program use its seed" in seeds
    assert "`lr` differ" in values


@pytest.mark.slow
def test_a_metric_that_was_never_logged_and_a_program_that_fails(work, capsys):
    lost = swept(
        capsys,
        "lost",
        "--over",
        "lr=1,2,3",
        "--seeds",
        "1",
        "--metric",
        "loss",
        "--",
        sys.executable,
        "toy.py",
        "{lr}",
        "{seed}",
        status=1,
    )
    assert "no metric `loss`" in lost.err
    fails = swept(
        capsys,
        "fails",
        "--over",
        "lr=1,2,3",
        "--seeds",
        "1",
        "--metric",
        "score",
        "--",
        sys.executable,
        "-c",
        "import sys; sys.exit('bad option')",
        "{lr}",
        "{seed}",
        status=1,
    )
    assert "bad option" in fails.err
    assert "--retry-failed" in fails.err


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_driver_lose_nothing(work, capsys, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "1.0")
    words = ("kill", "--over", "lr=1,2", "--seeds", "3", "--workers", "2", *TOY)
    driver = subprocess.Popen(command(*words), stderr=subprocess.DEVNULL)
    done = work / "runs/.runshelf/sweeps/kill/blocks"
    wait_for(lambda: len(list(done.glob("*.claim-1"))) >= 2)
    worker = next(c for c in psutil.Process(driver.pid).children() if "--work" in c.cmdline())
    wait_for(lambda: worker.children())
    os.kill(worker.pid, signal.SIGKILL)
    wait_for(lambda: list(done.glob("*.done")))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    two = [subprocess.Popen(command(*words), stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(timeout=120) for one in two] == [0, 0]
    found = fields_of(capsys, "kill", "--show")
    assert found["blocks"] == {"done": 6, "failed": 0, "running": 0, "known": 6}
    blocks = finished_blocks(work)
    assert set(blocks.values()) == {1}
    assert len(blocks) == 6
    # The program of the killed worker went on, and its run was taken over.
    assert len(manifests(work)) == 6


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_an_interrupted_worker_gives_its_block_up(work, capsys, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "30")
    worker = ("stop", "--over", "lr=1", "--seeds", "1", *TOY[:2], "--work", *TOY[2:])
    process = subprocess.Popen(command(*worker), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: any('"started"' in p.read_text() for p in work.glob("runs/*/events.jsonl")))
    wait_for(lambda: list(work.glob("runs/*/output.log")) or list(work.glob("runs/*/run.json")))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "go on with: runshelf sweep" in said
    monkeypatch.setenv("TOY_SECONDS", "0")
    assert fields_of(capsys, "stop")["complete"]


@pytest.mark.medium
def test_a_program_that_fails_on_a_full_disk_is_not_to_blame(work, capsys, monkeypatch):
    words = ("full", "--over", "lr=1", "--seeds", "1", "--metric", "score", "--work")
    monkeypatch.setattr("runshelf.sweeps.block_run.free_bytes", lambda folder: 0)
    program = ("--", sys.executable, "-c", "import sys; sys.exit(1)", "{lr}", "{seed}")
    assert "no space left" in swept(capsys, *words, *program, status=1).err
    monkeypatch.undo()
    monkeypatch.chdir(work)
    state = fields_of(capsys, "full", "--show")
    assert state["blocks"]["done"] == 0  # the block is open, not failed


def test_a_budget_starts_no_further_blocks(work, capsys, monkeypatch):
    seen = []

    def run(self):
        seen.append(self._block.name)
        return self._failed(None, "")._replace(
            state="finished", metric="score", seconds=50.0, scores={self._block.first_seed: 1.0}
        )

    monkeypatch.setattr(BlockRun, "run", run)
    words = ("dear", "--over", "lr=1,2,3", "--seeds", "1", "--budget", "80s", "--cost", "36")
    found = fields_of(capsys, *words, "--work", *TOY)
    assert len(seen) == 2
    assert found["cost"] == 1.0
    assert "budget is used up" in found["notes"][-1]


@pytest.mark.medium
@pytest.mark.parametrize("program", ["backflip", f"{sys.executable} -m backflip"])
def test_a_program_that_records_itself_is_started_as_it_is(work, capsys, program):
    (work / "backflip").mkdir()
    (work / "backflip" / "__init__.py").touch()
    (work / "backflip" / "__main__.py").write_text(
        "import sys; open('seen', 'w').write(' '.join(sys.argv[1:])); sys.exit(3)"
    )
    words = ("own", "--over", "lr=1", "--seeds", "1", "--workers", "1", "--")
    swept(capsys, *words, *program.split(), "train", "{lr}", "--seed", "{seed}", status=1)
    assert (work / "seen").read_text().startswith("train 1 --seed ")
    assert manifests(work) == [], "nothing else records it"


@pytest.mark.medium
def test_wrong_usage_is_one_sentence(work, capsys):
    twice = ("x", "--over", "lr=1", "--engine-set", "cpus=1", "--engine-set", "cpus=2")
    for words, said in (
        (("x",), "there is no sweep `x`"),
        ((), "name one sweep"),
        (("a", "b"), "name one sweep"),
        (("x", "--", "true", "{seed}"), "needs a parameter"),
        (("x", "--over", "lr=2..1", "--", "true", "{lr}", "{seed}"), "wrong order"),
        (("x", "--over", "lr=1..2", "--", "true", "{lr}", "{seed}"), "--samples"),
        (("x", "--over", "lr=1", "--search", "grit", "--", "t", "{lr}", "{seed}"), "`grid`"),
        (("x", "--over", "lr=1", "--engine", "rey", *TOY), "`ray`"),
        ((".x", "--over", "lr=1", *TOY), "not a name"),
        ((*twice, *TOY), "--engine-set `cpus` is given twice"),
    ):
        got = swept(capsys, *words, status=2).err
        assert said in got
        assert got.count("\n") == 1
    assert manifests(work) == []


def test_a_damaged_definition_is_said(work, capsys):
    (work / "broken").mkdir()
    (work / "broken" / "sweep.json").write_text('{"schema": 1, "definition": {}}')
    assert "is damaged" in swept(capsys, "broken", status=1).err


def test_numbers_of_configurations():
    assert _numbers("0, 2", 3) == [0, 2]
    for text in ("3", "²", "-1", "x", ","):
        with pytest.raises(UsageError, match="numbers from 0 to 2"):
            _numbers(text, 3)
