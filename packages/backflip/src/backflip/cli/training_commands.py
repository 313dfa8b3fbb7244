"""The commands teach, train and resume."""

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backflip.algorithms.registry import algorithms, entry_of, names
from backflip.cli.more import (
    add_more,
    finished_note,
    teach_more_of,
    train_more_of,
)
from backflip.cli.who_answers import (
    PEOPLE,
    add_page_options,
    display_for,
    labelling_of,
    note,
    refuse_page_options,
    teacher_of,
)
from backflip.preferences.ask import ASKS, MOST_AT_ONCE
from runshelf.cli.arguments import (
    RUN,
    add_about,
    add_cost,
    add_output,
    home,
    ratio,
    run_info,
    sentence,
    whole,
)
from runshelf.cli.command_line import Reported
from runshelf.cli.run_alerts import add_alerts, without_alerts
from runshelf.cli.trusting import ask_to_import
from runshelf.errors import UsageError, did_you_mean
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from backflip.training.progress import Report
    from backflip.training.result import Result
    from runshelf.store.run import Run

# JAX's integers have 32 bits, and `--seeds` are added to the first seed.
LARGEST_SEED = MOST_ENV_STEPS = 2_000_000_000

EPILOG = """\
ENV is an id of backflip (dot, CartPole-v1, Pendulum-v1, ...), any Gymnasium id (Hopper-v5;
gymnasium:CartPole-v1 for Gymnasium's version), or module:Class for your own, or module:function
for a function of yours that returns an environment.
Runs are saved in runs/ of the current folder, of BACKFLIP_HOME, or of --home.
"""


def add(commands: Any) -> None:
    """Add the commands to a parser."""
    _add_teach(commands)
    _add_train(commands)
    _add_resume(commands)


def _add_teach(commands: Any) -> None:
    about = "learn ENV from comparisons of clips"
    parser = commands.add_parser("teach", help=about, description=sentence(about), epilog=EPILOG)
    parser.add_argument("env", metavar="ENV", nargs="?", help="what to learn")
    add_more(parser)
    parser.add_argument(
        "--algorithm",
        default="ppo",
        metavar="NAME",
        help=f"the algorithm: {', '.join(names())}; default ppo",
    )
    _add_questions(parser)
    _add_sources(parser)
    add_page_options(parser, new_run=True)
    _add_common(parser, least_env_steps=0)
    parser.set_defaults(act=_teach)


