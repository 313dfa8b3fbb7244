"""The command line: parse, call one function, print.

Exit status 0 done, 1 failed, 2 wrong usage, 130 interrupted. An error is one line on stderr. With
`--json`, stdout holds exactly one JSON document. What is heavy (JAX, NumPy, rich) is imported by
the command that needs it, so that `--help` and mistakes are answered at once.
"""

import argparse
import contextlib
import functools
import importlib
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, final

from backflip.core.errors import BackflipError, Interrupted, UsageError, did_you_mean

if TYPE_CHECKING:
    from backflip.archive.run import Run
    from backflip.preferences.people.answering import DeskSettings
    from backflip.training.result import Result
    from backflip.training.session import Report

    Outcome = Result | dict[str, Any] | None

INTERRUPTED = 130
LARGEST_SEED = 2_000_000_000  # JAX's integers have 32 bits, and `--seeds` are counted on from it

# The modules that tell `training.session` how runs of each command go on.
GOES_ON = {"train": "backflip.training.train", "teach": "backflip.preferences.loop"}

RUN = "its id, the beginning of its id, its folder, or latest"
EPILOG = """\
ENV is an id of ours (dot, CartPole-v1, Pendulum-v1, ...), any Gymnasium id (Hopper-v5;
gymnasium:CartPole-v1 for Gymnasium's own), or module:Class for your own.
Runs are kept in runs/ of the current folder, of BACKFLIP_HOME, or of --home.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Args:
        argv: the arguments after the program's name; by default the process's.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone. What is still buffered must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, Interrupted) as error:
        said = str(error) or "interrupted before anything was begun"
        return _failed(said, INTERRUPTED, debug)
    except BackflipError as error:
        return _failed(str(error), error.exit_status, debug)
    except Exception as error:  # noqa: BLE001  (one line, whatever it is)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _failed(f"unexpected {said}; --debug shows where", 1, debug)
    return status


def _failed(message: str, status: int, debug: bool) -> int:
    """Say on one line of stderr what went wrong, after the traceback if that was asked for."""
    if debug:
        traceback.print_exc()
    kind = "" if status == INTERRUPTED else "error: "
    with contextlib.suppress(BrokenPipeError):
        print(f"backflip: {kind}{' '.join(message.split())}", file=sys.stderr)
    return status


def _run(argv: list[str]) -> int:
    parser, commands = _parser()
    command = argv[0] if argv and not argv[0].startswith("-") else None
    if command is not None and command not in commands:
        raise UsageError(
            f"unknown command `{command}`{did_you_mean(command, commands)} "
            f"(expected {_listed(commands)})"
        )
    of_commands = {name for sub in commands.values() for name in sub._option_string_actions}
    if argv and command is None and argv[0].partition("=")[0] in of_commands - {"-h", "--help"}:
        raise UsageError(f"`{argv[0]}` comes after the command: backflip COMMAND ... {argv[0]}")
    _check_options(argv, _innermost(commands[command], argv[1:]) if command else parser)
    try:
        options, rest = parser.parse_known_args(argv)
    except SystemExit as stop:  # --help and --version have printed and ask for the end
        return int(stop.code or 0)
    if rest:
        raise UsageError(f"unexpected argument `{rest[0]}`; try backflip {command} --help")
    if command is None:
        raise UsageError(f"no command given (expected {_listed(commands)}); try backflip --help")
    options.argv = ["backflip", *argv]
    act: Callable[[argparse.Namespace], Outcome] = options.act
    return _carry_out(act, options)


def _carry_out(act: "Callable[[argparse.Namespace], Outcome]", options: argparse.Namespace) -> int:
    """Run a command and print what came of it."""
    if not options.debug and not sys.warnoptions:
        warnings.simplefilter("ignore")  # libraries' own, which no user of ours can act upon
    if not options.json:
        _print_outcome(act(options))
        return 0
    with _stdout_to_stderr() as stdout:
        outcome = act(options)
        fields = outcome if isinstance(outcome, dict) else outcome.to_json() if outcome else {}
        stdout.write(json.dumps(_plain(fields), allow_nan=False) + "\n")
        stdout.flush()
    return 0


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return JSON values, with the words NaN and Infinity for numbers that JSON has not."""
    from backflip.archive.metrics import to_json

    return to_json(fields)


def _print_outcome(outcome: "Outcome") -> None:
    if isinstance(outcome, dict):
        print(", ".join(f"{name} {value}" for name, value in outcome.items()))
    elif outcome is not None:
        from backflip.cli_progress import print_result

        print_result(outcome)


