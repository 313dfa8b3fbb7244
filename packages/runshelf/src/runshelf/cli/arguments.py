"""The argument parser, readers of option values, and options shared by commands."""

import argparse
import contextlib
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from runshelf.environment import variable
from runshelf.errors import UsageError

if TYPE_CHECKING:
    from runshelf.store.run import RunInfo

RUN = "a run's id, the beginning or end of its id, its name, its folder, or latest"
NEGATIVE = re.compile(r"-\.?\d")  # how a negative number begins; no option does


@final
class Parser(argparse.ArgumentParser):
    """An argument parser that raises usage errors as one line instead of printing them."""

    def __init__(self, **settings: Any) -> None:
        """Keep the line breaks of the epilog, and take `-1e5` for a value."""
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **settings)
        self._negative_number_matcher = NEGATIVE  # argparse knows `-1` and `-1.5` only

    def error(self, message: str) -> NoReturn:
        """Raise the message as a one-line UsageError."""
        option = re.fullmatch(r"argument ([^:/]+)(?:/[^:]+)?: (.*)", message)
        if option:
            said = f"`{option[1]}` {option[2]}".replace("expected one argument", "needs a value")
            said = re.sub("ignored explicit argument '(.*)'", r"takes no value, got `\1`", said)
        else:
            said = message.replace("the following arguments are required: ", "missing: ")
        raise UsageError(said if "; try " in said else f"{said}; try {self.prog} --help")


def check_values(argv: Sequence[str]) -> None:
    """Check that no option has the value `--`.

    argparse of Python 3.11 removes it, and the value is then an empty list of any type.

    Raises:
        UsageError: an option has it.
    """
    for word in argv:
        if word == "--":
            return
        option, _, value = word.partition("=")
        if option.startswith("--") and value == "--":
            raise UsageError(f"`{option}` needs a value, got `--`")


def add_command(
    commands: Any, name: str, act: Callable[..., Any], about: str, description: str = ""
) -> argparse.ArgumentParser:
    """Add a command that calls `act`; return its parser."""
    parser = commands.add_parser(name, help=about, description=description or sentence(about))
    parser.set_defaults(act=act)
    return parser


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json",
        action="store_true",
        help="one JSON document on stdout, everything else on stderr",
    )
    output.add_argument("--home", metavar="DIR", help="keep runs in DIR/runs")
    output.add_argument("--debug", action="store_true", help="show where an error came from")


def add_about(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a run."""
    about = parser.add_argument_group("description of the run")
    about.add_argument("--question", metavar="TEXT", help="the question that the run answers")
    about.add_argument("--name", metavar="TEXT", help="a name for the run")
    about.add_argument(
        "--group",
        metavar="TEXT",
        help="the group of the run; default: all runs with the same configuration",
    )
    about.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="WORD",
        dest="tags",
        help="a tag to find the run by; repeatable",
    )
    about.add_argument(
        "--registered",
        metavar="NAME",
        help="the registration that the run belongs to: see `register`",
    )


def add_cost(group: Any) -> None:
    """Add the option for the cost of an hour."""
    group.add_argument("--cost", type=_hourly, metavar="N/h", help="cost of an hour: 1.20/h")


def _hourly(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/h)?", text)
    if not found or not math.isfinite(float(found[1])):
        raise argparse.ArgumentTypeError(f"must be a cost by the hour, got `{text}`; try 1.20/h")
    return float(found[1])


def run_info(options: argparse.Namespace) -> "RunInfo":
    """Return the values of the options of `add_about` and, if the command has it, of `add_cost`.

    Raises:
        UsageError: the registration does not exist, or was changed.
    """
    from runshelf.registrations.carrying import registered_info
    from runshelf.store.run import RunInfo

    info = RunInfo(
        name=options.name,
        group=options.group,
        question=options.question,
        tags=tuple(options.tags),
        parent=variable("PARENT"),  # set by `rerun`
        cost_per_hour=getattr(options, "cost", None),
    )
    return registered_info(home(options), info, options.registered)


def home(options: argparse.Namespace) -> Path:
    """Return the home: the folder whose `runs/` holds the runs."""
    return Path(options.home or variable("HOME") or ".")


def attended(options: argparse.Namespace) -> bool:
    """Return whether a person at a terminal can answer."""
    return not options.json and sys.stdin.isatty() and sys.stderr.isatty()


def whole(least: int, most: int, example: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within bounds, also written `1e5` or `100_000`."""

    def read(text: str) -> int:
        number = integer(text)
        if number is None or not least <= number <= most:
            wanted = f"must be a whole number from {least:_} to {most:_}"
            raise argparse.ArgumentTypeError(f"{wanted}, got `{text}`; try {example:_}")
        return number

    return read


def share(text: str) -> float:
    """Read a share from 0 to 1."""
    with contextlib.suppress(ValueError):
        if 0.0 <= float(text) <= 1.0:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got `{text}`; try 0.1")


def ratio(text: str) -> float:
    """Read a number above 0."""
    with contextlib.suppress(ValueError):
        if 0.0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number above 0, got `{text}`; try 0.5")


def integer(text: str) -> int | None:
    """Return the whole number in `text`, also written `1e5`; None if invalid."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):
        if float(text) == int(float(text)):
            return int(float(text))
    return None


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Return names as a list in a sentence: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}"


def sentence(about: str) -> str:
    """Return a phrase with a capital letter and a full stop."""
    return f"{about[0].upper()}{about[1:]}."
