"""Experiments change the probabilities of causes, and a setting that breaks a run is proven."""

import json
import math
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.doctor.check_samples import SAMPLES, log

from backflip.algorithms.registry import entry_of, names
from backflip.cli.main import PROGRAM, main
from backflip.doctor.catalogue import CHECKS
from backflip.doctor.causes import BY_ID, CAUSES
from backflip.doctor.diagnosis import Ranked, diagnose
from backflip.doctor.log import ROWS
from backflip.doctor.next_experiment import command_of, part_of, settings_of, time_of
from backflip.doctor.proving import (
    Trial,
    gain_of,
    probe_of,
    prove,
    repetition_of,
    weigh,
)
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.reading.own_runs import logs_of_run
from backflip.doctor.repeating_program import absolute_words, repetition_of_program
from backflip.training.algorithm_config import configure
from backflip.training.train import train
from runshelf.cli.command_line import build_parser
from runshelf.errors import UsageError
from runshelf.store.finding import find_run
from runshelf.store.run import open_run

A_RUN: Any = SimpleNamespace(manifest={"command": "train"}, short="ABC")


@pytest.mark.parametrize(
    ("before", "after", "gain"),
    [
        ([10.0, 12.0, 14.0], [20.0, 21.0, 22.0], 9 / 2),
        ([10.0, 12.0, 14.0], [12.0, 13.0, 15.0], 4 / 3 / 2),
        ([20.0, 21.0, 22.0], [10.0, 12.0, 14.0], -9 / 2),
        ([9.0, 9.0, 9.0], [9.0, 9.0, 9.0], 0.0),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0),
        ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], math.inf),
        ([1.0, math.nan, 2.0], [1.0, 1.0, 1.0], math.inf),
        ([1.0, 2.0, 3.0], [9.0, math.nan, 9.0], -math.inf),
    ],
)
def test_the_gain_is_the_rise_in_the_larger_deviation(before, after, gain):
    assert gain_of(before, after) == pytest.approx(gain)


@pytest.mark.parametrize(("gain", "right"), [(2.0, 0.85), (4.0, 0.98)])
def test_probabilities_follow_the_trials(gain, right):
    before = [Ranked(BY_ID["steps-too-small"], 0.6), Ranked(BY_ID["entropy-bonus"], 0.3)]
    before.append(Ranked(BY_ID["observations"], 0.1))
    trials = [
        Trial("steps-too-small", {}, (), "", 0.5),
        Trial("entropy-bonus", {}, (), "", gain),
    ]
    found = {one.cause.id: one.probability for one in weigh(before, trials)}
    weights = {
        "steps-too-small": 0.6 * 0.15 * (1 - right),
        "entropy-bonus": 0.3 * 0.85 * right,
        "observations": 0.1 * 0.85 * (1 - right),
    }
    whole = sum(weights.values())
    assert found == pytest.approx({name: weight / whole for name, weight in weights.items()})
    assert next(iter(found)) == "entropy-bonus"


def test_an_experiment_changes_the_settings_that_the_algorithm_has():
    of = log("ppo", {"learning_rate": 1e-7, "hidden": [8]})
    lower = BY_ID["steps-too-small"].experiment.settings
    assert settings_of(of, lower) == {"learning_rate": pytest.approx(3e-4)}
    assert settings_of(of, BY_ID["temperature"].experiment.settings) == {}


def test_no_experiment_goes_further_beyond_what_is_known_to_learn():
    raised = BY_ID["steps-too-small"].experiment.settings
    lowered = BY_ID["steps-too-large"].experiment.settings
    high, usual = (log("ppo", {"learning_rate": x}, learning_rate=x) for x in (0.5, 1e-4))
    assert settings_of(high, raised) == {}
    assert settings_of(high, lowered)["learning_rate"] < 0.5
    assert settings_of(usual, raised)["learning_rate"] > 1e-4


@pytest.mark.parametrize("algorithm", names())
def test_every_change_of_an_experiment_is_a_valid_setting(algorithm):
    entry = entry_of(algorithm)
    defaults = vars(configure(entry, {}))
    for cause in CAUSES:
        change = settings_of(log(algorithm, defaults), cause.experiment.settings)
        configure(entry, {**defaults, **change})


COUNTS = ("epsilon_steps", "target_update_interval", "buffer_size", "learning_starts")
OF_SETTINGS = [one for one in CHECKS if one.limit_from == "setting" and not one.needs]
WITHOUT_COMMAND = ("Q-POLICY-NEVER", "PI-CLIP-OFF", "PI-CLIP-ZERO")


