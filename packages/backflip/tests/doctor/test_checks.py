"""Each check finds its own sample wrong, and leaves others alone."""

import dataclasses
import itertools
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.doctor.check_samples import POINTS, SAMPLES, T, X, log
from tests.modules import module_at

from backflip.doctor.calibration import (
    FILE,
    Healthy,
    beyond,
    calibration,
    can_be_crossed,
    kind_of,
    kinds_in_words,
    limit_of,
)
from backflip.doctor.catalogue import BY_ID, CHECKS
from backflip.doctor.causes import BY_ID as CAUSES
from backflip.doctor.check import Running
from backflip.doctor.checks.returns import best_rise
from backflip.doctor.checks.values import mean_value
from backflip.doctor.diagnosis import BY_CHANCE, against, by_chance, diagnose, rank, run_check
from backflip.doctor.errors_of_means import error_of_change, overlap
from backflip.doctor.healthy_returns import (
    PATIENCE,
    PATIENCE_WITH_OTHERS,
    HealthyReturn,
    healthy_returns,
)
from backflip.doctor.log import ITERATIONS, Log, Signal
from backflip.doctor.measures import largest, smallest, smoothed, together
from backflip.doctor.page import page
from backflip.doctor.reading.find import with_facts
from backflip.doctor.report import in_words
from backflip.doctor.signals import SIGNALS

until = module_at("benchmarks/faults/looks.py").until
RETURN = "episode_return_mean"
OF_ALL_SO_FAR = (
    "NN-NAN",
    "ENV-NOTHING",
    "PI-ENT-EARLY",
    "ENV-ACTIONS",
    "REW-UNRELATED",
)  # one number for all


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_measures_its_sample(check):
    broken, healthy, value = SAMPLES[check.id]
    wrong, right = run_check(check, broken), run_check(check, healthy)
    assert wrong is not None
    measured = against(check, wrong, math.nan).value
    assert measured == pytest.approx(value, rel=0.02, abs=1e-9)
    if check.limit is not None:
        assert against(check, wrong, check.limit).is_found
    if right is not None:
        fine = against(check, right, math.nan).value
        assert measured > fine if check.bad_side == "above" else measured < fine
        assert check.limit is None or not against(check, right, check.limit).is_found


@pytest.mark.parametrize(
    "check", [one for one in CHECKS if one.id not in OF_ALL_SO_FAR], ids=lambda check: check.id
)
def test_a_check_measures_the_same_while_the_training_runs(check):
    compared = 0
    for of, share in itertools.product(SAMPLES[check.id][:2], (0.35, 0.75, 0.97)):
        whole, part = run_check(check, of), run_check(check, until(of, share))
        if whole is None or part is None:
            continue
        compared += 1
        then = np.interp(part.x, whole.x, whole.value)
        np.testing.assert_allclose(part.value, then, rtol=0.05, atol=1e-9)
    assert compared, "nothing was compared"


def test_a_fall_must_last_for_a_tenth_of_the_budget_while_the_training_runs():
    dip = np.where((T > 0.31) & (T < 0.345), 0.0, 100.0 * np.minimum(T / 0.1, 1.0))
    steady = log("ppo", episode_return_mean=dip)
    longer = replace(steady, planned=steady.planned * 10)
    check, limit = BY_ID["ENV-DROP"], 0.5
    for of in (steady, until(steady, 0.34), longer):
        running = run_check(check, of)
        assert running is None or not against(check, running, limit).is_found


def test_a_correlation_is_one_of_half_of_the_budget():
    of = SAMPLES["REW-UNRELATED"].broken
    assert run_check(BY_ID["REW-UNRELATED"], of) is not None
    assert run_check(BY_ID["REW-UNRELATED"], until(of, 0.4)) is None


def test_the_entropy_of_sac_counts_in_its_errors_and_for_as_long_as_values_last():
    large = {"reward_min": 0.0, "reward_max": 0.1, "td_error_abs_mean": 3.9}
    with_entropy = log("sac", temperature=1.0, entropy=3.8, **large)
    for of, value in ((with_entropy, 1.0), (log("sac", **large), 39.0)):
        running = run_check(BY_ID["Q-ERROR"], of)
        assert running is not None
        assert running.value[-1] == pytest.approx(value)
    falls = {"temperature": np.where(T < 0.35, 1.0, 0.0), "entropy": 5.0}
    negative = {"episode_return_mean": -100.0, "episode_length_mean": 50.0, "q_mean": 50.0}
    running = run_check(BY_ID["Q-SIGN"], log("sac", **falls, **negative))
    assert running is not None
    first = float(running.x[np.isfinite(running.value)][0])
    assert first / X[-1] == pytest.approx(0.7 + 0.1, abs=0.02), "twice .35, and a tenth"


def test_values_of_sac_may_be_as_large_as_rewards_and_entropy_together():
    # 25 env steps of a reward of -2, and of an entropy of 10 at a temperature of 0.4
    values = {"q_mean": 2000.0, "temperature": 0.4}
    one = log("sac", episode_return_mean=-100.0, episode_length_mean=50.0, **values)
    running = run_check(BY_ID["Q-ABOVE"], one)
    assert running is not None
    assert running.value[-1] == pytest.approx(2000.0 / (50.0 + 100.0))


def test_the_catalogue_is_complete():
    assert len({check.id for check in CHECKS}) == len(CHECKS) == len(SAMPLES)
    for check in CHECKS:
        assert set(check.needs) <= set(SIGNALS), check.id
        assert set(check.causes) <= set(CAUSES), check.id
        assert all(0 < p < 1 for p in check.causes.values()), check.id
        assert (check.limit is None) == (check.limit_from == "calibrated"), check.id
    named = {cause for check in CHECKS for cause in check.causes}
    assert named == set(CAUSES), "every cause is named by a check"


def test_every_calibrated_check_has_a_limit():
    known = calibration()
    assert FILE.exists()
    for check in CHECKS:
        if check.limit_from == "calibrated":
            assert any(check.id in of for of in known.values()), check.id


@pytest.mark.parametrize(
    "check", [one for one in CHECKS if one.limit_from == "calibrated"], ids=lambda check: check.id
)
def test_a_calibrated_check_can_find_something_in_some_kind_of_run(check):
    limits = [beyond(check, of[check.id]) for of in calibration().values() if check.id in of]
    assert any(can_be_crossed(check, limit) for limit in limits)


def test_a_finding_says_since_when():
    check = BY_ID["RM-HACK"]
    running = run_check(check, SAMPLES["RM-HACK"].broken)
    assert running is not None
    assert against(check, running, 20.0).since == 51_000


def test_the_limit_is_the_worst_healthy_value_with_a_margin():
    check, of = BY_ID["PI-KL-HIGH"], log("ppo", entropy_max=1.0)
    known = {
        "ppo/discrete": {"PI-KL-HIGH": Healthy(10, 0.4, 0.2)},
        "ppo/continuous": {"PI-KL-HIGH": Healthy(10, 0.8, 0.2)},
    }
    assert limit_of(check, of, known) == pytest.approx(0.45)
    other = log("ppo")
    assert kind_of(other) == "ppo/continuous"
    assert limit_of(check, replace(other, algorithm="trpo"), known) == pytest.approx(0.95)
    assert limit_of(check, of, {}) is None
    low = {"ppo/discrete": {"PI-KL-TINY": Healthy(10, -6.0, -2.0)}}
    assert limit_of(BY_ID["PI-KL-TINY"], of, low) == pytest.approx(-7.0)
    alike = {"ppo/discrete": {"PI-KL-TINY": Healthy(10, -6.0, -6.0)}}
    assert limit_of(BY_ID["PI-KL-TINY"], of, alike) == pytest.approx(-6.5), "the least margin"


def test_runs_of_teach_have_the_most_lenient_limit_of_the_algorithm():
    check = BY_ID["PI-KL-HIGH"]
    known = {
        "ppo/discrete": {"PI-KL-HIGH": Healthy(10, 0.4, 0.2)},
        "ppo+teach/discrete": {"PI-KL-HIGH": Healthy(10, 0.8, 0.2)},
        "ppo+teach/continuous": {"PI-KL-HIGH": Healthy(10, 0.6, 0.2)},
    }
    taught = log("ppo", entropy_max=1.0, reward_model_labels=50.0)
    assert kind_of(taught) == "ppo+teach/discrete"
    assert limit_of(check, taught, known) == pytest.approx(0.95)
    assert limit_of(check, log("ppo", entropy_max=1.0), known) == pytest.approx(0.45)
    other = log(None, entropy_max=1.0)
    assert limit_of(check, other, known) == pytest.approx(0.45), "taught runs loosen no other limit"


def test_runs_of_other_libraries_loosen_their_own_limits_only():
    check = BY_ID["PI-KL-HIGH"]
    known = {
        "ppo/discrete": {"PI-KL-HIGH": Healthy(10, 0.4, 0.2)},
        "ppo/discrete@sb3": {"PI-KL-HIGH": Healthy(10, 0.8, 0.2)},
    }
    ours = log("ppo", entropy_max=1.0)
    assert limit_of(check, ours, known) == pytest.approx(0.45)
    assert limit_of(check, replace(ours, library="sb3"), known) == pytest.approx(0.95)


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99])
@pytest.mark.parametrize("length", [1, 2, 5, 200])
def test_the_mean_value_of_an_episode_by_definition(discount, length):
    to_go = [sum(discount**k for k in range(left)) for left in range(1, length + 1)]
    assert mean_value(discount, np.array([length]))[0] == pytest.approx(np.mean(to_go))


