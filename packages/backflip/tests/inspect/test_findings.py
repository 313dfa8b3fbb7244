"""Findings follow from the numbers of a report; each fault has its own sentence."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from backflip.algorithms.registry import entry_of
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.doctor.catalogue import BY_ID
from backflip.inspect.env_checks import ActionAudit, ActionEffect, Repeatability
from backflip.inspect.episode_recorder import EpisodeRecording
from backflip.inspect.findings import findings, verdict
from backflip.inspect.observation_stats import ObservationStats
from backflip.inspect.random_episodes import RandomEpisodes
from backflip.inspect.report import Report

NOTHING = np.zeros(0, np.float32)
BOX = Box(*(np.full(1, x, np.float32) for x in (-np.inf, np.inf)), np.dtype(np.float32))


def report(**changed: Any) -> Report:
    """Return a report of a faultless environment, with the given fields changed."""
    seen = Box(*(np.full(2, x, np.float32) for x in (-np.inf, np.inf)), np.dtype(np.float32))
    two = [ActionEffect("action 0", 1, None), ActionEffect("action 1", 1, None)]
    play = RandomEpisodes(
        returns=np.array([1.0, 3.0]),
        lengths=np.array([40, 60]),
        terminated=np.array([True, True]),
        truncated=np.array([False, False]),
        rewards=np.array([0.0, 0.0, 0.0, 1.0], np.float32),
        obs_stats=ObservationStats(*(np.full(2, x) for x in (-3.0, 0.0, 1.0, 3.0))),
        largest_changes=np.array([0.5, 0.5]),
        recording=EpisodeRecording(NOTHING, NOTHING, NOTHING, NOTHING),
        env_steps_per_second=1e4,
    )
    whole = Report(
        env="x",
        env_args={},
        seed=0,
        spec=EnvSpec("x", seen, changed.pop("action", Discrete(2)), 100),
        discount=0.99,
        step_seconds=0.02,
        frame_skip=None,
        episodes=play._replace(**{k: changed.pop(k) for k in list(changed) if k in play._fields}),
        repeatability=Repeatability(200, None, 4, 4, 4),
        actions=ActionAudit(two, 1, True, 4, 0),
        facts=[],
    )
    return replace(whole, **changed)


def hindering(of: Report) -> str:
    return " ".join(one.text for one in findings(of) if one.kind == "hinders")


def test_faultless_environment_has_no_hindering_findings() -> None:
    good = report()
    assert hindering(good) == ""
    assert verdict(findings(good)) == "Nothing found that would hinder learning."


def test_numbers_equal_those_computed_by_hand() -> None:
    found = report()
    assert found.horizon == pytest.approx(100)
    assert found.commonest_reward == 0
    assert found.informative == 0.25
    told = found.to_json()
    assert told["horizon"]["seconds"] == pytest.approx(2)
    assert told["horizon"]["episode_seconds"] == pytest.approx(1)
    assert told["rewards"]["mean"] == 0.25
    assert told["observations"][1]["bounds"] == [-np.inf, np.inf]
    assert told["lengths"] == {"min": 40, "mean": 50, "std": 10, "max": 60}


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [(-2.0, 2.0, "note"), (0.0, 20.0, "note"), (0.0, 1e6, "hinders"), (-0.01, 0.01, "hinders")],
)
def test_actions_far_from_unit_scale_hinder(low: float, high: float, kind: str) -> None:
    box = Box(np.full(1, low, np.float32), np.full(1, high, np.float32), np.dtype(np.float32))
    (found,) = [one for one in findings(report(action=box)) if one.check == "ACT-BOUNDS"]
    assert found.kind == kind
    assert ("RescaleAction" in found.text) == (kind == "hinders")


def test_observations_outside_the_bounds_are_noted() -> None:
    """Dimension 1 reaches 3, but its upper bound is 2."""
    low, high = np.full(2, -4, np.float32), np.array([np.inf, 2], np.float32)
    told = report(spec=EnvSpec("x", Box(low, high, low.dtype), Discrete(2), 100))
    notes = [one.text for one in findings(told) if "outside the bounds" in one.text]
    assert notes == ["Observed numbers outside the bounds of the observation space: 1."]
    assert not [one for one in findings(report()) if "outside the bounds" in one.text]


def test_pixels_outside_their_bounds_are_noted() -> None:
    """Statistics of an image are flat, the bounds of its space have three axes."""
    low, high = np.zeros((1, 2, 1), np.uint8), np.ones((1, 2, 1), np.uint8)
    scale = ObservationStats(
        *(np.array([x, y]) for x, y in ((0, 0), (0.5, 0.5), (0.5, 0.5), (1, 3)))
    )
    pictures = EnvSpec("x", Box(low, high, low.dtype), Discrete(2), 100)
    text = " ".join(one.text for one in findings(report(spec=pictures, obs_stats=scale)))
    assert "of the observation space: 1." in text


def test_rare_flag_does_not_count_as_small_scale() -> None:
    """One of 1,000 values is 1, so the deviation is .03, which is small for other numbers."""
    flag = ObservationStats(
        *(np.array([0.0, x]) for x in (0.0, 0.001, np.sqrt(0.001 * 0.999), 1.0))
    )
    number = flag._replace(std=np.array([1.0, 0.02]))
    assert "far from unit scale" not in hindering(report(obs_stats=flag))
    assert "far from unit scale: 1." in hindering(report(obs_stats=number))


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "vpg"])
@pytest.mark.parametrize("action", [Discrete(2), BOX], ids=["discrete", "continuous"])
def test_advice_on_normalization_agrees_with_the_default_settings(
    algorithm: str, action: Box | Discrete
) -> None:
    far = ObservationStats(*(np.array([0.0, x]) for x in (-3.0, 1000.0, 1.0, 1e3)))
    seen = report(obs_stats=far, action=action)
    does = entry_of(algorithm).defaults_for(seen.spec, {}).get("normalize_obs", False)
    said = "unless --set normalize_obs=false" if does else "--set normalize_obs=true"
    assert said in hindering(seen)
    assert algorithm in hindering(seen)


def test_truncation_without_a_known_limit_is_the_environments_own() -> None:
    own = report(truncated=np.array([True, True]), terminated=np.array([False, False]))
    text = " ".join(one.text for one in findings(own))
    assert "truncated by the time limit of 100 env steps." in text
    without = replace(own, spec=replace(own.spec, max_episode_steps=None))
    text = " ".join(one.text for one in findings(without))
    assert "truncated by the environment's own time limit." in text


def test_instances_that_differ_are_not_repeatable() -> None:
    apart = report(actions=ActionAudit([ActionEffect("action 0", 1, None)], 1, False, 4, 0))
    assert "the constructor draws random numbers" in hindering(apart)
    assert "the same bits" not in " ".join(one.text for one in findings(apart))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "not repeatable": ({"repeatability": Repeatability(200, 7, 4, 4, 4)}, "from env step 7 on"),
    "no action": (
        {"actions": ActionAudit([ActionEffect("action 0", None, None)] * 2, None, True, 4, 0)},
        "No action had any effect within 8 env steps in 4 trials",
    ),
    "idle": (
        {
            "actions": ActionAudit(
                [ActionEffect("number 0", 1, None), ActionEffect("number 1", None, None)],
                1,
                True,
                4,
                0,
            )
        },
        "without any effect in 4 trials: number 1",
    ),
    "no reward": ({"rewards": np.zeros(4, np.float32)}, "Every reward was 0"),
    "sparse": (
        {"rewards": np.array([0.0] * 999 + [1.0], np.float32)},
        "only 0.10% differ from 0",
    ),
    "large": ({"rewards": np.array([0, 500], np.float32)}, "largest reward is 500 in"),
    "tiny": ({"rewards": np.array([0, 1e-5], np.float32)}, "largest reward is 1e-05 in"),
    "all the same": ({"returns": np.array([-200.0, -200.0])}, "random episodes return -200"),
    "endless": ({"terminated": np.array([True, False])}, "50% of episodes did not end within 60"),
    "far": (
        {"obs_stats": ObservationStats(*(np.array([0.0, x]) for x in (-3.0, 1000.0, 1.0, 1e3)))},
        "far from unit scale: 1.",
    ),
    "blind": (
        {"obs_stats": ObservationStats(*(np.zeros(2) for _ in range(4)))},
        "never change: 0, 1",
    ),
    "unbounded": ({"action": BOX}, "Actions are unbounded"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_and_hinders(fault: str) -> None:
    changed, said = FAULTS[fault]
    text = hindering(report(**changed))
    assert said in text
    assert text in verdict(findings(report(**changed)))


def seen_as(dtype: str, largest: float) -> str:
    """Return the notes about an environment that observes two numbers of an integer type."""
    of = report(largest_changes=np.array([1.0, largest]))
    limits = np.iinfo(dtype)
    box = Box(*(np.full(2, x, np.float32) for x in (limits.min, limits.max)), np.dtype(np.float32))
    seen = replace(of, spec=replace(of.spec, observation=box))
    return " ".join(one.text for one in findings(seen) if one.check == "OBS-WRAP")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_numbers_that_overflow_are_named(dtype: str) -> None:
    limits = np.iinfo(dtype)
    around = float(limits.max) - float(limits.min)
    assert f"range of {dtype} in one env step: 1." in seen_as(dtype, around)
    assert seen_as(dtype, 0.4 * around) == ""


def test_no_discount_without_termination_hinders() -> None:
    endless = report(discount=1.0)
    spec = replace(endless.spec, terminates=False)
    assert "values are unbounded" in hindering(replace(endless, spec=spec))
    assert "values are unbounded" not in hindering(endless)


def test_constant_reward_is_a_note_only() -> None:
    cartpole = report(rewards=np.ones(4, np.float32), returns=np.array([9.0, 20.0]))
    assert hindering(cartpole) == ""
    assert "only by the length of the episode" in verdict(findings(cartpole))


def test_findings_have_the_ids_of_the_doctors_checks() -> None:
    ids = {
        name: {one.check for one in findings(report(**changed)) if one.kind == "hinders"}
        for name, (changed, _) in FAULTS.items()
    }
    assert ids["no reward"] == ids["sparse"] == {"REW-CONST"}
    assert (ids["large"], ids["tiny"]) == ({"REW-LARGE"}, {"REW-SMALL"})
    assert ids["all the same"] == {"ENV-EQUAL"}
    assert (ids["far"], ids["blind"]) == ({"OBS-LARGE"}, {"OBS-CONST"})
    named = set[str]().union(*ids.values())
    shared = {"REW-CONST", "REW-LARGE", "REW-SMALL", "ENV-EQUAL", "ENV-LEN", "OBS-LARGE"}
    assert shared <= named & set(BY_ID)
    assert all(one.check for one in findings(report()))
