"""Who is at a page or in a terminal at this moment.

Every open page and every terminal program has one small file in the run's folder and touches it
every two seconds. A person is present if one of their files was touched in the last six seconds, so
a closed tab, a killed browser and a lost network all end the presence, without a message. All
processes of the run see the files. They describe the present only, so they are not synced to disk.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import final

from runshelf.store.files import disk_errors

RENEW_SECONDS = 2.0  # between two touches
LEASE_SECONDS = 6.0  # after the last touch a person has left

_FOLDER = "present"


@final
class Leases:
    """The people who are present at one run.

    Args:
        run_folder: the run's folder.
        clock: returns seconds since 1970.
    """

    def __init__(self, run_folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = run_folder / _FOLDER, clock

    def renew(self, who: str, place: str = "") -> None:
        """Record that `who` is present now.

        Args:
            who: the person's name.
            place: identifies the page or the terminal program.

        Raises:
            UserFacingError: the file cannot be written.
        """
        path, moment = self._path(who, place), self._clock()
        with disk_errors(path):
            try:
                os.utime(path, (moment, moment))
            except FileNotFoundError:
                self._create(path, who, moment)
            # At once: after the clock was set back, an old file would become valid again.
            self._remove_expired()

    def end(self, who: str, place: str = "") -> None:
        """Record that `who` has left the page or the terminal program `place`."""
        with suppress(OSError):
            self._path(who, place).unlink(missing_ok=True)

    def present(self) -> frozenset[str]:
        """Return the names of the people who are present."""
        names: set[str] = set()
        for path in self._files():
            with suppress(OSError, UnicodeDecodeError):  # another process has just removed it
                if self._valid(path):
                    names.add(path.read_text("utf-8"))
        return frozenset(names - {""})

    def _create(self, path: Path, who: str, moment: float) -> None:
        self._folder.mkdir(exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.part")
        partial.write_text(who, "utf-8")
        os.utime(partial, (moment, moment))
        partial.replace(path)

    def _remove_expired(self) -> None:
        for path in self._files():
            with suppress(OSError):
                if not self._valid(path):
                    path.unlink()

    def _files(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from [path for path in self._folder.iterdir() if path.suffix == ".lease"]

    def _valid(self, path: Path) -> bool:
        # `abs`: after the clock was set back, old files would otherwise be valid for a long time.
        return abs(self._clock() - path.stat().st_mtime) <= LEASE_SECONDS

    def _path(self, who: str, place: str) -> Path:
        digest = hashlib.sha256(f"{who}\n{place}".encode()).hexdigest()
        return self._folder / f"{digest[:32]}.lease"