def test_a_continued_training_counts_from_where_it_began():
    """Its first record has no end of an episode; 47,000 of 67,000 env steps were its parent's."""
    x = np.arange(49_000.0, 67_001.0, 2_000.0)
    episodes = Signal(x, np.where(x < 50_000, 0.0, 16.0), "episodes")
    child = replace(log(), signals={"episodes": episodes}, planned=67_000.0, began_at=47_000.0)
    assert BY_ID["ENV-NOEND"].measure(child).value.max() == pytest.approx(0.1)
    none = replace(child, signals={"episodes": episodes._replace(y=0.0 * x)})
    assert BY_ID["ENV-NOEND"].measure(none).value.max() == 1.0


def test_lengths_that_differ_between_records_of_one_episode_each_differ():
    length = 9.0 + np.arange(POINTS) % 7
    lengths = {"episode_length_min": length, "episode_length_max": length}
    found = BY_ID["ENV-LEN"].measure(log("dqn", {"max_episode_steps": 500}, **lengths))
    assert found.value.min() > 0.1


def test_returns_that_wander_by_chance_do_not_rise():
    """Means of the last 100 episodes, as SB3 logs them, of independent episodes of one policy."""
    check, found = BY_ID["ENV-NOTHING"], []
    for seed in range(20):
        every = np.random.default_rng(seed).normal(-180.0, 60.0, 10 * POINTS)
        means = [every[max(0, 10 * n - 100) : 10 * n].mean() for n in range(1, POINTS + 1)]
        lengths = {"episode_length_mean": 100.0, "explained_variance": 0.0}
        signals = {"episode_return_mean": np.array(means), **lengths}
        of_sb3 = replace(log("ppo", **signals), library="sb3")
        found.append(check.measure(of_sb3).value[-1] < check.limit)
    assert sum(found) >= 18


@pytest.mark.parametrize("library", ["sb3", "cleanrl", "monitor", "backflip"])
def test_a_return_is_a_number_once_there_was_one(library):
    """Ours is NaN in records where no episode ended."""
    late = replace(log(episode_return_mean=np.where(T > 0.5, np.nan, 1.0)), library=library)
    never = replace(log(episode_return_mean=np.nan), library=library)
    for one in (late, never):
        found = {seen.check.id for seen in diagnose(one).findings}
        assert ("NN-NAN" in found) == (library != "backflip")


def test_a_policy_that_had_learnt_has_no_wrong_sign():
    """It rises by 300, and then one update takes it below where it began."""
    noise = np.random.default_rng(0).normal(0.0, 5.0, POINTS)
    returns = np.where(T < 0.5, -180.0 + 600.0 * T, -250.0) + noise
    found = diagnose(log("ppo", episode_return_mean=returns))
    assert [one.check.id for one in found.findings] == ["ENV-DROP"]
    assert found.causes[0].cause.id != "reward-sign"


def test_usual_settings_are_no_evidence_against_steps_that_are_too_large():
    kl = log("ppo", {"clip_range": 0.2}, approx_kl=0.35)
    usual = log("ppo", {"clip_range": 0.2}, approx_kl=0.35, learning_rate=3e-4)
    of_both = [{one.cause.id: one.probability for one in diagnose(of).causes} for of in (kl, usual)]
    assert of_both[0]["steps-too-large"] == pytest.approx(of_both[1]["steps-too-large"])
    assert max(of_both[1], key=of_both[1].get) == "steps-too-large"


@pytest.mark.parametrize(
    ("labels", "ties", "found"), [(9, 9, False), (10, 10, True), (20, 19, False), (60, 59, True)]
)
def test_few_answers_are_enough_if_all_are_ties(labels, ties, found):
    answers = {"reward_model_labels": float(labels), "reward_model_ties": float(ties)}
    warnings = {one.check.id for one in diagnose(log("ppo", **answers)).warnings}
    assert ("RM-TIES" in warnings) == found


@pytest.mark.parametrize(
    ("start", "decides", "found"),
    [(1.0, 0.1, True), (1.0, 1.5 / POINTS, True), (0.04, 0.1, False), (1.0, 0.95, False)],
)
def test_only_a_policy_that_was_open_and_had_time_since_decided_early(start, decides, found):
    share = np.where(decides > T, start, 0.01)
    returns = np.where(np.arange(POINTS) % 2 == 0, 1.0, -1.0)
    one = log(
        "ppo", entropy=share * math.log(4), entropy_max=math.log(4), episode_return_mean=returns
    )
    assert ("PI-ENT-EARLY" in found_in(one, "warnings")) == found


def test_a_negative_kl_says_that_it_is_computed_wrongly():
    first = diagnose(log("ppo", approx_kl=-0.03)).causes[0]
    assert (first.cause.id, first.probability > 0.8) == ("logging", True)


def test_values_that_come_up_late_are_no_mistake():
    of = SAMPLES["PV-LEVEL-LOW"].healthy
    needed = BY_ID["PV-LEVEL-LOW"]
    mean = of.signals["value_mean"]
    slow = {**of.signals, "value_mean": mean._replace(y=np.where(T < 0.6, 1e-3 * mean.y, mean.y))}
    found, right = (run_check(needed, one) for one in (replace(of, signals=slow), of))
    assert found is not None
    assert right is not None
    assert found.value.min() == pytest.approx(right.value.min(), abs=0.05)


def test_values_lag_where_all_costs_are_avoided_in_the_end():
    """Costs fall from 1 to .001, values from -50 to -1, where -.1 is their level."""
    check = BY_ID["PV-LEVEL-HIGH"]
    costs = {"reward_min": -1.0, "reward_max": -1e-4, "episode_length_mean": 50.0}
    falls = {"reward_mean": np.where(T < 0.5, -1.0, -1e-3), **costs}
    lagging = {"value_mean": np.where(T < 0.5, -50.0, -1.0)}
    too_large = {"value_mean": np.where(T < 0.5, -50.0, -100.0)}
    found, wrong = (run_check(check, log("ppo", {"discount": 0.99}, **falls, **values))
                    for values in (lagging, too_large))  # fmt: skip
    assert found is not None
    assert found.value.max() == 0.0
    assert wrong is not None
    assert wrong.value.max() == pytest.approx(math.log10(100.0 / (0.1 * 100.0)))


def test_equal_rewards_have_equal_ranks():
    """Rewards of a sparse task are 0 in most updates: ranks by time would relate all of them."""
    won, elsewhere = (1.0 * (np.arange(POINTS) % 5 == place) for place in (0, 2))
    for received, correlation in ((won, 1.0), (-won, -1.0), (elsewhere, -0.25)):
        needed = {"episode_return_mean": 10 * won, "episode_length_mean": 10.0}
        of = log("dqn", **needed, reward_mean=received)
        found = run_check(BY_ID["REW-UNRELATED"], of)
        assert found is not None
        assert found.value[-1] == pytest.approx(correlation, abs=0.02)
    constant = log("dqn", **needed, reward_mean=1.0)
    assert run_check(BY_ID["REW-UNRELATED"], constant) is None


def test_levels_and_movements_of_rewards_count_only_where_their_scale_stays():
    rises, check = 100.0 * np.arange(POINTS), BY_ID["REW-UNRELATED"]
    needed = {"episode_return_mean": rises, "reward_mean": -rises, "episode_length_mean": 50.0}
    assert run_check(check, log("ppo", {"normalize_rewards": False}, **needed)) is not None
    assert run_check(check, log("dqn", **needed)) is not None
    assert run_check(check, log("ppo", {"normalize_rewards": True}, **needed)) is None
    assert run_check(check, replace(log("ppo", **needed), library="sb3")) is None, "unknown"
    level = SAMPLES["PV-LEVEL-LOW"].broken
    assert run_check(BY_ID["PV-LEVEL-LOW"], level) is not None
    taught = replace(
        level, signals={**level.signals, "fresh_evidence": level.signals["reward_mean"]}
    )
    assert run_check(BY_ID["PV-LEVEL-LOW"], taught) is None


def test_what_depends_on_the_environment_has_one_limit_for_all_kinds():
    known = {
        "ppo/discrete": {"REW-LARGE": Healthy(10, 0.0, 0.0)},
        "sac/continuous": {"REW-LARGE": Healthy(10, 1.2, 1.2)},
    }
    of = log("ppo", entropy_max=1.0)
    assert limit_of(BY_ID["REW-LARGE"], of, known) == pytest.approx(2.2)


def test_long_and_short_episodes_count_by_their_length():
    """99 long episodes with -0.1 a step, and one short with +1 a step: the mean is negative."""
    ends = np.arange(POINTS) % 2 == 0
    returns, lengths = np.where(ends, -100.0, 10.0), np.where(ends, 1000.0, 10.0)
    episodes = np.where(ends, 99.0, 1.0)
    of = log(
        "ppo",
        episode_return_mean=returns,
        episode_length_mean=lengths,
        episodes=episodes,
        reward_mean=-0.1,
    )
    found = run_check(BY_ID["REW-SIGN"], of)
    assert found is not None
    assert found.value.max() == 0.0


@pytest.mark.parametrize(("sign", "is_found"), [(1.0, False), (-1.0, True)])
def test_costs_of_the_start_do_not_make_rewards_of_both_signs_wrong(sign, is_found):
    """As PPO on MountainCarContinuous: costs in small units, then a goal in large ones."""
    scaled = np.where(T < 0.2, -0.05, 0.01)
    columns = {"episode_return_mean": 90.0, "episode_length_mean": 100.0, "episodes": 1.0}
    costs = {"reward_mean": sign * scaled, "reward_min": -1.0, "reward_max": 10.0}
    assert ("REW-SIGN" in found_in(log("ppo", **columns, **costs))) == is_found


