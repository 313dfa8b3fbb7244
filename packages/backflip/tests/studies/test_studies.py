"""Ablation and sensitivity: what they run, by hand and the slow way, and once for real."""

import itertools
import json
import math

import numpy as np
import pytest

from backflip.algorithms.registry import algorithms, entry_of
from backflip.cli.main import main
from backflip.cli.sweeping import check_parameters
from backflip.studies.ablation import ablation_of, change_of, failure_value
from backflip.studies.sensitivity import grid_of, normalised, one_at_a_time, sensitivity
from backflip.studies.sensitivity_picture import sensitivity_picture
from backflip.studies.setting_values import defaults_of, off_value, problem_of
from backflip.training.build import spec_of
from runshelf.errors import UsageError
from runshelf.store.run import create_run
from runshelf.sweeps.ranking import Standing
from runshelf.sweeps.space import parse_space


def run_of(home, command="train", **changed):
    spec = spec_of("CartPole-v1", {})
    settings = {**defaults_of(entry_of("ppo"), spec), **changed}
    config = {"settings": settings, "env_args": {}}
    with create_run(
        home, command=command, config=config, seeds=[0], env="CartPole-v1", algorithm="ppo",
        argv=["backflip", "train", "ppo", "CartPole-v1"],
    ) as writer:  # fmt: skip
        pass
    return writer.run


def test_an_ablation_by_hand(tmp_path):
    study = ablation_of(run_of(tmp_path, discount=0.9, normalize_obs=True, env_steps=5000))
    off = {"discount": "0.98", "normalize_obs": False, "advantage_floor": 0.0}
    ends = {"learning_rate_end": 1e-3, "clip_range_end": 0.2}
    elements = {"discount", "normalize_obs", "advantage_floor", *ends}
    full, *rest = study.arms
    assert set(full.values) == elements
    assert (full.values["discount"], full.values["normalize_obs"]) == (0.9, True)
    without = {arm.what: arm for arm in rest[: len(elements)]}
    one = without["without normalize_obs=true"]
    assert {n for n in elements if one.values[n] != full.values[n]} == {"normalize_obs"}
    baseline = study.arms[len(elements) + 1]
    assert baseline.values["discount"] == float(off["discount"])
    assert baseline.values["advantage_floor"] == off["advantage_floor"]
    assert {n: baseline.values[n] for n in ends} == ends
    for arm in study.arms[len(elements) + 2 :]:
        assert arm.against == len(elements) + 1
        assert sum(arm.values[n] != baseline.values[n] for n in elements) == 1
    assert len(study.arms) == 2 + 2 * len(elements)
    assert study.fixed == {"env_steps": 5000}


def test_an_element_that_cannot_be_off_alone_is_named(tmp_path):
    study = ablation_of(run_of(tmp_path, num_envs=4, minibatches=1, rollout_length=3, epochs=3))
    assert all(problem not in study.arms[0].values for problem in study.skipped)
    with pytest.raises(UsageError, match="run of `teach`"):
        ablation_of(run_of(tmp_path, command="teach"))


def test_what_is_off():
    settings = {"a": True, "b": False, "entropy_coef": 0.01, "lr": 1.0, "lr_end": 0.0, "n_step": 3}
    off = {name: off_value(name, settings) for name in settings}
    assert off == {
        "a": False, "b": None, "entropy_coef": 0.0, "lr": None, "lr_end": 1.0, "n_step": 1,
    }  # fmt: skip


def standing(scores):
    return Standing(0, {}, scores, math.nan, math.nan, math.nan, 0, 0.0, None, ())


def test_a_change_is_the_mean_difference_on_the_same_seeds():
    one, against = standing({1: 5.0, 2: 9.0, 3: 1.0}), standing({1: 4.0, 2: 6.0, 4: 0.0})
    change = change_of(one, against, math.nan)
    # Differences 1 and 3: mean 2, t(1) · √2 / √2 = 12.7062.
    assert (change.mean, change.seeds) == (2.0, 2)
    assert change.high == pytest.approx(2 + 12.7062)
    assert change_of(standing({1: math.nan}), standing({1: 1.0}), math.nan).seeds == 0


def test_a_failed_seed_counts_as_the_worst_score_of_the_study():
    diverges = standing({1: 1.0, 2: math.nan, 3: math.inf, 4: 1.0})
    steady, bad = standing(dict.fromkeys(range(1, 5), 1.0)), standing({1: -7.0})
    arms = [diverges, steady, bad]
    worst = failure_value(arms, higher_is_better=True)
    assert worst == -7.0
    assert failure_value(arms, higher_is_better=False) == 1.0
    # Differences 0, -8, -8 and 0.
    assert change_of(diverges, steady, worst)[::3] == (-4.0, 4)
    assert math.isnan(failure_value([steady, bad], higher_is_better=True))
    assert math.isnan(failure_value([standing({1: math.nan})], higher_is_better=True))


