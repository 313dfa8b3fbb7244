"""Who answers the queries of a command: options of the page mean that people do."""

import argparse
import contextlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

from runshelf.cli.arguments import attended, share
from runshelf.cli.page_options import add_server_options, page_opener
from runshelf.cli.run_alerts import watching
from runshelf.errors import UsageError
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from backflip.labelling.people_source import LabellingSettings
    from backflip.training.progress import Report

PEOPLE = ("human", "terminal")


def add_page_options(parser: argparse.ArgumentParser, *, new_run: bool) -> None:
    """Add the options of the labelling page.

    Args:
        parser: the parser of a command.
        new_run: add the options that belong to the configuration of a new run.
    """
    page = add_server_options(parser, "the labelling page; its options mean that people answer")
    if new_run:
        page.add_argument("--goal", metavar="TEXT", help="the goal, shown on the page")
        page.add_argument(
            "--overlap",
            type=share,
            default=0.0,
            metavar="SHARE",
            help="share of queries that a second person answers, too; default 0",
        )
    names = {name for action in page._group_actions for name in action.option_strings}
    parser.set_defaults(page_options=frozenset(names))


def teacher_of(options: argparse.Namespace) -> str:
    """Return the teacher of a new run: the one named, else people if they can answer.

    Raises:
        UsageError: there are options of the page, and there is no page.
    """
    if options.reward_from:
        refuse_page_options(options, "with --reward-from there are no queries")
    if options.teacher is None:
        return "human" if _page_options(options) or attended(options) else "oracle"
    if options.teacher not in PEOPLE:
        why = f"the teacher `{options.teacher}` is a program"
        refuse_page_options(options, f"{why}: leave it out, or use --teacher human")
    return options.teacher


def refuse_page_options(options: argparse.Namespace, why: str) -> None:
    """Refuse options of the page in a command line.

    Args:
        options: of the command line.
        why: why there is no page.

    Raises:
        UsageError: there are such options.
    """
    named = _page_options(options)
    if named:
        verb = "is" if len(named) == 1 else "are"
        raise UsageError(f"{' and '.join(named)} {verb} for people who answer, and {why}")


def labelling_of(options: argparse.Namespace, teacher: str) -> "LabellingSettings | None":
    """Return the settings of the labelling page; None if a program answers."""
    from backflip.labelling.people_source import LabellingSettings

    if teacher not in PEOPLE:
        return None
    return LabellingSettings(
        host=options.host,
        port=options.port,
        invite=page_opener(options, "compare clips"),
        overlap=getattr(options, "overlap", 0.0),
        goal=getattr(options, "goal", None),
    )


@contextlib.contextmanager
def display_for(
    teacher: str | None, options: argparse.Namespace, run: str | None = None
) -> "Generator[Report | None, None, None]":
    """Yield the progress display; None if a person answers in the same terminal.

    If no person answers queries, and there is a terminal, it asks what may go wrong in a long run.
    The run in the block is watched for alerts, if that is asked.

    Args:
        teacher: who answers; None without queries.
        options: the options of the command.
        run: the id of the run if it is resumed.
    """
    if teacher == "terminal":
        with watching(options, note, run):
            yield None
        return
    from backflip.cli.progress_display import Display
    from backflip.doctor.live import LiveDoctor

    asks = teacher not in PEOPLE and attended(options)
    with (
        Display(doctor=LiveDoctor(), asks=asks) as display,
        watching(options, display.print_note, run),
    ):
        yield display


def note(line: str) -> None:
    """Print one line on stderr."""
    put(f"backflip: {line}", file=sys.stderr)


def given_options(options: argparse.Namespace) -> list[str]:
    """Return the names of the options in a command line, also of those with the default value."""
    return [word.partition("=")[0] for word in options.argv if word.startswith("--")]


def _page_options(options: argparse.Namespace) -> list[str]:
    return [name for name in given_options(options) if name in options.page_options]
