"""What rules look at: a recorded run, or the logs of another program."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import DamagedFile, UsageError
from runshelf.formatting import cut
from runshelf.index.rows import RunRow
from runshelf.interop.any_logs import read_logs
from runshelf.store.finding import list_runs
from runshelf.store.home import has_runs
from runshelf.store.metrics import SEED, read_metrics
from runshelf.store.paths import exists, is_file
from runshelf.store.progress import Tail, read_tail, time_of_last_line
from runshelf.store.records import to_json
from runshelf.store.run import Run, open_run
from runshelf.store.series import AXES

_MANIFEST = "run.json"
_HEAD = 1 << 16  # bytes from which a log is known again

Stamp = tuple[tuple[str, int, int], ...]


@final
class Seen(NamedTuple):
    """What a look saw of a run or a log.

    Attributes:
        key: what its alerts are told as, once.
        title: what messages call it.
        tail: the end of its metrics.
        last_line: when it logged or printed last, in Unix seconds.
        is_running: whether it may log more.
        row: the run; None for a log.
    """

    key: str
    title: str
    tail: Tail
    last_line: float
    is_running: bool
    row: RunRow | None


def seen_of_run(row: RunRow) -> Seen:
    """Return what there is to see of a run."""
    name = row.name or row.question
    called = f" ({cut(' '.join(name.split()), 80)})" if name else ""
    last = time_of_last_line(row.folder) or row.created
    is_running = row.state == "running"
    return Seen(row.ulid, f"run {row.short}{called}", read_tail(row.folder), last, is_running, row)


def is_log(name: str) -> bool:
    """Return whether a name is that of logs of another program: a path that is not a run."""
    path = Path(name)
    return exists(path) and not is_file(path / _MANIFEST)


@final
class Logs:
    """The logs of another program at a path; they are read again when a file has changed.

    Args:
        path: a folder or a file.

    Raises:
        UsageError: the folder is a home, whose runs are named otherwise.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir() and has_runs(path):
            raise UsageError(f"`{path}` is a home, not a log: runshelf alerts --home {path}")
        self._path, self._seen = path, list[Seen]()
        self._stamp: Stamp | None = None

    def look(self) -> list[Seen]:
        """Return what there is to see of each training run.

        Raises:
            UserFacingError: there is no log that can be read.
        """
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._seen = _read(self._path)
            self._stamp = stamp
        return self._seen


def _stamp(path: Path) -> Stamp:
    """Return name, time and size of the files at a path."""
    found: list[tuple[str, int, int]] = []
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        with suppress(OSError):
            status = file.stat(follow_symlinks=False)
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)


def _read(path: Path) -> list[Seen]:
    with tempfile.TemporaryDirectory(prefix="runshelf-logs-") as folder:
        home = Path(folder)
        read_logs(home, path, ["runshelf", "alerts", str(path)])
        runs = [open_run(home / "runs" / ulid) for ulid in list_runs(home)]
        return [_seen_of_log(run) for run in runs]


def _seen_of_log(run: Run) -> Seen:
    about: Mapping[str, Any] = run.manifest["imported"]
    source = Path(about["from"])
    files = [source / name for name in about.get("files", ())] or [source]
    times = [0.0]
    for file in files:
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    records = _newest(read_metrics(run.folder).records)
    title = f"log {cut(' '.join(str(about['label']).split()), 120)}"
    key = f"{source} {_begin(files[0])}"
    return Seen(key, title, Tail(records, records, None), max(times), True, None)


def _newest(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one record for the newest value of each metric and seed, with its axes."""
    found: dict[tuple[str, object], dict[str, Any]] = {}
    for record in records:
        place = {name: record[name] for name in (*AXES, SEED) if name in record}
        for name, value in record.items():
            if name not in place:
                found[name, record.get(SEED)] = {**place, name: to_json(value)}
    return list(found.values())


def _begin(file: Path) -> str:
    """Return what tells a log from a later one at the same path.

    The name of an event file or a file of W&B has its time. A CSV file is known by its first row,
    which gets empty cells at its end when columns are added.
    """
    if file.suffix != ".csv":
        return file.name
    try:
        with file.open("rb") as opened:
            lines = opened.read(_HEAD).splitlines()
    except OSError as error:
        raise DamagedFile(f"cannot read `{file}` ({error.strerror})") from error
    rows = [line for line in lines if not line.startswith(b"#")]
    row = rows[1].rstrip(b",\r\n ") if len(rows) > 1 else b""
    return hashlib.sha256(row).hexdigest()[:16]
