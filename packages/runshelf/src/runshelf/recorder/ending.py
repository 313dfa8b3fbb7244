"""How a recorded program ended."""

import signal
from contextlib import suppress
from typing import NamedTuple, final

from runshelf.store.run import Status


@final
class Ending(NamedTuple):
    """Exit status, state, duration, cost and outputs of a recorded program.

    Attributes:
        run: the run's id.
        folder: the run's folder.
        exit_status: as a shell reports it: 128 + n if signal n ended the program.
        signal: the number of that signal; None if no signal ended it.
        state: the recorded status.
        seconds: the duration.
        cost: the cost; None if the cost per hour is unknown.
        outputs: the number of files in `$RUNSHELF_OUTPUT`.
    """

    run: str
    folder: str
    exit_status: int
    signal: int | None
    state: Status
    seconds: float
    cost: float | None
    outputs: int


def state_of_ending(returncode: int, was_interrupted: bool, was_stopped: bool) -> Status:
    """Return the status of a program that ended; `returncode` is that of `subprocess`."""
    if was_stopped:
        return "stopped"
    if returncode == 0:
        return "finished"
    by_interrupt = returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    return "interrupted" if was_interrupted or by_interrupt else "failed"


def error_of_ending(ending: Ending) -> str:
    """Return the signal that killed a failed program, as text; empty if none did."""
    if not ending.signal or ending.state != "failed":
        return ""
    with suppress(ValueError):
        return f"killed by {signal.Signals(ending.signal).name}"
    return f"killed by signal {ending.signal}"
