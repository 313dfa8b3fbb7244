"""Errors for the user: one line that says what is wrong and what to do."""

import difflib
from collections.abc import Iterable


class UserFacingError(Exception):
    """An error with a message for the user; the command line exits with status 1."""

    exit_status = 1


class UsageError(UserFacingError):
    """The request is invalid; the command line exits with status 2."""

    exit_status = 2


class DamagedFile(UserFacingError):
    """A file of a run is damaged or has the wrong format."""


class Interrupted(UserFacingError):
    """The user stopped a run; the message says how to resume it."""

    exit_status = 130


class Ended(Interrupted):
    """SIGTERM or SIGHUP stopped a run; the message says how to resume it."""

    exit_status = 143


def did_you_mean(name: str, known: Iterable[str], *, alike: float = 0.5) -> str:
    """Return `, did you mean `x`?` for the known name nearest to `name`, or an empty string.

    Names must share at least `alike` of their letters. The dashes of options do not count.
    """
    by_folded = {candidate.casefold().lstrip("-"): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.casefold().lstrip("-"), by_folded, n=1, cutoff=alike)
    return f", did you mean `{by_folded[nearest[0]]}`?" if nearest else ""


def shown(value: object) -> str:
    """Return any value as a text of at most 200 characters, for a message."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (its __repr__ raises, it is nested too deeply, or too long)
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= 200 else f"{text[:199]}…"


def one_line(error: BaseException) -> str:
    """Return the type and message of an error as one line of at most 200 characters."""
    kind = type(error).__name__
    try:
        text = " ".join(f"{kind}: {error}".split())
    except Exception:  # noqa: BLE001  (a user-defined error whose __str__ raises)
        text = f"{kind} without a message"
    return text if len(text) <= 200 else f"{text[:199]}…"