def test_a_low_return_counts_in_known_environments_and_when_healthy_runs_have_learnt():
    check, low = BY_ID["ENV-BELOW"], SAMPLES["ENV-BELOW"].broken
    needed = healthy_returns()["backflip"]["CartPole-v1"]["ppo"].env_steps
    found, theirs = run_check(check, low), run_check(check, replace(low, library="sb3"))
    assert found is not None
    assert found.x[0] >= PATIENCE * needed > found.x[0] - 1000
    assert theirs is None or theirs.x[0] >= PATIENCE_WITH_OTHERS * needed
    assert run_check(check, replace(low, env="gymnasium:CartPole-v1")) is not None
    assert run_check(check, replace(low, env="CartPole-v1?length=2")) is None, "another one"
    assert run_check(check, replace(low, algorithm="vpg")) is None, "not measured"
    assert run_check(check, replace(low, env_args={"gravity": 5.0})) is None, "another one"
    taught = replace(low, signals={**low.signals, "fresh_evidence": low.signals[RETURN]})
    assert run_check(check, taught) is None
    lucky = np.where(needed > X, 500.0, 30.0)  # short episodes, the first to end, hide the others
    early = log("ppo", episode_return_mean=lucky)
    found = run_check(check, replace(early, env="CartPole-v1"))
    assert found is not None
    assert found.value[-1] < check.limit
    slow = log("ppo", episode_return_mean=np.where(T > 0.9, 400.0, 30.0))
    found = run_check(check, replace(slow, env="CartPole-v1"))
    assert found is not None
    assert found.value.min() > check.limit, "it learns later than others"


def test_worse_than_random_counts_over_half_of_a_budget_that_is_long_enough():
    check, low = BY_ID["ENV-RANDOM"], SAMPLES["ENV-RANDOM"].broken
    needed = healthy_returns()["backflip"]["CartPole-v1"]["ppo"].env_steps
    assert "ENV-RANDOM" in {one.check.id for one in diagnose(low).findings}
    for scale, is_checked in ((0.4 * needed, False), (0.6 * needed, True)):
        x = {name: one._replace(x=one.x * scale / X[-1]) for name, one in low.signals.items()}
        assert (run_check(check, replace(low, signals=x, planned=scale)) is not None) == is_checked
    of_dqn = healthy_returns()["backflip"]["CartPole-v1"]["dqn"].env_steps
    for scale, is_checked in ((1.4 * of_dqn, False), (1.6 * of_dqn, True)):
        x = {name: one._replace(x=one.x * scale / X[-1]) for name, one in low.signals.items()}
        of = replace(low, signals=x, planned=scale, algorithm="dqn")
        assert (run_check(check, of) is not None) == is_checked
    later = np.where(T > 0.9, 40.0, 10.0)
    found = run_check(check, replace(log("ppo", episode_return_mean=later), env="CartPole-v1"))
    assert found is not None
    assert found.value.min() > 0, "it learns in the end"
    assert run_check(check, replace(low, library="cleanrl")) is None, "not measured there"
    assert run_check(check, until(low, 0.7)) is None, "too soon to say"


def test_a_greedy_policy_that_never_learned_is_not_made_worse_by_learning():
    worse, never = SAMPLES["ENV-WORSE"].broken, SAMPLES["Q-NO-UPDATE"].broken
    both = replace(never, signals={**never.signals, RETURN: worse.signals[RETURN]})
    alone = replace(worse, algorithm=never.algorithm, planned=never.planned)
    assert "ENV-WORSE" in {one.check.id for one in diagnose(alone).findings}
    assert [one.check.id for one in diagnose(both).findings] == ["Q-NO-UPDATE"]


def test_the_first_greedy_actions_of_dqn_may_be_worse_than_random():
    check, falls = BY_ID["ENV-WORSE"], SAMPLES["ENV-WORSE"].broken
    short = {name: one._replace(x=one.x / 10.0) for name, one in falls.signals.items()}
    for of, algorithm, is_checked in ((short, "dqn", False), (short, "ppo", True)):
        log_of = replace(falls, signals=of, algorithm=algorithm, planned=10_000.0)
        assert (run_check(check, log_of) is not None) == is_checked
    assert run_check(check, replace(falls, algorithm="dqn")) is not None, "100,000 env steps"


def test_what_healthy_runs_reach_is_plausible():
    for library, by_env in healthy_returns().items():
        for env, by_algorithm in by_env.items():
            for algorithm, one in by_algorithm.items():
                assert one.untrained < one.reached, (env, algorithm)
                assert one.env_steps > 0, (env, algorithm)
                assert (one.updates > 0) == (library == "sb3"), (env, algorithm)
                assert one.random_mean < one.reached, (env, algorithm)
                assert one.random_std > 0, (env, algorithm)


def test_with_other_numbers_of_environments_updates_count_too(monkeypatch):
    """Twice as many environments make half of the updates in as many env steps."""
    known = {"sb3": {"CartPole-v1": {"ppo": HealthyReturn(22.1, 500.0, 20_000, 40.0)}}}
    monkeypatch.setattr("backflip.doctor.healthy_returns.healthy_returns", lambda: known)
    check = BY_ID["ENV-BELOW"]
    for updates, first in ((100 * T, 60_000.0), (400 * T, 30_000.0), (50 * T, None)):
        of = log("ppo", episode_return_mean=30.0 + T, sb3_updates=updates)
        found = run_check(check, replace(of, library="sb3", env="CartPole-v1"))
        assert (found and found.x[0]) == first


def test_medians_windows_and_extremes():
    signal = Signal(X[:7], np.asarray([1.0, 9, 2, 3, 4, math.nan, 8]), "s")
    found = smoothed(Log("s", "unknown", {"s": signal}), signal)
    np.testing.assert_array_equal(found.x, X[[4, 6]])
    np.testing.assert_array_equal(found.value, [3.0, 4.0])
    running = Running(X[:4], np.asarray([2.0, math.nan, 1.0, 3.0]))
    np.testing.assert_array_equal(largest(running).value, [2, 2, 2, 3])
    np.testing.assert_array_equal(smallest(running).value, [2, 2, 1, 1])


def test_many_points_have_some_hundred_medians_of_the_same_windows():
    x = np.arange(1.0, 40_001)
    signal = Signal(x, np.random.default_rng(0).normal(size=len(x)), "s")
    found = smoothed(Log("s", "unknown", {"s": signal}), signal)
    assert 400 < len(found.x) < 600
    assert found.x[-1] == x[-1]
    for end, value in zip(found.x[::50], found.value[::50], strict=True):
        window = signal.y[int(end) - 800 : int(end)]
        assert value == np.median(window)


def test_signals_are_combined_at_common_env_steps():
    one = Signal(X[:3], np.asarray([1.0, 2.0, 3.0]), "one")
    other = Signal(X[1:4], np.asarray([10.0, 20.0, 30.0]), "other")
    both = together(one, other, lambda a, b: a + b)
    np.testing.assert_array_equal(both.x, X[1:3])
    np.testing.assert_array_equal(both.y, [12.0, 23.0])


def test_causes_are_weighed_by_what_was_found_and_by_what_was_not():
    ratio, flat = BY_ID["PI-RATIO1"], BY_ID["PI-ENT-FLAT"]
    found = against(ratio, Running(X[:1], np.asarray([0.5])), 0.01)
    clear = against(flat, Running(X[:1], np.asarray([0.1])), 0.9)
    of = log("ppo")
    alone = rank([found], of)
    assert alone[0].cause.id == "acting-and-learning-disagree"
    assert sum(one.probability for one in alone) == pytest.approx(1.0)
    odds = {one.cause.id: one.probability for one in rank([found, clear], of)}
    before = {one.cause.id: one.probability for one in alone}
    # PI-ENT-FLAT names the entropy bonus and not the mismatch: that it found nothing tells.
    assert odds["entropy-bonus"] / odds["acting-and-learning-disagree"] < (
        0.85 * before["entropy-bonus"] / before["acting-and-learning-disagree"]
    )


def test_what_a_conclusive_check_would_have_seen_is_improbable():
    """PV-TARGET-WRONG names wrong targets with 90 %: without a finding, a tenth of it is left."""
    worse = against(BY_ID["PV-EV-LOW"], Running(X[:1], np.asarray([-3.0])), -1.0)
    right = against(BY_ID["PV-TARGET-WRONG"], Running(X[:1], np.asarray([1e-7])), 1e-3)

    def odds(*measured):
        found = {one.cause.id: one.probability for one in rank(measured, log("ppo"))}
        return found["value-targets"] / found["steps-too-large"]

    assert odds(worse, right) == pytest.approx(0.1 / 0.998 * odds(worse))


_busy, _alone = np.where(T > 0.5, 5.0, 1.1), np.where(T > 0.5, 1.1, 1.1)
_taken = np.where(T > 0.5, 20.0, 100.0)
_slow = {"env_steps_per_second": 10.0 * _taken}


@pytest.mark.parametrize(
    ("signals", "is_found"),
    [
        ({"load_per_core": _busy, "cpu_percent": _taken}, False),
        ({"load_per_core": _busy}, False),
        ({"load_per_core": _busy, "cpu_percent": 100.0}, True),
        ({"load_per_core": _alone}, True),
        ({"load_per_core": 0.3, "cpu_percent": _taken}, True),
        ({"load_per_core": math.nan, "cpu_percent": _taken}, True),
        ({}, True),
    ],
    ids=["shared", "shared-load-only", "more-work", "not-shared", "waits", "unknown", "not-logged"],
)
def test_a_shared_machine_is_no_fault_of_the_program(signals, is_found):
    found = diagnose(log("ppo", **_slow, **signals, cores=2.0))
    assert ("SYS-SPEED" in [one.check.id for one in found.warnings]) == is_found


def test_a_busy_machine_is_said_to_be_shared():
    """Of 5 threads for each of 2 cores, 20 % CPU use at a fifth of a core each is 1 thread."""
    found = diagnose(log("ppo", load_per_core=_busy, cpu_percent=_taken, cores=2.0, **_slow))
    assert not found.warnings
    (shared,) = found.remarks
    assert (shared.check.id, shared.value) == ("SYS-SHARED", pytest.approx(5.0 - 0.2 * 5.0 / 2.0))
    own = diagnose(log("ppo", load_per_core=5.0, cpu_percent=200.0, cores=2.0))
    assert [one.check.id for one in own.warnings] == ["SYS-CPUS"]
    assert not own.remarks


