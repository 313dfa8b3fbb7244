"""What the command line's arguments are made of: the parser, readers of values, common options."""

import argparse
import contextlib
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from runshelf.environment import variable
from runshelf.errors import UsageError

if TYPE_CHECKING:
    from runshelf.store.run import RunInfo

RUN = "its id, the beginning of its id, its folder, or latest"


@final
class Parser(argparse.ArgumentParser):
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


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json", action="store_true", help="one JSON document on stdout, all else on stderr"
    )
    output.add_argument("--home", metavar="DIR", help="keep runs in DIR/runs")
    output.add_argument("--debug", action="store_true", help="show where an error came from")


def add_about(parser: argparse.ArgumentParser) -> None:
    """Add the options with which a person says what a run is about."""
    about = parser.add_argument_group("what it is about")
    about.add_argument("--question", metavar="TEXT", help="what the run is to answer")
    about.add_argument("--name", metavar="TEXT", help="what to call it")
    about.add_argument(
        "--group",
        metavar="TEXT",
        help="the runs it belongs to; default: those of the same configuration",
    )
    about.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="WORD",
        dest="tags",
        help="a word to find it by; repeatable",
    )


def run_info(options: argparse.Namespace) -> "RunInfo":
    """Return what a person said with the options of `add_about`."""
    from runshelf.store.run import RunInfo

    return RunInfo(
        name=options.name,
        group=options.group,
        question=options.question,
        tags=tuple(options.tags),
        parent=variable("PARENT"),  # set by `rerun`, which is how runs are repeated
    )


def home(options: argparse.Namespace) -> Path:
    """Return the folder whose `runs/` holds runs."""
    return Path(options.home or variable("HOME") or ".")


def whole(least: int, most: int, example: int) -> Callable[[str], int]:
    """Return what reads a whole number within bounds; `1e5` and `100_000` are such, too."""

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
    """Return the whole number that `text` is, `1e5` included, or None."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):
        if float(text) == int(float(text)):
            return int(float(text))
    return None


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Return names as a sentence lists them."""
    *others, last = names
    return f"{', '.join(others)} or {last}"


def sentence(about: str) -> str:
    """Return a phrase as a sentence."""
    return f"{about[0].upper()}{about[1:]}."
