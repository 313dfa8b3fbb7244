"""What is said of an environment follows from its numbers: by hand, and each fault by its name."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from backflip.algorithms.registry import entry_of
from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.inspect.env_checks import ActionAudit, Choice, Repeatability
from backflip.inspect.clip_files import EpisodeRecording
from backflip.inspect.random_episodes import RandomEpisodes
from backflip.inspect.report import Report
from backflip.inspect.observation_stats import ObservationStats
from backflip.inspect.findings import findings, verdict

NOTHING = np.zeros(0, np.float32)
BOX = Box(*(np.full(1, x, np.float32) for x in (-np.inf, np.inf)), np.dtype(np.float32))


def report(**changed: Any) -> Report:
    """A report of an environment with nothing wrong; what is given differs."""
    seen = Box(*(np.full(2, x, np.float32) for x in (-np.inf, np.inf)), np.dtype(np.float32))
    two = [Choice("action 0", 1, None), Choice("action 1", 1, None)]
    play = RandomEpisodes(
        returns=np.array([1.0, 3.0]),
        lengths=np.array([40, 60]),
        terminated=np.array([True, True]),
        truncated=np.array([False, False]),
        rewards=np.array([0.0, 0.0, 0.0, 1.0], np.float32),
        scale=ObservationStats(*(np.full(2, x) for x in (-3.0, 0.0, 1.0, 3.0))),
        recording=EpisodeRecording(NOTHING, NOTHING, NOTHING, NOTHING),
        env_steps_per_second=1e4,
    )
    whole = Report(
        "x",
        {},
        0,
        EnvSpec("x", seen, changed.pop("action", Discrete(2)), 100),
        0.99,
        0.02,
        None,
        play._replace(**{k: changed.pop(k) for k in list(changed) if k in play._fields}),
        Repeatability(200, None, 4, 4, 4),
        ActionAudit(two, 1, True, 4, 0),
        [],
    )
    return replace(whole, **changed)


def hindering(of: Report) -> str:
    return " ".join(one.text for one in findings(of) if one.kind == "hinders")


def test_of_a_good_environment_nothing_hinders() -> None:
    good = report()
    assert hindering(good) == ""
    assert verdict(findings(good)) == "Nothing found that would hinder learning."


def test_three_numbers_by_hand() -> None:
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


def test_what_lies_beyond_the_declared_bounds_is_noted() -> None:
    """Number 1 goes up to 3 where 2 is the most there can be."""
    low, high = np.full(2, -4, np.float32), np.array([np.inf, 2], np.float32)
    told = report(spec=EnvSpec("x", Box(low, high, low.dtype), Discrete(2), 100))
    notes = [one.text for one in findings(told) if "beyond the bounds" in one.text]
    assert notes == ["Observed numbers beyond the bounds that the observation space declares: 1."]
    assert not [one for one in findings(report()) if "beyond the bounds" in one.text]


def test_pixels_beyond_their_bounds_are_noted() -> None:
    """A picture is flat in its scale and has three axes in its space."""
    low, high = np.zeros((1, 2, 1), np.uint8), np.ones((1, 2, 1), np.uint8)
    scale = ObservationStats(*(np.array([x, y]) for x, y in ((0, 0), (0.5, 0.5), (0.5, 0.5), (1, 3))))
    pictures = EnvSpec("x", Box(low, high, low.dtype), Discrete(2), 100)
    text = " ".join(one.text for one in findings(report(spec=pictures, scale=scale)))
    assert "declares: 1." in text


def test_a_flag_that_is_rarely_set_is_on_no_small_scale() -> None:
    """One value of 1,000 was 1: a deviation of .03; of any other number that is small."""
    flag = ObservationStats(*(np.array([0.0, x]) for x in (0.0, 0.001, np.sqrt(0.001 * 0.999), 1.0)))
    number = flag._replace(std=np.array([1.0, 0.02]))
    assert "far from unit scale" not in hindering(report(scale=flag))
    assert "far from unit scale: 1." in hindering(report(scale=number))


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "vpg"])
@pytest.mark.parametrize("action", [Discrete(2), BOX], ids=["discrete", "continuous"])
def test_what_is_said_of_normalising_is_what_train_does(
    algorithm: str, action: Box | Discrete
) -> None:
    far = ObservationStats(*(np.array([0.0, x]) for x in (-3.0, 1000.0, 1.0, 1e3)))
    seen = report(scale=far, action=action)
    does = entry_of(algorithm).defaults_for(seen.spec, {}).get("normalize_obs", False)
    said = "unless --set normalize_obs=false" if does else "--set normalize_obs=true"
    assert said in hindering(seen)
    assert algorithm in hindering(seen)


def test_who_cuts_episodes_itself_has_a_limit_of_its_own() -> None:
    own = report(truncated=np.array([True, True]), terminated=np.array([False, False]))
    text = " ".join(one.text for one in findings(replace(own, spec=replace(own.spec))))
    assert "cut by the time limit of 100:" in text
    without = replace(own, spec=replace(own.spec, max_episode_steps=None))
    assert "cut by a time limit of their own:" in " ".join(one.text for one in findings(without))


def test_what_two_alike_do_otherwise_cannot_be_repeated() -> None:
    apart = report(actions=ActionAudit([Choice("action 0", 1, None)], 1, False, 4, 0))
    assert "is drawn where it is made" in hindering(apart)
    assert "the same bits" not in " ".join(one.text for one in findings(apart))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "not repeatable": ({"repeatability": Repeatability(200, 7, 4, 4, 4)}, "from env step 7 on"),
    "no action": (
        {"actions": ActionAudit([Choice("action 0", None, None)] * 2, None, True, 4, 0)},
        "No action changed anything within 8 env steps of 4 moments",
    ),
    "idle": (
        {
            "actions": ActionAudit(
                [Choice("number 0", 1, None), Choice("number 1", None, None)], 1, True, 4, 0
            )
        },
        "Without any effect in 4 trials: number 1",
    ),
    "no reward": ({"rewards": np.zeros(4, np.float32)}, "No random episode met any reward"),
    "sparse": (
        {"rewards": np.array([0.0] * 999 + [1.0], np.float32)},
        "Only 0.10% of env steps pay anything but 0",
    ),
    "large": ({"rewards": np.array([0, 500], np.float32)}, "Rewards reach 500 in size"),
    "tiny": ({"rewards": np.array([0, 1e-5], np.float32)}, "Rewards reach 1e-05 in size"),
    "all the same": ({"returns": np.array([-200.0, -200.0])}, "random episodes return -200"),
    "endless": ({"terminated": np.array([True, False])}, "50% of episodes did not end within 60"),
    "far": (
        {"scale": ObservationStats(*(np.array([0.0, x]) for x in (-3.0, 1000.0, 1.0, 1e3)))},
        "far from unit scale: 1.",
    ),
    "blind": (
        {"scale": ObservationStats(*(np.zeros(2) for _ in range(4)))},
        "never change: 0, 1",
    ),
    "unbounded": ({"action": BOX}, "Actions have no bounds"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_and_hinders(fault: str) -> None:
    changed, said = FAULTS[fault]
    text = hindering(report(**changed))
    assert said in text
    assert text in verdict(findings(report(**changed)))


def test_no_end_and_no_discount_have_no_value() -> None:
    endless = report(discount=1.0)
    spec = replace(endless.spec, terminates=False)
    assert "values have no bound" in hindering(replace(endless, spec=spec))
    assert "values have no bound" not in hindering(endless)


def test_a_reward_that_is_always_the_same_may_still_tell() -> None:
    cartpole = report(rewards=np.ones(4, np.float32), returns=np.array([9.0, 20.0]))
    assert hindering(cartpole) == ""
    assert "only an episode's length" in verdict(findings(cartpole))
