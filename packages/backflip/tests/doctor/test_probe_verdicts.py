"""The diagnosis of probes is the mistake that predicts the learned values."""

import json
import math

import numpy as np
import pytest
from packages.backflip.tests.doctor import table_learner

from backflip.cli.main import main
from backflip.doctor.probe_evidence import has_failed
from backflip.doctor.probing.as_gymnasium import AsGymnasium
from backflip.doctor.probing.chains import CHAINS
from backflip.doctor.probing.hypotheses import OF_VALUES, RIGHT
from backflip.doctor.probing.outcome import outcome_of
from backflip.doctor.probing.prediction import predicted, way
from backflip.doctor.probing.probes import probes_for
from backflip.doctor.probing.report import in_words
from backflip.doctor.probing.verdicts import judged

PROBES = {one.id: one for one in probes_for(discrete=True)}
OF_TARGETS = [name for name, one in PROBES.items() if one.actions is None]
MISTAKES = {one.id: one for one in OF_VALUES}


def outcomes(values, discount, actions=None):
    """Return outcomes of both seeds with the same values and, else right, actions, by probe."""
    found = []
    for name, here in values.items():
        probe = PROBES[name]
        acts = (actions or {}).get(name, probe.actions or [0] * len(probe.shown))
        both = [np.asarray([one, one], float) for one in (here, acts)]
        found.append(outcome_of(probe, *both, discount, 1.0))
    return found


def right_values(discount):
    return {name: np.asarray(PROBES[name].values(discount)) for name in OF_TARGETS}


def learned_with(mistake, discount):
    """Return what it predicts, at most 600; 0.3 where it says nothing, as a network may."""
    found = right_values(discount)
    for name, right in found.items():
        values = predicted(mistake, CHAINS[name], discount)[: len(right)]
        found[name] = np.minimum(np.where(np.isnan(values), 0.3, values), 600.0)
    return found


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
def test_right_targets_lead_to_the_values_of_each_probe(discount):
    for name, chain in CHAINS.items():
        correct = PROBES[name].values(discount)
        found = predicted(RIGHT, chain, discount)[: len(correct)]
        np.testing.assert_allclose(found, correct, rtol=1e-9)


@pytest.mark.medium
@pytest.mark.parametrize(
    "name", ["probe:1", "probe:idle", "probe:3", "probe:row", "probe:truncation"]
)
def test_episodes_are_those_of_the_environment(name):
    env, shown = AsGymnasium(PROBES[name].env), [list(one) for one in PROBES[name].shown]
    obs, _ = env.reset(seed=0)
    first = shown.index(obs.tolist())
    (episode,) = [one for one in CHAINS[name] if one[0].state == first]
    for step in episode:
        if step.state < len(shown):
            assert obs.tolist() == shown[step.state]
        obs, reward, terminated, truncated, _ = env.step(0)
        expected = (step.reward, not step.bootstraps, step.truncated)
        assert (reward, terminated, truncated) == expected
    assert terminated or truncated


@pytest.mark.parametrize(
    ("mistake", "probe", "values"),
    [
        ("discounted-twice", "probe:3", [0.81, 1.0]),
        ("own-reward-discounted", "probe:3", [0.729, 0.9]),
        ("half-target", "probe:3", [0.225, 0.5]),
        ("rewards-late", "probe:3", [1.0, 0.0]),
        ("bootstrap-from-s", "probe:3", [0.0, 1.0]),
        ("inverted-ends", "probe:3", [0.0, 10.0]),
        ("observations-late", "probe:3", [0.5, math.nan]),
        ("observations-early", "probe:3", [math.nan, 0.5 / 0.55]),
        ("stale-reset", "probe:2", [0.0, 0.0]),
        ("advantage-not-detached", "probe:idle", [1.0 + math.log(2.0)]),
        ("truncation-ends", "probe:truncation", [1 / (1 - 0.81)]),
        ("no-bootstrap", "probe:truncation", [1.0]),
    ],
)
def test_predictions_by_hand(mistake, probe, values):
    found = predicted(MISTAKES[mistake], CHAINS[probe], 0.9)[: len(values)]
    np.testing.assert_allclose(found, values, rtol=1e-9)