def test_a_speed_that_comes_back_has_not_decayed():
    slow_for_a_third = np.where((T > 0.5) & (T < 0.83), 200.0, 1000.0)
    assert not diagnose(log("ppo", env_steps_per_second=slow_for_a_third)).warnings
    (found,) = diagnose(log("ppo", **_slow)).warnings
    assert 50_000 < found.since < 60_000


def test_causes_are_those_of_the_algorithm():
    names = {one.cause.id for one in rank([], log("ppo"))}
    assert not names & {"target-network", "replay", "temperature", "reward-model", "labels"}
    taught = log("dqn", reward_model_labels=1.0)
    assert {"target-network", "reward-model"} <= {one.cause.id for one in rank([], taught)}
    assert "advantages" not in {one.cause.id for one in rank([], taught)}


def test_a_run_without_signs_is_fine_and_says_what_it_could_not_check():
    found = diagnose(log("ppo", first_ratio_error=1e-6, entropy=1.0))
    assert found.verdict == f"Nothing wrong was seen, in {len(found.fine)} checks only."
    assert not found.causes
    missing = {name for one in found.unchecked for name in one.missing}
    assert {"approx_kl", "explained_variance"} <= missing


def test_a_log_of_ones_own_without_a_return_is_too_little():
    own = replace(log("ppo", entropy=1.0), library="unknown")
    said = diagnose(own).verdict
    assert said.endswith("to say anything: no name is known as that of the return.")
    few = Signal(X[:5], X[:5], "return")
    said = diagnose(replace(own, signals={RETURN: few})).verdict
    assert "5 rows, and at least 10 are needed" in said
    one = Signal(X[:1], X[:1], "return")
    said = diagnose(replace(own, signals={RETURN: one})).verdict
    assert "1 row, and at least 10 are needed" in said


@pytest.mark.parametrize(
    ("check", "cause"),
    [("ENV-ACTIONS", "actions"), ("Q-NO-UPDATE", "replay"), ("OBS-CONST", "observations")],
)
def test_what_sees_a_cause_itself_outweighs_what_sees_effects(check, cause):
    broken = SAMPLES[check].broken
    effects = log(broken.algorithm, obs_std_max=1.0, approx_kl=0.01, **{RETURN: 20.0}).signals
    found = diagnose(replace(broken, signals={**effects, **broken.signals}))
    assert check in {one.check.id for one in found.findings}
    assert found.causes[0].cause.id == cause
    assert found.causes[0].probability > 0.8


def test_a_doctor_that_cannot_tell_says_so():
    assert diagnose(log("ppo")).verdict == "Too little is logged to say anything."
    short = log("ppo", policy_loss=math.nan)
    few = {name: Signal(one.x[:3], one.y[:3], name) for name, one in short.signals.items()}
    found = diagnose(replace(short, signals=few))
    assert not found.can_tell
    assert any("3 logged points, and at least" in one.why for one in found.unchecked)


def test_no_effect_on_learning_is_a_verdict():
    learns = 100.0 * X / X[-1]
    found = diagnose(log("ppo", episode_return_mean=learns, first_ratio_error=0.5))
    assert "no effect on learning was seen" in found.verdict


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0], ids=["nan", "inf", "zero"])
def test_no_check_fails_on_strange_values(check, value):
    names = {*check.needs, "grad_norm", "entropy_max", "seconds", "memory_mib", "policy_loss"}
    settings = {"discount": 0.99, "learning_starts": 10, "max_episode_steps": 100}
    strange = log(
        check.algorithms[0] if check.algorithms else "ppo", settings, **dict.fromkeys(names, value)
    )
    run_check(check, strange)
    one = {name: Signal(s.x[:1], s.y[:1], name) for name, s in strange.signals.items()}
    run_check(check, replace(strange, signals=one))
    assert len(X) == POINTS


def test_a_setting_names_its_cause_whatever_its_effects_are():
    """Nothing is learned, and every reward is 1: both are remarks that healthy runs show, too."""
    needed = {"episode_return_mean": 10.0, "episode_length_mean": 10.0, "reward_mean": 1.0}
    rewards = {"reward_min": 1.0, "reward_max": 1.0, "reward_std": 0.0}
    epsilon = diagnose(log("dqn", epsilon=1.0, **needed, **rewards))
    assert {"REW-CONST", "ENV-NOTHING"} <= {one.check.id for one in epsilon.remarks}
    assert epsilon.causes[0].cause.id == "too-much-exploration"
    rate = diagnose(log("ppo", learning_rate=0.5, **needed, **rewards))
    assert rate.causes[0].cause.id == "steps-too-large"


def test_a_remark_is_as_probable_by_chance_as_in_healthy_runs():
    assert by_chance(BY_ID["REW-CONST"]) == BY_ID["REW-CONST"].healthy_share == 0.3
    assert by_chance(BY_ID["ENV-EQUAL"]) == BY_CHANCE["convention"]
    assert all(check.severity == "remark" for check in CHECKS if check.healthy_share is not None)


def test_a_target_network_without_a_step_size_is_never_updated():
    found = diagnose(log("td3", {"tau": 0.0}, q_mean=1.0))
    assert [one.check.id for one in found.findings] == ["Q-TARGET-NEVER"]
    assert not diagnose(log("td3", {"tau": 0.005}, q_mean=1.0)).findings


def test_a_discount_above_1_is_a_finding_and_its_cause_the_first():
    found = diagnose(log("dqn", {"discount": 1.02}, q_mean=1.0, episode_return_mean=100.0 * T))
    assert [one.check.id for one in found.findings] == ["GAMMA-RANGE"]
    assert found.causes[0].cause.id == "discount"
    assert not diagnose(log("dqn", {"discount": float(np.float32(1.0))}, q_mean=1.0)).findings


def test_a_learning_rate_of_a_millionth_is_tiny_in_every_precision():
    for rate in (1e-6, float(np.float32(1e-6))):
        found = diagnose(log("ppo", {"learning_rate": rate}, entropy=1.0))
        assert [one.check.id for one in found.findings] == ["NN-LR-LOW"]
    assert not diagnose(log("ppo", {"learning_rate": 1e-5}, entropy=1.0)).findings


def test_reports_show_numbers_in_place_of_their_logarithms():
    said = in_words(diagnose(log("ppo", approx_kl=1e-12 * (1.0 + T), entropy=1.0)))
    assert re.search("seen    1\\.[45].*e−12 < ", said)
    assert re.search("1\\.[45].*e−12 to 1\\.9.*e−12\n", said)
    assert "          the largest median of KL divergences of an update" in said
    assert "ecimal logarithm" not in said


def test_a_curve_of_one_number_gives_way_to_its_signal():
    """The return moves about one value."""
    found = diagnose(log("ppo", episode_return_mean=50.0 + 9.0 * (-1.0) ** np.arange(POINTS)))
    (remark,) = [one for one in found.remarks if one.check.id == "ENV-NOTHING"]
    assert "41 to 59 of episode_return_mean, as logged" in in_words(found)
    assert f">{remark.check.id}: " not in page([found])
    assert "(ENV-NOTHING)" in page([found])


def test_a_verdict_of_few_checks_says_so_and_that_of_remarks_is_about_the_return():
    few = diagnose(log(None, episode_return_mean=100.0 * T))
    assert few.verdict == f"Nothing wrong was seen, in {len(few.fine)} checks only."
    returns = 50.0 + 3.0 * (-1.0) ** np.arange(POINTS)
    two = diagnose(log("ppo", explained_variance=0.04, episode_return_mean=returns))
    assert {one.check.id for one in two.remarks} == {"PV-EV-ZERO", "ENV-NOTHING"}
    two.remarks.sort(key=lambda one: one.check.id, reverse=True)
    assert two.verdict == "Nothing wrong was seen; the return does not rise."


def test_a_check_that_was_not_made_says_why():
    """29 updates, of 30 that PI-KL-TINY waits for; nothing says how large the learning rate is."""
    few = until(log("ppo", approx_kl=1e-9, entropy=1.0), 0.29)
    found = diagnose(replace(few, planned=few.end))
    why = {one.check.id: one.why for one in found.unchecked}
    assert why["PI-KL-TINY"] == "it needs half of the budget and more than 30 updates"
    assert why["NN-LR-LOW"] == "its setting is not known"
    assert why["PI-ENT-COLLAPSE"] == "the number of actions is not known"
    assert why["NN-GRAD-SMALL"] == "no norm of the gradient is logged"
    assert "needs half of the budget and more than 30 updates: PI-KL-TINY" in in_words(found)


def test_tau_of_an_unknown_algorithm_may_be_another_thing():
    assert run_check(BY_ID["Q-TAU-RANGE"], log(None, {"tau": 200.0}, q_mean=1.0)) is None


def test_a_bandit_needs_no_discount():
    of = {"episode_length_mean": 1.0, "q_mean": 1.0}
    assert not diagnose(log("dqn", {"discount": 0.0}, **of)).findings
    longer = diagnose(log("dqn", {"discount": 0.0}, **of | {"episode_length_mean": 9.0}))
    assert [one.check.id for one in longer.findings] == ["GAMMA-H"]
    assert longer.causes[0].cause.id == "discount"


