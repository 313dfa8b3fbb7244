"""Errors meant for the person who hits them: one line, what to do in it."""

import difflib
from collections.abc import Iterable


class UserFacingError(Exception):
    """An error with a message for the user; the command line exits with status 1."""

    exit_status = 1


class UsageError(UserFacingError):
    """What was asked for cannot be; the command line ends with exit status 2."""

    exit_status = 2


class DamagedFile(UserFacingError):
    """A file of a run cannot be read as what it should be."""


class Interrupted(UserFacingError):
    """The user stopped a run; the message says how to go on with it."""

    exit_status = 130


class Ended(Interrupted):
    """A SIGTERM stopped a run; the message says how to go on with it."""

    exit_status = 143


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean `x`?` for the known name nearest to `name`, or an empty string."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.5)
    return f", did you mean `{by_folded[nearest[0]]}`?" if nearest else ""


def one_line(error: BaseException) -> str:
    """Return kind and message of an error as one line of at most 200 characters."""
    kind = type(error).__name__
    try:
        text = " ".join(f"{kind}: {error}".split())
    except Exception:  # noqa: BLE001  (somebody's own error, that fails to say itself)
        text = f"{kind}, which has no message"
    return text if len(text) <= 200 else f"{text[:199]}…"
