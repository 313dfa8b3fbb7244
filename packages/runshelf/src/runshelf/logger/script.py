"""The run that a program logs into: the one in `RUNSHELF_RUN`, else a new one.

A run created here ends with the program: `interrupted` after Ctrl-C, `failed` after an uncaught
exception or an exit status other than 0, else `finished`. After SIGTERM, SIGKILL or `os._exit` it
is `lost`; only `runshelf run` can record these.
"""

import atexit
import contextlib
import fcntl
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, final

from runshelf.environment import exported, variable
from runshelf.errors import UserFacingError
from runshelf.logger import exits
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole
from runshelf.store.writing import create
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.store.run import RunWriter


def say(text: str) -> None:
    """Write a line to stderr; ignore errors, since stderr may be closed."""
    with contextlib.suppress(Exception):
        put(f"runshelf: {text}", file=sys.stderr, flush=True)


def find_or_make_run(close: Callable[[], None]) -> str:
    """Return the folder of the run to log into.

    Args:
        close: closes the log file of this process; called when a run created here ends.

    Raises:
        UserFacingError: a run could not be created.
    """
    named = variable("RUN")
    if named and _is_run(Path(named)):
        return os.path.realpath(named)
    if named:
        say(f"RUNSHELF_RUN is not a run folder (`{named}`): logging to a new run")
    folder = _own.begin(close)
    # Child processes find the run by these. The path is absolute, since they may change folders.
    os.environ.update(exported({"RUN": folder}))
    say(f"logging to `{folder}`")
    return folder


def open_lines(folder: str) -> int:
    """Create a file of metric lines for this process; return its descriptor.

    A shared lock marks the file as being written as long as the process lives.

    Raises:
        UserFacingError: the file cannot be created.
    """
    name = f"metrics-log-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
    descriptor = create(Path(folder), name)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return descriptor


def _is_run(folder: Path) -> bool:
    try:
        manifest = parse_record(read_whole(folder.resolve(), "run.json") or b"")
        return isinstance(manifest.get("run") or manifest["ulid"], str)
    except (UserFacingError, OSError, ValueError, KeyError):
        return False


@final
class _OwnRun:
    """The run that this process created, if any."""

    def __init__(self) -> None:
        self._writer: RunWriter | None = None
        self._close: Callable[[], None] = lambda: None

    def begin(self, close: Callable[[], None]) -> str:
        """Create a run and return its folder; end the previous one, if any.

        Args:
            close: closes the log file of this process.

        Raises:
            UserFacingError: the run cannot be created.
        """
        first, self._close = self._writer is None, close
        self.end()
        self._writer = _create_run()
        if first:
            atexit.register(self.end)
            exits.watch()
        return str(self._writer.folder)

    def end(self) -> None:
        """Record how the program ended, if this process created a run."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        from runshelf.store.compacting import finish_metrics  # noqa: PLC0415  (needs numpy)

        error = exits.ended_by()
        with contextlib.suppress(Exception):  # the program is over, so errors have no consequence
            if isinstance(error, SystemExit):
                with contextlib.suppress(Exception):
                    _record_exit(writer, error.code)
                error = None
            writer.__exit__(error and type(error), error, None)
            self._close()
            finish_metrics(writer.folder)

    def forget(self) -> None:
        """Drop the run without recording an end: after a fork the parent still writes it."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.forget_lock()


def _record_exit(writer: "RunWriter", status: object) -> None:
    """Record a failure if the argument of `SystemExit` means one."""
    if isinstance(status, int):
        if status & 0xFF:  # the operating system keeps only these bits
            writer.record("failed", exit_status=status & 0xFF)
    elif status is not None:
        writer.record("failed", exit_status=1, error=" ".join(f"{status}".split())[:300])


def _create_run() -> "RunWriter":
    # Imported here, since only programs that create a run need numpy and git.
    from runshelf.registrations.carrying import registered_info  # noqa: PLC0415
    from runshelf.snapshot.capture import capture  # noqa: PLC0415
    from runshelf.snapshot.command_settings import config_of  # noqa: PLC0415
    from runshelf.snapshot.secrets import find_secrets  # noqa: PLC0415
    from runshelf.store.run import NO_INFO, create_run  # noqa: PLC0415

    home = Path(variable("HOME") or ".").absolute()
    argv = [sys.executable or "python", *sys.orig_argv[1:]]
    found = find_secrets(argv, os.environ)
    config = config_of(find_secrets(sys.argv, os.environ).argv)
    seed = config.get("seed")
    info = NO_INFO
    try:
        info = registered_info(home, info)
    except UserFacingError as error:  # the values that the program logs must not be lost
        say(f"this run is not registered: {error}")
    return create_run(
        home,
        command="script",
        config=config,
        seeds=[seed] if type(seed) is int else [],
        argv=found.argv,
        info=info,
        capture=capture(home, argv, say=say, secrets=found, interpreter=sys.executable),
    )


_own = _OwnRun()
end, forget = _own.end, _own.forget
