"""The command `sweep` of backflip: that of runshelf, and a short form for our own algorithms.

backflip sweep train ppo CartPole-v1 --over learning_rate=1e-4..1e-2:log --samples 8 --seeds 10
"""

import argparse
import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backflip.algorithms.registry import entry_of
from runshelf.cli import sweeping
from runshelf.cli.arguments import whole
from runshelf.errors import UsageError

if TYPE_CHECKING:
    from runshelf.cli.command_line import Reported
    from runshelf.sweeps.space import Parameter

_MOST_ENV_STEPS = 2_000_000_000


def add(commands: Any) -> None:
    """Add the command."""
    parser = sweeping.add_parser(commands)
    parser.usage = "%(prog)s SWEEP [options] [-- CMD ...], or train ALGORITHM ENV [options]"
    add_training(parser)
    parser.add_argument("--name", metavar="TEXT", help="the name of a sweep of `train`")
    parser.set_defaults(act=_sweep)


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train` that a sweep passes on."""
    ours = parser.add_argument_group("of train ALGORITHM ENV")
    ours.add_argument("--env-steps", type=whole(1, _MOST_ENV_STEPS, 100_000), metavar="N")
    ours.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    ours.add_argument("--env-arg", action="append", default=[], metavar="KEY=VALUE")


def _sweep(options: argparse.Namespace) -> "Reported | None":
    if options.what[:1] == ["train"]:
        _describe_training(options)
    elif options.env_steps or options.settings or options.env_arg or options.name:
        raise UsageError(
            "--env-steps, --set, --env-arg and --name are for a new sweep of train: "
            "backflip sweep train ppo CartPole-v1 --over learning_rate=1e-4..1e-2:log --samples 8"
        )
    return sweeping.sweep(options)


def _describe_training(options: argparse.Namespace) -> None:
    """Replace `train ALGORITHM ENV` by the name of the sweep and its command template."""
    from runshelf.sweeps.space import parse_space

    if len(options.what) != 3 or options.program:
        raise UsageError(
            "expected train ALGORITHM ENV, as in backflip sweep train ppo CartPole-v1 --over "
            "learning_rate=1e-4..1e-2:log --samples 8 --seeds 10"
        )
    _, algorithm, env = options.what
    space = parse_space(options.over or [])
    check_parameters(algorithm, space)
    options.program = training_command(algorithm, env, list(space), passed_on(options))
    options.what = [options.name or usual_name(algorithm, env, options)]


def training_command(
    algorithm: str, env: str, parameters: Sequence[str], more: Sequence[str]
) -> list[str]:
    """Return the command template of training with some settings as placeholders."""
    seeds = ["--seed", "{first_seed}", "--seeds", "{seeds}"]
    searched = [word for name in parameters for word in ("--set", f"{name}={{{name}}}")]
    return ["backflip", "train", algorithm, env, *seeds, *more, *searched]


def passed_on(options: argparse.Namespace) -> list[str]:
    """Return the options of `train` that stay the same for every configuration."""
    steps = [] if options.env_steps is None else ["--env-steps", str(options.env_steps)]
    settings = [word for text in options.settings for word in ("--set", text)]
    return steps + settings + [word for text in options.env_arg for word in ("--env-arg", text)]


def check_parameters(algorithm: str, space: "dict[str, Parameter]") -> None:
    """Check that an algorithm has the settings of a space, and takes their bounds.

    Raises:
        UsageError: it does not.
    """
    from backflip.core.settings import meant
    from backflip.training.renamed_settings import NAMES
    from runshelf.sweeps.space import Choice

    settings = entry_of(algorithm).settings
    for name, parameter in space.items():
        if name not in settings:
            raise UsageError(
                f"--over: `{algorithm}` has no setting `{name}`{meant(name, settings, NAMES)}"
            )
        ends = (
            parameter.options
            if isinstance(parameter, Choice)
            else (parameter.at(0.0), parameter.at(1.0))
        )
        problems = [settings[name].problem(value) for value in ends]
        if problem := next((one for one in problems if one), None):
            raise UsageError(f"--over: {problem}")


def usual_name(algorithm: str, env: str, options: argparse.Namespace) -> str:
    """Return the name of a sweep without one; the same command line has the same name."""
    about = [options.what, sorted(options.over or []), passed_on(options)]
    about += [getattr(options, name, None) for name in sweeping.DESCRIBING]
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:6]
    return re.sub(r"[^\w.-]+", "-", f"{algorithm}-{env}-{digest}")
