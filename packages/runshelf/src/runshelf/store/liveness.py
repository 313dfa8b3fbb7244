"""Who writes a run, and whether that process still lives: the heartbeat.

`heartbeat.json` names the process that records the run, and the program it runs for somebody if
that is another. Its age is the proof of life for other machines; on the same machine the process
table is asked. A process is named by its id and its start, since ids are given again, and by the
machine's boot and the namespace of its ids, since only within these do they mean anything.
"""

import contextlib
import json
import os
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.store.files import write_whole

HEARTBEAT = "heartbeat.json"
BEAT_SECONDS = 5.0
# A machine whose clock or file system lags by less than this is not taken for a dead one.
SILENCE_SECONDS = 60.0


@final
class Process(NamedTuple):
    """A process, named so that no other can be taken for it.

    Attributes:
        pid: its id.
        started: when it started, in the system's own count; text, to be compared only.
        machine: the machine's boot, and the namespace of its process ids.
        host: the machine's name, for people.
    """

    pid: int
    started: str
    machine: str
    host: str


@final
class Heartbeat(NamedTuple):
    """What `heartbeat.json` says.

    Attributes:
        recorder: the process that writes the run.
        program: the process it runs for somebody; None where both are one.
        age: seconds since the recorder last touched the file.
    """

    recorder: Process
    program: Process | None
    age: float


def process(pid: int | None = None) -> Process:
    """Return the name of a process of this machine: of this one by default."""
    pid = os.getpid() if pid is None else pid
    return Process(pid, _started(pid), _machine(), socket.gethostname())


def is_alive(named: Process) -> bool | None:
    """Return whether a process lives; None where this machine cannot tell."""
    if named.machine != _machine():
        return None
    return named.started != "" and _started(named.pid) == named.started


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Return what the heartbeat of the run in `folder` says; None where there is none to read."""
    path = folder / HEARTBEAT
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
            return None
        fields: dict[str, Any] = json.loads(path.read_bytes())
        program = fields.get("program")
        return Heartbeat(
            _process_of(fields["recorder"]),
            _process_of(program) if program else None,
            time.time() - found.st_mtime,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _process_of(fields: dict[str, Any]) -> Process:
    """Return the process that a heartbeat names.

    Raises:
        TypeError: it names none.
    """
    texts = [value for name, value in fields.items() if name != "pid"]
    if not isinstance(fields["pid"], int) or not all(isinstance(text, str) for text in texts):
        raise TypeError("no process")
    return Process(**fields)


@final
class Pulse:
    """Keeps a run's heartbeat while this process lives, from a thread of its own."""

    def __init__(self, folder: Path) -> None:
        """Write the heartbeat of this process into the run's `folder`, and touch it from then on.

        Raises:
            UserFacingError: it cannot be written.
        """
        self._path = folder / HEARTBEAT
        self._stopped = threading.Event()
        self._write(None)
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def name_program(self, pid: int) -> None:
        """Say which process this one runs for somebody."""
        with contextlib.suppress(UserFacingError):  # a full disk: the recorder's own name must do
            self._write(process(pid))

    def stop(self) -> None:
        """Beat no more."""
        self._stopped.set()
        self._thread.join()

    def _write(self, program: Process | None) -> None:
        fields = {"recorder": process()._asdict(), "program": program and program._asdict()}
        write_whole(self._path, json.dumps(fields).encode() + b"\n")

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(self._path)


def _started(pid: int) -> str:
    """Return when a process started, or an empty string if there is none (a zombie is none)."""
    with contextlib.suppress(OSError):
        # The name in parentheses may hold anything, so fields are counted behind it.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in ("Z", "X") else fields[18]
    return "" if Path("/proc/self/stat").exists() else _started_by_ps(pid)


def _started_by_ps(pid: int) -> str:
    import psutil  # noqa: PLC0415  (systems without /proc only)

    with contextlib.suppress(psutil.Error):
        found = psutil.Process(pid)
        return "" if found.status() == psutil.STATUS_ZOMBIE else str(found.create_time())
    return ""


def _machine() -> str:
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    import psutil  # noqa: PLC0415  (systems without /proc only)

    return f"{socket.gethostname()}/{psutil.boot_time():.0f}"