@pytest.mark.parametrize("check", OF_SETTINGS, ids=lambda check: check.id)
def test_an_experiment_on_a_wrong_setting_brings_it_within_the_limit(check):
    of = SAMPLES[check.id].broken
    cause = max(check.causes, key=lambda id: check.causes[id])
    change = settings_of(of, BY_ID[cause].experiment.settings)
    assert bool(change) != (check.id in WITHOUT_COMMAND)
    found = diagnose(replace(of, settings={**of.settings, **change})).findings
    assert not change or check.id not in {one.check.id for one in found}


@pytest.mark.parametrize(
    ("cause", "algorithm", "settings", "change"),
    [
        ("entropy-bonus", "ppo", {"entropy_coef": -0.1, "entropy_coef_end": 0.1}, (None, 0.0)),
        ("too-little-exploration", "ppo", {"entropy_coef": 0.05}, (pytest.approx(0.15),)),
        ("too-little-exploration", "ppo", {"entropy_coef": 0, "entropy_coef_end": 0}, (0.01,) * 2),
        ("too-little-exploration", "dqn", {"epsilon_steps": 1000}, (4000,)),
        ("too-little-exploration", "dqn", {"epsilon_steps": 10_000}, (25_000,)),
        ("too-little-exploration", "dqn", {"epsilon_steps": 30_000}, (None,)),
        ("too-little-exploration", "dqn", {"exploration_fraction": 0.3}, (0.5,)),
        ("too-much-exploration", "dqn", {"epsilon_end": 0.01, "epsilon_steps": 10**6}, (None, 1e4)),
        ("too-much-exploration", "dqn", {"epsilon_end": 0.5, "epsilon_steps": 8000}, (0.05, None)),
        ("too-much-exploration", "dqn", {"epsilon_steps": 10**6, "learning_starts": 9000}, (18e3,)),
        ("too-much-exploration", "dqn", {"exploration_fraction": 1.0}, (0.1,)),
        ("advantages", "ppo", {"gae_lambda": 0.95}, (1.0,)),
        ("advantages", "a2c", {"gae_lambda": 1.0}, (0.0,)),
        ("values-do-not-learn", "ppo", {"value_coef": 2.0}, (None,)),
        ("target-network", "dqn", {"target_update_interval": 10**6, "tau": 1.0}, (1000, None)),
        ("target-network", "sac", {"tau": 0}, (0.005,)),
        ("replay", "dqn", {"buffer_size": 50_000, "learning_starts": 200_000}, (None, 1000)),
        ("replay", "dqn", {"buffer_size": 20_000, "learning_starts": 100}, (40_000, None)),
        ("replay", "dqn", {"learning_starts": 9000, "batch_size": 2048}, (2048, None)),
        ("steps-too-large", "ppo", {"learning_rate_end": 1e-3}, (pytest.approx(2e-4),)),
    ],
)
def test_an_experiment_does_what_it_says_within_the_budget(cause, algorithm, settings, change):
    """Of 100,000 planned env steps; None is no change."""
    found = settings_of(log(algorithm, settings), BY_ID[cause].experiment.settings)
    expected = dict(zip(settings, change, strict=False))
    assert found == {name: value for name, value in expected.items() if value is not None}
    counts = [value for name, value in found.items() if name in COUNTS]
    assert all(isinstance(value, int) for value in counts)


def test_a_log_over_other_steps_bounds_no_setting_in_env_steps():
    rows = replace(log("dqn", {"target_update_interval": 10**6}), counts=ROWS)
    change = settings_of(rows, BY_ID["target-network"].experiment.settings)
    assert change == {"target_update_interval": 10**5}


def test_a_target_network_that_is_copied_is_copied_more_often():
    change = BY_ID["target-network"].experiment.settings
    copied = log("dqn", {"tau": 1.0, "target_update_interval": 500})
    assert settings_of(copied, change) == {"target_update_interval": 50}
    follows = log("sac", {"tau": 0.005})
    assert settings_of(follows, change) == {"tau": pytest.approx(0.05)}


@pytest.mark.parametrize("value", ["a schedule", None, math.nan, [1]])
def test_a_setting_that_is_no_number_is_left_alone(value):
    changes = {name: one for cause in CAUSES for name, one in cause.experiment.settings.items()}
    assert settings_of(log("dqn", dict.fromkeys(changes, value)), changes) == {}