def _add_questions(parser: argparse.ArgumentParser) -> None:
    """Add the options about the questions: who answers, how many, and of which kind."""
    parser.add_argument(
        "--teacher",
        metavar="WHO",
        help="who answers: human (a page in the browser), terminal, oracle, noisy, "
        "noisy:mistake=0.1,tie=2, or module:function for your function; default human at a "
        "terminal or with an option of the page, otherwise oracle, which sees the true reward",
    )
    parser.add_argument(
        "--labels",
        type=whole(1, 1_000_000, 100),  # of --more; a new run refuses one label itself
        metavar="N",
        help="number of answers per seed, including imported ones; default 100, for people 150, "
        "or the number of imported ones",
    )
    parser.add_argument(
        "--ask",
        choices=ASKS,
        help="what the teacher does: compare two clips (default), rank several at once, or rate "
        "one after the other; the same as --set ask=HOW",
    )
    parser.add_argument(
        "--clips-at-once",
        type=whole(2, MOST_AT_ONCE, 4),
        metavar="K",
        help="clips that are ranked at once, or rated in a row; the same as --set clips_at_once=K",
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options about what a run starts with: labels, a reward, clips, demonstrations."""
    parser.add_argument(
        "--labels-from",
        metavar="RUN_OR_FILE",
        help="start with the labels of another run, or of a .jsonl or .csv file",
    )
    parser.add_argument(
        "--reward-from",
        metavar="RUN",
        help="use the reward model of another run, without queries",
    )
    parser.add_argument(
        "--clips",
        metavar="FILE_OR_ID",
        help="ask about recorded trajectories first, in place of random actions: a .npz file, or "
        "minari:ID",
    )
    parser.add_argument(
        "--demonstrations",
        nargs="+",
        metavar="FILE_OR_ID",
        help="prefer the clips of these episodes to the agent's clips: .npz files of play --save, "
        "or minari:ID",
    )


def _add_train(commands: Any) -> None:
    about = "learn ENV from its own reward"
    parser = commands.add_parser("train", help=about, description=sentence(about), epilog=EPILOG)
    parser.add_argument("algorithm", metavar="ALGORITHM", nargs="?", help=", ".join(names()))
    parser.add_argument("env", metavar="ENV", nargs="?", help="what to learn")
    add_more(parser)
    _add_common(parser)
    parser.add_argument(
        "--updates-per-step",
        type=ratio,
        metavar="RATIO",
        help="gradient steps for each env step of an off-policy algorithm, as in 0.5; "
        "the same as --set updates_per_step=RATIO",
    )
    parser.set_defaults(act=_train)


def _add_resume(commands: Any) -> None:
    about = "resume a run that was interrupted or killed"
    parser = commands.add_parser("resume", help=about, description=sentence(about))
    parser.add_argument("run", metavar="RUN", help=RUN)
    add_page_options(parser, new_run=False)
    add_alerts(parser)
    add_output(parser)
    parser.set_defaults(act=_resume)


def _add_common(parser: argparse.ArgumentParser, least_env_steps: int = 1) -> None:
    seeds = parser.add_argument_group("how much")
    seeds.add_argument(
        "--seeds",
        type=whole(1, 10_000, 10),
        default=1,
        metavar="N",
        help="number of seeds, trained in one program; default 1",
    )
    seeds.add_argument(
        "--seed",
        type=whole(0, LARGEST_SEED, 0),
        default=0,
        metavar="FIRST",
        dest="first_seed",
        help="the first seed; default 0",
    )
    seeds.add_argument(
        "--env-steps",
        type=whole(least_env_steps, MOST_ENV_STEPS, 100_000),
        metavar="N",
        help="environment steps of each seed; the default depends on ENV",
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="argument of ENV's constructor, as in --env-arg goal=40,60; repeatable",
    )
    settings.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="setting of the algorithm or of teaching, as in --set discount=0.9; repeatable",
    )
    add_about(parser)
    add_cost(parser.add_argument_group("budget"))
    add_alerts(parser)
    add_output(parser)


def _teach(options: argparse.Namespace) -> Reported:
    if options.more is not None:
        return _reported(teach_more_of(options))
    _refuse_missing(options, "env")
    settings = _common(options)
    _add_named(options, settings["settings"], "ask", "clips_at_once")
    teacher = teacher_of(options)
    if options.reward_from:
        _ask_about_reward_model(options)
    from backflip.teaching_api import teach

    with display_for(teacher, options) as display:
        result = teach(
            options.env,
            algorithm=options.algorithm,
            teacher=teacher,
            labels=options.labels,
            labels_from=options.labels_from,
            reward_from=options.reward_from,
            clips=options.clips,
            demonstrations=options.demonstrations,
            labelling=labelling_of(options, teacher),
            report=display,
            **settings,
        )
    return _reported(result)


def _refuse_missing(options: argparse.Namespace, *positional: str) -> None:
    """Refuse a command line without its positional arguments, which `--more` does without."""
    missing = [name.upper() for name in positional if getattr(options, name) is None]
    if missing:
        command = f"{options.program_name} {options.command}"
        raise UsageError(f"missing: {', '.join(missing)}; try {command} --help")


def _refuse_environment_first(options: argparse.Namespace) -> None:
    """Refuse `train ENV` and `train ENV ALGORITHM`."""
    first, second, known = options.algorithm, options.env, names()
    if first is None or first in known:
        return
    command = f"{options.program_name} {options.command}"
    if second in known:
        raise UsageError(f"the algorithm comes first; try {command} {second} {first}")
    if second is None and not did_you_mean(first, known):
        raise UsageError(f"missing: ALGORITHM before `{first}`; try {command} ppo {first}")


def _reported(result: "Result") -> Reported:
    from backflip.cli.progress_display import print_result
    from backflip.doctor.summary import doctors_word

    doctor = doctors_word(result.folder)
    fields = result.to_json() | ({} if doctor is None else {"doctor": doctor})
    return Reported(fields, functools.partial(print_result, result, doctor))


def _train(options: argparse.Namespace) -> Reported:
    if options.more is not None:
        return _reported(train_more_of(options))
    _refuse_environment_first(options)
    _refuse_missing(options, "algorithm", "env")
    settings = _common(options)
    if options.updates_per_step is not None:
        _check_has_replay(options.algorithm)
    _add_named(options, settings["settings"], "updates_per_step")
    from backflip.training.train import train

    with display_for(None, options) as display:
        result = train(options.algorithm, options.env, report=display, **settings)
    return _reported(result)


def _add_named(options: argparse.Namespace, settings: dict[str, Any], *names: str) -> None:
    """Add the settings that have an option of their own.

    Raises:
        UsageError: one is given in both ways.
    """
    for name in names:
        if (value := getattr(options, name)) is not None:
            if name in settings:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"give {option} or --set {name}, not both")
            settings[name] = value


def _check_has_replay(algorithm: str) -> None:
    if not entry_of(algorithm).has_replay:
        able = ", ".join(name for name, entry in algorithms().items() if entry.has_replay)
        raise UsageError(
            f"--updates-per-step is for algorithms with a replay ({able}); `{algorithm}` has none"
        )


def _ask_about_reward_model(options: argparse.Namespace) -> None:
    from backflip.training.named_code import code_named_by
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.reward_from)
    ask_to_import(run, code_named_by(run), options)


def _resume(options: argparse.Namespace) -> Reported:
    from backflip.training.finished import result_of
    from backflip.training.named_code import code_named_by
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.run)
    kind, teacher = run.manifest["command"], run.config.get("teacher")
    if kind not in ("teach", "train"):
        raise UsageError(
            f"run `{run.short}` is a run of `{kind}`; only `teach` and `train` can be resumed"
        )
    if kind == "train":
        refuse_page_options(options, "a run of `train` has no queries")
    elif teacher not in PEOPLE:
        refuse_page_options(options, f"the teacher of the run, `{teacher}`, is a program")
    if (result := result_of(run)) is not None:
        put(f"backflip: note: {finished_note(run)}", file=sys.stderr)
        return _reported(result)
    ask_to_import(run, code_named_by(run), options)
    with display_for(teacher, options, run.ulid) as display:
        return _reported(_resumed(run, options, display))


def _resumed(run: "Run", options: argparse.Namespace, display: "Report | None") -> "Result":
    if run.manifest["command"] == "train":
        from backflip.training.train import resume_train

        return resume_train(run, display)
    from backflip.teaching_api import resume_teach

    return resume_teach(run, display, labelling_of(options, run.config["teacher"]))


def _common(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments common to `teach` and `train`.

    Raises:
        UserFacingError: nothing is left of the weekly budget.
    """
    from backflip.envs.arguments import parse_env_args
    from runshelf.recorder.time_limit import check_weekly_budget

    check_weekly_budget(home(options), options.cost, note)
    return {
        "seeds": options.seeds,
        "first_seed": options.first_seed,
        "env_steps": options.env_steps,
        "env_args": parse_env_args(options.env_arg),
        "settings": _settings(options.settings),
        "home": home(options),
        "argv": without_alerts(options.argv),
        "info": run_info(options),
    }


def _settings(texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of `--set KEY=VALUE`, parsed like those of `--env-arg`."""
    from backflip.envs.arguments import parse_value
    from runshelf.key_values import key_values

    found = key_values("--set", texts, "learning_rate=0.001", identifiers=True)
    return {key: parse_value(text) for key, text in found.items()}
