"""What was read and drawn, kept for the next time; the oldest goes when there is no room."""

import threading
from collections import OrderedDict
from typing import Any, TypeVar, final

T = TypeVar("T")

ROOM = 32 * 2**20
_LEAST = 256


@final
class Shelf:
    """A bounded cache that several threads may use."""

    def __init__(self, room: int = ROOM) -> None:
        """Make an empty one.

        Args:
            room: how many bytes the things in it may take, about.
        """
        self._room = room
        self._things: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How many bytes the things in it take, about."""
        return self._taken

    def get(self, key: object) -> Any | None:
        """Return the thing of a key, if it is still there."""
        with self._lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return self._things[key][0]

    def put(self, key: object, thing: T, size: int) -> T:
        """Keep a thing, and return it."""
        size += _LEAST
        with self._lock:
            _, before = self._things.pop(key, (None, 0))
            self._taken -= before
            if size <= self._room:
                self._things[key] = (thing, size)
                self._taken += size
            while self._taken > self._room:
                _, (_, gone) = self._things.popitem(last=False)
                self._taken -= gone
        return thing
