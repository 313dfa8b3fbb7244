"""A bounded cache of what was read and drawn; the least recently used goes first."""

import threading
from collections import OrderedDict
from typing import Any, TypeVar, final

T = TypeVar("T")

CAPACITY = 32 * 2**20
_LEAST = 256


@final
class Cache:
    """A cache that several threads may use.

    Args:
        capacity: how many bytes its values may take, roughly.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._values: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def get(self, key: object) -> Any | None:
        """Return the value of a key, if it is still there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: object, value: T, size: int) -> T:
        """Keep a value of about `size` bytes, and return it."""
        size += _LEAST
        with self._lock:
            self.bytes -= self._values.pop(key, (None, 0))[1]
            if size <= self._capacity:
                self._values[key] = (value, size)
                self.bytes += size
            while self.bytes > self._capacity:
                self.bytes -= self._values.popitem(last=False)[1][1]
        return value
