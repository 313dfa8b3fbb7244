"""The doctor looks at logs while a training run writes them."""

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from packages.backflip.tests.doctor.check_samples import log
from packages.backflip.tests.doctor.log_writers import rows_of, sb3, write_csv

from backflip.cli.main import main
from backflip.doctor import live
from backflip.doctor.diagnosis import diagnose
from backflip.doctor.live import LiveDoctor, Watch, follow
from backflip.doctor.log import Signal
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.report import in_words
from backflip.training.train import train
from runshelf.errors import DamagedFile
from runshelf.formatting import number

BROKEN = {"train/approx_kl": 50.0, "train/clip_fraction": 0.999}
DOCTOR = (sys.executable, "-m", "backflip", "doctor")


@pytest.mark.medium
def test_a_finding_is_told_once(tmp_path):
    folder = sb3(tmp_path / "PPO_1")
    watch = Watch(lambda: logs_in(folder, {}), pause=10.0)
    assert watch.look() == []
    sb3(folder, **BROKEN)
    (news, *_) = watch.look()
    assert news.in_words.startswith("doctor: PI-")
    assert "from env step" in news.in_words
    assert watch.look() == []
    assert "PI-KL-HIGH" in watch.found


def test_looking_takes_a_hundredth_of_the_time(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])

    def read():
        clock[0] += 3.0
        return []

    watch = Watch(read, pause=10.0)
    assert not watch.is_due
    clock[0] = 10.0
    assert watch.is_due
    watch.look()
    clock[0] = 312.0
    assert not watch.is_due
    clock[0] = 313.0
    assert watch.is_due


def test_a_log_that_cannot_be_read_yet_is_read_again(monkeypatch, tmp_path):
    monkeypatch.setattr(live, "FOLLOW_PAUSE", 0.0)
    folder, tries, said = sb3(tmp_path / "PPO_1", **BROKEN), [], []

    def read():
        tries.append(1)
        if len(tries) < 3:
            raise DamagedFile("it is cut off")
        return logs_in(folder, {})

    follow(read, said.append, lambda found: bool(found[0].findings))
    assert said[0] == "waiting for a log: it is cut off"
    assert said[1].endswith(live.NO_END)
    assert "doctor: " in said[2]


def test_a_log_without_planned_env_steps_has_no_end_while_it_is_followed(monkeypatch):
    """A return that falls for the last tenth of a log is no finding if more may come."""
    monkeypatch.setattr(live, "FOLLOW_PAUSE", 0.0)
    falls = np.where(np.arange(200) < 170, 100.0 * np.minimum(np.arange(200) / 100, 1.0), 0.0)
    sample = log("ppo", {}, episode_return_mean=0.0)
    steps = 1000.0 * np.arange(1, 201)
    of = replace(sample, signals={"episode_return_mean": Signal(steps, falls, "r")})
    unknown, said = replace(of, planned=math.nan), []
    assert "ENV-DROP" in [m.check.id for m in diagnose(unknown).findings]
    follow(lambda: [unknown], said.append, lambda found: True)
    assert said == [f"{of.name}: {live.NO_END}"]
    said.clear()
    follow(lambda: [replace(of, planned=2e5)], said.append, lambda found: True)
    assert "ENV-DROP" in said[0]


def test_a_report_says_that_a_log_without_planned_env_steps_is_judged_as_ended():
    of = log("ppo", approx_kl=0.01)
    assert f"env steps      {number(1e5)} of {number(2e5)}\n" in in_words(
        diagnose(replace(of, planned=2e5))
    )
    said = in_words(diagnose(replace(of, planned=math.nan)))
    assert f"env steps      {number(1e5)}, judged as a training run that has ended" in said
    assert "--about env_steps=N" in said
    said = in_words(diagnose(replace(of, planned=math.inf)))
    assert f"env steps      {number(1e5)} so far: training goes on" in said


