"""Experiments change the probabilities of causes, and a setting that breaks a run is proven."""

import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from packages.backflip.tests.doctor.check_samples import SAMPLES, log

from backflip.cli.main import PROGRAM, main
from backflip.doctor.causes import BY_ID
from backflip.doctor.diagnosis import Ranked, diagnose
from backflip.doctor.proving import Trial, helps, prove, weigh
from backflip.doctor.reading.own_runs import logs_of_run
from backflip.doctor.report import command_of, settings_of
from backflip.training.train import train
from runshelf.cli.command_line import build_parser
from runshelf.errors import UsageError
from runshelf.store.run import find_run, open_run


def test_a_change_helps_if_the_mean_rises_by_more_than_the_deviation():
    assert helps([10.0, 12.0, 14.0], [20.0, 21.0, 22.0])
    assert not helps([10.0, 12.0, 14.0], [12.0, 13.0, 15.0])
    assert not helps([9.0, 9.0, 9.0], [9.0, 9.0, 9.0])
    assert not helps([20.0, 21.0, 22.0], [10.0, 12.0, 14.0])


def test_probabilities_follow_the_trials():
    before = [Ranked(BY_ID["steps-too-small"], 0.6), Ranked(BY_ID["entropy-bonus"], 0.3)]
    before.append(Ranked(BY_ID["observations"], 0.1))
    trials = [
        Trial("steps-too-small", {}, (), "", helped=False),
        Trial("entropy-bonus", {}, (), "", helped=True),
    ]
    found = weigh(before, trials)
    assert [one.cause.id for one in found] == ["entropy-bonus", "steps-too-small", "observations"]
    # 0.3 * 0.85 : 0.6 * 0.15 : 0.1 * 0.5
    assert found[0].probability == pytest.approx(0.255 / (0.255 + 0.09 + 0.05))


def test_an_experiment_changes_the_settings_that_the_algorithm_has():
    of = log("ppo", {"learning_rate": 1e-7, "hidden": [8]})
    lower = BY_ID["steps-too-small"].experiment.settings
    assert settings_of(of, lower) == {"learning_rate": pytest.approx(3e-4)}
    assert settings_of(of, BY_ID["temperature"].experiment.settings) == {}


def test_the_command_of_the_next_experiment_is_one_of_ours():
    settings = {"learning_rate": 1e-7, "hidden": [8]}
    of = replace(log("ppo", settings, update_ratio=1e-9, approx_kl=1e-9), env="my env; ls")
    found = diagnose(of)
    assert found.causes[0].cause.id == "steps-too-small"
    words = shlex.split(command_of(found))
    parser, _ = build_parser(PROGRAM)
    options = parser.parse_args(words[1:])
    assert (options.algorithm, options.env, options.seeds) == ("ppo", "my env; ls", 3)
    assert options.env_steps == 25_000
    assert options.settings == ["learning_rate=0.0003"]
    taught = replace(of, signals={**of.signals, "reward_model_labels": of.signals["approx_kl"]})
    assert command_of(diagnose(taught)) == ""


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
    proof = prove(run, found, tmp_path)
    assert proof.trials[0].cause == ""
    assert next(one for one in proof.trials if one.cause == "steps-too-small").helped
    assert proof.causes[0].cause.id == "steps-too-small"
    assert proof.causes[0].probability > found.causes[0].probability
    repeated = open_run(run.folder.parent / proof.trials[1].run)
    assert repeated.manifest["parent"] == run.ulid


def test_a_run_without_a_setting_to_change_is_refused(tmp_path):
    run: Any = SimpleNamespace(manifest={"command": "train"}, short="ABC")
    found = diagnose(SAMPLES["RM-CHANCE"].broken)
    with pytest.raises(UsageError, match="nothing to repeat"):
        prove(run, found._replace(causes=[]), tmp_path)
