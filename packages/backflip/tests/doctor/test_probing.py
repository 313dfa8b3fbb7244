"""Algorithms without a mistake pass their probes; with one, the probe of that mistake fails."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms import ppo, sac
from backflip.algorithms.registry import entry_of, names
from backflip.cli.main import main
from backflip.core import losses
from backflip.core.targets import bellman_target
from backflip.doctor.probing import own
from backflip.doctor.probing.as_gymnasium import AsGymnasium
from backflip.doctor.probing.others import probe_other
from backflip.doctor.probing.outcome import outcome_of
from backflip.doctor.probing.own import probe_own
from backflip.doctor.probing.probes import probes_for
from backflip.doctor.probing.report import in_words
from backflip.doctor.probing.settings import SETTINGS
from backflip.envs.native.probes import IgnoredNumber
from runshelf.errors import UsageError

TABLE = "packages.backflip.tests.doctor.table_learner"
STEPS = 1_500


def failed(outcomes):
    return [one.probe.id for one in outcomes if not one.passed]


def test_the_error_of_values_is_relative_to_the_largest():
    probe = next(one for one in probes_for(discrete=True) if one.id == "probe:3")
    right = outcome_of(probe, [[0.9, 1.0], [0.9, 1.0]], np.zeros((2, 2)), 0.9, 1.0)
    assert (right.value_error, right.passed) == (0.0, True)
    assert math.isnan(right.action_error)
    wrong = outcome_of(probe, [[0.9, 1.0], [1.0, 1.0]], np.zeros((2, 2)), 0.9, 1.0)
    assert wrong.value_error == pytest.approx(0.1)
    assert not wrong.passed


def test_values_that_are_not_finite_do_not_pass():
    probe = next(one for one in probes_for(discrete=True) if one.id == "probe:3")
    diverged = outcome_of(probe, [[0.9, 1.0], [math.nan, 1.0]], np.zeros((2, 2)), 0.9, 1.0)
    assert diverged.value_error == math.inf
    assert not diverged.passed


def test_there_are_settings_for_every_algorithm():
    assert {name for name in SETTINGS if " " not in name} == set(names())


def test_probes_of_values_come_first_and_build_on_each_other():
    ids = [one.id for one in probes_for(discrete=True)]
    assert ids[:3] == ["probe:1", "probe:2", "probe:3"]
    assert ids[-2:] == ["probe:4", "probe:5"]
    assert all(one.values is None for one in probes_for(discrete=False, values=False))


def test_a_probe_in_gymnasium_gives_what_it_gives_in_jax():
    probe = next(one for one in probes_for(discrete=True) if one.id == "probe:truncation")
    env = AsGymnasium(probe.env)
    obs, _ = env.reset(seed=3)
    steps = [env.step(0) for _ in range(10)]
    assert obs.shape == (1,)
    assert [step[1] for step in steps] == [1.0] * 10
    assert [step[3] for step in steps] == [False] * 9 + [True]
    coin = AsGymnasium(next(one for one in probes_for(discrete=True) if one.id == "probe:5").env)
    assert {float(coin.reset(seed=seed)[0][0]) for seed in range(20)} == {-1.0, 1.0}


@pytest.mark.medium
def test_an_algorithm_behind_an_adapter():
    assert failed(probe_other(f"{TABLE}:right", STEPS)) == []
    assert failed(probe_other(f"{TABLE}:ends_at_limits", STEPS)) == ["probe:truncation"]
    worst = probe_other(f"{TABLE}:prefers_the_worst", STEPS)
    assert failed(worst) == ["probe:4", "probe:5"]
    assert "All values are right, and actions are wrong" in in_words(worst)


def test_a_factory_that_refuses_gives_a_sentence():
    with pytest.raises(UsageError, match="makes no learner for a probe: ValueError: only pixels"):
        probe_other(f"{TABLE}:refuses")


@pytest.mark.slow
def test_a_wrong_sign_in_the_policy_fails_the_probes_of_actions_alone(monkeypatch):
    def chosen(entry):
        return [one for one in probes_for(discrete=True) if one.id in ("probe:1", "probe:4")]

    monkeypatch.setattr(own, "_probes_of", chosen)
    assert failed(probe_own("ppo", {})) == []

    def flipped(log_prob, old, advantage, clip_range):
        return losses.clipped_surrogate(log_prob, old, -advantage, clip_range)

    monkeypatch.setattr(ppo, "clipped_surrogate", flipped)
    assert failed(probe_own("ppo", {})) == ["probe:4"]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", names())
def test_every_algorithm_passes_its_probes(algorithm):
    assert failed(probe_own(algorithm, {})) == []


def test_values_of_sac_are_probed_with_numbers():
    of = {name: own._probes_of(entry_of(name)) for name in ("ppo", "sac", "td3", "dqn")}
    ids = {name: [one.id for one in probes] for name, probes in of.items()}
    assert ids["sac"] == ids["ppo"]
    assert len(set(ids["sac"])) == len(ids["sac"]) == 10
    first = {name: isinstance(probes[0].env, IgnoredNumber) for name, probes in of.items()}
    assert first == {"ppo": False, "sac": True, "td3": True, "dqn": False}


@pytest.mark.slow
def test_a_critic_of_numbers_that_never_bootstraps_fails_the_probes_of_later_rewards(monkeypatch):
    def chosen(entry):
        found = probes_for(discrete=False)
        return [one for one in found if one.id in ("probe:1", "probe:truncation")]

    def without_what_follows(reward, discount, terminated, value):
        return bellman_target(reward, discount, jnp.ones_like(terminated), value)

    monkeypatch.setattr(own, "_probes_of", chosen)
    monkeypatch.setattr(sac, "bellman_target", without_what_follows)
    assert failed(probe_own("sac", {})) == ["probe:truncation"]


def test_the_command_refuses_what_does_not_exist(capsys):
    assert main(["probe", "pppo"]) == 2
    assert "unknown algorithm `pppo`" in capsys.readouterr().err
    assert main(["probe", "no_such_module:make"]) == 2
    assert main(["probe", "ppo", "--set", "x"]) == 2
    assert main(["probe", f"{TABLE}:right", "--set", "a=1"]) == 2


@pytest.mark.medium
def test_the_command_prints_json(capsys):
    assert main(["probe", f"{TABLE}:prefers_the_worst", "--env-steps", "500", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["passed"]
    assert document["probes"][-1]["means"]
    assert jnp.isfinite(document["probes"][0]["value_error"])
