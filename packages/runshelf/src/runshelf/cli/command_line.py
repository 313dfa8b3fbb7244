"""Parses a command line, calls one function and prints its result.

Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C, 143 by SIGTERM or
SIGHUP. An error is one line on stderr. With `--json`, stdout holds exactly one JSON document. Each
command imports the heavy packages that it needs, so that `--help` and usage errors are fast.
"""

import argparse
import contextlib
import itertools
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import IO, Any, NamedTuple, final

from runshelf.cli.arguments import NEGATIVE, Parser, check_values, listed
from runshelf.cli.recording import split_program
from runshelf.errors import Interrupted, UsageError, UserFacingError, did_you_mean
from runshelf.terminal_text import put

ALIKE = 0.65  # the share of its letters that a mistyped option shares with the right one, at least
UNEXPECTED = 70  # exit status EX_SOFTWARE; 1 would look like findings of `doctor`


class Reported(NamedTuple):
    """The result of a command that prints more than a list of fields.

    Attributes:
        fields: the JSON document.
        show: prints the result for a person.
    """

    fields: dict[str, Any]
    show: Callable[[], None]


Outcome = Reported | dict[str, Any] | None
AddCommands = Callable[[Any], None]


class Program(NamedTuple):
    """A program with commands.

    Attributes:
        name: the name of the executable and of the distribution.
        description: one sentence for `--help`.
        epilog: the text after the list of commands.
        commands: functions that add commands to argparse's subparsers, in the order of `--help`.
    """

    name: str
    description: str
    epilog: str
    commands: tuple[AddCommands, ...]


def run_program(program: Program, argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Args:
        program: the program.
        argv: the arguments after the program's name; this process's arguments by default.
    """
    _open_closed_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(program, argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of stdout has closed it. Flushing at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        error = Interrupted("interrupted; finished work is kept")
    except Exception as caught:  # noqa: BLE001  (every error is one line)
        error = caught
    else:
        return status
    return _failed(program.name, error, debug="--debug" in argv)


def _open_closed_streams() -> None:
    """Open the null device for a stdin, stdout or stderr that is closed at the start.

    Otherwise the first opened files would get their numbers, and a run's file would get the output.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _failed(program: str, error: Exception, *, debug: bool) -> int:
    """Print the traceback if `debug`, then one line, on stderr; return the exit status."""
    if debug:
        put("".join(traceback.format_exception(error)), file=sys.stderr, end="")
    known = isinstance(error, UserFacingError)
    status = error.exit_status if known else UNEXPECTED
    kind = "" if status >= Interrupted.exit_status else "error: "
    message = str(error)
    if not known:
        name = type(error).__name__ + (f": {error}" if message else "")
        message = f"unexpected {name}; --debug shows the traceback"
    with contextlib.suppress(OSError):  # stderr is not read, or its terminal is closed
        put(f"{program}: {kind}{_shortened(' '.join(message.split()))}", file=sys.stderr)
    return status


def _shortened(line: str) -> str:
    """Return a line of at most about 2,000 characters: what it quotes can be very long."""
    return line if len(line) <= 2_000 else f"{line[:1_500]}…{line[-500:]}"


def _run(program: Program, argv: list[str]) -> int:
    parser, commands = build_parser(program)
    command = argv[0] if argv and not argv[0].startswith("-") else None
    if command is not None and command not in commands:
        raise UsageError(
            f"unknown command `{command}`{did_you_mean(command, commands)}; "
            f"{program.name} --help lists the commands"
        )
    of_commands = {name for sub in commands.values() for name in sub._option_string_actions}
    if argv and command is None and argv[0].partition("=")[0] in of_commands - {"-h", "--help"}:
        raise UsageError(f"`{argv[0]}` comes after the command: {program.name} COMMAND {argv[0]}")
    # `run` takes the command line of another program, whose options are not ours.
    ours, recorded = split_program(argv, commands)
    _check_options(ours, _innermost(commands[command], ours[1:]) if command else parser)
    check_values(ours)
    try:
        options, rest = parser.parse_known_args(ours)
    except SystemExit as stop:  # after --help and --version
        return int(stop.code or 0)
    if rest:
        raise UsageError(f"unexpected argument `{rest[0]}`; try {program.name} {command} --help")
    if command is None:
        raise UsageError(f"no command given; {program.name} --help lists the commands")
    options.argv, options.program, options.exit_status = [program.name, *argv], recorded, 0
    options.program_name = program.name
    return _carry_out(options.act, options)


def _carry_out(act: Callable[[argparse.Namespace], Outcome], options: argparse.Namespace) -> int:
    """Run a command, print its outcome, and return the exit status."""
    if not options.debug and not sys.warnoptions:
        warnings.simplefilter("ignore")  # users cannot act on warnings of libraries
    if not options.json:
        _print_outcome(act(options))
        return options.exit_status
    with _stdout_to_stderr() as stdout:
        outcome = act(options)
        fields = outcome.fields if isinstance(outcome, Reported) else outcome or {}
        stdout.write(_document(fields))
        stdout.flush()
    return options.exit_status


def _document(fields: Any) -> str:
    """Return one line of JSON in ASCII, without control characters."""
    from runshelf.store.records import to_json

    return json.dumps(to_json(fields), allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def _print_outcome(outcome: Outcome) -> None:
    if isinstance(outcome, Reported):
        outcome.show()
    elif outcome is not None:
        from runshelf.store.run_ids import short_id

        shown = outcome | ({"run": short_id(str(outcome["run"]))} if "run" in outcome else {})
        put(", ".join(f"{name} {value}" for name, value in shown.items()))


@contextlib.contextmanager
def _stdout_to_stderr() -> Generator[IO[str], None, None]:
    """Redirect stdout to stderr, also for C code; yield the real stdout."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file: the caller of `run_program` captures the output
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
        with contextlib.suppress(ValueError, OSError):  # an environment may have closed it
            sys.stdout.flush()
        os.dup2(kept, descriptor)
        os.close(kept)


def build_parser(program: Program) -> tuple[Parser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of a program and the parsers of its commands by name."""
    parser = Parser(prog=program.name, description=program.description, epilog=program.epilog)
    parser.add_argument(
        "--version", action=_Version, help="print the version and stop", metavar=program.name
    )
    subparsers = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=Parser
    )
    for add in program.commands:
        add(subparsers)
    return parser, dict(subparsers.choices)


@final
class _Version(argparse.Action):
    """`--version`: look up the version only when it is needed."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        """Set up an option without a value."""
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the version and stop."""
        from importlib.metadata import version

        put(f"{self.metavar} {version(str(self.metavar))}")
        parser.exit()


def _innermost(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser of the action in a command line, else of the command.

    Raises:
        UsageError: the action is unknown.
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
    """Report unknown options before any other error.

    Abbreviations are refused too: in a script, `--label` must not change its meaning in a new
    release.
    """
    known = parser._option_string_actions
    for name in _option_names(argv):
        if name not in known:
            options = [option for option in known if option.startswith("--")]
            hint = did_you_mean(name, options, alike=ALIKE)
            hint = hint or f"; try {parser.prog} --help"
            raise UsageError(f"unknown option `{name}` of {parser.prog}{hint}")


def _option_names(argv: Sequence[str]) -> Iterator[str]:
    """Yield the options of a command line: argparse takes the same words for options.

    Negative numbers, `-` for stdin and texts with blanks are values, and so is all after `--`.
    """
    for word in itertools.takewhile(lambda word: word != "--", argv):
        name = word.partition("=")[0]
        if word.startswith("-") and word != "-" and " " not in name and not NEGATIVE.match(word):
            yield name
