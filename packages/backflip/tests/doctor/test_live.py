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
from backflip.doctor.ends import Ends, _ends_near_plan
from backflip.doctor.live import LiveDoctor, Watch, follow
from backflip.doctor.log import Log, Signal
from backflip.doctor.reading.from_settings import with_settings
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


@pytest.mark.medium
def test_a_folder_that_does_not_exist_yet_is_waited_for(tmp_path):
    command = [*DOCTOR, str(tmp_path / "PPO_1"), "--follow", "--until-finding"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as doctor:
        assert doctor.stderr is not None
        assert "waiting for a log" in doctor.stderr.readline()
        sb3(tmp_path / "PPO_1", **BROKEN)
        doctor.communicate(timeout=60)
    assert doctor.returncode == 1


@pytest.mark.medium
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_following_with_the_diagnosis(tmp_path, ending):
    folder, page = tmp_path / "PPO_1", tmp_path / "page.html"
    folder.mkdir()
    command = [*DOCTOR, str(folder), "--follow", "--html", str(page)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as doctor:
        assert doctor.stderr is not None
        assert "waiting for a log" in doctor.stderr.readline()
        sb3(folder)
        time.sleep(4)
        doctor.send_signal(ending)
        out, err = doctor.communicate(timeout=60)
    assert doctor.returncode == 0, err
    assert "Nothing wrong was seen, in " in out
    assert page.exists()


def test_a_log_that_stops_before_its_planned_env_steps_ends_when_it_is_quiet(monkeypatch):
    """Updates of 2,048 env steps of 120,000 planned ones: the last one is at 118,784."""
    monkeypatch.setattr(live, "FOLLOW_PAUSE", 0.0)
    monkeypatch.setattr(live, "SHARE", math.inf)  # looks follow each other at once
    clock, said = [0.0], list[str]()
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])
    steps = 2_048.0 * np.arange(1, 59)
    of = replace(log("ppo"), signals={"approx_kl": Signal(steps, np.full(58, 0.01), "kl")})

    def read():
        clock[0] += 10.0
        return [replace(of, planned=120_000.0)]

    follow(read, said.append, lambda found: False)
    why = "no new value for about 1 minute, close to its planned env steps: judged as ended"
    assert said[-1] == f"{of.name}: {why}"


@pytest.mark.parametrize(
    ("planned", "seconds_apart", "quiet"),
    [(120_000.0, 1.0, 60.0), (2e5, 1.0, 600.0), (math.inf, 1.0, 600.0), (math.inf, 100.0, 2_000.0)],
)
def test_the_quiet_time_depends_on_what_is_due_and_on_what_is_usual(
    monkeypatch, planned, seconds_apart, quiet
):
    clock = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])
    steps, times = 2_048.0 * np.arange(1, 59), seconds_apart * np.arange(1, 59)
    one, ends = replace(log("ppo"), planned=planned), Ends()

    def look(at, points):
        clock[0] = at
        seconds = Signal(steps[:points], times[:points], "time")
        return ends.why_over(replace(one, signals={"seconds": seconds}))

    assert look(0.0, 57) is None
    assert look(1.0, 58) is None  # a new value: the clock begins again
    assert look(quiet, 58) is None
    assert "judged as ended" in str(look(quiet + 1.0, 58))


def test_a_signal_from_settings_does_not_say_when_the_next_value_is_due(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])
    steps, ends = 1_000.0 * np.arange(1, 91), Ends()
    one = replace(
        log("ppo", {"learning_rate": 1e-3}),
        signals={"approx_kl": Signal(steps, steps, "kl")},
        planned=100_000.0,
    )
    of = with_settings(one)
    assert of.has("learning_rate")
    assert ends.why_over(of) is None
    clock[0] = 100.0
    assert ends.why_over(of) is None


def test_a_log_without_times_is_waited_for_as_long_as_its_values_take(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])
    one, ends = replace(log("ppo"), planned=math.inf), Ends()
    for clock[0], points in ((0.0, 1), (100.0, 2), (200.0, 3)):
        steps = np.arange(1.0, points + 1)
        of = replace(one, signals={"approx_kl": Signal(steps, steps, "kl")})
        assert ends.why_over(of) is None
    clock[0] = 2_100.0
    assert ends.why_over(of) is None
    clock[0] = 2_200.0
    assert ends.why_over(of) is not None


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


def test_rare_evaluations_bring_no_log_close_to_its_end():
    often, rarely = 1_000.0 * np.arange(1, 93), 10_000.0 * np.arange(1, 10)
    signals = {
        "entropy": Signal(often, often, "e"),
        "evaluation_return": Signal(rarely, rarely, "r"),
    }
    of = Log("x", "unknown", signals, planned=100_000.0)
    assert not _ends_near_plan(of)
    assert _ends_near_plan(replace(of, planned=92_500.0))


def test_an_error_of_a_check_ends_no_training_run(tmp_path, monkeypatch):
    def broken(folder):
        raise ValueError("no windows")

    monkeypatch.setattr(live, "_seeds_of", broken)
    monkeypatch.setattr(live, "PAUSE", -1.0)
    doctor = LiveDoctor()
    news, warning = doctor(tmp_path)
    assert "unexpected ValueError: no windows" in news[0]
    assert "training goes on" in news[0]
    assert (doctor(tmp_path), warning) == (([], ""), "")


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
