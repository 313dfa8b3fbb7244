"""The process that watches one run for the process that records it: see `companion`."""

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from runshelf.errors import UserFacingError, one_line
from runshelf.index.run_index import open_index
from runshelf.store.finding import list_runs
from runshelf.store.liveness import Process, read_heartbeat
from runshelf.terminal_text import put
from runshelf.worklog.alerts.watching import MOST_TRIES, Look, follow, watch_of

_STDIN = 0
_NICENESS = 5
_NEWEST = 100  # runs that may have been created since this process was started
_FIND_SECONDS = 0.2
_RETRY_SECONDS = 2.0  # between tries to send after the end of the run


@final
class Recorder:
    """The process that records the run, at the other end of stdin."""

    def __init__(self) -> None:
        self.has_ended = False
        self._waits = 0

    def wait(self, seconds: float) -> None:
        """Wait until the recorder has ended, or for so many seconds.

        After the end, the first waits are short: what could not be sent is tried again.
        """
        if self.has_ended:
            self._waits += 1
            time.sleep(min(seconds, _RETRY_SECONDS) if self._waits <= MOST_TRIES else seconds)
        elif select.select([_STDIN], [], [], seconds)[0]:
            self.has_ended = True


def main() -> None:
    """Watch the run that is named on stdin until it has ended."""
    os.nice(_NICENESS)
    try:
        with open(_STDIN, "rb", buffering=0, closefd=False) as stdin:
            asked = json.loads(stdin.readline())
        _watch(asked, Recorder())
    except Exception as error:  # noqa: BLE001  (stderr is closed: every error is told here)
        text = str(error) if isinstance(error, UserFacingError) else one_line(error)
        _say(f"alerts have ended: {' '.join(text.split())}")


def _watch(asked: Mapping[str, Any], recorder: Recorder) -> None:
    home = Path(asked["home"])
    run = _find(home, Process(**asked["recorder"]), asked["run"], recorder)
    if run is None:
        return
    watch = watch_of(home, asked["rules"], asked["channels"], runs=[run])
    with open_index(home) as index:
        follow(watch, index, _report, recorder.wait)


def _find(home: Path, named: Process, run: str | None, recorder: Recorder) -> str | None:
    """Return the id of the run that a process records; None if it ends without one."""
    while True:
        is_last = recorder.has_ended
        for ulid in [run] if run else reversed(list_runs(home)[-_NEWEST:]):
            beat = read_heartbeat(home / "runs" / ulid)
            if beat and beat.recorder == named:
                return ulid
        if is_last:
            return None
        recorder.wait(_FIND_SECONDS)


def _report(look: Look) -> None:
    for alert in look.new:
        _say(f"alert: {alert.text}")
    for problem in look.problems:
        _say(problem)


def _say(line: str) -> None:
    with suppress(OSError):  # the recorder was killed; alerts are still sent
        put(line, file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
