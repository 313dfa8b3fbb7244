"""Run folders `<home>/runs/<ulid>/`: the manifest, the events, and the writer's lock.

The manifest `run.json` holds the command, the configuration and the machine. It is written once,
before the run starts. Later events are appended to `events.jsonl`. A folder without `run.json` is
left from a kill before the start, and is not a run.
"""

import fcntl
import functools
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, final

from runshelf.cores import usable_cores
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.received_json import parse_json
from runshelf.steady_clock import SteadyClock
from runshelf.store.files import disk_errors, disk_full, is_disk_full
from runshelf.store.home import RUNS, TRASH, make_run_folder, shared
from runshelf.store.liveness import HeartbeatWriter
from runshelf.store.membership import membership
from runshelf.store.opening import NoFile, opened, read_whole
from runshelf.store.own_descriptor import OwnDescriptor
from runshelf.store.paths import is_file
from runshelf.store.records import LinesWriter, from_json, read_lines, to_json, to_line
from runshelf.store.run_ids import is_ulid, new_ulid, short_id
from runshelf.store.times import moment_of, now, seconds_of
from runshelf.store.trust import trust_own
from runshelf.store.writing import open_in_place, replace_file, touch

SCHEMA = 1
Status = Literal["started", "resumed", "interrupted", "failed", "finished", "stopped", "imported"]
ENDS: tuple[Status, ...] = ("interrupted", "failed", "finished", "stopped", "imported")

MANIFEST = "run.json"
_EVENTS = "events.jsonl"
_LOCK = "lock"
_IMPORT = "import"
_YEAR_9000 = 221_845_392_000.0  # a later time in a damaged record is ignored
_MOST_ALARMS = 3  # of one run in a message
_CPU_INFO = Path("/proc/cpuinfo")
_REQUIRED = {"run": str, "created": str, "command": str, "config": dict, "seeds": list}
_DISTRIBUTIONS = (
    "runshelf",
    "backflip",
    "jax",
    "jaxlib",
    "numpy",
    "optax",
    "safetensors",
    "gymnasium",
    "ale-py",
    "mujoco",
)


@final
@dataclass(frozen=True)
class RunInfo:
    """Information that the user gives about a run when starting it.

    Attributes:
        name: the run's name.
        group: the group it belongs to; by default runs with the same configuration.
        question: the question that the run should answer.
        tags: words to search for.
        parent: the id of the run that it repeats or carries on.
        budget_seconds: its time limit.
        cost_per_hour: its cost per hour, in the unit of the weekly budget.
        registered: the registration that it runs under: name, version, hash and time.
    """

    name: str | None = None
    group: str | None = None
    question: str | None = None
    tags: tuple[str, ...] = ()
    parent: str | None = None
    budget_seconds: float | None = None
    cost_per_hour: float | None = None
    registered: Mapping[str, Any] | None = None