@pytest.mark.medium
def test_the_command_follows_a_program_and_stops_at_a_finding(tmp_path):
    """A program that breaks after half of its log is told on while it still writes."""
    folder = tmp_path / "PPO_1"
    rows = rows_of(
        60,
        **{
            "time/total_timesteps": lambda share: round(share * 1e6),
            "rollout/ep_rew_mean": lambda share: 100 * share,
            "train/approx_kl": lambda share: 0.01 if share < 0.5 else 50.0,
        },
    )
    write_csv(folder / "progress.csv", rows[:20])
    command = [*DOCTOR, str(folder), "--follow", "--until-finding", "--json"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as doctor:
        time.sleep(6)
        assert doctor.poll() is None
        write_csv(folder / "progress.csv", rows)
        out, err = doctor.communicate(timeout=300)  # it looks rarely where a look takes long
    assert doctor.returncode == 1
    assert "backflip: doctor: PI-KL-HIGH" in err
    assert "Infinity" not in out, "planned env steps are unknown"
    (found,) = json.loads(out)["diagnoses"]
    assert found["findings"][0]["since_env_steps"] > 450_000


@pytest.mark.slow
def test_an_interrupt_ends_following_with_the_diagnosis(tmp_path):
    folder = tmp_path / "PPO_1"
    folder.mkdir()
    command = [*DOCTOR, str(folder), "--follow"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as doctor:
        assert doctor.stderr is not None
        assert "waiting for a log" in doctor.stderr.readline()
        sb3(folder)
        time.sleep(4)
        doctor.send_signal(signal.SIGINT)
        out, err = doctor.communicate(timeout=60)
    assert doctor.returncode == 0, err
    assert "Nothing wrong was seen." in out


@pytest.mark.slow
def test_following_a_finished_run_ends_at_once(tmp_path, capsys):
    train("ppo", "probe:1", env_steps=4_096, home=tmp_path)
    main(["doctor", "latest", "--follow", "--home", str(tmp_path)])
    assert "ppo on probe:1" in capsys.readouterr().out


def test_a_wrong_name_is_said_at_once(tmp_path, capsys):
    assert main(["doctor", "PPO_7", "--follow", "--home", str(tmp_path)]) == 2
    assert "PPO_7" in capsys.readouterr().err
    assert main(["doctor", "PPO_7", "--until-finding", "--home", str(tmp_path)]) == 2
    assert "--follow" in capsys.readouterr().err


@pytest.mark.slow
def test_training_says_what_the_doctor_finds_while_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "PAUSE", 0.0)
    monkeypatch.setattr(live, "SHARE", 1.0)
    doctor, notes, warnings = LiveDoctor(), list[str](), list[tuple[int, str]]()

    def report(progress):
        if progress.folder is not None and progress.phase < progress.phases:
            news, warning = doctor(Path(progress.folder))
            notes.extend(news)
            warnings.append((progress.phase, warning))

    settings = {"learning_rate": 1e-9, "num_envs": 8, "rollout_length": 32}
    train("ppo", "CartPole-v1", env_steps=40_000, settings=settings, home=tmp_path, report=report)
    assert any("NN-UPDATE" in note for note in notes), notes
    assert len(set(notes)) == len(notes)
    assert warnings[-1][1].startswith("DOCTOR ")


def test_a_log_that_was_deleted_is_diagnosed_as_it_was_last(tmp_path, monkeypatch, capsys):
    """Ctrl-C ends following after the log is gone: the last log seen is diagnosed."""
    path = sb3(tmp_path / "PPO_1", **BROKEN) / "progress.csv"

    def interrupted(read, say, until):
        read()
        path.unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "follow", interrupted)
    assert main(["doctor", str(path.parent), "--follow"]) == 1
    told = capsys.readouterr()
    assert "finding PI-KL-HIGH" in told.out
    assert "the diagnosis is of the last log seen: " in told.err