def test_whole_returns_without_a_bootstrap_at_the_limit_are_their_mean():
    returns = [sum(0.9**k for k in range(left)) for left in range(1, 11)]
    (value,) = way(MISTAKES["truncation-ends"], CHAINS["probe:truncation"], 0.9, 1.0)[-1]
    assert value == pytest.approx(np.mean(returns))


@pytest.mark.parametrize("discount", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_by_the_values_it_leads_to(name, discount):
    found = judged(outcomes(learned_with(MISTAKES[name], discount), discount))
    causes = {one.causes for one in found if one.verdict == "failed"}
    assert causes == {(name,)}
    assert "not_converged" not in {one.verdict for one in found}


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_values_that_have_hardly_moved_are_not_on_their_way(discount):
    """As if one mean were learned for all observations, while other probes are learned."""
    learned = right_values(discount)
    learned["probe:2"] = [-0.04, 0.06]
    learned["probe:row"] = np.full(10, learned["probe:row"].mean() * 0.7)
    found = judged(outcomes(learned, discount))
    assert found[1].verdict == "failed"
    assert "observation-ignored" in found[1].causes


def test_half_of_lambda_returns_is_a_target_without_the_value():
    learned = right_values(0.99)
    for name, right in learned.items():
        learned[name] = way(MISTAKES["half-target"], CHAINS[name], 0.99, 1.0)[-1][: len(right)]
    found = judged(outcomes(learned, 0.99))
    assert {one.causes for one in found if not one.passed} == {("half-target",)}


def test_another_gamma_is_named_with_its_number():
    found = judged(outcomes(right_values(0.95), 0.9))
    assert {one.causes for one in found if not one.passed} == {("another-discount",)}
    assert "a γ of 0.95:" in in_words(found)


def test_gamma_twice_fails_a_probe_whose_tolerance_it_does_not_reach():
    found = judged(outcomes(learned_with(MISTAKES["discounted-twice"], 0.95), 0.95))
    (third,) = [one for one in found if one.probe.id == "probe:3"]
    assert third.is_within_tolerance
    assert third.verdict == "failed"


@pytest.mark.parametrize(
    ("discount", "value"), [(0.99, 24.3), (0.99, 45.6), (0.999, 699.0), (0.9, 7.5)]
)
def test_a_value_that_is_still_rising_is_no_mistake(discount, value):
    learned = right_values(discount) | {"probe:truncation": [value]}
    found = judged(outcomes(learned, discount))
    assert [one.verdict for one in found] == ["passed"] * 5 + ["not_converged"]
    assert has_failed(found[-1]) is None
    assert "of 6 probes 1 did not converge" in in_words(found)


@pytest.mark.parametrize("value", [5.3, 9.2])
def test_values_without_a_bootstrap_at_the_limit_are_a_mistake(value):
    """What whole returns lead to, one step, or anything in between."""
    found = judged(outcomes(right_values(0.99) | {"probe:truncation": [value]}, 0.99))
    assert (found[-1].verdict, found[-1].causes) == ("failed", ("truncation-ends",))


def test_a_value_that_two_ways_pass_is_undecided():
    found = judged(outcomes(right_values(0.99) | {"probe:truncation": [2.0]}, 0.99))
    assert (found[-1].verdict, found[-1].causes) == ("not_converged", ("truncation-ends",))
    assert "these would look the same: A truncated step" in found[-1].means


def test_values_that_are_nearly_right_do_not_hide_a_wrong_policy():
    """Rows that lag, beside a policy that goes the wrong way."""
    learned = right_values(0.9)
    learned["probe:row"] = learned["probe:row"] * 0.84
    learned["probe:4"] = [-1.0]
    found = judged(outcomes(learned, 0.9, {"probe:4": [0.0]}))
    verdicts = {one.probe.id: one.verdict for one in found if not one.passed}
    assert verdicts == {"probe:row": "not_converged", "probe:4": "failed"}
    first = in_words(found).split("\n\n")[1].splitlines()[1]
    assert first.startswith("probe:4: The policy prefers the worse actions")


@pytest.mark.parametrize(
    ("value", "cause"), [(-1.0, "wrong-way"), (0.05, "no-preference"), (0.97, "wrong-act")]
)
def test_wrong_actions_are_told_apart_by_their_values(value, cause):
    found = judged(outcomes(right_values(0.9) | {"probe:4": [value]}, 0.9, {"probe:4": [0.0]}))
    assert found[-1].causes == (cause,)


def numbers(**chosen):
    """Return outcomes of probes with numbers, of both seeds, by the end of their name."""
    probes = {one.id: one for one in probes_for(discrete=False) if one.actions is not None}
    both = {f"probe:{name}": np.full((2, 1), action) for name, action in chosen.items()}
    return [outcome_of(probes[name], [], acts, 0.9, 1.0) for name, acts in both.items()]


@pytest.mark.parametrize(
    ("cause", "chosen"),
    [
        ("unscaled", {"continuous": 1.0, "bound": 1.0, "zero": 1.0}),
        ("without-centre", {"continuous": 1.0, "bound": 2.0, "zero": 1.0}),
        ("half-the-range", {"continuous": 1.0, "bound": 2.0, "zero": 0.9}),
        ("wrong-way", {"continuous": -2.0, "bound": -1.0, "zero": 3.0}),
        ("unmoved", {"continuous": 0.05, "bound": 0.1, "zero": 0.0}),
    ],
)
def test_wrong_numbers_are_told_apart_over_all_probes(cause, chosen):
    failures = [one for one in judged(numbers(**chosen)) if not one.passed]
    both = {"without-centre", "half-the-range"}
    expected = both if cause in both else {cause}
    assert {one.verdict for one in failures} == {"failed"}
    assert {name for one in failures for name in one.causes} == expected


def test_a_number_that_is_nearly_the_best_is_on_its_way():
    found = judged(numbers(continuous=1.0, bound=2.5, zero=1.0))
    assert [one.verdict for one in found] == ["passed", "not_converged", "passed"]


def test_a_number_beyond_what_a_mistake_can_reach_is_no_such_mistake():
    """2.57 is more than half of the range, which ends at 2."""
    found = numbers(continuous=1.0, bound=2.3, zero=1.0)
    both_seeds = np.asarray([[2.3], [2.57]])
    found[1] = outcome_of(found[1].probe, [], both_seeds, 0.9, 1.0)
    assert [one.verdict for one in judged(found)] == ["passed", "not_converged", "passed"]


def test_what_no_mistake_predicts_has_the_text_of_its_probe():
    learned = right_values(0.9) | {"probe:2": [7.0, 3.0]}
    found = judged(outcomes(learned, 0.9))
    assert (found[1].verdict, found[1].causes) == ("failed", ())
    assert found[1].means == PROBES["probe:2"].fails


def learner_with(monkeypatch, values):
    """Return the name of a factory of learners that know values by their observation."""

    class Made(table_learner.TableLearner):
        def learn(self, env_steps):
            del env_steps
            self.env.reset()
            self.env.step(0)

        def act(self, obs):
            return int(self.actions == 2 and obs[0] >= 0)

        def value(self, obs):
            return values(obs)

    monkeypatch.setattr(table_learner, "made", Made, raising=False)
    return "packages.backflip.tests.doctor.table_learner:made"


@pytest.mark.medium
def test_the_command_tells_each_state_and_has_a_status_for_values_on_their_way(monkeypatch, capsys):
    """Values of .8 of what is right on `probe:2`, and right ones elsewhere."""
    name = learner_with(monkeypatch, lambda obs: 0.8 * obs[0] if obs.shape == (1,) else 1.0)
    monkeypatch.setattr(
        "backflip.doctor.probing.others.probes_of_kinds", lambda **_: [PROBES["probe:2"]]
    )
    assert main(["probe", name]) == 3
    assert "at -1: value -0.8, correct -1\n" in capsys.readouterr().out
    assert main(["probe", name, "--json"]) == 3
    found, *_ = json.loads(capsys.readouterr().out)["probes"]
    assert (found["verdict"], found["passed"]) == ("not_converged", None)
    assert found["states"][1] == {
        "obs": [1.0],
        "value": {"learned": [pytest.approx(0.8)] * 2, "correct": 1.0},
    }
