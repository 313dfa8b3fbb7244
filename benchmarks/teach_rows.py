"""The rows of what teaching must reach: one command, one bar, one data file each.

Figures are in docs/scores, one file for each row that was measured. `against` names the row that
100 % stands for; `own-NAME` is the same learner on the true reward, and follows from the command.
"""

import argparse
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any

from rows import Row

from backflip.cli.main import PROGRAM
from backflip.envs.arguments import parse_env_args
from backflip.training.build import build
from backflip.training.teaching.setup import resolve_teaching
from runshelf.cli.command_line import build_parser

FIRST = 1000  # the first seed; used for no choice of a setting
NOISY = "noisy:mistake=0.1"
# The eight tasks of arXiv:1706.03741, section 3.1.1, in Gymnasium's version 5. Where a state would
# end the episode, the variant in which none does.
EIGHT = {
    "Hopper": "fixed:Hopper-v5",
    "Walker2d": "fixed:Walker2d-v5",
    "Swimmer": "Swimmer-v5",
    "HalfCheetah": "HalfCheetah-v5",
    "Ant": "fixed:Ant-v5",
    "Reacher": "Reacher-v5",
    "InvertedDoublePendulum": "fixed:InvertedDoublePendulum-v5",
    "InvertedPendulum": "fixed:InvertedPendulum-v5",
}
PONG = "ALE/Pong-v5 --env-arg size=42 --env-arg repeat_action_probability=0"
ENDURO = "ALE/Enduro-v5 --env-arg size=42 --env-arg repeat_action_probability=0"
# What is removed in turn: the name of the row, and the options that remove it.
REMOVED = {
    "all": "",
    "additive": "--set reward_model=linear",
    "linear-head": "--set reward_model=network",
    "disagreement": "--set queries=uniform",
    "random-clips": "--set random_share=0",
    "fresh-pairs": "--set fresh_share=0",
}
SAVED = {
    "Pendulum": "Pendulum-v1 --labels 50",
    "Acrobot": "Acrobot-v1 --labels 100",
    "Hopper": "fixed:Hopper-v5 --labels 100",
    "Reacher": "Reacher-v5 --labels 100",
    "Breakout": "MinAtar/Breakout-v1 --labels 200",
}


def planned() -> dict[str, Row]:
    """Return every row by name, without figures."""
    found: dict[str, Row] = {}
    for game in ("Breakout", "Asterix", "Freeway"):
        found |= _beside(f"MinAtar-{game}", f"MinAtar/{game}-v1", 5, {1_000: 0.8})
    for name, env in EIGHT.items():
        found |= _beside(name, env, 5, {350: 0.95, 700: 1.0})
        if env.startswith("fixed:"):
            smooth = f"{env} --env-arg penalty=smooth"
            found |= _beside(f"{name}-smooth", smooth, 5, {350: 0.95})
    found |= _dm_control() | _atari() | _backflip() | _wrong_answers() | _label_savers()
    return found


def reference(row: Row) -> Row | None:
    """Return the row that 100 % of a row stands for, without figures; None if it has none."""
    if not row.against:
        return None
    known = planned().get(row.against)
    return Row(same_learner(row.command)) if known is None else known


def same_learner(command: str) -> str:
    """Return the command that trains the learner of a `teach` command on the true reward.

    It has the same settings, env steps, environment and seeds.
    """
    options, settings = parsed(command), resolved(command)
    plain = resolved(
        " ".join([f"backflip train {options.algorithm} {options.env}", *_env_args(options)])
    )
    chosen = [
        f"--set {name}={_typed(value)}"
        for name, value in settings.items()
        if name != "env_steps" and value != plain[name]
    ]
    words = [f"backflip train {options.algorithm} {options.env} --seeds {options.seeds}"]
    words += [f"--seed {options.first_seed} --env-steps {settings['env_steps']}"]
    return " ".join([*words, *_env_args(options), *chosen])


def parsed(command: str) -> argparse.Namespace:
    """Return the options of a command line.

    Raises:
        SystemExit, UsageError: it does not parse.
    """
    return _parser().parse_args(shlex.split(command)[1:])


@cache
def _parser() -> argparse.ArgumentParser:
    return build_parser(PROGRAM)[0]


