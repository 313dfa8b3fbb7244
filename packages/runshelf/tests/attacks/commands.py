"""Runs command lines and pages in this process, and says what is wrong with how they end."""

import contextlib
import io
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.asgi_client import get
from tests.coroutines import finished

from runshelf.web.app import Pages
from runshelf.web.reader import Reader

PATIENCE = 60  # seconds, after which a command hangs

Main = Callable[[Sequence[str]], int]


class Hangs(BaseException):
    """A command has not ended in time. Not an `Exception`, which commands report."""


@contextlib.contextmanager
def no_hang(seconds: int = PATIENCE):
    """Raise `Hangs` in the block if it takes longer."""

    def ring(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def said_by(main: Main, *argv: str) -> tuple[int, str, str]:
    """Return the exit status of a command, and what it printed on stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with no_hang(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(argv)
    return status, out.getvalue(), err.getvalue()


def problem_of(main: Main, *argv: str) -> str:
    """Return what is wrong with how a command ends; empty if it succeeds or refuses in a line."""
    try:
        status, _, err = said_by(main, *argv)
    except (Hangs, Exception) as error:  # noqa: BLE001
        return f"{argv}: {type(error).__name__}: {error}"
    if status not in (0, 1, 2) or "unexpected" in err or "Traceback" in err:
        return f"{argv}: exit status {status}: {err[-300:]}"
    return ""


def problems_of_pages(home: Path, addresses: Sequence[str]) -> list[str]:
    """Return what is wrong with some pages of a home; nothing may fail or take very long."""

    async def ask() -> list[str]:
        reader = await Reader.open(home)
        app: Any = Pages(reader).app()
        found: list[str] = []
        for address in addresses:
            answer = await get(app, address)
            if answer.status >= 500:
                found.append(f"{address}: {answer.status} {answer.body[:200]!r}")
        await reader.close()
        return found

    return finished(ask())
