"""A bounded, thread-safe LRU cache for file contents and drawn charts."""

import threading
from collections import OrderedDict
from typing import Any, TypeVar, final

T = TypeVar("T")

CAPACITY = 32 * 2**20
_OVERHEAD = 256  # bytes of an entry besides its value


@final
class Cache:
    """A thread-safe LRU cache.

    Args:
        capacity: upper limit of the size of all values in bytes, approximately.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._values: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def get(self, key: object) -> Any | None:
        """Return the value of a key; None if it is not cached."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: object, value: T, size: int) -> T:
        """Store a value of about `size` bytes; return the value."""
        size += _OVERHEAD
        with self._lock:
            self.bytes -= self._values.pop(key, (None, 0))[1]
            if size <= self._capacity:
                self._values[key] = (value, size)
                self.bytes += size
            while self.bytes > self._capacity:
                self.bytes -= self._values.popitem(last=False)[1][1]
        return value
