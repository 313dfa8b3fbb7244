"""Ends of the process that code of others asks for, as exceptions."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def exits_raise() -> Generator[None]:
    """Make `os._exit` raise `SystemExit` in this process, as `sys.exit` does.

    It would end the command at once, with the learner's own status and without a report: a status
    of 0 looks like probes that passed. Processes that are forked here still end by it.
    """
    real, here = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() == here:
            raise SystemExit(status)
        real(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = real
