"""The run that a program logs into: found by `RUNSHELF_RUN`, or made at the first thing logged.

A run made here ends when the program does: `interrupted` by Ctrl-C, `failed` by an exception that
nobody caught or by an exit status other than 0, else `finished`. What SIGTERM, SIGKILL or
`os._exit` end is `lost`; `runshelf run` knows the exit status of all of these.
"""

import atexit
import contextlib
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from runshelf.environment import exported, variable
from runshelf.logger import exits

if TYPE_CHECKING:
    from runshelf.store.run import RunWriter


def say(text: str) -> None:
    """Write a line to stderr, if there is one to write to."""
    with contextlib.suppress(Exception):  # closed, full, gone: there is nobody to tell
        sys.stderr.write(f"runshelf: {text}\n")
        sys.stderr.flush()


def find_or_make_run(close: Callable[[], None]) -> str:
    """Return the folder of the run to log into.

    Args:
        close: closes what this process logs to; called when a run made here ends.

    Raises:
        UserFacingError: a run had to be made and could not be.
    """
    named = variable("RUN")
    if named and _is_run(Path(named)):
        return named
    if named:
        say(f"RUNSHELF_RUN names no run (`{named}`): logging to a new one")
    folder = _own.begin(close)
    # Absolute, since a program may change its folder; the processes it starts find it by this.
    os.environ.update(exported({"RUN": folder}))
    say(f"logging to `{folder}`")
    return folder


def open_lines(folder: str) -> int:
    """Return the descriptor of a new file of metric lines, of this process alone.

    A shared lock on it says that it is being written, for as long as the process lives.

    Raises:
        OSError: it cannot be made.
    """
    path = Path(folder) / f"metrics-log-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return descriptor


def end() -> None:
    """End the run that this process made, if it made one."""
    _own.end()


def forget() -> None:
    """Leave the run to the process that made it, as one that it forked must."""
    _own.forget()


def _is_run(folder: Path) -> bool:
    try:
        manifest: Any = json.loads((folder / "run.json").read_bytes())
        return isinstance(manifest.get("run") or manifest["ulid"], str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


@final
class _Own:
    """The run that this process has made, if it has."""

    def __init__(self) -> None:
        self._writer: RunWriter | None = None
        self._close: Callable[[], None] = lambda: None

    def begin(self, close: Callable[[], None]) -> str:
        """Make a run and return its folder; the one before, if any, is over.

        Args:
            close: closes what this process logs to.

        Raises:
            UserFacingError: it cannot be made.
        """
        first, self._close = self._writer is None, close
        self.end()
        self._writer = _make_run()
        if first:
            atexit.register(self.end)
            exits.watch()
        return str(self._writer.folder)

    def end(self) -> None:
        """Record how the program ended, if this process has a run."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        from runshelf.store.compacting import wind_up  # noqa: PLC0415  (needs numpy)

        error = exits.ended_by()
        # Whatever goes wrong with the record, the program is over.
        with contextlib.suppress(Exception):
            if isinstance(error, SystemExit):
                with contextlib.suppress(Exception):
                    _record_exit(writer, error.code)
                error = None
            writer.__exit__(error and type(error), error, None)
            self._close()
            wind_up(writer.folder)

    def forget(self) -> None:
        """Give up the run without a word; its lock is the parent's."""
        writer, self._writer = self._writer, None
        if writer is not None:
            os.close(writer._lock)  # pyright: ignore[reportPrivateUsage]


def _record_exit(writer: "RunWriter", status: object) -> None:
    """Record a failure if the program ends with what is no success, as Python judges that."""
    if isinstance(status, int):
        if status & 0xFF:  # the system keeps no more of it
            writer.record("failed", exit_status=status & 0xFF)
    elif status is not None:
        writer.record("failed", exit_status=1, error=" ".join(f"{status}".split())[:300])


def _make_run() -> "RunWriter":
    # What this needs, numpy and git among it, is loaded by programs that make a run only.
    from runshelf.snapshot.capture import capture  # noqa: PLC0415
    from runshelf.snapshot.command_settings import config_of  # noqa: PLC0415
    from runshelf.snapshot.secrets import find_secrets  # noqa: PLC0415
    from runshelf.store.run import create_run  # noqa: PLC0415

    home = Path(variable("HOME") or ".").absolute()
    argv = [sys.executable or "python", *sys.orig_argv[1:]]
    found = find_secrets(argv, os.environ)
    config = config_of(find_secrets(sys.argv, os.environ).argv)
    seed = config.get("seed")
    return create_run(
        home,
        command="script",
        config=config,
        seeds=[seed] if type(seed) is int else [],
        argv=found.argv,
        capture=capture(home, argv, say=say, secrets=found, interpreter=sys.executable),
    )


_own = _Own()
