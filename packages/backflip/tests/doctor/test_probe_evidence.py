"""Probes tell mistakes in the code of an algorithm from wrong settings and environments."""

import math

import pytest

from backflip.doctor.causes import BY_ID, CAUSES
from backflip.doctor.diagnosis import Ranked
from backflip.doctor.probe_evidence import SIGN, failures, has_failed, likelihood, weigh_by_probes
from backflip.doctor.probing.outcome import Outcome
from backflip.doctor.probing.probes import probes_for

PROBES = {one.id: one for discrete in (True, False) for one in probes_for(discrete=discrete)}
CHOICES = {"probe:4", "probe:5"}


def outcomes(*failed, values=True, constant=1.0):
    """Outcomes of all probes with choices; values are not asked for without `values`.

    `constant` is the learned value on `probe:1`.
    """
    found = []
    for one in probes_for(discrete=True):
        error = 9.0 if one.id in failed else 0.0
        of_values = error if one.id not in CHOICES and values else math.nan
        of_actions = error if one.id in CHOICES else math.nan
        value = constant if one.id == "probe:1" and values else math.nan
        found.append(Outcome(one, of_values, of_actions, 0.1, value))
    return found


def ranked(**probabilities):
    return [Ranked(BY_ID[name.replace("_", "-")], share) for name, share in probabilities.items()]


def weighed(causes, seen):
    return {one.cause.id: one.probability for one in weigh_by_probes(causes, seen)}


def test_the_likelihood_by_hand():
    failed = {"probe:1": True, "probe:4": False}
    by_chance = 0.05 * 0.95
    assert likelihood({}, failed) == pytest.approx(by_chance)
    in_code = 0.8 * (1 - 0.3)
    assert likelihood({"probe:1": 0.8, "probe:4": 0.3}, failed) == pytest.approx(
        0.5 * in_code + 0.5 * by_chance
    )
    assert likelihood({"probe:1": 0.8}, failed) == pytest.approx(0.5 * 0.8 * 0.95 + 0.5 * by_chance)
    assert likelihood({"probe:1": 0.8}, {}) == 1.0


def test_probabilities_follow_the_probes():
    causes = ranked(steps_too_large=0.7, policy_loss=0.2, reward_sign=0.1)
    seen = outcomes("probe:4", "probe:5")
    found = weighed(causes, seen)
    failed = {**{one.probe.id: has_failed(one) for one in seen}, SIGN: False}
    weights = {
        one.cause.id: one.probability * likelihood(one.cause.probes, failed) for one in causes
    }
    whole = sum(weights.values())
    assert found == pytest.approx({name: weight / whole for name, weight in weights.items()})
    assert next(iter(found)) == "policy-loss"


@pytest.mark.parametrize(
    ("failed", "first"),
    [
        (("probe:4", "probe:5"), "policy-loss"),
        (("probe:2", "probe:row", "probe:5"), "observations"),
        (("probe:1", "probe:2", "probe:3", "probe:row", "probe:truncation"), "values-do-not-learn"),
        (("probe:3", "probe:row", "probe:truncation"), "value-targets"),
        ((), "steps-too-large"),
    ],
)
def test_what_fails_names_the_part_of_the_code(failed, first):
    names = [
        "policy-loss",
        "observations",
        "values-do-not-learn",
        "value-targets",
        "steps-too-large",
    ]
    causes = [Ranked(BY_ID[name], 1 / len(names)) for name in names]
    assert weigh_by_probes(causes, outcomes(*failed))[0].cause.id == first


def test_probes_that_pass_leave_the_environment_and_settings():
    found = weighed(ranked(policy_loss=0.5, steps_too_large=0.5), outcomes())
    assert 0.6 < found["steps-too-large"] < 0.7


def test_a_learner_without_values_says_nothing_about_them():
    causes = ranked(values_do_not_learn=0.5, policy_loss=0.5)
    seen = outcomes("probe:4", values=False)
    assert [has_failed(one) for one in seen[:5]] == [None] * 5
    asked = [one for one in seen if one.probe.id in CHOICES]
    assert weighed(causes, seen) == weighed(causes, asked)


@pytest.mark.parametrize(
    ("constant", "wrong", "first"),
    [(-1.0, True, "reward-sign"), (0.0, False, "no-reward-signal"), (-0.1, False, None)],
)
def test_a_negative_value_of_a_constant_reward_is_a_wrong_sign(constant, wrong, first):
    seen = outcomes(*(one.id for one in probes_for(discrete=True)), constant=constant)
    assert failures(seen)[SIGN] is wrong
    found = weigh_by_probes(ranked(no_reward_signal=0.5, reward_sign=0.5), seen)
    assert first in (None, found[0].cause.id)


def test_without_outcomes_nothing_changes():
    causes = ranked(policy_loss=0.6, reward_sign=0.4)
    assert weigh_by_probes(causes, []) == causes


def test_causes_name_probes_that_exist():
    for cause in CAUSES:
        assert set(cause.probes) <= {*PROBES, SIGN}, cause.id
        assert all(0.0 < share < 1.0 for share in cause.probes.values()), cause.id
