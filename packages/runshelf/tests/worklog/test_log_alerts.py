"""Alerts about logs of other programs, also while they are written."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packages.runshelf.tests.interop.test_import_logs import logdir
from packages.runshelf.tests.interop.wandb_writer import wandb_file
from packages.runshelf.tests.web.runs import done

from runshelf.cli.main import main

HEAD = "time/total_timesteps,rollout/ep_rew_mean,train/loss\n"


def alerts(capsys: pytest.CaptureFixture[str], home: Path, *words: str) -> list[str]:
    """Return the texts of new alerts."""
    assert main(["alerts", *words, "--home", str(home), "--json"]) == 0
    return [one["text"] for one in json.loads(capsys.readouterr().out)["alerts"]]


@pytest.mark.medium
def test_limits_and_nan_of_a_csv_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "logs" / "PPO_1"
    folder.mkdir(parents=True)
    log = folder / "progress.csv"
    log.write_text(HEAD + "1000,5,1\n2000,20,nan\n")
    rule = ("--rule", "return < 10 after 1500 env_steps", "--rule", "nan")
    for path in (folder, log):
        found = alerts(capsys, tmp_path, str(path), *rule)
        # Told once, by whatever name; the first row alone breaks the limit.
        assert found == (["log PPO_1: train/loss is not finite"] if path == folder else [])
    with log.open("a") as file:
        file.write("3000,9,0.5\n4000,3")  # the last line is being written
    (found,) = alerts(capsys, tmp_path, str(folder), *rule)
    assert found == "log PPO_1: return < 10 after 1500 env_steps: 9"
    assert alerts(capsys, tmp_path, str(folder), *rule) == []
    log.write_text(HEAD + "1000,5,1\n2000,7,3\n")  # more training, with the same first row
    assert alerts(capsys, tmp_path, str(folder), *rule) == []
    log.write_text(HEAD + "1000,4,1\n2000,7,3\n")
    assert len(alerts(capsys, tmp_path, str(folder), *rule)) == 1  # another training


@pytest.mark.medium
def test_a_stall_is_that_of_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logdir(tmp_path / "tb", (1, "losses/value_loss", 2.0))
    (file,) = (tmp_path / "tb").iterdir()
    words = (str(tmp_path / "tb"), "--rule", "stall 10m")
    assert alerts(capsys, tmp_path, *words) == []
    os.utime(file, (1, time.time() - 900))
    (found,) = alerts(capsys, tmp_path, *words)
    assert found.startswith("log tb: no new line for 15")
    assert alerts(capsys, tmp_path, *words) == []


def test_every_kind_of_log_has_alerts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "logs"
    logdir(logs / "tb", (1, "train/loss", 50.0), (2, "train/loss", 200.0))
    (logs / "x").mkdir()
    (logs / "x" / "monitor.csv").write_text('#{"t_start": 1.0}\nr,l,t\n-300,10,0.5\n')
    (logs / "own.csv").write_text("step,my_loss,seed\n1,101,0\n1,5,1\n2,7,1\n2,300,0\n")
    wandb_file(logs / "wandb/run-a.wandb", [{"loss": 500.0, "global_step": 5}])
    words = [word for name in ("loss > 100", "return < 0", "my_loss > 100", "train/loss > 100")
             for word in ("--rule", name)]  # fmt: skip
    found = alerts(capsys, tmp_path, str(logs), *words)
    for text in ("train/loss > 100: 200", "return < 0: −300", "loss > 100: 500",
                 "my_loss > 100: 300 in 1 of 2 seeds, seed 0"):  # fmt: skip
        assert any(text in one for one in found), (text, found)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("logs", "--rule", "end"), 2, "is about runs that are recorded"),
        (("empty",), 2, "there is no log in"),
        (("bad",), 1, "is not an event file"),
        (("not-there",), 2, "not-there"),
        ((".",), 2, "is a home"),
        (("logs/progress.csv", "--rule", "loss > x"), 2, "is not a rule"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    status: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done(tmp_path, points=2)
    for name in ("logs", "empty", "bad"):
        Path(name).mkdir()
    Path("logs/progress.csv").write_text(HEAD + "1,2,3\n")
    Path("bad/events.out.tfevents.1.host").write_bytes(b"\0" * 100)
    assert main(["alerts", *words]) == status
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


@pytest.mark.medium
def test_runs_and_logs_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = done(tmp_path, points=2)
    (tmp_path / "progress.csv").write_text(HEAD + "1,2,3e6\n")
    path = str(tmp_path / "progress.csv")
    found = alerts(capsys, tmp_path, run.name, path, "--rule", "end", "--rule", "train/loss > 1")
    assert [text.partition(" ")[0] for text in found] == ["run", "log"]


@pytest.mark.medium
def test_a_log_is_followed_while_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("step,loss\n1,5\n")
    code = "import sys; from runshelf.worklog.alerts import watching; watching.follow.__defaults__"
    code += " = (watching.time.sleep, 0.1); from runshelf.cli.main import main; sys.exit(main())"
    words = ["alerts", "own.csv", "--follow", "--rule", "loss > 100"]
    said = tmp_path / "said"
    with said.open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", code, *words], cwd=tmp_path, stdout=out)
    time.sleep(1.5)
    with (tmp_path / "own.csv").open("a") as file:
        file.write("2,200\n")
    until = time.monotonic() + 20
    while "own.csv: loss > 100: 200" not in said.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(2)
    assert process.wait(60) == 0
    assert said.read_text().count("loss > 100") == 1