@final
@dataclass(frozen=True)
class Run:
    """A run on disk.

    Attributes:
        folder: its folder.
        manifest: the content of `run.json`.
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def ulid(self) -> str:
        """The run's id. Ids sort by creation time."""
        return self.manifest["run"]

    @property
    def short(self) -> str:
        """The short form of the id, which tables, pages and messages show."""
        return short_id(self.ulid)

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration, with lists in place of tuples and arrays."""
        return from_json(self.manifest["config"])

    @property
    def seeds(self) -> list[int]:
        """The seeds, in their original order."""
        return self.manifest["seeds"]

    def events(self) -> list[dict[str, Any]]:
        """Return the events so far, oldest first.

        Raises:
            UserFacingError: they cannot be read.
        """
        return read_lines(self.folder / _EVENTS).records

    def alarms(self) -> list[str]:
        """Return the alarms that the run has recorded, oldest first; at most `_MOST_ALARMS`.

        Raises:
            UserFacingError: the events cannot be read.
        """
        found = [event.get("alarm") for event in self.events()]
        return [alarm for alarm in found if isinstance(alarm, str)][:_MOST_ALARMS]


@final
class RunWriter:
    """Writes the events and the heartbeat of a run; holds the run's lock until closed.

    As a context manager it records how the block ended, unless the block has recorded an end.
    """

    def __init__(self, run: Run, lock: int, status: Status) -> None:
        """Start recording. Use `create_run` or `resume_run` instead.

        Args:
            run: the run to write.
            lock: the descriptor that holds its lock; this object closes it.
            status: the first event.
        """
        self.run = run
        self._lock = OwnDescriptor(lock)
        self._clock, self._began = SteadyClock(_newest_time(run)), time.monotonic()
        self.heartbeat = HeartbeatWriter(run.folder)
        try:
            self._events = LinesWriter(run.folder / _EVENTS)
            self.record(status)
        except BaseException:
            self.heartbeat.stop()
            raise

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.run.folder

    def record(self, status: Status, **details: Any) -> None:
        """Append and sync a status event with the current time and details.

        The time is never before that of an earlier event.

        Raises:
            UsageError: a detail is not a JSON value.
            UserFacingError: the disk is full.
        """
        self._events.write({"status": status, "time": moment_of(self._clock.now()), **details})
        self._events.sync()
        self._ended = status in ENDS
        # The index reads a folder again when its modification time has changed.
        touch(self.run.folder)

    def record_alarm(self, alarm: str, **details: Any) -> None:
        """Append and sync an alarm, which the run's page shows, unless it is recorded already.

        Raises:
            UsageError: a detail is not a JSON value.
            UserFacingError: the disk is full.
        """
        if alarm not in self.run.alarms():
            self._events.write({"alarm": alarm, "time": moment_of(self._clock.now()), **details})
            self._events.sync()
            touch(self.run.folder)

    def close(self) -> None:
        """Release the lock."""
        self.heartbeat.stop()
        self._events.close()
        self._lock.close()

    def forget_lock(self) -> None:
        """Close the lock in a forked process, whose parent holds it and writes the run."""
        self._lock.close()

    def __enter__(self) -> "RunWriter":
        """Return the writer."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Record how the block ended and release the lock."""
        try:
            if not self._ended:
                self._record_end(error)
        finally:
            self.close()

    def _record_end(self, error: BaseException | None) -> None:
        seconds = round(time.monotonic() - self._began, 3)
        if error is None:
            self.record("finished", seconds=seconds)
            return
        # The error of the block must reach the user, not an error in recording it.
        with suppress(UserFacingError):
            if isinstance(error, KeyboardInterrupt):
                self.record("interrupted", seconds=seconds)
            else:
                self.record("failed", seconds=seconds, error=f"{type(error).__name__}: {error}")


NO_INFO = RunInfo()
Capture = Callable[[Path, Path], Mapping[str, Any]]


def create_run(
    home: Path,
    *,
    command: str,
    config: Mapping[str, Any],
    seeds: Sequence[int] = (),
    env: str | None = None,
    algorithm: str | None = None,
    argv: Sequence[str],
    cwd: Path | None = None,
    info: RunInfo = NO_INFO,
    capture: Capture | None = None,
) -> RunWriter:
    """Create a run's folder with its manifest, lock it, and record the start.

    Args:
        home: the folder whose `runs/` holds the runs; created if missing.
        command: the kind of work: `teach`, `train`, `run`, `script` or `import`.
        config: the resolved configuration, in types that `to_json` accepts.
        seeds: all seeds of the run.
        env: the environment's id, if any.
        algorithm: the algorithm's name, if any.
        argv: the command line.
        cwd: the folder in which the command was called; by default the current one.
        info: information that the user gives about the run.
        capture: called with the run's new folder and `cwd`; saves code and packages there and
            returns the fields of the manifest that describe them.

    Raises:
        UsageError: `home` cannot be written, or the configuration is not JSON.
        UserFacingError: the disk is full.
    """
    cwd = cwd or Path.cwd()
    ulid = new_ulid(after=_newest_id(home))
    manifest = {
        "schema": SCHEMA,
        "run": ulid,
        "created": now(),
        "command": command,
        "argv": list(argv),
        "cwd": str(cwd),
        "env": env,
        "algorithm": algorithm,
        "seeds": list(seeds),
        "config": config,
        "versions": dict(_versions(_DISTRIBUTIONS)),
        "hardware": hardware(),
        **{name: value for name, value in asdict(info).items() if value},
        **membership(),
    }
    to_line(manifest)  # raises before a folder is created
    folder = _make_folder(home, ulid)
    # Locked before `run.json` exists, so that no other process can find and resume it first.
    lock = _take_lock(folder)
    with _closed_on_error(lock):
        manifest |= capture(folder, cwd) if capture else {}
        text = json.dumps(to_json(manifest), indent=2, allow_nan=False)
        writer = RunWriter(Run(folder, json.loads(text)), lock, "started")
    # Written last, since it makes the folder a run; a run that could not start must not appear.
    with _closed_on_error(writer):
        replace_file(folder, MANIFEST, text.encode() + b"\n")
        if command != _IMPORT:  # what it names comes from elsewhere
            trust_own(folder)
    return writer


def resume_run(run: Run) -> RunWriter:
    """Lock an existing run and record that it was resumed.

    Raises:
        UsageError: it has finished; nothing is recorded.
        UserFacingError: another process is writing it, or it cannot be written.
    """
    lock = _take_lock(run.folder)
    with _closed_on_error(lock):
        # Read while it is locked: another process may have finished it a moment ago.
        if any(event.get("status") == "finished" for event in run.events()):
            raise UsageError(f"run `{run.short}` has finished: there is nothing left to resume")
        return RunWriter(run, lock, "resumed")