@contextlib.contextmanager
def _stdout_to_stderr() -> Generator[IO[str], None, None]:
    """Send what anybody prints meanwhile, C code included, to stderr; yield the real stdout."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # no file: somebody calls `main` and catches what is printed
        real = sys.stdout
        with contextlib.redirect_stdout(sys.stderr):
            yield real
        return
    sys.stdout.flush()
    kept = os.dup(descriptor)
    os.dup2(sys.stderr.fileno(), descriptor)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as real:
            yield real
    finally:
        sys.stdout.flush()
        os.dup2(kept, descriptor)
        os.close(kept)


# --- commands --------------------------------------------------------------------------------


def _teach(options: argparse.Namespace) -> "Result":
    settings = _common(options)
    teacher = options.teacher or ("human" if _attended(options) else "oracle")
    from backflip.preferences.loop import teach

    with _display(teacher) as display:
        return teach(
            options.env,
            teacher=teacher,
            labels=options.labels,
            labels_from=options.labels_from,
            reward_from=options.reward_from,
            desk=_desk(options),
            report=display,
            **settings,
        )


def _attended(options: argparse.Namespace) -> bool:
    """Return whether a person sits at a terminal and could answer."""
    return not options.json and sys.stdin.isatty() and sys.stderr.isatty()


def _desk(options: argparse.Namespace) -> "DeskSettings":
    """Return how people come to answer."""
    from backflip.preferences.people.answering import DeskSettings

    return DeskSettings(
        host=options.host,
        port=options.port,
        invite=_inviting(options),
        overlap=getattr(options, "overlap", 0.0),
        goal=getattr(options, "goal", None),
    )


def _inviting(options: argparse.Namespace) -> Callable[[str], str]:
    """Return what leads people to a page, given its address, and says so."""
    from backflip.cli_invite import invite, usually_opens

    opens = usually_opens(os.environ) if options.open is None else options.open
    return functools.partial(invite, environ=os.environ, opens=opens)


@contextlib.contextmanager
def _display(teacher: str | None) -> "Generator[Report | None, None, None]":
    """Yield what shows progress; nothing where people answer in the same terminal."""
    from backflip.cli_progress import Display

    if teacher == "terminal":
        yield None
        return
    with Display() as display:
        yield display


def _train(options: argparse.Namespace) -> "Result":
    settings = _common(options)
    from backflip.cli_progress import Display
    from backflip.training.train import train

    with Display() as display:
        return train(options.algorithm, options.env, report=display, **settings)


def _resume(options: argparse.Namespace) -> "Result":
    from backflip.archive.run import find_run

    run = find_run(_home(options), options.run)
    command = run.manifest["command"]
    if command in GOES_ON:
        importlib.import_module(GOES_ON[command])
    from backflip.training.session import resume

    sitting = {"desk": _desk(options)} if command == "teach" else {}
    with _display(run.config.get("teacher")) as display:
        return resume(run, display, **sitting)


def _serve(options: argparse.Namespace) -> None:
    from backflip.archive.run import find_run
    from backflip.web.server import serve

    run, invite = find_run(_home(options), options.run), _inviting(options)

    def announce(place: Any) -> None:
        print(invite(place.address), flush=True)

    serve(
        run.folder, host=options.host, port=options.port, overlap=options.overlap, announce=announce
    )


def _export(options: argparse.Namespace) -> dict[str, Any]:
    from backflip.archive.run import find_run
    from backflip.preferences.exchange import export_labels
    from backflip.preferences.labels import LabelStore

    run = find_run(_home(options), options.run)
    with LabelStore.open(_labels_of(run)) as store:
        count = export_labels(store, Path(options.file))
    return {"labels": count, "run": run.ulid, "file": options.file}


def _import(options: argparse.Namespace) -> dict[str, Any]:
    from backflip.archive.run import find_run
    from backflip.preferences.exchange import import_labels, read_labels
    from backflip.preferences.labels import LabelStore

    run, path = find_run(_home(options), options.run), Path(options.file)
    labels = read_labels(path)
    with LabelStore.open(_labels_of(run)) as store:
        count = import_labels(store, labels, run.seeds, path.name)
    return {"labels": count, "run": run.ulid, "file": options.file}


def _labels_of(run: "Run") -> Path:
    from backflip.preferences.label_file import LABELS

    path = run.folder / LABELS
    if not path.is_file():
        raise UsageError(f"run `{run.ulid}` is of kind `{run.manifest['command']}`: no labels")
    return path


def _common(options: argparse.Namespace) -> dict[str, Any]:
    """Return what `teach` and `train` take alike."""
    from backflip.envs.registry import parse_env_args

    return {
        "seeds": options.seeds,
        "first_seed": options.first_seed,
        "env_steps": options.env_steps,
        "env_args": parse_env_args(options.env_arg),
        "settings": _settings(options.settings),
        "home": _home(options),
        "argv": options.argv,
    }


def _settings(texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of `--set KEY=VALUE` texts, read as those of `--env-arg` are."""
    from backflip.envs.registry import parse_env_args

    keys = [text.partition("=")[0] for text in texts]
    for text, key in zip(texts, keys, strict=True):
        if "=" not in text or not key.isidentifier():
            raise UsageError(
                f"--set must be KEY=VALUE, got `{text}`; try --set learning_rate=0.001"
            )
        if keys.count(key) > 1:
            raise UsageError(f"--set `{key}` is given twice; give it once")
    return parse_env_args(texts)


