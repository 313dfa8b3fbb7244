"""The time of day for a record that goes on, such as a run: it never goes back.

A wall clock can be set back, by a person, by NTP or after a pause of a virtual machine. Differences
of its times would then be negative, and what is sorted by them in the wrong order.
"""

import time
from typing import final


@final
class SteadyClock:
    """The wall clock; if that is set back, the time goes on as the monotonic clock does.

    Threads may share it: without a lock, which a forked process could find locked.

    Args:
        after: the earliest time, in Unix seconds: that of the last record, for one that goes on.
    """

    def __init__(self, after: float = 0.0) -> None:
        self._latest = max(time.time(), after)
        self._began = self._latest - time.monotonic()
        self._ahead = 0.0  # of the wall clock

    def now(self) -> float:
        """Return the time in Unix seconds."""
        # Read before the wall clock: another thread may have the time of a moment later already.
        latest, ahead = self._latest, self._ahead
        wall = time.time()  # only one clock is read: a program logs a million times
        found = wall + ahead
        if found < latest:
            found = max(latest, self._began + time.monotonic())
            self._ahead = found - wall
        self._latest = found
        return found