def open_run(folder: Path) -> Run:
    """Return the run in `folder`.

    Raises:
        UsageError: the folder is not a run's.
        DamagedFile: its `run.json` cannot be read, or another program or version wrote it.
    """
    if not is_file(folder / MANIFEST):
        raise UsageError(f"`{folder}` is not a run folder: it has no `{MANIFEST}`")
    folder = folder.resolve() if folder.is_symlink() else folder
    path = folder / MANIFEST
    try:
        manifest = parse_json(read_whole(folder, MANIFEST) or b"")
    except ValueError as error:
        raise DamagedFile(f"`{path}` is damaged (not JSON): restore it from a copy") from error
    if isinstance(manifest, dict) and "ulid" in manifest:  # the name of `run` in old manifests
        manifest = {"run": manifest.pop("ulid"), **manifest}
    problem = _manifest_problem(manifest) or _id_problem(manifest["run"], folder)
    if problem:
        raise DamagedFile(f"`{path}` {problem}")
    return Run(folder, manifest)


def is_locked(run: Run) -> bool:
    """Return whether a process of this machine holds the run's lock."""
    try:
        with opened(run.folder, _LOCK) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (NoFile, OSError):
        return False
    return False


def _newest_time(run: Run) -> float:
    """Return the time of the newest event of a run; 0 if it has none."""
    times = [seconds_of(event.get("time")) or 0.0 for event in run.events()]
    return max((time for time in times if time < _YEAR_9000), default=0.0)


def _newest_id(home: Path) -> str:
    """Return the newest id of a home, also of what is being made or is in the trash."""
    names: list[str] = []
    for folder in (home / RUNS, shared(home, TRASH)):
        with suppress(OSError):
            names += [entry.name for entry in folder.iterdir()]
    return max(filter(is_ulid, names), default="")


def _make_folder(home: Path, ulid: str) -> Path:
    try:
        return make_run_folder(home, ulid)
    except OSError as error:
        if is_disk_full(error):
            raise UserFacingError(disk_full(home / "runs" / ulid)) from error
        raise UsageError(
            f"cannot write runs in `{home}` ({error.strerror}): "
            "give another folder with `--home` or RUNSHELF_HOME"
        ) from error


def _take_lock(folder: Path) -> int:
    """Return a descriptor that holds the run's lock; the system releases it at process exit."""
    path = folder / _LOCK
    descriptor = open_in_place(folder, _LOCK)
    with _closed_on_error(descriptor), disk_errors(path):
        _lock(descriptor, path)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


@contextmanager
def _closed_on_error(held: int | RunWriter) -> Generator[None, None, None]:
    try:
        yield
    except BaseException:
        os.close(held) if isinstance(held, int) else held.close()
        raise


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 20, 0).decode(errors="replace") or "unknown"
        raise UserFacingError(
            f"run `{short_id(path.parent.name)}` is being written by another process ({owner}): "
            "wait for it to end, or stop it"
        ) from error


def _manifest_problem(manifest: Any) -> str:
    """Return what is wrong with a manifest, or an empty string."""
    if not isinstance(manifest, dict) or "schema" not in manifest:
        return "was not written by runshelf: give another folder"
    fields = cast("dict[str, Any]", manifest)
    if fields["schema"] != SCHEMA:
        return (
            f"has schema {fields['schema']!s:.20}, this runshelf reads {SCHEMA}: "
            "use the version that wrote it"
        )
    wrong = [name for name, kind in _REQUIRED.items() if not isinstance(fields.get(name), kind)]
    if wrong:
        return f"is damaged ({', '.join(wrong)} missing or of wrong type): restore it from a copy"
    return ""


def _id_problem(ulid: str, folder: Path) -> str:
    """Return what is wrong with the id in the manifest of `folder`, or an empty string.

    Ids become parts of paths, so they must have their form, and no folder may claim another's id.
    """
    if not is_ulid(ulid):
        return f"has `{ulid!s:.40}` as its id, which is not a run's id: restore it from a copy"
    if folder.name != ulid and folder.resolve().name != ulid:
        return f"is of run `{ulid}`, but its folder is called `{folder.name}`: rename the folder"
    return ""


@functools.cache
def _versions(distributions: tuple[str, ...]) -> dict[str, str]:
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for name in distributions:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def hardware() -> dict[str, Any]:
    """Return this machine's processor, usable cores and memory."""
    return {
        "cpu": _cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _cpu_model() -> str:
    with suppress(OSError):
        text = _CPU_INFO.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
