"""Labelling in the terminal: clips side by side as text, with the same keys as the page.

`python -m backflip.labelling.terminal RUN_FOLDER [--who NAME]` uses the whole terminal and restores
it at the end. Exit status: 0 the person left or training finished; 1 training stopped; 2 no
terminal or wrong usage; 130 Ctrl-C; 128 + n signal n. Like the page, it shares only files with the
trainer.
"""

import argparse
import getpass
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.people_input import checked_name
from backflip.labelling.terminal.device import Quit, Terminal, has_terminal
from backflip.labelling.terminal.labeller import Labeller
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from runshelf.errors import UsageError, UserFacingError
from runshelf.terminal_text import put


def main(argv: Sequence[str] | None = None) -> int:
    """Let a person label a run in this terminal; return the exit status."""
    options = _options(argv)
    try:
        _label(options.folder, options.who or _user())
    except Quit as end:
        if str(end):
            put(f"backflip: {end}", file=sys.stderr)
        return end.status
    except UserFacingError as error:
        put(f"backflip: error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


class _Options(argparse.Namespace):
    folder: Path
    who: str | None


def _options(argv: Sequence[str] | None) -> _Options:
    parser = argparse.ArgumentParser("backflip.labelling.terminal", description=__doc__)
    parser.add_argument("folder", metavar="RUN_FOLDER", type=Path)
    parser.add_argument("--who", metavar="NAME", help="your name, kept with your labels")
    return parser.parse_args(argv, _Options())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in some containers the user id has no name
        return "me"


def _label(folder: Path, who: str) -> None:
    """Show pairs and take answers until `Quit`.

    Raises:
        Quit: the person left, or training finished or stopped.
        UsageError: there is no terminal or no run.
    """
    who = checked_name(who)
    if not has_terminal():
        raise UsageError("labelling needs a terminal: start it in one, or use --teacher human")
    if not (folder / LABELS).is_file():
        raise UsageError(f"`{folder}` is not the folder of a run with labels: no `{LABELS}` in it")
    true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
    with LabelStore.open_existing(folder / LABELS) as store, Terminal(0, 1) as terminal:
        labeller = Labeller(LabelQueue(store), folder, who, true_colour=true_colour)
        try:
            _run(labeller, terminal)
        finally:
            labeller.close()


def _run(labeller: Labeller, terminal: Terminal) -> None:
    while True:
        now, size = time.monotonic(), terminal.size()
        terminal.draw(labeller.lines(size, now), size)
        seconds = 0.0 if labeller.poll(now) else labeller.until_change(time.monotonic())
        for key in terminal.keys(seconds):
            labeller.press(key, time.monotonic())


if __name__ == "__main__":
    sys.exit(main())
