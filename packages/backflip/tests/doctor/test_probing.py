"""Algorithms without a mistake pass their probes; with one, the probe of that mistake fails."""

import json
import math
import os
import subprocess
import sys
import threading

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.doctor import table_learner

from backflip.algorithms import ppo, sac
from backflip.algorithms.registry import entry_of, names
from backflip.cli.main import main
from backflip.core import losses
from backflip.core.targets import bellman_target
from backflip.doctor.probing import others, own, ticking
from backflip.doctor.probing.as_gymnasium import AsGymnasium
from backflip.doctor.probing.others import probe_other
from backflip.doctor.probing.outcome import outcome_of
from backflip.doctor.probing.own import probe_own
from backflip.doctor.probing.probes import probes_for
from backflip.doctor.probing.report import in_words
from backflip.doctor.probing.settings import SETTINGS
from backflip.envs.native.probes import IgnoredNumber
from runshelf.errors import UsageError, UserFacingError

TABLE = "packages.backflip.tests.doctor.table_learner"
STEPS = 400


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
    assert ids[:4] == ["probe:1", "probe:2", "probe:idle", "probe:3"]
    assert ids[-2:] == ["probe:4", "probe:5"]
    assert all(one.values is None for one in probes_for(discrete=False, values=False))


@pytest.mark.medium
def test_a_probe_in_gymnasium_gives_what_it_gives_in_jax():
    probe = next(one for one in probes_for(discrete=True) if one.id == "probe:truncation")
    env = AsGymnasium(probe.env)
    obs, _ = env.reset(seed=3)
    steps = [env.step(0) for _ in range(10)]
    assert obs.shape == (1,)
    assert [step[1] for step in steps] == [1.0] * 10
    assert [step[3] for step in steps] == [False] * 9 + [True]
    obs /= 2.0  # as an algorithm that normalises in place
    after = env.step(0)[0]
    after /= 2.0
    coin = AsGymnasium(next(one for one in probes_for(discrete=True) if one.id == "probe:5").env)
    assert {float(coin.reset(seed=seed)[0][0]) for seed in range(20)} == {-1.0, 1.0}


@pytest.mark.medium
def test_a_wrong_policy_behind_an_adapter():
    worst = probe_other(f"{TABLE}:prefers_the_worst", STEPS)
    assert failed(worst) == ["probe:4", "probe:5"]
    assert "`act` chooses others: look at `act` alone" in in_words(worst)


@pytest.mark.medium
def test_a_learner_of_both_kinds_gets_the_probes_of_both(monkeypatch):
    outcomes = probe_other(idle(monkeypatch), 1)
    assert [one.probe.id for one in outcomes if one.was_asked] == [
        one.id for one in own._probes_of(entry_of("ppo"))
    ]


@pytest.mark.medium
def test_a_refused_kind_of_actions_is_told_with_its_exception(monkeypatch, capsys):
    """A learner of numbers, and one of choices whose branch for choices has a mistake."""

    def __init__(self, env, seed):  # noqa: N807  (a part of a class)
        env.action_space.sizes  # noqa: B018  (there is no such attribute)

    monkeypatch.setattr(_Idle, "__init__", __init__)
    with pytest.raises(UsageError, match=r"with choices .* no attribute 'sizes'; with numbers"):
        probe_other(idle(monkeypatch))
    assert main(["probe", f"{TABLE}:right", "--env-steps", "1"]) == 1
    text = capsys.readouterr().out
    assert "--      probe:bound" in text
    assert "3 could not be asked, because the factory refuses numbers as actions: Attr" in text


@pytest.mark.slow
def test_a_right_algorithm_and_wrong_targets_behind_an_adapter():
    assert failed(probe_other(f"{TABLE}:right", STEPS)) == []
    assert failed(probe_other(f"{TABLE}:ends_at_limits", STEPS)) == ["probe:truncation"]


def test_a_factory_that_refuses_gives_a_sentence():
    with pytest.raises(UsageError, match="makes no learner for a probe: ValueError: only pixels"):
        probe_other(f"{TABLE}:refuses")


class _Idle:
    """A learner that learns nothing."""

    discount = 0.9

    def __init__(self, env, seed):
        self.env = env

    def learn(self, env_steps):
        pass

    def act(self, obs):
        return 0

    def value(self, obs):
        return 0.0


def idle(monkeypatch, **parts):
    """Return the name of a factory of idle learners with other parts; None removes one."""
    kept = {name: part for name, part in vars(_Idle).items() if not name.startswith("__")}
    parts = {name: part for name, part in (kept | parts).items() if part is not None}
    made = type("Made", (), {"__init__": _Idle.__init__} | parts)
    monkeypatch.setattr(table_learner, "made", made, raising=False)
    return f"{TABLE}:made"


