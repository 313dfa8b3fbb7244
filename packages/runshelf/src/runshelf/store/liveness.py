"""The heartbeat of a run: which process writes it, and whether that process is alive.

`heartbeat.json` names the process that records the run, and the recorded program if that is another
process. On the same machine the process table decides whether a process is alive; on other machines
the age of the file does. A process is identified by its id and start time, since ids are reused,
and by the machine's boot id and pid namespace, since ids are unique only within these.
"""

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.opening import NoFile, opened, read_whole
from runshelf.store.writing import replace_file, touch

HEARTBEAT = "heartbeat.json"
BEAT_SECONDS = 5.0
# Clocks and file systems of other machines may lag by up to this.
SILENCE_SECONDS = 60.0

_INVALID = (
    NoFile,
    UserFacingError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
)


@final
class Process(NamedTuple):
    """A process, identified so that it cannot be confused with another.

    Attributes:
        pid: its id.
        started: its start time in the system's own unit; only compared for equality.
        machine: the machine's boot id and pid namespace.
        host: the machine's name, shown to people.
    """

    pid: int
    started: str
    machine: str
    host: str


@final
class Heartbeat(NamedTuple):
    """The content of `heartbeat.json`.

    Attributes:
        recorder: the process that writes the run.
        program: the recorded program; None if it is the recorder itself.
        age: seconds between now and when the recorder last touched the file.
    """

    recorder: Process
    program: Process | None
    age: float


def process(pid: int | None = None) -> Process:
    """Return the identity of a process of this machine, by default of this process."""
    pid = os.getpid() if pid is None else pid
    return Process(pid, _started(pid), _machine(), socket.gethostname())


def is_alive(named: Process) -> bool | None:
    """Return whether a process is alive; None if it belongs to another machine or namespace."""
    if named.machine != _machine():
        return None
    return named.started != "" and _started(named.pid) == named.started


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Return the heartbeat of the run in `folder`; None if it is missing or invalid."""
    try:
        with opened(folder, HEARTBEAT) as file:
            touched = os.fstat(file).st_mtime
        fields = parse_record(read_whole(folder, HEARTBEAT) or b"")
        program = fields.get("program")
        return Heartbeat(
            _process_of(fields["recorder"]),
            _process_of(program) if program else None,
            abs(time.time() - touched),  # clocks differ; one from the future says as little
        )
    except _INVALID:
        return None


def heartbeat_time(folder: Path) -> int:
    """Return the time of a run's last heartbeat, in nanoseconds; 0 if it has none."""
    try:
        return (folder / HEARTBEAT).lstat().st_mtime_ns
    except OSError:
        return 0


def _process_of(fields: dict[str, Any]) -> Process:
    """Return the process in the fields of a heartbeat.

    Raises:
        TypeError: the fields are invalid.
    """
    texts = [value for name, value in fields.items() if name != "pid"]
    if not isinstance(fields["pid"], int) or not all(isinstance(text, str) for text in texts):
        raise TypeError("no process")
    return Process(**fields)


@final
class HeartbeatWriter:
    """Writes the heartbeat of a run and touches it regularly in a thread."""

    def __init__(self, folder: Path) -> None:
        """Write the heartbeat of this process into the run's `folder` and start the thread.

        Raises:
            UserFacingError: the file cannot be written.
        """
        self._folder = folder
        self._stopped = threading.Event()
        self._write(None)
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def name_program(self, pid: int) -> None:
        """Add the recorded program to the heartbeat."""
        with contextlib.suppress(UserFacingError):  # a full disk: the recorder's identity remains
            self._write(process(pid))

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        self._thread.join()

    def _write(self, program: Process | None) -> None:
        fields = {"recorder": process()._asdict(), "program": program and program._asdict()}
        replace_file(self._folder, HEARTBEAT, json.dumps(fields).encode() + b"\n")

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            touch(self._folder, HEARTBEAT)


def _started(pid: int) -> str:
    """Return when a process started; an empty string if it is gone or a zombie."""
    with contextlib.suppress(OSError):
        # The name in parentheses may contain anything, so fields are counted after it.
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
