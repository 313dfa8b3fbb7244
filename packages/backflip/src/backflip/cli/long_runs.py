"""Asks for a premortem when a run turns out to take more than an hour."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import final

from backflip.training.progress import Progress
from runshelf.cli.foreseeing import ask_prediction
from runshelf.durations import duration
from runshelf.errors import UserFacingError
from runshelf.store.run import open_run
from runshelf.terminal_text import put
from runshelf.worklog.premortems import read_premortem, write_premortem

LONG = 3600.0  # seconds
PATIENCE = 60.0  # seconds without a key, after which training goes on


@final
class LongRunQuestion:
    """Asks once, on the terminal, as soon as a run is expected to take more than an hour.

    Args:
        paused: returns a context in which the progress display leaves the terminal alone.
    """

    def __init__(self, paused: Callable[[], AbstractContextManager[None]]) -> None:
        self._paused, self._is_done = paused, False

    def __call__(self, progress: Progress) -> None:
        """Ask if the progress says so.

        Training waits a minute for the first key, and then for the answers.
        """
        if self._is_done or progress.folder is None or not progress.eta_seconds > LONG:
            return
        self._is_done = True
        try:
            run = open_run(progress.folder)
            if read_premortem(run) is not None:
                return
            with self._paused():
                put(f"This run takes {duration(progress.eta_seconds)} more.", file=sys.stderr)
                asked = ask_prediction(PATIENCE)
            if asked is not None:
                write_premortem(run, *asked)
        except UserFacingError as error:
            put(f"backflip: note: {error}", file=sys.stderr)