@cache
def resolved(command: str) -> Mapping[str, Any]:
    """Return all settings of the learner of a command, which is checked but not run.

    Raises:
        SystemExit, UsageError: the command line does not parse, or its arguments do not fit.
    """
    options = parsed(command)
    env_args, settings = parse_env_args(options.env_arg), parse_env_args(options.settings)
    if options.command == "teach":
        what = options.algorithm, options.env, env_args, settings, options.env_steps
        _, built = resolve_teaching(*what, options.labels)
    else:
        steps = {} if options.env_steps is None else {"env_steps": options.env_steps}
        chosen = {**settings, **steps}
        built = build(options.algorithm, options.env, env_args=env_args, settings=chosen)
    built.driver.close()
    return vars(built.config)


def _env_args(options: argparse.Namespace) -> list[str]:
    return [f"--env-arg {one}" for one in options.env_arg]


def _typed(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _taught(env: str, labels: int, seeds: int, more: str = "", teacher: str = "oracle") -> str:
    task, _, args = env.partition(" ")
    words = [f"backflip teach {task} --teacher {teacher} --labels {labels} --seeds {seeds}"]
    return " ".join([*words, f"--seed {FIRST}", *filter(None, (args, more))])


def _beside(
    name: str, env: str, seeds: int, shares: Mapping[int, float], more: str = ""
) -> dict[str, Row]:
    """Return a row for each number of labels, with the share that it must reach."""
    return {
        f"teach-{name}-{labels}": Row(
            _taught(env, labels, seeds, more), bar={"share": share}, against=f"own-{name}"
        )
        for labels, share in shares.items()
    }


def _dm_control() -> dict[str, Row]:
    sac = "--algorithm sac --set hidden=128,128 --set batch_size=128 --env-steps"
    walker, cheetah = "dm_control:walker-walk", "dm_control:cheetah-run"
    return {
        "teach-walker-walk-100": Row(_taught(walker, 100, 3, f"{sac} 500000"), bar={"mean": 800.0}),
        "teach-cheetah-run-100": Row(
            _taught(cheetah, 100, 1, f"{sac} 1000000"), bar={"mean": 600.0}
        ),
        **_beside("walker-walk", walker, 1, {50: 0.8}, f"{sac} 500000"),
        **_beside("quadruped-walk", "dm_control:quadruped-walk", 1, {50: 0.8}, f"{sac} 500000"),
    }


def _atari() -> dict[str, Row]:
    own = f"backflip train dqn {PONG} --seeds 5 --seed {FIRST}"
    blank = "--env-arg blank_score=true"
    dqn = "--algorithm dqn --env-steps 1000000 --set reward_model=change_map"
    minutes, core_hours = 60.0, 3600.0
    return {
        "own-Pong": Row(own, bar={"worst": 18.0, "seconds": 5 * 20 * minutes / 2}),
        "teach-Pong-1000": Row(
            _taught(PONG, 1_000, 3, f"{blank} {dqn}"),
            bar={"worst": 18.0, "seconds": 3 * 2 * core_hours / 2},
        ),
        "teach-Enduro-1500": Row(
            _taught(ENDURO, 1_500, 2, f"--env-arg preference=true {dqn}"), bar={"worst": 100.0}
        ),
    }


def _backflip() -> dict[str, Row]:
    return {
        "teach-backflip-100": Row(
            _taught("fixed:Hopper-v5", 100, 5, teacher="backflip_teacher:backward"),
            bar={"all_but_one": 5.0, "seconds": 5 * 15 * 60.0},
            unit="turns",
            folder="docs/examples",
            note="complete backward turns in 1,000 env steps; the teacher counts backward rotation",
        )
    }


def _wrong_answers() -> dict[str, Row]:
    """Return each task with one answer in ten wrong, against the same without."""
    found: dict[str, Row] = {}
    for env in ("dot", "fixed:Hopper-v5", "Pendulum-v1"):
        name = env.removeprefix("fixed:").partition("-")[0]
        right = f"teach-{name}-150-right"
        unit = "share" if env == "dot" else "return"
        wrong = _taught(env, 150, 5, teacher=NOISY)
        found[right] = Row(_taught(env, 150, 5), unit=unit)
        found[f"teach-{name}-150-wrong"] = Row(wrong, bar={"share": 0.9}, against=right, unit=unit)
    return found


def _label_savers() -> dict[str, Row]:
    """Return the table of what saves labels: each part removed in turn, on five tasks."""
    return {
        f"saves-{task}-{what}": Row(_taught(*_task(command), 5, options))
        for task, command in SAVED.items()
        for what, options in REMOVED.items()
    }


def _task(command: str) -> tuple[str, int]:
    env, _, labels = command.partition(" --labels ")
    return env, int(labels)
