"""The command line of backflip: its own commands, then those of runshelf."""

from collections.abc import Sequence

from backflip.cli import (
    diagnosing,
    inspecting,
    labels,
    linting,
    probing,
    serving,
    studying,
    sweeping,
    training_commands,
)
from runshelf.cli import battery
from runshelf.cli.command_line import Program, run_program
from runshelf.cli.main import SHARED_COMMANDS

PROGRAM = Program(
    name="backflip",
    description="Teach an agent what you want by comparing short clips of its behaviour.",
    epilog=training_commands.EPILOG,
    commands=(
        training_commands.add,
        serving.add,
        labels.add,
        inspecting.add,
        diagnosing.add,
        probing.add,
        linting.add,
        sweeping.add,
        battery.add,
        studying.add,
        *SHARED_COMMANDS,
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line of backflip and return its exit status."""
    return run_program(PROGRAM, argv)
