"""The command line: parse, call one function, print.

Exit status 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C, 143 by SIGTERM. An error is
one line on stderr. With `--json`, stdout holds exactly one JSON document. What is heavy (JAX,
NumPy, rich) is imported by the command that needs it, so that `--help` and mistakes are answered at
once.
"""

import argparse
import contextlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import IO, TYPE_CHECKING, Any, final

from backflip.cli import finding, interop, looking, pages, recording, teaching
from backflip.cli.arguments import Parser, integer, listed
from backflip.core.errors import BackflipError, Interrupted, UsageError, did_you_mean

if TYPE_CHECKING:
    from backflip.training.result import Result

    Outcome = Result | dict[str, Any] | None


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Args:
        argv: the arguments after the program's name; by default the process's.
    """
    _open_closed_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone. What is still buffered must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Interrupted as error:
        return _failed(str(error), error.exit_status, debug)
    except KeyboardInterrupt:
        return _failed("interrupted; what was finished is kept", Interrupted.exit_status, debug)
    except BackflipError as error:
        return _failed(str(error), error.exit_status, debug)
    except Exception as error:  # noqa: BLE001  (one line, whatever it is)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _failed(f"unexpected {said}; --debug shows where", 1, debug)
    return status


def _open_closed_streams() -> None:
    """Lead what was started without stdin, stdout or stderr to nowhere.

    Else the first files opened would get their numbers, and what is printed would go into a run.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _failed(message: str, status: int, debug: bool) -> int:
    """Say on one line of stderr what went wrong, after the traceback if that was asked for."""
    if debug:
        traceback.print_exc()
    kind = "" if status >= Interrupted.exit_status else "error: "
    with contextlib.suppress(BrokenPipeError):
        print(f"backflip: {kind}{' '.join(message.split())}", file=sys.stderr)
    return status


def _run(argv: list[str]) -> int:
    parser, commands = _parser()
    command = argv[0] if argv and not argv[0].startswith("-") else None
    if command is not None and command not in commands:
        raise UsageError(
            f"unknown command `{command}`{did_you_mean(command, commands)}; "
            "backflip --help lists them"
        )
    of_commands = {name for sub in commands.values() for name in sub._option_string_actions}
    if argv and command is None and argv[0].partition("=")[0] in of_commands - {"-h", "--help"}:
        raise UsageError(f"`{argv[0]}` comes after the command: backflip COMMAND ... {argv[0]}")
    # What follows `run` is another program's command line, and no business of ours.
    ours, program = recording.split_program(argv, commands)
    _check_options(ours, _innermost(commands[command], ours[1:]) if command else parser)
    try:
        options, rest = parser.parse_known_args(ours)
    except SystemExit as stop:  # --help and --version have printed and ask for the end
        return int(stop.code or 0)
    if rest:
        raise UsageError(f"unexpected argument `{rest[0]}`; try backflip {command} --help")
    if command is None:
        raise UsageError("no command given; backflip --help lists them")
    options.argv, options.program, options.exit_status = ["backflip", *argv], program, 0
    act: Callable[[argparse.Namespace], Outcome] = options.act
    return _carry_out(act, options)


def _carry_out(act: "Callable[[argparse.Namespace], Outcome]", options: argparse.Namespace) -> int:
    """Run a command and print what came of it."""
    if not options.debug and not sys.warnoptions:
        warnings.simplefilter("ignore")  # libraries' own, which no user of ours can act upon
    if not options.json:
        _print_outcome(act(options))
        return options.exit_status
    with _stdout_to_stderr() as stdout:
        outcome = act(options)
        fields = outcome if isinstance(outcome, dict) else outcome.to_json() if outcome else {}
        stdout.write(json.dumps(_plain(fields), allow_nan=False) + "\n")
        stdout.flush()
    return options.exit_status


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return JSON values, with the words NaN and Infinity for numbers that JSON has not."""
    from backflip.archive.records import to_json

    return to_json(fields)


def _print_outcome(outcome: "Outcome") -> None:
    if isinstance(outcome, dict):
        print(", ".join(f"{name} {value}" for name, value in outcome.items()))
    elif outcome is not None:
        from backflip.cli.progress import print_result

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
        with contextlib.suppress(ValueError, OSError):  # somebody's code may have closed it
            sys.stdout.flush()
        os.dup2(kept, descriptor)
        os.close(kept)


def _parser() -> tuple[Parser, dict[str, argparse.ArgumentParser]]:
    """Return the parser, and those of the commands by name."""
    parser = Parser(
        prog="backflip",
        description="Teach an agent what you want by comparing short clips of its behaviour.",
        epilog=teaching.EPILOG,
    )
    parser.add_argument("--version", action=_Version, help="print the version and stop")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=Parser
    )
    teaching.add(commands)
    looking.add(commands)
    recording.add(commands)
    finding.add(commands)
    interop.add(commands)
    pages.add(commands)
    return parser, dict(commands.choices)


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


def _innermost(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser of the action that a command line names, or of the command.

    Raises:
        UsageError: the command has actions, and this is none of them.
    """
    offered = (action.choices for action in parser._actions)
    actions: dict[str, argparse.ArgumentParser] = next(
        (choices for choices in offered if isinstance(choices, dict)), {}
    )
    named = next((arg for arg in argv if not arg.startswith("-")), None)
    if not actions or named is None:
        return parser
    if named not in actions:
        hint = did_you_mean(named, actions)
        raise UsageError(f"{parser.prog} has no `{named}`{hint} (expected {listed(actions)})")
    return actions[named]


def _check_options(argv: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Refuse options that `parser` does not know, before it complains of anything else.

    Abbreviations are such: a script's `--label` must not change its meaning with a new release.
    """
    known = parser._option_string_actions
    for name in (arg.partition("=")[0] for arg in argv if arg.startswith("-")):
        if name not in known and integer(name) is None:
            hint = did_you_mean(name, [option for option in known if option.startswith("--")])
            hint = hint or f"; try {parser.prog} --help"
            raise UsageError(f"unknown option `{name}` of {parser.prog}{hint}")