def rolling(episodes: Any, steps_per_row: int, library: str = "sb3") -> Log:
    """A log of means of the last 100 episodes of 200 env steps, as Stable-Baselines3 has it."""
    x = np.arange(steps_per_row, 200 * len(episodes) + 1, steps_per_row, dtype=np.float64)
    done = np.maximum((x / 200).astype(int), 1)
    mean = np.asarray([episodes[max(0, n - 100) : n].mean() for n in done])
    signals = {
        "episode_return_mean": Signal(x, mean, "rollout/ep_rew_mean"),
        "episode_length_mean": Signal(x, np.full(len(x), 200.0), "rollout/ep_len_mean"),
    }
    return Log("rolling", library, signals, algorithm="ppo", env="Task-v0", planned=x[-1])


@pytest.mark.medium
@pytest.mark.parametrize("episodes_per_row", [2, 10])
def test_a_mean_of_few_first_episodes_is_no_return_of_the_untrained_policy(episodes_per_row):
    rng = np.random.default_rng(4)
    flat = [rolling(rng.normal(-1200, 250, 1500), 200 * episodes_per_row) for _ in range(20)]
    worse = [{one.check.id for one in diagnose(of).findings} for of in flat]
    assert sum("ENV-WORSE" in found for found in worse) <= 1
    fallen = rolling(rng.normal(np.linspace(-1200, -3000, 1500), 250), 200 * episodes_per_row)
    assert "ENV-WORSE" in {one.check.id for one in diagnose(fallen).findings}


@pytest.mark.medium
@pytest.mark.parametrize("episodes_per_row", [1, 5])
def test_means_of_the_last_episodes_are_seen_in_a_log_that_does_not_say_so(episodes_per_row):
    rng = np.random.default_rng(6)

    def found_in(mean: Any) -> bool:
        of = rolling(rng.normal(mean, 250, 1500), 200 * episodes_per_row, "unknown")
        del of.signals["episode_length_mean"]
        return "ENV-WORSE" in {one.check.id for one in diagnose(of).findings}

    assert sum(found_in(np.full(1500, -1200.0)) for _ in range(20)) <= 1
    assert sum(found_in(np.linspace(-1200, -3000, 1500)) for _ in range(20)) == 20
    independent = Signal(X, rng.normal(size=len(X)), "return")
    assert overlap(Log("own", "unknown", {RETURN: independent}), independent) == 0
    means = rolling(rng.normal(size=1500), 200, "unknown")
    assert 16 <= overlap(means, means.signals[RETURN]) <= 128  # of 100 episodes


@pytest.mark.parametrize(("first", "found"), [([0.75, 0.5], False), ([0.75, 0.74], True)])
def test_a_policy_that_has_learned_until_the_first_row_was_not_decided(first, found):
    """Rows of every tenth update: what they say of the first one counts."""
    share = np.r_[first, np.full(len(T) - 2, 0.5)]
    of = log("a2c", entropy=math.log(4) * share, entropy_max=math.log(4))
    for library, expected in (("unknown", found), ("sb3", True)):
        said = diagnose(replace(of, library=library)).findings
        assert ("PI-ENT-START" in {one.check.id for one in said}) == expected


@pytest.mark.parametrize("rows", [*range(90, 106), 190, 200])
def test_single_returns_are_judged_at_every_length(rows):
    """Windows of a tenth of the run are full later than ten windows of a twentieth."""
    x, y = np.arange(1.0, rows + 1), np.sin(np.arange(rows))
    of = Log("early", "cleanrl", {RETURN: Signal(x, y, "r")}, algorithm="ppo", planned=1_000.0)
    assert best_rise(of) is not None or rows < 100


@pytest.mark.parametrize(("last", "found"), [(0.05, False), (7.0, True)])
def test_values_of_an_untrained_network_do_not_diverge(last, found):
    values = np.where(T < 0.1, 0.35, last)
    rewards = {"reward_min": -1e-3, "reward_max": 1e-3}
    said = diagnose(log("ppo", {"discount": 0.99}, value_mean=values, **rewards)).findings
    assert ("PV-BOUND" in {one.check.id for one in said}) == found


@pytest.mark.parametrize(("until", "found"), [(0.12, False), (1.0, True)])
def test_only_the_last_share_of_updates_without_variance_counts(until, found):
    said = diagnose(log("ppo", explained_variance=np.where(until >= T, np.nan, 0.9))).findings
    assert ("PV-EV-NAN" in {one.check.id for one in said}) == found


@pytest.mark.parametrize(("last", "found"), [(0.04, False), (-0.5, True)])
def test_values_that_became_no_worse_than_a_constant_are_no_warning(last, found):
    variance = np.minimum(-1.0 + 1.6 * T, last)
    of = replace(log("ppo", explained_variance=variance), library="sb3")
    said = diagnose(of).warnings
    assert ("PV-EV-NEG" in {one.check.id for one in said}) == found


@pytest.mark.parametrize(("steps", "found"), [(50_000.0, False), (150_000.0, True)])
def test_a_missing_end_of_an_episode_is_no_finding_at_first(steps, found):
    x = np.linspace(1.0, steps, 30)
    signals = {"entropy": Signal(x, np.ones(30), "e")}
    of = Log("x", "sb3", signals, algorithm="ppo", planned=1e6)
    assert ("ENV-NOEP" in {one.check.id for one in diagnose(of).findings}) == found


@pytest.mark.parametrize(("rise", "found"), [(0.0, True), (100.0, False)])
def test_a_first_row_of_an_unknown_library_may_be_of_a_policy_that_has_learned(rise, found):
    noise = np.where(np.arange(len(T)) % 2 == 0, 1.0, -1.0)
    signals = {"entropy": 0.5, "entropy_max": math.log(4), RETURN: rise * T + noise}
    of = replace(log("a2c", **signals), library="unknown")
    assert ("PI-ENT-START" in {one.check.id for one in diagnose(of).findings}) == found


def test_a_log_that_has_hardly_begun_is_judged():
    of = Log(
        "new", "unknown", {RETURN: Signal(np.array([0.0, 5e-324]), np.ones(2), "r")}, planned=1e12
    )
    assert not diagnose(of).findings


@pytest.mark.medium
def test_a_fall_of_the_values_that_are_left_out_is_no_rise():
    """The first values are means of too few episodes; those before them are no rise."""
    rng = np.random.default_rng(6)
    fallen = np.r_[np.linspace(-1200, -3000, 80), np.full(1420, -3000)]
    of = rolling(rng.normal(fallen, 250), 200, "unknown")
    del of.signals["episode_length_mean"]
    assert overlap(of, of.signals[RETURN])
    assert "ENV-NOTHING" in {one.check.id for one in diagnose(of).remarks}


@pytest.mark.parametrize(("last", "found"), [(500.0, set()), (-500.0, {"ENV-WORSE"})])
def test_a_rise_to_a_plateau_is_no_noise(last, found):
    """The quiet quarter of the differences is a part of the rise here, not of the plateau."""
    share = np.minimum(1.0, np.arange(1.0, 51.0) / 25.0)
    x = 2048 * np.arange(1.0, 51.0)
    signals = {
        RETURN: Signal(x, last * share, "rollout/ep_rew_mean"),
        "episode_length_mean": Signal(x, np.full(50, 200.0), "rollout/ep_len_mean"),
    }
    log = Log("plateau", "sb3", signals, algorithm="ppo", env="Task-v0", planned=x[-1])
    diagnosis = diagnose(log)
    assert {one.check.id for one in diagnosis.findings} == found
    assert ("ENV-NOTHING" in {one.check.id for one in diagnosis.remarks}) == (last < 0)


@pytest.mark.parametrize("library", ["sb3", "rllib", "rsl_rl", "rl_games", "sample_factory"])
def test_the_deviation_of_a_return_is_known_from_errors_of_means(library):
    rng = np.random.default_rng(5)
    means = rolling(rng.normal(0.0, 250.0, 40_000), 2_000, library)
    expected = 250.0 * math.sqrt(1 / 20 + 1 / 100)  # the median of three rows of ten episodes
    returns = means.signals[RETURN]
    assert error_of_change(means, returns, 10) == pytest.approx(expected, rel=0.1)
    over_iterations = dataclasses.replace(means, counts=ITERATIONS)
    assert error_of_change(over_iterations, returns, 10) == 0.0  # unknown: episodes have env steps


@pytest.mark.parametrize("library", ["sb3", "cleanrl"])
def test_the_deviation_of_a_return_is_known_from_independent_values(library):
    """Compares with the spread of medians of three and of ten other values."""
    rng = np.random.default_rng(6)
    values = rng.normal(0.0, 250.0, 4_000)
    one = Signal(np.arange(4_000.0), values, "r")
    signals = {RETURN: one, "episode_length_mean": one._replace(y=np.ones(4_000))}
    log = Log("single", library, signals | {"episodes": one._replace(y=np.ones(4_000))})
    pairs = rng.normal(0.0, 250.0, (20_000, 13))
    seen = np.median(pairs[:, :3], axis=1) - np.median(pairs[:, 3:], axis=1)
    assert error_of_change(log, one, 10) == pytest.approx(seen.std(), rel=0.15)
    few = one._replace(x=one.x[:5], y=one.y[:5])
    assert error_of_change(log, few, 10) == 0.0


@pytest.mark.parametrize("episodes", [30, 60, 200])
def test_few_single_episodes_are_no_fall(episodes):
    """A fifth of such logs had a finding while only their distance from medians counted."""
    rng, found = np.random.default_rng(7), 0
    for _ in range(100):
        x = 200.0 * np.arange(1, episodes + 1)
        one = Signal(x, rng.normal(-1200, 250, episodes), "r")
        signals = {RETURN: one, "episodes": one._replace(y=np.ones(episodes))}
        log = Log("flat", "sb3", signals, algorithm="td3", planned=x[-1])
        running = run_check(BY_ID["ENV-WORSE"], log)
        found += running is not None and bool(np.nanmax(running.value) > 3.0)
    assert found <= 4


