"""Hostile values in command lines and in calls of the API: one line, and no run is created."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jaxtyping import TypeCheckError
from packages.runshelf.tests.attacks.commands import no_hang, said_by
from tests.attack_figures import Tried

from backflip.cli.main import main
from backflip.teaching_api import teach
from backflip.training.train import train
from runshelf.errors import UserFacingError

pytestmark = pytest.mark.attack

DEEP_TEXT = "[" * 500 + "]" * 500
VALUES = (
    *("", "=", ",", ",,,", "x", "[]", "{}", '{"a": NaN}', "nan", "NaN", "inf", "1e400", "-1e400"),
    *("9" * 309, "9" * 400, "-" + "9" * 400, "9" * 5_000, f"1,{'9' * 400}", "1e99", "1e400,1"),
    *("nan,1", "4," * 100_000, DEEP_TEXT, "[" * 100_000, "\ud800", "\udcff", "\0", "a\0b"),
    *("\x1b[31m", "\u202e", "x\ny", "1e9999999999", "0.5", "-1"),
)
NAMES = ("", "=", "=1", "\0=1", "\udcff=1", "a b=1", "no_such=1", "discount", "x" * 70_000 + "=1")


class Mute:
    """A value that cannot be printed."""

    def __repr__(self) -> str:
        """Raise."""
        raise RuntimeError("no text")


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def refused(home: Path, *argv: str) -> None:
    status, printed, said = said_by(main, *argv, f"--home={home}")
    assert (status, printed) == (2, ""), (argv[-1][:60], said[:300])
    assert said.startswith("backflip: error: ")
    assert said.count("\n") == 1
    assert len(said) < 2_100
    assert not list(home.glob("runs/*")), argv[-1][:60]


@pytest.mark.medium
@pytest.mark.parametrize(
    "option",
    [
        *("--set=discount=", "--env-arg=goal=", "--seeds=", "--labels="),
        *(
            pytest.param(f"--{option}=", marks=pytest.mark.slow)
            for option in (
                *("set=hidden", "set=num_envs", "set=network", "set=more", "env-arg=size"),
                *("env-arg=max_episode_steps", "seed", "env-steps"),
            )
        ),
    ],
)
def test_a_hostile_value_of_an_option_is_refused(tmp_path: Path, option: str, tried: Tried) -> None:
    command = ("teach",) if "labels" in option else ("train", "ppo")
    for value in VALUES:
        # No value below makes a run: one rollout needs 2,048 env steps, and there are only 10.
        refused(tmp_path, *command, "dot", "--env-steps=10", option + value)
    tried(len(VALUES), "hostile values of options")


@pytest.mark.medium
@pytest.mark.parametrize("option", ["--set=", "--env-arg="])
def test_a_hostile_name_is_refused(tmp_path: Path, option: str, tried: Tried) -> None:
    for name in NAMES:
        refused(tmp_path, "train", "ppo", "dot", "--env-steps=10", option + name)
    tried(len(NAMES), "hostile values of options")


@pytest.mark.parametrize("goal", ["x" * 201, "a b" * 100, "a\n" * 200, "x" * 200 + "\0" * 9 + "y"])
def test_a_goal_that_is_too_long_is_refused_before_there_is_a_run(
    tmp_path: Path, goal: str, tried: Tried
) -> None:
    refused(tmp_path, "teach", "dot", "--goal", goal)
    with pytest.raises(UserFacingError, match="at most 200 fit"):
        teach("dot", goal=goal, home=tmp_path)
    assert not list(tmp_path.glob("runs/*"))
    tried(2, "hostile values of options")


FILTERS = (
    *(
        "=",
        "discount=",
        "discount>" + "9" * 5_000,
        "a\0=1",
        '"',
        "x~[",
        "(" * 5_000,
        "not " * 2_000,
    ),
    *(
        "seed=" + "9" * 400,
        "seconds>1e400",
        "seconds>nan",
        "created>9999-99-99",
        "\ud800",
        "a" * 10**5,
    ),
    *(
        "tag=\udcff",
        "and",
        "or or",
        ") (",
        "-" * 100,
        "created<" + "9" * 400,
        "seconds=" + DEEP_TEXT,
    ),
)


@pytest.mark.medium
def test_a_hostile_filter_is_refused_or_finds_nothing(tmp_path: Path, tried: Tried) -> None:
    for text in FILTERS:
        status, _, said = said_by(main, "runs", text, f"--home={tmp_path}")
        assert status in (0, 2), (text[:60], said)
        assert said.count("\n") <= 1
        assert len(said) < 2_100
    tried(len(FILTERS), "hostile filters")


# Only under test are annotations checked: values of a wrong type are refused by that, too.
REFUSED = (UserFacingError, TypeCheckError)
HUGE, LOOP = 10**5_000, [[]]
LOOP[0] = LOOP
ARGUMENTS: list[Any] = [HUGE, -HUGE, 10**400, math.nan, math.inf, Mute(), "\ud800", "\0", LOOP]
CALLS: list[dict[str, Any]] = [
    *(
        {"settings": {name: value}}
        for name in ("discount", "hidden", "num_envs")
        for value in [*ARGUMENTS, deep(100_000), [HUGE], (Mute(),), None]
    ),
    *({"settings": settings} for settings in ([1], {1: 2}, {Mute(): 1}, {None: 1}, {"\0": 1})),
    *({"env_args": {"goal": value}} for value in [*ARGUMENTS, deep(100_000), (HUGE, 1), ({},)]),
    *({"env_args": args} for args in ([1], {1: 2}, {Mute(): 1}, {"\0": 1})),
    *(
        {name: value}
        for name in ("seeds", "first_seed", "env_steps")
        for value in [*ARGUMENTS, 1.5, "1", -1, True if name == "seeds" else -2]
    ),
]


def test_a_hostile_argument_of_the_api_is_refused(tmp_path: Path, tried: Tried) -> None:
    for number, call in enumerate(CALLS):
        with no_hang(), pytest.raises(REFUSED) as refusal:
            train("ppo", "dot", home=tmp_path, **{"env_steps": 10, **call})
        if refusal.type is not TypeCheckError:
            assert len(str(refusal.value)) < 2_000, number
    for value in [*ARGUMENTS, 1.5, "1", 1]:
        with no_hang(), pytest.raises(REFUSED):
            teach("dot", labels=value, env_steps=10, home=tmp_path)
    for value in (5, deep(100_000), Mute()):
        with no_hang(), pytest.raises(REFUSED):
            teach("dot", goal=value, env_steps=10, home=tmp_path)  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.glob("runs/*"))
    tried(len(CALLS) + len(ARGUMENTS) + 6, "hostile arguments of train and teach")


# In a program, nothing checks annotations.
OTHER_KINDS = """
import sys
from backflip import teach, train
from backflip.teaching_api import teach_more
from backflip.training.train import train_more
from runshelf.errors import UsageError

names = ["env", "algorithm", "home", "argv", "info", "report"]
of_teach = ["teacher", "labels_from", "reward_from", "goal", "labelling"]
calls = [(train, name) for name in names] + [(teach, name) for name in names + of_teach]
calls += [(train_more, name) for name in ["run", *names[2:]]]
calls += [(teach_more, name) for name in ["run", *names[2:], "teacher"]]
for call, name in calls:
    for value in (5, 2.5, object(), [["x"], 5], b"x", {}):
        usual = {"env": "dot", "home": sys.argv[1]} if call in (train, teach) else {"run": "x"}
        if call is train_more:
            usual["env_steps"] = 5
        try:
            call(**{**usual, name: value})
        except UsageError as error:
            assert name in str(error), (call, name, value, error)
            continue
        raise SystemExit(f"{call} took {name}={value}")
print(6 * len(calls))
"""


@pytest.mark.medium
def test_an_argument_of_another_kind_is_refused(tmp_path: Path, tried: Tried) -> None:
    command = [sys.executable, "-c", OTHER_KINDS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not list(tmp_path.glob("runs/*"))
    tried(int(done.stdout), "hostile arguments of train and teach")