def _home(options: argparse.Namespace) -> Path:
    return Path(options.home or os.environ.get("BACKFLIP_HOME") or ".")


# --- arguments -------------------------------------------------------------------------------


@final
class _Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are one line, raised rather than printed."""

    def __init__(self, **settings: Any) -> None:
        """Make a parser that leaves the epilog's lines as they are."""
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print over several lines."""
        option = re.fullmatch(r"argument ([^:/]+)(?:/[^:]+)?: (.*)", message)
        if option:
            said = f"`{option[1]}` {option[2]}".replace("expected one argument", "needs a value")
            said = re.sub("ignored explicit argument '(.*)'", r"takes no value, got `\1`", said)
        else:
            said = message.replace("the following arguments are required: ", "missing: ")
        raise UsageError(said if "; try " in said else f"{said}; try {self.prog} --help")


def _parser() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
    """Return the parser, and those of the commands by name."""
    parser = _Parser(
        prog="backflip",
        description="Teach an agent what you want by comparing short clips of its behaviour.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action=_Version, help="print the version and stop")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=_Parser
    )
    _add_teach(commands)
    _add_train(commands)
    _add_resume(commands)
    _add_serve(commands)
    _add_labels(commands)
    return parser, dict(commands.choices)


def _add_teach(commands: Any) -> None:
    about = "learn ENV from comparisons of clips"
    parser = commands.add_parser("teach", help=about, description=_sentence(about), epilog=EPILOG)
    parser.add_argument("env", metavar="ENV", help="what to learn")
    parser.add_argument(
        "--teacher",
        metavar="WHO",
        help="who answers: human (a page in the browser), terminal, oracle, noisy, or "
        "noisy:mistake=0.1,tie=2; default human at a terminal, else oracle",
    )
    parser.add_argument(
        "--labels",
        type=_whole(2, 1_000_000, 100),
        metavar="N",
        help="answers to have, per seed, imported ones included; default 100, of people 150, or "
        "as many as are imported",
    )
    parser.add_argument(
        "--labels-from",
        metavar="RUN_OR_FILE",
        help="begin with the labels of another run, or of a .jsonl or .csv file",
    )
    parser.add_argument(
        "--reward-from",
        metavar="RUN",
        help="learn from the reward model of another run; nothing is asked",
    )
    parser.add_argument("--goal", metavar="TEXT", help="what you want to see, in your own words")
    parser.add_argument(
        "--overlap",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="share of pairs that a second person is shown, too; default 0",
    )
    _add_page(parser)
    _add_common(parser)
    parser.set_defaults(act=_teach)


def _add_page(parser: argparse.ArgumentParser) -> None:
    page = parser.add_argument_group("the labelling page")
    page.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the page in a browser; default: where there is a screen",
    )
    page.add_argument(
        "--port", type=_whole(1, 65_535, 8765), metavar="N", help="default: as before, else 8765"
    )
    page.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen there instead of on this machine alone; the address printed has a token",
    )


def _add_serve(commands: Any) -> None:
    about = "serve the labelling page of a run, without training"
    parser = commands.add_parser("serve", help=about, description=_sentence(about))
    parser.add_argument("run", metavar="RUN", nargs="?", default="latest", help=RUN)
    parser.add_argument("--overlap", type=_share, default=0.0, metavar="SHARE", help="as of teach")
    _add_page(parser)
    _add_output(parser)
    parser.set_defaults(act=_serve)


def _add_labels(commands: Any) -> None:
    about = "take labels out of a run, or put labels into one"
    parser = commands.add_parser("labels", help=about, description=_sentence(about))
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, parser_class=_Parser
    )
    for name, act, what in (
        ("export", _export, "write every answer in force, with its clips, to a file"),
        ("import", _import, "add the answers of a file to those of a run; resume it to use them"),
    ):
        action = actions.add_parser(name, help=what, description=_sentence(what))
        action.add_argument("run", metavar="RUN", help=RUN)
        action.add_argument("file", metavar="FILE", help="ends in .jsonl or .csv")
        _add_output(action)
        action.set_defaults(act=act)


def _add_train(commands: Any) -> None:
    about = "learn ENV from its own reward"
    parser = commands.add_parser("train", help=about, description=_sentence(about), epilog=EPILOG)
    parser.add_argument("algorithm", metavar="ALGORITHM", help="how: ppo")
    parser.add_argument("env", metavar="ENV", help="what to learn")
    _add_common(parser)
    parser.set_defaults(act=_train)


def _add_resume(commands: Any) -> None:
    about = "go on with a run that was interrupted or killed"
    parser = commands.add_parser("resume", help=about, description=_sentence(about))
    parser.add_argument("run", metavar="RUN", help=RUN)
    _add_page(parser)
    _add_output(parser)
    parser.set_defaults(act=_resume)


def _add_common(parser: argparse.ArgumentParser) -> None:
    seeds = parser.add_argument_group("how much")
    seeds.add_argument(
        "--seeds",
        type=_whole(1, 10_000, 10),
        default=1,
        metavar="N",
        help="how many seeds, learnt side by side in one program; default 1",
    )
    seeds.add_argument(
        "--seed",
        type=_whole(0, LARGEST_SEED, 0),
        default=0,
        metavar="FIRST",
        dest="first_seed",
        help="the first of them; default 0",
    )
    seeds.add_argument(
        "--env-steps",
        type=_whole(1, 10**12, 100_000),
        metavar="N",
        help="environment steps of each seed; default: what suits ENV",
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="give ENV's constructor an argument, as in --env-arg goal=40,60; repeatable",
    )
    settings.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="set a field of the configuration, as in --set discount=0.9; repeatable",
    )
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json", action="store_true", help="one JSON document on stdout, all else on stderr"
    )
    output.add_argument("--home", metavar="DIR", help="keep runs in DIR/runs")
    output.add_argument("--debug", action="store_true", help="show where an error came from")


@final
class _Version(argparse.Action):
    """`--version`, looked up only when asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        """Take no value."""
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the version and stop."""
        from importlib.metadata import version

        print(f"backflip {version('backflip')}")
        parser.exit()


def _whole(least: int, most: int, example: int) -> Callable[[str], int]:
    """Return what reads a whole number within bounds; `1e5` and `100_000` are such, too."""

    def read(text: str) -> int:
        number = _integer(text)
        if number is None or not least <= number <= most:
            wanted = f"must be a whole number from {least:_} to {most:_}"
            raise argparse.ArgumentTypeError(f"{wanted}, got `{text}`; try {example:_}")
        return number

    return read


def _share(text: str) -> float:
    """Read a share from 0 to 1."""
    with contextlib.suppress(ValueError):
        if 0.0 <= float(text) <= 1.0:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got `{text}`; try 0.1")


def _integer(text: str) -> int | None:
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):
        if float(text) == int(float(text)):
            return int(float(text))
    return None


def _innermost(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser of the action that a command line names, or of the command.

    Raises:
        UsageError: the command has actions, and this is none of them.
    """
    listed = (action.choices for action in parser._actions)
    actions: dict[str, argparse.ArgumentParser] = next(
        (choices for choices in listed if isinstance(choices, dict)), {}
    )
    named = next((arg for arg in argv if not arg.startswith("-")), None)
    if not actions or named is None:
        return parser
    if named not in actions:
        hint = did_you_mean(named, actions)
        raise UsageError(f"{parser.prog} has no `{named}`{hint} (expected {_listed(actions)})")
    return actions[named]


def _check_options(argv: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Refuse options that `parser` does not know, before it complains of anything else.

    Abbreviations are such: a script's `--label` must not change its meaning with a new release.
    """
    known = parser._option_string_actions
    for name in (arg.partition("=")[0] for arg in argv if arg.startswith("-")):
        if name not in known and _integer(name) is None:
            hint = did_you_mean(name, [option for option in known if option.startswith("--")])
            hint = hint or f"; try {parser.prog} --help"
            raise UsageError(f"unknown option `{name}` of {parser.prog}{hint}")


def _listed(names: Sequence[str] | dict[str, Any]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."