def test_the_weight_of_the_value_loss_is_read_where_it_is_most_of_the_loss():
    """0.5 of a mean squared error; rows where entropy may be as much say nothing."""
    check = BY_ID["PV-WEIGHT"]
    loss = {"policy_loss": 0.01, "entropy": 0.69, "value_loss": np.where(T > 0.5, 40.0, 1.0)}
    of = log("ppo", total_loss=0.01 - 0.69 + loss["value_loss"], **loss)
    running = run_check(check, of)
    assert running is not None
    assert running.value[-1] == pytest.approx(0.5 - 0.69 / 80)
    small = {"total_loss": 0.0, "policy_loss": 0.01, "entropy": 0.69, "value_loss": 1.0}
    assert run_check(check, log("ppo", **small)) is None


def test_a_policy_without_a_loss_is_a_finding_in_the_library_s_own_log_alone():
    """The callback has no loss of the policy; its files have the error of the values."""
    check, of = BY_ID["Q-NO-POLICY-LOSS"], SAMPLES["Q-NO-POLICY-LOSS"].broken
    callback = of.signals | {"td_error_abs_mean": of.signals["q_loss"]}
    assert run_check(check, replace(of, signals=callback)) is None
    assert run_check(check, replace(of, library="unknown")) is None
    assert run_check(check, replace(of, algorithm=None)) is None


def test_a_program_that_may_log_no_loss_of_values_is_not_judged_by_one():
    """Such as CleanRL's C51, and TRPO of sb3-contrib, whose name is unknown here."""
    check, of = BY_ID["Q-NO-UPDATE"], SAMPLES["Q-NO-UPDATE"].broken
    for other in (
        replace(of, library="cleanrl"),
        replace(of, algorithm=None),
        replace(of, algorithm="ppo"),
    ):
        assert run_check(check, other) is None
    with_rate = of.signals | {"learning_rate": of.signals["episode_return_mean"]}
    learns = run_check(check, replace(of, signals=with_rate))
    assert learns is not None
    assert learns.value.max() == 0.01
    told = with_facts(of, {"learning_rate": 1e-4})
    assert told.has("learning_rate")
    still = run_check(check, told)
    assert still is not None
    assert still.value.max() == 1.0, "a rate that a user tells is of no update"
    open_end = run_check(check, replace(of, planned=math.inf))
    assert open_end is not None
    assert open_end.value.max() == 0.0


@pytest.mark.parametrize(("dimensions", "deviation", "fall"), [(6, 1.0, 0.6), (6, 0.14, None)])
def test_the_fall_of_an_entropy_is_of_one_dimension_or_not_measured(dimensions, deviation, fall):
    """Each dimension loses 0.6 nats in the first half; small noise does not tell how many."""
    first = dimensions * (1.4189 + math.log(deviation))
    found = run_check(
        BY_ID["PI-STD-COLLAPSE"], log("ppo", entropy=first - 1.2 * dimensions * (T - T[0]))
    )
    assert (found is None) == (fall is None)
    assert found is None or found.value[-1] == pytest.approx(fall, abs=0.07)


@pytest.mark.parametrize(("begin", "stuck_until"), [(0.01, 0.62), (0.1, 0.62), (0.3, 1.0)])
def test_actions_that_stick_to_a_bound_do_so_for_a_fifth_of_the_budget(begin, stuck_until):
    """Wherever the log begins: the replay is filled first, in env steps without an update."""
    x = np.linspace(begin, 1.0, 200) * X[-1]
    stuck = (x > 0.5 * X[-1]) & (x < stuck_until * X[-1])
    saturation = Signal(x, np.where(stuck, 1.0, 0.1), "saturation")
    of = replace(log("td3"), signals={"action_saturation": saturation})
    found = run_check(BY_ID["Q-SATURATED"], of)
    assert found is not None
    assert found.value.max() == (1.0 if stuck_until == 1.0 else 0.1)


def test_a_return_that_rises_late_is_judged_at_the_end():
    late = np.where(T < 0.7, 0.0, T - 0.7)
    found = diagnose(log("ppo", episode_return_mean=late))
    assert not {"ENV-NOTHING", "PI-ENT-EARLY", "ENV-EQUAL"} & {
        one.check.id for one in found.remarks
    }
    assert found.progress


def test_nothing_is_said_of_no_effect_where_the_return_is_bad():
    dropped = np.where(T < 0.5, 400.0 * T, 10.0)
    found = diagnose(log("ppo", episode_return_mean=dropped, approx_kl=33.0))
    assert {"ENV-DROP", "PI-KL-HIGH"} <= {one.check.id for one in found.findings}
    assert not found.progress
    assert "no effect" not in found.verdict


@pytest.mark.parametrize(("value", "is_found"), [(0.07, False), (7.0, True)])
def test_the_first_values_of_a_network_are_not_above_rare_rewards(value, is_found):
    """As PPO on Freeway: one env step of 50,000 has a reward of 1 at first, later one of 100."""
    rare = np.where(T < 0.4, 2e-5, 0.01)
    of = log(
        "ppo",
        **{"value_mean": np.maximum(value, 100 * rare), "reward_mean": rare},
        **{"reward_min": 0.0, "reward_max": 1.0, "episode_length_mean": 2500.0},
    )
    assert ("PV-LEVEL-HIGH" in found_in(replace(of, settings={"discount": 0.99}))) == is_found


@pytest.mark.parametrize(("early", "is_found"), [(0.6, False), (-0.1, True)])
def test_values_that_once_explained_whole_returns_are_no_trap(early, is_found):
    """As PPO on InvertedDoublePendulum: when it is solved, whole returns hardly differ."""
    whole = np.where(T < 0.6, early, -1.0)
    of = log("ppo", explained_variance=0.75, explained_variance_mc=whole)
    found = run_check(BY_ID["PV-EV-TRAP"], of)
    assert found is not None
    assert found.value.max() == pytest.approx(0.15 if early > 0 else 0.75)
    assert (found.value.max() > 0.71) == is_found, "the limit of continuous actions"


def test_the_loss_of_large_returns_is_no_finding_unless_rewards_are_normalised():
    signals = {"value_loss": 8000.0 - 7950.0 * T, "episode_return_mean": -1300.0 + 1100.0 * T}
    own = log("ppo", **signals)
    assert "PV-LOSS" not in {one.check.id for one in diagnose(own).findings}, "as on CliffWalking"
    normalised = replace(own, settings=dict(own.settings) | {"normalize_rewards": True})
    assert "PV-LOSS" in {one.check.id for one in diagnose(normalised).findings}
    theirs = diagnose(replace(own, library="sb3"))
    assert "PV-LOSS" not in {one.check.id for one in theirs.findings}
    unknown = replace(log("ppo", **signals | {"episode_return_mean": math.nan}), library="sb3")
    assert "PV-LOSS" in {one.check.id for one in diagnose(unknown).findings}
    huge = log("ppo", **signals | {"value_loss": 1e9 * T})
    assert "PV-LOSS" in {one.check.id for one in diagnose(replace(huge, library="sb3")).findings}


@pytest.mark.parametrize(("how", "found"), [("of DQN: the Huber loss", True), ("", False)])
def test_a_huber_loss_grows_with_the_error_and_not_with_its_square(how, found):
    """A mean error of 20,000 is 200 returns; the root of a squared one would be 1.4 returns."""
    of = log("dqn", q_loss=20_000.0, episode_return_mean=-100.0)
    loss = of.signals["q_loss"]._replace(how=how)
    diagnosis = diagnose(replace(of, signals={**of.signals, "q_loss": loss}))
    assert ("Q-LOSS" in {one.check.id for one in diagnosis.findings}) == found


def test_a_loss_is_compared_with_the_largest_return_of_the_log():
    rare = np.where(T < 0.3, 0.002, T)
    found = diagnose(log("dqn", q_loss=0.01, episode_return_mean=rare))
    assert "Q-LOSS" in {one.check.id for one in found.fine}


@pytest.mark.parametrize("first", [0.3, 0.6])
def test_a_reward_that_is_found_late_is_neither_tiny_nor_constant(first):
    """As in Enduro, where a policy overtakes no car until it has learned to accelerate."""
    rare = np.where(first > T, 0.0, 1.0)
    found = diagnose(log("dqn", reward_min=0.0, reward_max=rare))
    said = {one.check.id for one in (*found.findings, *found.warnings, *found.remarks)}
    assert not {"REW-SMALL", "REW-CONST"} & said
    assert "REW-ZERO" not in said


def test_a_report_says_causes_only_where_something_is_wrong():
    remark = diagnose(log("ppo", **{RETURN: 20.0 + np.sin(np.arange(len(T)))}))
    assert remark.causes
    assert not remark.findings
    assert not remark.warnings
    assert "if something is wrong, the most probable first" in in_words(remark)
    wrong = diagnose(log("ppo", approx_kl=50.0))
    assert "causes, the most probable first" in in_words(wrong)


def test_an_estimate_of_the_effect_of_actions_counts_once():
    """Stable-Baselines3's random actions before learning give the same number on every line."""
    once = diagnose(log("dqn", action_effect_p=5e-4))
    often = diagnose(log("dqn", action_effect_p=5e-4 + 1e-6 * T))
    assert "ENV-ACTIONS" in {one.check.id for one in once.fine}
    assert "ENV-ACTIONS" in {one.check.id for one in often.findings}


@pytest.mark.parametrize(("rise", "found"), [(0.0, True), (100.0, False)])
def test_actions_have_an_effect_if_the_return_rises(rise, found):
    noise = np.where(np.arange(len(T)) % 2 == 0, 1.0, -1.0)
    signals = {"action_effect_p": 0.7 + 0.1 * T, RETURN: rise * T + noise}
    said = {one.check.id for one in diagnose(log("ppo", **signals)).findings}
    assert ("ENV-ACTIONS" in said) == found


