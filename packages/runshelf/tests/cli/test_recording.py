"""The commands `run`, `rerun` and `budget`."""

import argparse
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta

import pytest
from packages.runshelf.tests.index.homes import make_run

from runshelf.cli.command_line import build_parser
from runshelf.cli.main import PROGRAM, main
from runshelf.cli.recording import duration, split_program
from runshelf.index.entry import read_entry
from runshelf.recorder import budget
from runshelf.recorder.budget import spent_this_week, week_start
from runshelf.store.finding import list_runs
from runshelf.store.home import shared
from runshelf.store.periods import periods
from runshelf.store.run import RunInfo, create_run


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400), ("1d", 86400)]
)
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1w", "h", "1e3", "9" * 400, "9" * 305 + "d", "0.0"]
)
def test_invalid_durations(text):
    with pytest.raises(argparse.ArgumentTypeError, match="try 90s"):
        duration(text)


@pytest.mark.parametrize("option", ["--cost", "--weekly"])
def test_a_number_that_is_infinite_for_a_float_is_refused(option, capsys):
    command = ["budget"] if option == "--weekly" else ["run"]
    assert main([*command, option, "9" * 400]) == 2
    assert f"`{option}` must be a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "ours", "program"),
    [
        (["run", "ls", "-l"], ["run"], ["ls", "-l"]),
        (["run", "--", "ls", "--json"], ["run"], ["ls", "--json"]),
        (["run", "--name", "x", "ls"], ["run", "--name", "x"], ["ls"]),
        (
            ["run", "--name=x", "--json", "ls", "--", "y"],
            ["run", "--name=x", "--json"],
            ["ls", "--", "y"],
        ),
        (["run", "--unknown", "ls"], ["run", "--unknown"], ["ls"]),
        (["train", "ppo", "--", "x"], ["train", "ppo", "--", "x"], []),
        ([], [], []),
    ],
)
def test_split_our_options_from_the_program(argv, ours, program):
    assert split_program(argv, build_parser(PROGRAM)[1]) == (ours, program)


def spend(home, **end):
    info = RunInfo(name="dear", cost_per_hour=3600.0)
    with create_run(home, command="run", config={}, argv=["x"], info=info) as writer:
        writer.record("finished", **end)
    return writer.run


@pytest.mark.medium
def test_the_weekly_budget_is_set_shown_and_removed(tmp_path, capsys):
    run = spend(tmp_path)
    text = (run.folder / "events.jsonl").read_text().splitlines()
    begun = max(week_start(), datetime.fromisoformat(json.loads(text[0])["time"]).timestamp() - 10)
    first = json.loads(text[0]) | {"time": datetime.fromtimestamp(begun).astimezone().isoformat()}
    (run.folder / "events.jsonl").write_text("\n".join([json.dumps(first), *text[1:]]) + "\n")
    home = ["--home", str(tmp_path)]
    assert main(["budget", *home, "--weekly", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["weekly"], said["runs"][0]["run"]) == (5.0, run.ulid)
    assert said["spent"] == pytest.approx(10, abs=2)
    assert main(["run", *home, "--cost", "1/h", "echo", "x"]) == 1
    assert "runshelf budget --weekly 10" in capsys.readouterr().err
    assert list_runs(tmp_path) == [run.ulid], "no run was created"
    assert main(["budget", *home, "--weekly", "none"]) == 0
    assert "no weekly budget" in capsys.readouterr().out
    shared(tmp_path, "budget.json").write_text('{"weekly": "much"}')
    assert main(["budget", *home]) == 1
    assert "is damaged: replace it" in capsys.readouterr().err
    assert main(["budget", *home, "--weekly", "much"]) == 2


def at(seconds):
    return (datetime(2026, 1, 5).astimezone() + timedelta(seconds=seconds)).isoformat()


def test_sittings_of_a_run():
    zero = datetime(2026, 1, 5).timestamp()
    events = [
        *({"status": "started", "time": at(0)}, {"event": "budget", "time": at(5)}),
        *({"status": "interrupted", "time": at(10)}, {"status": "resumed", "time": at(100)}),
    ]
    assert periods(events, zero + 107) == [(zero, 10, None), (zero + 100, 7, None)]
    assert periods([{"status": "started", "time": "never"}], zero) == []


def test_a_killed_run_costs_nothing_after_its_last_heartbeat(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "week_start", lambda: 0.0)
    started = datetime.now().astimezone() - timedelta(seconds=100)
    events = [{"status": "started", "time": started.isoformat()}]
    folder = make_run(tmp_path, 1, events=events, settled=False, cost_per_hour=3600.0)
    (folder / "heartbeat.json").touch()
    os.utime(folder / "heartbeat.json", (0, started.timestamp() + 60))
    (folder / "doctor.json").touch()  # a look at the run changes its folder
    assert spent_this_week(tmp_path)[0].cost == pytest.approx(60)
    assert read_entry(folder).row.cost == pytest.approx(60)
    (folder / "heartbeat.json").unlink()
    assert (spent_this_week(tmp_path)[0].cost, read_entry(folder).row.cost) == (0, 0)


@pytest.mark.slow
def test_parallel_runs_share_the_weekly_budget(tmp_path):
    assert main(["budget", "--home", str(tmp_path), "--weekly", "30"]) == 0
    command = [sys.executable, "-m", "runshelf", "run", "--home", str(tmp_path)]
    command += ["--cost", "3600/h", "--grace", "1s", "--", "sleep", "120"]
    runs = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(3)]
    for run in runs:
        run.wait(110)
    spent = sum(one.cost for one in spent_this_week(tmp_path))
    # Separate budgets would allow 90. The excess is the time to notice the limit and to stop.
    assert 28 < spent < 45