@pytest.mark.parametrize(
    ("env_steps", "starts", "part"),
    [
        *((1000, 0, 500), (12_000, 10_000, 11_000), (1, 0, 1), (1000, 2000, 1000)),
        *((1000, "late", 500), (1000, None, 500), (1000, math.nan, 500), (1000, -50, 500)),
    ],
)
def test_a_repetition_has_half_of_the_env_steps_in_which_it_learns(env_steps, starts, part):
    assert part_of(env_steps, {"learning_starts": starts}) == part


def test_the_command_of_the_next_experiment_repeats_the_run_with_one_change():
    settings = {"learning_rate": 1e-7, "hidden": [8], "env_steps": 100_000}
    of = log("ppo", settings, update_ratio=1e-9, approx_kl=1e-9, seconds=np.linspace(2.0, 600, 100))
    assert command_of(diagnose(of)) == "", "a log of another program"
    found = diagnose(replace(of, repeats="backflip rerun ABC"))
    assert found.causes[0].cause.id == "steps-too-small"
    words = shlex.split(command_of(found))
    options = build_parser(PROGRAM)[0].parse_args(words[1:])
    assert (options.command, options.run) == ("rerun", "ABC")
    assert options.changes == ["learning_rate=0.0003", "env_steps=50000"]
    assert time_of(found) == "  # about 5 minutes"
    assert time_of(diagnose(log("ppo"))) == ""


def test_the_time_of_the_next_experiment_is_that_of_its_env_steps():
    """Of a continued run, the log has the times of the last tenth; it takes 10 s for 1,000."""
    settings = {"learning_starts": 90_000, "env_steps": 100_000}
    of = log("dqn", settings, seconds=10 * np.arange(100), q_loss=np.nan)
    times = of.signals["seconds"]
    late = times._replace(x=times.x[-10:], y=np.append(times.y[:9], np.nan))
    found = diagnose(replace(of, signals={**of.signals, "seconds": late}))
    assert found.causes[0].cause.id != "replay"
    assert time_of(found) == "  # about 16 minutes", "of 95,000 env steps, without a change"
    learns = found._replace(causes=[Ranked(BY_ID["replay"], 1.0)])
    assert time_of(learns) == "  # about 8 minutes", "of 50,500 env steps, as it learns at once"