@pytest.mark.parametrize(("episodes", "found"), [(1.0, False), (5.0, True)])
def test_three_lucky_episodes_are_no_better_policy(episodes, found):
    """Means of several episodes are no luck; three single returns may be."""
    lucky = np.where(np.arange(len(T)) < 3, 100.0, 10.0 + np.sin(np.arange(len(T))))
    said = diagnose(log("ppo", episodes=episodes, **{RETURN: lucky}))
    assert ("ENV-WORSE" in {one.check.id for one in said.findings}) == found


@pytest.mark.parametrize(("until", "found"), [(0.02, False), (1.0, True)])
def test_large_costs_that_are_soon_avoided_are_not_large_rewards(until, found):
    said = diagnose(log("ppo", reward_min=np.where(until >= T, -1e6, -1.0), reward_max=0.0))
    assert ("REW-LARGE" in {one.check.id for one in said.findings}) == found


@pytest.mark.parametrize(("until", "found"), [(0.2, False), (0.6, True)])
def test_values_that_have_not_learned_yet_are_not_behind(until, found):
    """All errors have one sign as long as values are 0 and rewards are costs."""
    values = np.where(until >= T, 0.0, -1.05)
    said = diagnose(log("sac", q_mean=values, target_mean=-1.0, td_error_abs_mean=1.0))
    assert ("Q-BEHIND" in {one.check.id for one in said.findings}) == found


@pytest.mark.parametrize(("rise", "found"), [(0.0, True), (100.0, False)])
def test_values_are_small_where_a_policy_soon_ends_costs(rise, found):
    noise = np.where(np.arange(len(T)) % 2 == 0, 1.0, -1.0)
    values = {"q_mean": -1.5, "reward_mean": -1.0, "reward_min": -1.0, "reward_max": 0.0}
    said = diagnose(log("sac", **values, **{RETURN: rise * T + noise}))
    assert ("Q-LEVEL" in {one.check.id for one in said.warnings}) == found


@pytest.mark.parametrize(("until", "found"), [(0.3, False), (1.0, True)])
def test_a_temperature_that_changes_late_is_not_fixed(until, found):
    said = diagnose(log("sac", temperature=np.where(until >= T, 1.0, 0.1)))
    assert ("Q-TEMPERATURE-FIXED" in {one.check.id for one in said.remarks}) == found


@pytest.mark.medium
def test_values_are_compared_with_returns_where_both_count_the_same_rewards():
    """Not where rewards may be scaled, are learned, or are those of random actions."""

    def said(log: Log) -> set[str]:
        return {one.check.id for one in diagnose(log).findings}

    returns = {"episode_return_mean": -100.0, "episode_length_mean": 50.0}
    below = log("td3", q_mean=-1.0, **returns)
    assert "Q-BELOW" in said(below)
    assert "Q-BELOW" in said(replace(below, library="cleanrl", env="Hopper-v4"))
    for other in (
        replace(below, library="sb3"),
        replace(below, library="cleanrl", env="PongNoFrameskip-v4"),
        replace(below, settings={"clip_rewards": True}),
        replace(below, settings={"normalize_rewards": True}),
        log("td3", q_mean=-1.0, reward_model_labels=10.0, **returns),
        log("dqn", q_mean=-1.0, epsilon=0.5, **returns),
        log("dqn", q_mean=-1.0, **returns),
        log("td3", q_mean=-1.0, episode_return_mean=np.sin(X), episode_length_mean=50.0),
    ):
        assert "Q-BELOW" not in said(other)
    late = np.where(T > 0.9, -10.0, -1.0)
    assert "Q-BELOW" not in said(log("td3", q_mean=late, **returns))
    for steps, judged in ((30.0, True), (18.0, False)):  # a horizon of 15, and of 9
        short = {"episode_return_mean": -2.0 * steps, "episode_length_mean": steps}
        assert ("Q-BELOW" in said(log("td3", q_mean=-1.0, **short))) == judged
    grows = {"episode_length_mean": 10.0 + 40.0 * T, "episode_return_mean": -20.0 - 80.0 * T}
    assert "Q-BELOW" in said(log("td3", q_mean=-1.0, **grows))
    assert "Q-BELOW" in said(log("dqn", q_mean=-1.0, epsilon=0.05, **returns))
    assert "Q-ABOVE" in said(replace(log("td3", q_mean=-1999.0, **returns), library="sb3"))
    avoided = {"episode_return_mean": np.where(T < 0.02, -100.0, -0.1), "episode_length_mean": 50.0}
    for q, is_above in ((-100.0, False), (-200.0, True)):  # over a tenth of -50: 20 and 40
        assert ("Q-ABOVE" in said(log("td3", q_mean=q, **avoided))) == is_above
    assert "Q-SIGN" not in said(log("td3", q_mean=1.0, **avoided))
    assert "Q-SIGN" in said(log("td3", q_mean=10.0, **avoided))
    tiny = log("td3", q_mean=3.0, episode_return_mean=0.1, episode_length_mean=100.0)
    assert "Q-ABOVE" in said(tiny)
    assert "Q-ABOVE" not in said(replace(tiny, library="sb3"))
    rises = log("td3", q_mean=5.0, episode_return_mean=T - 2.0, episode_length_mean=50.0)
    assert "Q-SIGN" not in said(rises)
    for temperature, counts in ((1.0, True), (0.3, False), (0.003, False)):
        soft = log("sac", q_mean=50.0, temperature=temperature, entropy=-2.0, **returns)
        assert ("Q-SIGN" in said(soft)) != counts
    high = log("sac", q_mean=2000.0, temperature=10.0, **returns)
    assert "Q-ENTROPY" in said(high)
    for other in (
        replace(high, library="sb3"),
        log("sac", q_mean=2000.0, temperature=np.where(T > 0.9, 0.01, 10.0), **returns),
        log("sac", q_mean=np.where(T > 0.9, 100.0, 2000.0), temperature=10.0, **returns),
        log("sac", q_mean=2000.0, temperature=10.0 - 6.0 * T, **returns),
    ):
        assert "Q-ENTROPY" not in said(other)


def test_actions_that_come_back_from_their_bounds_do_not_stick():
    """As policies of TD3 do early on Hopper."""
    early = np.where(T < 0.15, 1.0, 0.6)
    assert not diagnose(log("td3", action_saturation=early)).warnings
    late = np.where(T < 0.5, 0.6, 1.0)
    (found,) = diagnose(log("td3", action_saturation=late)).warnings
    assert found.check.id == "Q-SATURATED"
    assert found.since == pytest.approx(0.7 * X[-1], rel=0.1)


def test_a_run_that_never_learns_does_not_explore_too_much():
    found = diagnose(log("dqn", {"learning_starts": 2.0 * X[-1]}, epsilon=1.0))
    assert [one.check.id for one in found.findings] == ["Q-NOSTART"]
    assert found.causes[0].cause.id == "replay"


def test_a_return_that_rose_and_ends_lower_is_no_progress():
    back = np.random.default_rng(5).normal(-1200.0, 30.0, POINTS) + 100 * np.sin(np.pi * T) - 20 * T
    found = diagnose(log("ppo", episode_return_mean=back, first_ratio_error=0.5))
    assert [one.check.id for one in found.findings] == ["PI-RATIO1"]
    assert "ENV-NOTHING" in {one.check.id for one in found.fine}
    assert (found.progress, "no effect" in found.verdict) == (False, False)


def test_a_limit_says_which_healthy_runs_set_it():
    """A log without the number of actions is of no known kind of actions."""
    check, pooled = BY_ID["PI-KL-HIGH"], BY_ID["REW-LARGE"]
    ours = log("ppo", approx_kl=0.01, entropy_max=1.0)
    assert kinds_in_words(check, ours) == "the kind ppo/discrete"
    assert kinds_in_words(check, replace(ours, library="sb3")) == "the algorithm ppo"
    assert kinds_in_words(pooled, ours) == "all algorithms"


def test_a_limit_that_nothing_can_cross_is_none():
    behind = BY_ID["Q-BEHIND"]
    known = {"dqn/discrete": {"Q-BEHIND": Healthy(10, 0.99, 0.5)}}
    of = SAMPLES["Q-BEHIND"].broken
    assert limit_of(behind, of, known) is None, ".99 + .25 · .49 is more than 1"
    unchecked = {one.check.id: one.why for one in diagnose(of, known).unchecked}
    assert unchecked["Q-BEHIND"] == "healthy runs of this kind show all that it can measure"
    unchecked = {one.check.id: one.why for one in diagnose(of, {}).unchecked}
    assert unchecked["Q-BEHIND"] == "no healthy run of this kind was measured"
    known = {"dqn/discrete": {"Q-BEHIND": Healthy(10, 0.6, 0.5)}}
    assert limit_of(behind, of, known) == pytest.approx(0.6 + behind.least_margin)


def found_in(of: Log, says: str = "findings") -> set[str]:
    return {one.check.id for one in getattr(diagnose(of), says)}


def test_a_return_that_ends_where_it_began_is_seen_in_logs_of_any_algorithm():
    collapsed = log(None, episode_return_mean=SAMPLES["ENV-END"].broken.signals[RETURN].y)
    foreign = replace(collapsed, library="unknown")
    assert found_in(foreign, "warnings") == {"ENV-END"}
    (warning,) = diagnose(foreign).warnings
    assert warning.since / X[-1] == pytest.approx(0.6, abs=0.03), "a tenth after the fall"
    assert "ENV-END" not in found_in(until(foreign, 0.9), "warnings"), "more may come"
    regained = replace(foreign, signals=SAMPLES["ENV-END"].healthy.signals)
    assert not found_in(regained, "warnings"), "it fell as far, and came back"
    ours = replace(collapsed, algorithm="ppo")
    assert "ENV-DROP" in found_in(ours)
    assert not found_in(ours, "warnings"), "the fall is said once"
    assert "ENV-LOST" not in found_in(ours, "remarks")