def test_normalisation_by_percentiles():
    scores = np.array([[0.0, 50.0, 100.0], [7.0, 7.0, 7.0], [math.nan, 1.0, 2.0]])
    gamma = normalised(scores)
    # Percentiles 5 and 95 of 0, 50, 100 are 5 and 95.
    np.testing.assert_allclose(gamma[0], [-5 / 90, 0.5, 95 / 90])
    assert gamma[1].tolist() == [1.0, 1.0, 1.0]
    assert gamma[2][0] == gamma[2][1]


def test_a_grid_that_is_too_large_is_refused():
    with pytest.raises(UsageError, match="4,000,000 settings, the limit is 1,000,000"):
        grid_of({"a": range(2000), "b": range(2000)})


def test_sensitivity_the_slow_way():
    rng = np.random.default_rng(0)
    settings = grid_of({"a": [1, 2, 3], "b": [1, 2], "c": [1, 2]})
    scores = rng.normal(size=(4, len(settings)))
    found = sensitivity(scores, settings)
    gamma = normalised(scores)
    tuned = sum(max(row) for row in gamma) / 4
    means = [sum(gamma[e][h] for e in range(4)) / 4 for h in range(len(settings))]
    assert found.phi == pytest.approx(tuned - max(means))
    fixed = settings[means.index(max(means))]
    for count in range(4):
        best = max(
            sum(
                max(
                    gamma[e][h]
                    for h, one in enumerate(settings)
                    if all(one[n] == fixed[n] for n in one if n not in free)
                )
                for e in range(4)
            )
            / 4
            for free in itertools.combinations("abc", count)
        )
        assert found.by_count[count] == pytest.approx(best)
    enough = [score >= 0.95 * tuned for score in found.by_count]
    assert found.dimensionality == enough.index(True)
    assert "<svg" in sensitivity_picture(found, "a < b")


def test_the_only_setting_that_learns_is_seen():
    """Both percentiles of 40 settings are -200, and one setting reaches -120."""
    scores = np.full((1, 40), -200.0)
    scores[0, 7] = -120.0
    assert normalised(scores)[0].tolist() == [float(n == 7) for n in range(40)]
    settings = [{"a": n} for n in range(40)]
    both = np.concatenate([scores, np.roll(scores, 1, axis=1)])
    found = sensitivity(both, settings)
    assert (found.tuned, found.fixed, found.best) == (1.0, 0.5, (7, 8))
    assert normalised(np.full((1, 3), 4.0)).tolist() == [[1.0, 1.0, 1.0]]


def test_two_environments_that_want_different_values_need_one_parameter_tuned():
    settings = grid_of({"a": [1, 2], "b": [1, 2]})
    scores = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    found = sensitivity(scores, settings)
    assert (found.tuned, found.fixed, found.dimensionality) == (1.0, 0.5, 1)
    assert found.names[1] == ("a",)


@pytest.mark.medium
@pytest.mark.parametrize("name", sorted(algorithms()))
def test_every_hyper_parameter_moves_within_its_bounds(name):
    entry = entry_of(name)
    spec = spec_of("CartPole-v1" if entry.discrete else "Pendulum-v1", {})
    settings, left_out = one_at_a_time(entry, [spec])
    base = settings[0]
    assert set(base) | set(left_out) | {"env_steps"} == set(entry.settings)
    assert all(sum(one[n] != base[n] for n in base) == 1 for one in settings[1:])
    defaults = defaults_of(entry, spec)
    for one in settings[1:]:
        (moved,) = (n for n in base if one[n] != base[n])
        if not isinstance(defaults[moved], tuple):
            assert problem_of(entry, spec, {**defaults, moved: one[moved]}) == ""
    if name == "ppo":
        values = {n: {one[n] for one in settings} for n in base}
        assert values["discount"] == {0.8, 0.94, 0.98, 0.9933, 0.998}
        assert values["minibatches"] == {1, 2, 8}  # 3 and 10 would not divide 8 x 32
        assert values["learning_rate_end"] == {0.0, 0.0001, 0.001}
        assert values["entropy_coef_end"] == {0.0, 0.01, 0.1}  # it starts at 0
        assert values["initial_log_std"] == {-1.0, 0.0, 1.0}


def test_a_setting_of_another_library_is_found_by_its_name_there():
    with pytest.raises(UsageError, match="no setting `lr`, did you mean `learning_rate`"):
        check_parameters("ppo", parse_space(["lr=1,2"]))


@pytest.mark.slow
def test_sensitivity_on_cartpole_for_real(tmp_path, capsys):
    words = ["sensitivity", "cem", "CartPole-v1", "--over", "elite_fraction=0.1,0.5"]
    words += ["--seeds", "2", "--env-steps", "25000", "--home", str(tmp_path), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["blocks"]["done"] == 2
    assert found["sensitivity"] == 0.0  # with one environment, the fixed setting is the tuned one
    assert (tmp_path / found["picture"]).read_text().startswith("<svg")