def one_step(learner, env_steps):
    """Learn nothing from one env step."""
    learner.env.reset()
    learner.env.step(learner.env.action_space.sample())


@pytest.mark.medium
def test_a_learner_that_makes_no_env_step_is_told_so(monkeypatch, capsys):
    only = ["--only", "probe:1"]
    assert main(["probe", idle(monkeypatch), *only]) == 1
    assert "probe:1: `learn` made no env step" in capsys.readouterr().out
    assert main(["probe", idle(monkeypatch, learn=one_step), *only]) == 1
    assert "probe:1: Values stay at 0" in capsys.readouterr().out


@pytest.mark.medium
@pytest.mark.parametrize(
    ("reset", "action", "says"),
    [
        (False, 0, r"ResetNeeded: `step` before `reset`"),
        (True, 7, r"InvalidAction: `step` needs an action of Discrete\(1\), got 7"),
    ],
)
def test_a_step_that_no_environment_takes_gives_a_sentence(monkeypatch, reset, action, says):
    def learn(self, env_steps):
        if reset:
            self.env.reset()
        self.env.step(action)

    with pytest.raises(UserFacingError, match=says):
        probe_other(idle(monkeypatch, learn=learn))


@pytest.mark.parametrize("end", [sys.exit, os._exit])
@pytest.mark.parametrize("method", ["learn", "act", "value", "__init__"])
def test_a_learner_that_exits_is_a_failure(monkeypatch, capsys, method, end):
    ends = {sys.exit: lambda *_: sys.exit(0), os._exit: lambda *_: os._exit(0)}
    name = idle(monkeypatch, **{method: ends[end]})
    assert main(["probe", name]) in (1, 2)
    error = capsys.readouterr().err
    assert (
        "makes no learner" if method == "__init__" else "the learner failed on probe:1"
    ) in error
    assert "SystemExit: 0" in error


def test_a_forked_process_still_ends_by_exit():
    """As the processes of a vectorised environment."""
    program = (
        "import os\n"
        "from backflip.doctor.probing.exits import exits_raise\n"
        "with exits_raise():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        try:\n"
        "            os._exit(7)\n"
        "        finally:\n"
        "            os.write(1, b'raised')\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "7\n"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"discount": None}, "must have a `discount`, .* got none"),
        ({"discount": 2.0}, "at least 0 and below 1: its γ; got 2.0"),
        ({"discount": -0.1}, "got -0.1"),
        ({"discount": math.nan}, "got nan"),
        ({"discount": "high"}, "got 'high'"),
        ({"discount": 1}, "below 1: its γ; got 1"),
        ({"learn": None}, r"must have a method `learn\(env_steps\)`, got none"),
        ({"act": 5}, r"must have a method `act\(obs\)`, got 5"),
        ({"value": 0.5}, r"must have a method `value\(obs\)`, got 0.5"),
        ({"value": lambda *_: np.zeros((7, 2))}, r"`value\(obs\)` .* array of shape \(7, 2\)"),
        ({"value": lambda *_: "high"}, r"must return one number for one observation, got 'high'"),
        ({"value": lambda *_: None}, r"`value\(obs\)` .* got None"),
        ({"act": lambda *_: np.zeros((3, 5))}, r"`act\(obs\)` .* array of shape \(3, 5\)"),
        ({"act": lambda *_: "left"}, r"`act\(obs\)` .* got 'left'"),
        ({"act": lambda *_: 7}, r"must return an action of Discrete\(\d+\), got 7"),
        ({"act": lambda *_: 0.5}, r"must return an action of Discrete\(\d+\), got 0.5"),
    ],
)
def test_a_learner_that_lacks_something_gives_a_sentence(monkeypatch, parts, says):
    with pytest.raises(UserFacingError, match=says):
        probe_other(idle(monkeypatch, **parts))


def test_a_factory_that_returns_nothing_gives_a_sentence(monkeypatch):
    monkeypatch.setattr(table_learner, "made", lambda env, seed: None, raising=False)
    with pytest.raises(UsageError, match="got None in place of a learner"):
        probe_other(f"{TABLE}:made")


@pytest.mark.parametrize(("bad", "word"), [(math.nan, "NaN"), (math.inf, "infinite")])
def test_values_that_are_not_finite_are_named(monkeypatch, capsys, bad, word):
    name = idle(monkeypatch, learn=one_step, value=lambda *_: bad, act=lambda *_: bad)
    assert main(["probe", name]) == 1
    text = capsys.readouterr().out
    assert f"a learned value is {word}" in text
    assert f"a learned action is {word}" in text
    assert f"A learned value is {word}: look for the first loss that is" in text
    assert "off by" not in text


