"""What was read last, so that one page, which asks for many things, reads each file once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, final

T = TypeVar("T")


@final
class Recent(Generic[T]):
    """Values by key; the least recently used are forgotten. Threads may share it.

    Args:
        most_bytes: the largest sum of the sizes of the files behind the values.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()

    def get(self, key: Hashable, size: int, read: Callable[[], T]) -> T:
        """Return the value of a key; `read` it if it is not known, only in one thread at a time.

        Args:
            key: identifies the files and their state.
            size: the size of the files in bytes.
            read: reads them.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(size))
            self._entries.move_to_end(key)
            total = sum(each.size for each in self._entries.values())
            while total > self._most_bytes:
                total -= self._entries.popitem(last=False)[1].size
        with entry.lock:
            if not entry.values:
                entry.values.append(read())
        return entry.values[0]


@final
class _Entry(Generic[T]):
    def __init__(self, size: int) -> None:
        self.size, self.lock = size, threading.Lock()
        self.values: list[T] = []