@pytest.mark.slow
def test_only_runs_that_record_themselves_are_repeated_by_rerun(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ["--env-steps", "256", "--set", "rollout_length=8", "--seeds", "1"]
    assert main(["train", "ppo", "CartPole-v1", *few]) == 0
    run = find_run(tmp_path, "latest")
    assert logs_of_run(run)[0].repeats == f"backflip rerun {run.short}"
    by_program = replace(run, manifest={**run.manifest, "argv": ["program.py"]})
    assert logs_of_run(by_program)[0].repeats == ""


def test_only_runs_of_train_are_repeated(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("step,approx_kl\n" + "".join(f"{at},33\n" for at in range(1, 40)))
    assert main(["doctor", str(path), "--about", "algorithm=ppo", "--prove"]) == 2
    assert "repeats runs of `train`" in capsys.readouterr().err


@pytest.mark.slow
def test_a_learning_rate_that_is_too_low_is_proven(tmp_path):
    settings = {"learning_rate": 1e-7, "learning_rate_end": 0.0}
    train("ppo", "CartPole-v1", seeds=2, env_steps=60_000, settings=settings, home=tmp_path)
    run = find_run(tmp_path, "latest")
    found = diagnose(logs_of_run(run)[0])
    assert "NN-UPDATE-SMALL" in [one.check.id for one in found.findings]
    assert found.causes[0].cause.id == "steps-too-small"
    proof = prove(found, repetition_of(run, tmp_path))
    assert proof.trials[0].cause == ""
    assert next(one for one in proof.trials if one.cause == "steps-too-small").helped
    assert proof.causes[0].cause.id == "steps-too-small"
    assert proof.causes[0].probability > found.causes[0].probability
    repeated = open_run(run.folder.parent / proof.trials[1].run)
    assert repeated.manifest["parent"] == run.ulid


def test_what_cannot_be_repeated_is_refused(tmp_path):
    found = diagnose(SAMPLES["RM-CHANCE"].broken)
    with pytest.raises(UsageError, match="no setting that can be changed"):
        prove(found._replace(causes=[]), repetition_of(A_RUN, tmp_path))
    taught: Any = SimpleNamespace(manifest={"command": "teach"}, short="ABC")
    with pytest.raises(UsageError, match="ABC is a run of `teach`"):
        repetition_of(taught, tmp_path)


@pytest.mark.slow
def test_the_probes_alone_are_an_experiment_for_a_learner_of_another_library(tmp_path, capfd):
    path = tmp_path / "a.csv"
    path.write_text("step,approx_kl\n" + "".join(f"{at},33\n" for at in range(1, 40)))
    about = ["--about", "algorithm=ppo", "--probe"]
    factory = "packages.backflip.tests.doctor.table_learner:prefers_the_worst"
    status, found, error = proven(str(path), capfd, *about, factory)
    assert (status, "Traceback" in error) == (1, False)
    assert found["proof"]["trials"] == []
    failed = [one["probe"] for one in found["proof"]["probes"] if one["verdict"] == "failed"]
    assert failed == ["probe:4", "probe:5"]
    before = {one["cause"]: one["probability"] for one in found["diagnoses"][0]["causes"]}
    after = {one["cause"]: one["probability"] for one in found["proof"]["causes"]}
    assert after["policy-loss"] > 2 * before["policy-loss"]
    assert after["steps-too-large"] < before["steps-too-large"]


@pytest.mark.parametrize("factory", ["no_such_module:make", "no_colon"])
def test_a_factory_that_does_not_exist_gives_a_sentence(tmp_path, capsys, factory):
    path = tmp_path / "a.csv"
    path.write_text("step,approx_kl\n" + "".join(f"{at},33\n" for at in range(1, 40)))
    about = ["--about", "algorithm=ppo", "--prove", "--probe", factory]
    assert main(["doctor", str(path), *about]) == 2
    assert factory.partition(":")[0] in capsys.readouterr().err


def test_what_is_probed_has_probes():
    assert probe_of(SimpleNamespace(manifest={"algorithm": "someones:make"})) is None
    assert probe_of(SimpleNamespace(manifest={"algorithm": "ppo"})) is not None


# It logs as Stable-Baselines3 does, and learns if its rate is below 0.01.
LEARNER = """
import argparse, csv
parser = argparse.ArgumentParser()
for name, kind in (("lr", float), ("seed", int), ("steps", int)):
    parser.add_argument(f"--{name}", type=kind)
options = parser.parse_args()
learns = options.lr < 0.01
names = ["time/total_timesteps", "rollout/ep_rew_mean", "train/approx_kl", "time/fps"]
with open("progress.csv", "w") as file:
    writer = csv.writer(file)
    writer.writerow(names)
    for at in range(1, 41):
        share = at / 40
        returned = 10 + options.seed + (200 * share if learns else at % 2)
        writer.writerow([round(share * options.steps), returned, 0.01 if learns else 50.0, 1000])
print("output of the program")
"""
COMMAND = "{python} learner.py --lr {{learning_rate}} --seed {{seed}} --steps {{env_steps}}"


@pytest.fixture
def broken_log(tmp_path, monkeypatch):
    """The log of a program in the current folder, whose learning rate is far too high."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "learner.py").write_text(LEARNER)
    (tmp_path / "PPO_1").mkdir()
    command = [sys.executable, "../learner.py", "--lr=0.5", "--seed=7", "--steps=40000"]
    subprocess.run(command, cwd=tmp_path / "PPO_1", check=True)
    return "PPO_1"


def proven(log, capfd, *options):
    status = main(["doctor", log, "--prove", "--home", "home", "--json", *options])
    printed = capfd.readouterr()
    return status, (json.loads(printed.out) if printed.out else {}), printed.err


@pytest.mark.medium
def test_the_cause_in_a_program_is_proven_by_recorded_repetitions(broken_log, capfd):
    capfd.readouterr()
    command = COMMAND.format(python=sys.executable)
    about = ["--about", "learning_rate=0.5", "--command", command]
    status, found, _ = proven(broken_log, capfd, *about)
    assert status == 1
    unchanged, *changed = found["proof"]["trials"]
    assert unchanged["returns"] == [10.5, 11.5, 12.5]
    assert changed[0]["change"] == {"learning_rate": 3e-4}
    assert changed[0]["helped"]
    assert changed[0]["returns"][0] == pytest.approx(10 + 200 * 0.9625)
    before = {one["cause"]: one["probability"] for one in found["diagnoses"][0]["causes"]}
    first = found["proof"]["causes"][0]
    assert first["cause"] == changed[0]["cause"] == "steps-too-large"
    assert first["probability"] > before["steps-too-large"]
    runs = [open_run(path.parent) for path in Path("home/runs").glob("*/run.json")]
    assert len(runs) == 3 * len(found["proof"]["trials"])
    assert all(run.manifest["tags"] == ["doctor"] for run in runs)
    assert all((run.folder / "outputs" / "progress.csv").is_file() for run in runs)
    (kept,) = [run for run in runs if run.ulid == unchanged["run"]]
    assert "20000" in kept.manifest["argv"]
    assert "output of the program" in (kept.folder / "output.log").read_text()


@pytest.mark.medium
@pytest.mark.parametrize(
    ("command", "about", "says"),
    [
        ("{python} learner.py --lr {{learning_rate}}", "learning_rate=0.5", "needs {seed}"),
        (COMMAND, "discount=0.9", "add --about learning_rate=VALUE"),
        ("{python} 'learner.py --seed {{seed}}", "learning_rate=1", "No closing quotation"),
        ("no-such-program --seed {{seed}}", "learning_rate=1", "there is no program"),
        ("", "learning_rate=1", "is empty"),
        ("{python} -c pass --seed {{seed}}", "learning_rate=1", "no setting that can be changed"),
        ("{python} -c pass {{seed}} {{learning_rate}}", "learning_rate=1", "logged no return in"),
    ],
)
def test_a_command_that_cannot_be_repeated_gives_a_sentence(
    broken_log, capfd, command, about, says
):
    capfd.readouterr()
    command = command.format(python=sys.executable)
    status, found, error = proven(broken_log, capfd, "--about", about, "--command", command)
    assert status in (1, 2)
    assert found == {}
    assert says in error
    assert "Traceback" not in error


@pytest.mark.medium
@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("learner.py --lrr {learning_rate} --seed {seed}", "exit status 2: .*--lrr"),
        ("-c 'import os; os.kill(os.getpid(), 9 + {seed})' {learning_rate}", "killed by SIGKILL"),
        ("-c 'raise SystemExit({seed} + 1)' {learning_rate}", "exit status 1: it printed nothing"),
    ],
)
def test_a_program_that_fails_ends_the_proof_with_its_reason(broken_log, capfd, command, how):
    capfd.readouterr()
    about = ["--about", "learning_rate=0.5", "--command", f"{sys.executable} {command}"]
    status, found, error = proven(broken_log, capfd, *about)
    assert (status, found) == (1, {})
    assert len(list(Path("home/runs").glob("*/run.json"))) == 1, "one seed is enough"
    assert re.search(f"the unchanged program failed: run \\w+, {how}", error)


@pytest.mark.medium
def test_a_changed_program_that_fails_is_named_and_each_line_is_said_once(broken_log, tmp_path):
    (log,) = logs_in(tmp_path / broken_log, {})
    program = tmp_path / "other.py"
    program.write_text(LEARNER.replace("learns =", "assert options.lr != 1.0\nlearns ="))
    said = list[str]()
    command = COMMAND.format(python=sys.executable).replace("learner", "other")
    log = replace(log, settings={"learning_rate": 0.5}, planned=40_000.0)
    repeat, _ = repetition_of_program(command, log, {}, tmp_path / "home", said.append)
    repeat({}, "unchanged")
    assert np.isnan(repeat({"learning_rate": 1.0}, "changed").returns).all()
    assert sum("exit status 1: AssertionError" in line for line in said) == 3
    assert len(said) == len(set(said))


@pytest.mark.medium
@pytest.mark.parametrize("option", ["--command", "--probe"])
def test_an_option_of_prove_without_it_is_refused(broken_log, capsys, option):
    assert main(["doctor", broken_log, option, "a:b"]) == 2
    assert f"`{option}` works with --prove only" in capsys.readouterr().err


@pytest.mark.medium
def test_no_shell_reads_the_command(broken_log, tmp_path):
    (log,) = logs_in(tmp_path / broken_log, {})
    words = absolute_words("python learner.py ; touch {seed} $(touch x) && touch z")
    assert words[1] == str(tmp_path / "learner.py")
    assert words[2:] == [";", "touch", "{seed}", "$(touch", "x)", "&&", "touch", "z"]
    with pytest.raises(UsageError, match="add --about other"):
        repetition_of_program("python {seed} {other}", log, {}, tmp_path, print)


@pytest.mark.medium
def test_iterations_are_not_passed_to_a_program_as_env_steps(broken_log, tmp_path):
    (log,) = logs_in(tmp_path / broken_log, {})
    log = replace(log, counts="iterations")
    command = f"{sys.executable} learner.py --seed {{seed}} --steps"
    with pytest.raises(UsageError, match="the log counts iterations: write the number of env"):
        repetition_of_program(f"{command} {{env_steps}}", log, {}, tmp_path, print)
    repetition_of_program(f"{command} 20000", log, {}, tmp_path, print)
