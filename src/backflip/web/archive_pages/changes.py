"""What has changed in the archive since a page was told: a bounded memory, not a log.

Only runs that go on change by themselves, and those that were going on a moment ago; so after each
look at the index these are compared with what was last known of them, and nothing else is.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, final

REMEMBERED = 1_000


@final
class News(NamedTuple):
    """What a page is to be told.

    Attributes:
        position: to be given the next time.
        runs: fields of each run that changed, by id.
        total: how many runs there are.
        reset: too much has happened: the page is to be fetched anew.
    """

    position: str
    runs: Mapping[str, Mapping[str, Any]]
    total: int
    reset: bool


@final
class Changes:
    """What changed last, each run once."""

    def __init__(self) -> None:
        """Begin with nothing known; positions of another server mean nothing here."""
        self._epoch = secrets.token_hex(4)
        self._number = 0
        self._forgotten = 0
        self._total = 0
        self._runs: OrderedDict[str, tuple[int, Mapping[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def position(self) -> str:
        """Where a page stands that has just been made."""
        return f"{self._epoch}-{self._number}"

    def note(self, runs: Iterable[tuple[str, Mapping[str, Any]]], total: int) -> None:
        """Take note of how some runs stand, and how many there are."""
        with self._lock:
            if total != self._total:
                self._total = total
                self._number += 1
            for ulid, fields in runs:
                if ulid in self._runs and self._runs[ulid][1] == fields:
                    continue
                self._number += 1
                self._runs[ulid] = (self._number, fields)
                self._runs.move_to_end(ulid)
            while len(self._runs) > REMEMBERED:
                _, (number, _) = self._runs.popitem(last=False)
                self._forgotten = max(self._forgotten, number)

    def since(self, position: str) -> News:
        """Return what has changed since a position."""
        epoch, _, said = position.partition("-")
        known = epoch == self._epoch and said.isascii() and said.isdecimal() and len(said) < 16
        with self._lock:
            here = f"{self._epoch}-{self._number}"
            if not known or int(said) < self._forgotten:
                return News(here, {}, self._total, reset=True)
            runs = {u: fields for u, (number, fields) in self._runs.items() if number > int(said)}
            return News(here, runs, self._total, reset=False)
