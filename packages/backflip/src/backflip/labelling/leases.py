"""Who is at a page or in a terminal at this moment.

Every open page and every terminal program has one small file in the run's folder and touches it
every two seconds. A person is present if one of their files was touched in the last six seconds, so
a closed tab, a killed browser and a lost network all end the presence, without a message. All
processes of the run see the files. They describe the present only, so they are not synced to disk.
"""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import final

from runshelf.errors import UserFacingError
from runshelf.store.opening import NoFile, opened, opened_folder, read_whole
from runshelf.store.writing import make_folder, remove_file, replace_file, touch

RENEW_SECONDS = 2.0  # between two touches
LEASE_SECONDS = 6.0  # after the last touch a person has left

_PRESENT = "present"
_SUFFIX = ".lease"


@final
class Leases:
    """The people who are present at one run.

    Args:
        run_folder: the run's folder.
        clock: returns seconds since 1970.
    """

    def __init__(self, run_folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = run_folder, clock

    def renew(self, who: str, place: str = "") -> None:
        """Record that `who` is present now.

        Args:
            who: the person's name.
            place: identifies the page or the terminal program.

        Raises:
            UserFacingError: the file cannot be written.
        """
        name, moment = _name(who, place), self._clock()
        if not touch(self._folder, name, moment):
            make_folder(self._folder, _PRESENT)
            replace_file(self._folder, name, who.encode(), synced=False)
            touch(self._folder, name, moment)
        # At once: after the clock was set back, an old file would become valid again.
        self._remove_expired()

    def end(self, who: str, place: str = "") -> None:
        """Record that `who` has left the page or the terminal program `place`."""
        with suppress(UserFacingError):
            remove_file(self._folder, _name(who, place))

    def present(self) -> frozenset[str]:
        """Return the names of the people who are present."""
        names: set[str] = set()
        for name in self._files():
            with suppress(UserFacingError, UnicodeDecodeError):
                if self._is_valid(name):
                    names.add((read_whole(self._folder, name) or b"").decode())
        return frozenset(names - {""})

    def _remove_expired(self) -> None:
        for name in self._files():
            with suppress(UserFacingError):
                if not self._is_valid(name):
                    remove_file(self._folder, name)

    def _files(self) -> list[str]:
        with suppress(OSError), opened_folder(self._folder, [_PRESENT]) as folder:
            names = os.listdir(folder)  # noqa: PTH208  (of a descriptor)
            return [f"{_PRESENT}/{name}" for name in names if name.endswith(_SUFFIX)]
        return []

    def _is_valid(self, name: str) -> bool:
        with suppress(NoFile), opened(self._folder, name) as file:
            # `abs`: after the clock was set back, old files would otherwise be valid for long.
            return abs(self._clock() - os.fstat(file).st_mtime) <= LEASE_SECONDS
        return False


def _name(who: str, place: str) -> str:
    digest = hashlib.sha256(f"{who}\n{place}".encode()).hexdigest()
    return f"{_PRESENT}/{digest[:32]}{_SUFFIX}"