def test_a_learner_without_values_is_not_praised_for_them(monkeypatch, capsys):
    name = idle(monkeypatch, value=None, act=lambda *_: 0)
    assert main(["probe", name, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    by_id = {one["probe"]: one["passed"] for one in document["probes"]}
    assert by_id["probe:1"] is by_id["probe:3"] is by_id["probe:row"] is None
    assert main(["probe", name]) == 1
    text = capsys.readouterr().out
    assert "passed  probe:1" not in text
    assert "of 5 probes 5 failed; 6 could not be asked, because the learner has no `value`" in text
    assert "Values are" not in text


@pytest.mark.medium
def test_an_action_beyond_a_bound_is_the_one_that_the_environment_takes(monkeypatch):
    """As the mean of a Gaussian policy, where only the environment clips."""

    def act(self, obs):
        assert isinstance(self.env.action_space, gymnasium.spaces.Box), "numbers only"
        return np.asarray([4.99], np.float32)

    def value(self, obs):
        return 0.0

    numbers = [one for one in probes_for(discrete=False) if one.id == "probe:bound"]
    monkeypatch.setattr(others, "probes_of_kinds", lambda **_: numbers)
    (bound,) = probe_other(idle(monkeypatch, act=act, value=value), 1)
    assert (bound.passed, bound.action_error) == (True, 0.0)


def test_progress_names_the_probe_while_a_learner_learns(monkeypatch):
    """Each probe learns until a line says for how long it has been learning."""
    said, has_said = [], threading.Event()

    def on_progress(text, share):
        said.append((text, share))
        if ", for " in text:
            has_said.set()

    def learn(*_):
        has_said.clear()
        assert has_said.wait(60)

    monkeypatch.setattr(ticking, "PAUSE", 0.0)
    outcomes = probe_other(idle(monkeypatch, learn=learn), 1, on_progress)
    texts = [text for text, _ in said]
    assert [one.probe.id for one in outcomes] == [text for text in texts if "," not in text]
    assert all(any(f"{one.probe.id}, for " in text for text in texts) for one in outcomes)


def test_an_interrupt_does_not_speak_of_finished_work(monkeypatch, capsys):
    def learn(*_):
        raise KeyboardInterrupt

    assert main(["probe", idle(monkeypatch, learn=learn)]) == 130
    assert capsys.readouterr().err == "backflip: interrupted; probes keep nothing\n"


@pytest.mark.medium
def test_single_probes_can_be_repeated(capsys):
    only = ["--only", "probe:1", "--only", "probe:4", "--json"]
    assert main(["probe", f"{TABLE}:prefers_the_worst", "--env-steps", "200", *only]) == 1
    found = json.loads(capsys.readouterr().out)["probes"]
    assert [(one["probe"], one["passed"]) for one in found] == [
        ("probe:1", True),
        ("probe:4", False),
    ]


@pytest.mark.parametrize(
    ("algorithm", "name", "says"),
    [
        ("ppo", "truncation", "`--only truncation` is no probe; try one of probe:1, probe:2,"),
        ("dqn", "probe:bound", "is about other actions; the probes here are probe:1,"),
        (f"{TABLE}:right", "probe:bound", "is about other actions; the probes here are probe:1,"),
    ],
)
def test_a_probe_that_is_not_there_is_refused(capsys, algorithm, name, says):
    assert main(["probe", algorithm, "--only", name]) == 2
    assert says in capsys.readouterr().err


def test_a_file_in_place_of_a_module_gets_a_hint(capsys):
    assert main(["probe", "learner.py:Base"]) == 2
    assert "drop `.py`, as in learner:Base" in capsys.readouterr().err


def test_a_discount_of_1_is_refused():
    with pytest.raises(UsageError, match="probes need a `discount` below 1"):
        probe_own("ppo", {"discount": 1})


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
    assert len(set(ids["sac"])) == len(ids["sac"]) == 11
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


def test_env_steps_of_our_own_algorithms_are_refused(capsys):
    assert main(["probe", "ppo", "--env-steps", "500"]) == 2
    assert "`--env-steps` is for learners of other libraries" in capsys.readouterr().err


@pytest.mark.slow
def test_a_failure_after_few_env_steps_says_so(capsys):
    assert main(["probe", f"{TABLE}:prefers_the_worst", "--env-steps", "40"]) == 1
    assert "Fewer than the usual 6,000 env steps" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_prints_json(capsys):
    assert main(["probe", f"{TABLE}:prefers_the_worst", "--env-steps", "500", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["passed"]
    assert [one["probe"] for one in document["probes"] if one["means"]] == ["probe:4", "probe:5"]
    assert jnp.isfinite(document["probes"][0]["value_error"])
