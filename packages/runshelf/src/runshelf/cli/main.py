"""The command line of runshelf, and the commands that backflip shares with it."""

from collections.abc import Sequence

from runshelf.cli import (
    alerting,
    battery,
    cleaning,
    comparing,
    finding,
    foreseeing,
    interop,
    noting,
    pages,
    recording,
    registering,
    sweeping,
    trusting,
    work,
)
from runshelf.cli.command_line import Program, run_program

# backflip has these too. Its own `serve` also serves the labelling page of a run, and its own
# `sweep` knows the command lines of its algorithms; `battery` comes after it.
SHARED_COMMANDS = (
    recording.add,
    finding.add,
    cleaning.add,
    comparing.add,
    registering.add,
    noting.add,
    work.add,
    foreseeing.add,
    alerting.add,
    interop.add,
    pages.add_report,
    trusting.add,
)

PROGRAM = Program(
    name="runshelf",
    description="Record the runs of any program: code, output, metrics, and how to run it again.",
    epilog="Runs are kept in runs/ of --home, of RUNSHELF_HOME, or of the current folder.",
    commands=(*SHARED_COMMANDS, sweeping.add, battery.add, pages.add_serve),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line of runshelf and return its exit status."""
    return run_program(PROGRAM, argv)
