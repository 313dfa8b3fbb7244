"""Ids of runs: ULIDs, their short form, and the parts of an id that people type.

Ids of runs that begin together share their beginnings, so the short form is the end of an id: 40
random bits.
"""

import re
import secrets
import time
from collections.abc import Iterable

SHORT = 8
LEAST = 4  # characters of an end: one letter would match some run by chance

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 60
_LAST_MOMENT = (1 << 68) - 1
_ULID = re.compile(f"[0-7][{_CROCKFORD}]{{25}}")


def new_ulid(after: str = "") -> str:
    """Return a new ULID: 26 letters and digits, from 48 bits of milliseconds and 80 random bits.

    The first 20 of the 80 bits are nanoseconds instead, so that ids of one process also sort by
    creation time within a millisecond. If the clock was set back, the id is the next one after the
    newest id that is known, so that ids still sort by creation.

    Source: github.com/ulid/spec.

    Args:
        after: the newest id that is known, if any.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    moment = (milliseconds << 20) | nanoseconds
    if after and (next_moment := (_number(after) >> _RANDOM_BITS) + 1) <= _LAST_MOMENT:
        moment = max(moment, next_moment)
    number = (moment << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def _number(ulid: str) -> int:
    number = 0
    for letter in ulid:
        number = number << 5 | _CROCKFORD.index(letter)
    return number


def is_ulid(text: str) -> bool:
    """Return whether `text` has the form of a run's id."""
    return _ULID.fullmatch(text) is not None


def short_id(ulid: str) -> str:
    """Return the short form of an id, its last 8 characters; commands and pages accept it."""
    return ulid[-SHORT:]


def matching(ulids: Iterable[str], text: str) -> list[str]:
    """Return the ids that begin or end with `text`, or whose short form begins with it.

    In any case; none for an empty text.
    """
    part = text.upper()
    return [ulid for ulid in ulids if part and _matches(ulid, part)]


def _matches(ulid: str, part: str) -> bool:
    ends = len(part) >= LEAST and (ulid.endswith(part) or short_id(ulid).startswith(part))
    return ulid.startswith(part) or ends
