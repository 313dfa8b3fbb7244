"""How a recorded program ended."""

import signal
from contextlib import suppress
from typing import NamedTuple, final

from runshelf.store.run import Status


@final
class Ending(NamedTuple):
    """How a recorded program ended.

    Attributes:
        run: the run's id.
        folder: where it is.
        exit_status: the program's, as a shell gives it: 128 + n if signal n ended it.
        signal: the number of that signal.
        state: the event that was recorded.
        seconds: how long it took.
        cost: what that cost; None if an hour's cost is not known.
        outputs: how many files it left in `$RUNSHELF_OUTPUT`.
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
    """Return the event that says how a program ended.

    Args:
        returncode: as `subprocess` gives it, negative for a signal.
        was_interrupted: somebody pressed Ctrl-C.
        was_stopped: its budget was used up.
    """
    if was_stopped:
        return "stopped"
    if returncode == 0:
        return "finished"
    by_interrupt = returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    return "interrupted" if was_interrupted or by_interrupt else "failed"


def error_of_ending(ending: Ending) -> str:
    """Return what made a program fail that did not end by itself; empty if it did."""
    if not ending.signal or ending.state != "failed":
        return ""
    with suppress(ValueError):
        return f"killed by {signal.Signals(ending.signal).name}"
    return f"killed by signal {ending.signal}"
