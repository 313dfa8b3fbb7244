"""A sequential comparison from registration to verdict, with its batches run for real."""

import dataclasses
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.comparison.homes import METRIC, make_group
from packages.runshelf.tests.index.homes import make_run as make_row

from runshelf.cli.main import main
from runshelf.comparison.next_batch import commands_of, start
from runshelf.comparison.seed_order import in_words, ranges, seed_order
from runshelf.comparison.seed_values import SeedValue
from runshelf.comparison.sides import Side
from runshelf.errors import UsageError
from runshelf.index.entry import read_entry
from runshelf.index.rows import RunRow
from runshelf.registrations.kept import Kept, find, register
from runshelf.registrations.registration import registration_of, values_of
from runshelf.store.finding import list_runs
from runshelf.store.run import RunInfo, create_run, open_run

PROGRAM = """
import random, sys
import runshelf
seed, level = (int(sys.argv[sys.argv.index(name) + 1]) for name in ("--seed", "--level"))
assert "$(" not in sys.argv[-1] or sys.argv[-1] == "$(touch evil) ; rm -rf x"
for step in range(5):
    runshelf.log({"score": level + random.Random(seed).random()}, env_steps=step)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def plan(home: Path, **changes: Any) -> Kept:
    values: dict[str, Any] = {
        "question": "is A better?",
        "hypotheses": [{"name": "A", "predicts": "higher"}],
        "metric": "score",
        "n": 10,
        "looks": 2,
        "first_seed": 100,
    }
    return register(home, "plan", registration_of({**values, **changes}))


def answer(home: Path, capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    argv = ["compare", "--sequential", "--registered", "plan", "--home", str(home), "--json"]
    assert main([*argv, *words]) == 0
    return json.loads(capfd.readouterr().out)


def test_a_command_keeps_its_own_group_and_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, seen = plan(tmp_path), list[list[str]]()

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(words)
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    own = ["python", "-m", "backflip", "train", "dot", "--group=mine", f"--home={tmp_path}"]
    assert start(tmp_path, kept, [("A", own), ("A", own[:-2])], print) == 2
    assert seen == [own, [*own[:-2], "--group", "A", "--home", str(tmp_path)]]


@pytest.mark.slow
def test_the_batches_run_by_the_registered_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    line = f"{sys.executable} train.py --seed {{seed}} --level %d '$(touch evil) ; rm -rf x'"
    kept = plan(tmp_path, commands={"A": line % 3, "B": line % 0})
    first = answer(tmp_path, capfd)
    assert first["verdict"] == "go on"
    assert first["next_seeds"] == {"A": [*range(100, 105)], "B": [*range(100, 105)]}
    assert answer(tmp_path, capfd, "--start")["started"] == 10
    assert not (tmp_path / "evil").exists()  # no shell took part
    runs = [open_run(tmp_path / "runs" / ulid) for ulid in list_runs(tmp_path)]
    assert {run.manifest["group"] for run in runs} == {"A", "B"}
    assert all(run.manifest["registered"] == kept.carried() for run in runs)
    found = answer(tmp_path, capfd, "--start")
    assert (found["verdict"], found["started"]) == ("stop", 0)
    assert found["pairs"] == [{"one": "A", "other": "B", "decision": "better", "look": 1}]
    assert found["registered"]["deviations"] == []
    assert len(list_runs(tmp_path)) == 10


@pytest.mark.medium
def test_a_failing_command_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan(tmp_path, n=4, commands=dict.fromkeys("AB", f"{sys.executable} -c 1/0 {{seed}}"))
    argv = ["compare", "--sequential", "--registered", "plan", "--start", "--home", str(tmp_path)]
    assert main(argv) == 1
    assert "0 commands ended with success" in capfd.readouterr().out
    argv = ["compare", "--sequential", "--registered", "plan", "--home", str(tmp_path)]
    assert main([*argv[:-2], "--home", str(tmp_path)]) == 2
    assert "supersede it with --failure-value X" in capfd.readouterr().err
    one = find(tmp_path, "plan").registration
    fixed = registration_of({**values_of(one), "failure_value": -1.0})
    register(tmp_path, "plan", fixed, reason="a crash")
    # Eight failures are all alike: nothing to tell apart.
    assert answer(tmp_path, capfd)["verdict"] == "go on"


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ({"A": "sh x.sh {seed}"}, "no command for `B`"),
        ({"A": "no-such-program {seed}", "B": "x {seed}"}, "there is no program"),
        ({"A": "python 'x {seed}", "B": "x {seed}"}, "No closing quotation"),
    ],
)
def test_commands_that_cannot_run(tmp_path: Path, commands: dict[str, str], message: str) -> None:
    kept = plan(tmp_path, commands=commands)
    with pytest.raises(UsageError, match=message):
        commands_of(kept, {"A": [100], "B": [100]})


def test_a_command_of_many_seeds_is_called_once(tmp_path: Path) -> None:
    kept = plan(tmp_path, commands={"A": "echo --seeds {seeds} --seed {seed}"})
    assert commands_of(kept, {"A": [105, 106, 107]}) == [
        ("A", ["echo", "--seeds", "3", "--seed", "105"])
    ]
    with_gap = commands_of(kept, {"A": [105, 107]})
    assert [argv[-1] for _, argv in with_gap] == ["105", "107"]


@pytest.mark.medium
def test_no_difference_goes_on_and_stops_after_the_last_look(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan(tmp_path, metric=METRIC)
    for name in ("A", "B"):
        make_group(tmp_path, name, [1.0, 2.0, 3.0, 4.0, 5.0], first=100)
    found = answer(tmp_path, capfd, "A", "B")
    assert (found["verdict"], found["undecided"]) == ("go on", [["A", "B"]])
    assert found["next_seeds"]["A"] == [*range(105, 110)]
    for name in ("A", "B"):
        make_group(tmp_path, name, [1.0, 2.0, 3.0, 4.0, 5.0], first=105)
    found = answer(tmp_path, capfd, "A", "B")
    assert found["verdict"] == "stop"
    assert any("That does not show that they are equal" in line for line in found["sentences"])


@pytest.mark.medium
def test_a_look_waits_for_a_running_seed_and_never_uses_a_later_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan(tmp_path, metric=METRIC, first_seed=0, failure_value=-5.0, commands={"A": "x {seed}"})
    make_group(tmp_path, "A", [10.0, 11.0, 12.0])
    make_group(tmp_path, "A", [13.0, 14.0], first=4)
    slow = create_run(
        tmp_path, command="run", config={}, seeds=[3], argv=["x"], env="CartPole-v1",
        info=RunInfo(group="A"),
    )  # fmt: skip
    make_group(tmp_path, "B", [1.0, 2.0, 3.0])
    found = answer(tmp_path, capfd, "A", "B")
    assert (found["verdict"], found["looks_done"]) == ("go on", 0)
    assert (found["running_seeds"], found["next_seeds"]) == ({"A": [3]}, {"B": [3, 4]})
    assert "look 1 waits for A: seed 3 still runs" in found["sentences"]
    assert "look 1 waits for B: seeds 3 to 4 have no run" in found["sentences"]
    make_group(tmp_path, "B", [4.0, 5.0], first=3)
    assert answer(tmp_path, capfd, "A", "B", "--start")["started"] == 0
    slow.record("failed")
    slow.close()
    found = answer(tmp_path, capfd, "A", "B")
    # Seed 3 counts as -5, so that the groups overlap; without it, A is better.
    assert (found["looks_done"], found["undecided"]) == (1, [["A", "B"]])
    assert found["next_seeds"] == {"A": [6, 7, 8, 9], "B": [5, 6, 7, 8, 9]}


def test_runs_of_unknown_seeds_take_the_free_numbers_in_the_order_of_their_start(
    tmp_path: Path,
) -> None:
    def row(number: int, seeds: list[int], state: str = "running") -> RunRow:
        folder = make_row(tmp_path / "home", number, seeds=seeds)
        return dataclasses.replace(read_entry(folder).row, state=state)

    def ended(row: RunRow) -> SeedValue:
        seed = row.seeds[0] if row.seeds else None
        return SeedValue(row.short, seed, 1.0, 1.0, "", None, row.state, row.folder)

    rows = [row(2, [], "failed"), row(1, []), row(3, [1], "finished"), row(4, [4]), row(5, [9])]
    done = [ended(one) for one in rows if one.state != "running"]
    order = seed_order(Side("A", "group", rows), "", done, 0)
    assert (set(order.ended), order.running) == ({1, 2}, {0, 4, 9})
    assert order.complete == []
    assert order.awaited(5) == [0, 3, 4]


def test_seeds_in_words_and_in_ranges() -> None:
    assert [in_words(of) for of in ([3], [3, 4], [1, 5, 6, 7])] == [
        "seed 3",
        "seeds 3 to 4",
        "seeds 1, 5 to 7",
    ]
    assert ranges([1, 5, 6]) == [range(1, 2), range(5, 7)]


@pytest.mark.medium
def test_what_a_sequential_test_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(tmp_path, metric=METRIC)
    make_group(tmp_path, "A", [1.0, 2.0])
    make_group(tmp_path, "B", [1.0, 2.0], env="Pendulum-v1")
    argv = ["compare", "--sequential", "--registered", "plan", "--home", str(tmp_path)]
    assert main([*argv, "A", "B"]) == 2
    assert "is common to two groups" in capsys.readouterr().err
    assert main([*argv, "A"]) == 2
    assert "at least two groups" in capsys.readouterr().err
    register(tmp_path, "fixed", find(tmp_path, "plan").registration.__class__(
        "q", find(tmp_path, "plan").registration.hypotheses, METRIC, 4))  # fmt: skip
    make_group(tmp_path, "C", [1.0, 2.0])
    argv[3] = "fixed"
    assert main([*argv, "A", "C"]) == 2
    assert "registers one look" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[("metric", "x"), ("window", "5"), ("better", "lower"), ("threshold", "1")],
        *[("test", "welch"), ("alpha", "0.01"), ("low", "E=1"), ("references", "f.json")],
        *[("csv", "a.csv"), ("latex", "a.tex"), ("markdown", "a.md"), ("html", "a.html")],
    ],
)
def test_a_sequential_test_refuses_what_it_would_ignore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    plan(tmp_path)
    argv = ["compare", "--sequential", "--registered", "plan", f"--{option}", value]
    assert main(argv) == 2
    assert f"--{option} and --sequential exclude each other" in capsys.readouterr().err
    assert [*tmp_path.glob("a.*")] == []


@pytest.mark.medium
def test_a_registration_is_asked_in_the_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "runshelf", "register", "asked", "--home", str(tmp_path)]
    program = subprocess.Popen(argv, stdin=follower, stdout=subprocess.PIPE, stderr=follower)
    os.write(leader, b"is A better?\nA=its mean is higher\nB=it is not\n\nscore\n12\n")
    out, _ = program.communicate(timeout=60)
    os.close(follower)
    os.close(leader)
    assert program.returncode == 0
    assert b"hypothesis  B: it is not" in out
    assert find(tmp_path, "asked").registration.n == 12