def test_half_of_the_rise_lost_is_a_remark_and_an_effect_on_learning():
    sample = SAMPLES["ENV-LOST"]
    lost, kept = (log(None, episode_return_mean=of.signals[RETURN].y) for of in sample[:2])
    verdict = "Nothing wrong was seen; the return ends well below its best."
    assert diagnose(replace(lost, library="unknown")).verdict == verdict
    for of, says in ((lost, False), (kept, True)):
        nan = of.signals[RETURN]._replace(y=np.where(X[40] == X, math.nan, 1.0))
        wrong = diagnose(replace(of, signals={**of.signals, "approx_kl": nan}, library="unknown"))
        assert wrong.verdict.startswith("Something is wrong")
        assert ("no effect on learning" in wrong.verdict) == says


def test_values_that_are_not_there_yet_are_not_broken():
    waiting = np.where(T <= 0.05, np.nan, 1.0)
    learns = {"q_loss": waiting, "q_mean": waiting, "episode_return_mean": 100.0 * T}
    assert "NN-NAN" not in found_in(log("dqn", **learns))
    assert "NN-NAN" in found_in(log("dqn", q_loss=np.where(T > 0.95, np.nan, waiting)))
    never = log("dqn", q_loss=np.nan, episode_return_mean=100.0 * T)
    assert "NN-NAN" in found_in(never)
    assert "NN-NAN" not in found_in(until(never, 0.1)), "learning may start later"


def test_a_loss_that_is_not_a_number_needs_no_ten_points():
    few = until(log("ppo", value_loss=np.nan, policy_loss=np.nan), 0.08)
    assert found_in(replace(few, planned=math.nan)) == {"NN-NAN"}


def test_a_learning_rate_may_begin_at_0():
    warm = np.minimum(3e-4, 3e-4 * np.arange(POINTS) / 10)
    assert "NN-LR-ZERO" not in found_in(log("ppo", learning_rate=warm))
    assert not found_in(until(log("ppo", learning_rate=warm), 0.01))
    cyclic = np.where(np.arange(POINTS) % 20 == 0, 0.0, 3e-4)
    assert "NN-LR-ZERO" not in found_in(log("ppo", learning_rate=cyclic))
    assert "NN-LR-ZERO" in found_in(log("ppo", learning_rate=np.where(T < 0.5, warm, 0.0)))
    assert "NN-LR-ZERO" in found_in(log("ppo", learning_rate=0.0))


def test_a_table_learns_with_larger_rates_than_a_network():
    columns = {"learning_rate": 0.1, "episode_return_mean": 100.0 * T}
    assert "NN-LR-HIGH" not in found_in(log(None, **columns))
    assert "NN-LR-HIGH" in found_in(log(None, value_loss=1.0, **columns))
    assert "NN-LR-HIGH" in found_in(log("ppo", **columns))


def test_an_estimate_of_kl_that_may_be_negative_is_no_mistake_of_an_unknown_program():
    k1 = replace(log("ppo", approx_kl=-0.01), library="unknown")
    assert "PI-KL-NEG" not in found_in(k1)
    assert "PI-KL-NEG" in found_in(log("ppo", approx_kl=-0.01))


def test_a_replay_fills_faster_than_an_algorithm_learns():
    speed = {"env_steps_per_second": np.where(T <= 0.25, 2000.0, 400.0)}
    late = np.where(T <= 0.25, np.nan, 1.0)
    assert "SYS-SPEED" not in found_in(log("dqn", q_loss=late, **speed), "warnings")
    assert "SYS-SPEED" in found_in(log("dqn", q_loss=1.0, **speed), "warnings")


def test_strange_numbers_are_no_tracebacks():
    huge = log("ppo", value_loss=1.0, episode_return_mean=2e301 * T)
    diagnose(replace(huge, library="sb3"))
    least = Signal(X[::2], -np.ones(50), "reward_min")
    rare = log("ppo", reward_max=1.0)
    diagnose(replace(rare, signals={**rare.signals, "reward_min": least}))
    before = log("ppo", episode_return_mean=_noise_of_returns(), value_loss=1.0)
    shifted = {name: one._replace(x=one.x - 2e5) for name, one in before.signals.items()}
    diagnose(replace(before, signals=shifted, planned=math.nan))


def _noise_of_returns():
    return np.random.default_rng(0).normal(size=POINTS)


STRANGE = (0.0, -1.0, 1e-300, 1e30, 2e301, -1e308, math.inf, -math.inf, math.nan)


def _any_log(seed: int) -> Log:
    """Return a log of any signals, lengths and steps, some of whose values are strange."""
    rng = np.random.default_rng(seed)
    signals = {}
    for name in rng.permutation(sorted(SIGNALS))[: rng.integers(1, len(SIGNALS))]:
        points = int(rng.choice([1, 2, 5, 12, 60]))
        y = rng.normal(size=points) * 10.0 ** rng.integers(-6, 7)
        y = np.where(rng.random(points) < 0.1, rng.choice(STRANGE, points), y)
        begin = rng.choice([-5000.0, 0.0, 0.0, 1e6])
        signals[str(name)] = Signal(begin + np.cumsum(rng.integers(1, 900, points)), y, str(name))
    algorithm = rng.choice(["ppo", "a2c", "dqn", "sac", "td3", "none"])
    library = rng.choice(["backflip", "sb3", "cleanrl", "rllib", "unknown"])
    settings = {"discount": float(rng.choice([0.0, 0.99, 1.0, 2.0])), "actions": 2}
    named = None if algorithm == "none" else str(algorithm)
    return Log("any", str(library), signals, algorithm=named, settings=settings)


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(8))
def test_any_log_gets_a_verdict(seed):
    for number in range(10):
        found = diagnose(_any_log(100 * seed + number))
        assert found.verdict
        assert in_words(found)


def test_the_mean_of_a_replay_may_have_the_sign_of_older_rewards():
    """As DQN on Pong: first -20, then 21, and a replay of half the run."""
    true = np.where(T < 0.22, -20.0, 21.0)
    replayed = [float(true[max(0, n - 50) : n + 1].mean()) for n in range(POINTS)]
    columns = {RETURN: true, "episode_length_mean": 1000.0, "episodes": 1.0}
    healthy = log("dqn", reward_mean=np.asarray(replayed) / 1000.0, **columns)
    assert "REW-SIGN" not in found_in(healthy)
    flipped = log("dqn", reward_mean=0.02, **(columns | {RETURN: -20.0}))
    assert "REW-SIGN" in found_in(flipped)
    turned = log("dqn", reward_mean=-np.asarray(replayed) / 1000.0, **columns)
    assert "REW-UNRELATED" in found_in(turned), "where the true reward changes its sign"
    assert "REW-SIGN" in found_in(log("ppo", reward_mean=-true, **columns))


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_an_infinite_return_is_found_in_any_log(algorithm):
    infinite = np.where(T > 0.5, math.inf, 100 * T)
    waits = np.where(T < 0.1, math.nan, 100 * T)
    assert "NN-NAN" in found_in(log(algorithm, episode_return_mean=infinite), "findings")
    assert "NN-NAN" not in found_in(log(algorithm, episode_return_mean=waits), "findings")


def test_values_that_explain_returns_later_are_no_remark_about_the_time_before():
    x = np.arange(1.0, 61.0) * 1000
    late = np.where(np.arange(60) < 40, 0.01, 0.3)
    logs = [
        Log("a", "sb3", {"explained_variance": Signal(x, y, "train/explained_variance")}, (), ())
        for y in (late, np.full(60, 0.01))
    ]
    found = [[one.check.id for one in diagnose(log).remarks] for log in logs]
    assert "PV-EV-ZERO" not in found[0]
    assert "PV-EV-ZERO" in found[1]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_one_value_for_all_states_is_told_from_an_untrained_network_by_rounding(scale):
    rng = np.random.default_rng(3)
    states, weights = rng.normal(size=(POINTS, 256, 4)), rng.normal(size=4)
    returns = (scale * (50.0 + 10.0 * states @ weights)).astype(np.float32)
    untrained = (0.1 * scale * np.tanh(states @ rng.normal(size=4))).astype(np.float32)
    constant = np.full_like(returns, scale)

    def found(values):
        explained = 1.0 - np.var(returns - values, axis=1) / np.var(returns, axis=1)
        found = diagnose(log("ppo", explained_variance=explained)).findings
        return "PV-CONSTANT" in {one.check.id for one in found}

    assert found(constant)
    assert not found(untrained)


def test_values_that_begin_to_differ_are_not_constant():
    late = np.where(T < 0.6, 1e-7, 0.5)
    assert "PV-CONSTANT" in {
        one.check.id for one in diagnose(log("ppo", explained_variance=1e-7)).findings
    }
    assert not diagnose(log("ppo", explained_variance=late)).findings


def test_entropy_below_a_reward_does_not_turn_the_sign_of_values():
    """The reward of an env step is -2: an entropy of 10 is worth as much at a temperature of .2."""
    check, of = BY_ID["Q-SIGN"], SAMPLES["Q-SIGN"].broken
    for temperature, is_found in ((0.1, True), (0.15, True), (0.17, False), (1.0, False)):
        named = {name: one.y for name, one in of.signals.items()}
        found = run_check(check, log("sac", **named, temperature=temperature))
        assert (found is not None and np.nanmin(found.value) < check.limit) == is_found


@pytest.mark.parametrize(("discount", "is_found"), [(None, True), (0.99, True), (0.5, False)])
def test_values_of_one_reward_are_right_for_a_low_discount(discount, is_found):
    of = replace(SAMPLES["Q-ONE-REWARD"].broken, settings={"discount": discount})
    found = {one.check.id for one in diagnose(of).findings}
    assert ("Q-ONE-REWARD" in found) == is_found
    assert "Q-BELOW" not in found, "it says the same"
