"""The run that a program logs into: found by `BACKFLIP_RUN`, or made at the first thing logged.

A run made here ends when the program does: `interrupted` by Ctrl-C, `failed` by an exception that
nobody caught or by `sys.exit` with anything but 0 or None, else `finished`. That a call of
`sys.exit` was caught shows when the program logs again. A `SystemExit` that a program raises by
itself is not seen here, and what SIGTERM, SIGKILL or `os._exit` end is `lost`; `backflip run` knows
the exit status of all of these.
"""

import atexit
import contextlib
import fcntl
import functools
import json
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, final

if TYPE_CHECKING:
    from backflip.archive.run import RunWriter

RUN = "BACKFLIP_RUN"
HOME = "BACKFLIP_HOME"

# What the main thread gave `sys.exit` last, as far as is known: one value at most.
exits: list[object] = []


def say(text: str) -> None:
    """Write a line to stderr, if there is one to write to."""
    with contextlib.suppress(Exception):  # closed, full, gone: there is nobody to tell
        sys.stderr.write(f"backflip: {text}\n")
        sys.stderr.flush()


def find_or_make_run(close: Callable[[], None]) -> str:
    """Return the folder of the run to log into.

    Args:
        close: closes what this process logs to; called when a run made here ends.

    Raises:
        BackflipError: a run had to be made and could not be.
    """
    named = os.environ.get(RUN)
    if named and _is_run(Path(named)):
        return named
    if named:
        say(f"{RUN} names no run (`{named}`): logging to a new one")
    folder = _own.begin(close)
    # Absolute, since a program may change its folder; the processes it starts find it by this.
    os.environ[RUN] = folder
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


def forget_exit() -> None:
    """Forget what `sys.exit` was given, since the program logs: unless that is under way still."""
    main = threading.main_thread()
    if threading.current_thread() is not main or not main.is_alive():
        return  # other threads, and what is done at exit, go on after it
    if not isinstance(sys.exc_info()[1], SystemExit):
        exits.clear()


def forget() -> None:
    """Leave the run to the process that made it, as one that it forked must."""
    _own.forget()


def _is_run(folder: Path) -> bool:
    try:
        manifest: Any = json.loads((folder / "run.json").read_bytes())
        return isinstance(manifest["ulid"], str)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


@final
class _Own:
    """The run that this process has made, if it has."""

    def __init__(self) -> None:
        self._writer: RunWriter | None = None
        self._error: BaseException | None = None
        self._uncaught: BaseException | None = None  # what had ended something before the run began
        self._close: Callable[[], None] = lambda: None

    def begin(self, close: Callable[[], None]) -> str:
        """Make a run and return its folder; the one before, if any, is over.

        Args:
            close: closes what this process logs to.

        Raises:
            BackflipError: it cannot be made.
        """
        first, self._close = self._writer is None, close
        self.end()
        self._writer = _make_run()
        if first:
            atexit.register(self.end)
            self._watch()
        return str(self._writer.folder)

    def end(self) -> None:
        """Record how the program ended, if this process has a run."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        from backflip.archive.compacting import wind_up  # noqa: PLC0415  (needs numpy)

        error = self._error or self._last_error()
        # Whatever goes wrong with the record, the program is over.
        with contextlib.suppress(Exception):
            if exits and not error:
                with contextlib.suppress(Exception):
                    _record_exit(writer, exits[0])
            writer.__exit__(error and type(error), error, None)
            self._close()
            wind_up(writer.folder)

    def forget(self) -> None:
        """Give up the run without a word; its lock is the parent's."""
        writer, self._writer = self._writer, None
        if writer is not None:
            os.close(writer._lock)  # pyright: ignore[reportPrivateUsage]

    def _last_error(self) -> BaseException | None:
        """Return what Python says ended the program, whoever took the place of our hook."""
        error = _uncaught()
        is_new = error is not self._uncaught and not hasattr(sys, "ps1")
        return error if is_new else None

    def _watch(self) -> None:
        """Remember what ends the program; whoever else watches is told all the same."""
        self._uncaught = _uncaught()
        _watch_exit()
        before = sys.excepthook

        def hook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            if not hasattr(sys, "ps1"):  # at a prompt, errors end nothing
                self._error = error
            before(kind, error, trace)

        sys.excepthook = hook


def _watch_exit() -> None:
    """Remember what the main thread gives `sys.exit`."""
    before = sys.exit

    @functools.wraps(before)
    def leave(status: Any = None, /) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            exits[:] = [status]
        before(status)

    sys.exit = leave


def _uncaught() -> BaseException | None:
    error: object = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


def _record_exit(writer: "RunWriter", status: object) -> None:
    """Record a failure if the program ends with what is no success, as Python judges that."""
    if isinstance(status, int):
        if status & 0xFF:  # of the rest nobody hears
            writer.record("failed", exit_status=status & 0xFF)
    elif status is not None:
        writer.record("failed", exit_status=1, error=" ".join(f"{status}".split())[:300])


def _make_run() -> "RunWriter":
    # What this needs, numpy and git among it, is loaded by programs that make a run only.
    from backflip.archive.capture.run import capture  # noqa: PLC0415
    from backflip.archive.capture.secrets import find_secrets  # noqa: PLC0415
    from backflip.archive.capture.settings import config_of  # noqa: PLC0415
    from backflip.archive.run import create_run  # noqa: PLC0415

    home = Path(os.environ.get(HOME) or ".").absolute()
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
