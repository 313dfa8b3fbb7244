"""Logging from any program, without set-up: `runshelf.log("loss", x)`.

Each call appends one line with one unbuffered write to `metrics-log-<pid>-<random>.jsonl` in the
run's folder. Only this process writes that file. When a call returns, its line survives a kill of
the process; a second thread syncs the file, so that it survives a power cut a few seconds later.
The run is the one in `RUNSHELF_RUN`, which `runshelf run` sets. Otherwise the first call creates a
run, and child processes log into it, too.

Logging raises no errors. A value that cannot be logged is reported on stderr, once per kind of
problem, and counted. With `RUNSHELF_STRICT=1` it raises `UsageError` instead.
"""

import atexit
import contextlib
import errno
import functools
import inspect
import itertools
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, ParamSpec, TypeVar, cast, final

from runshelf.environment import variable
from runshelf.errors import UsageError, UserFacingError, did_you_mean
from runshelf.logger import script

# Not imported from `store.series`, which needs numpy.
AXES = frozenset(("step", "env_steps", "updates", "episodes", "frames", "seconds", "time", "seed"))
LONGEST_KEY = 500
LONGEST_TEXT = 10_000
LONGEST_LINE = 1_000_000
MOST_NAMES = 100_000
WINDOW_SECONDS = 1.0
LEAST_WINDOW_SECONDS = 0.05
SYNC_SECONDS = 3.0
RETRY_SECONDS = 10.0

_P = ParamSpec("_P")
_R = TypeVar("_R")
_MOST_ROWS = 4096  # combinations of names that are remembered as valid


@final
class _Missing:
    """The default of `log`'s second argument."""


_MISSING: Final = _Missing()


def log(key: Any, value: Any = _MISSING, /, step: Any = None, **axes: Any) -> None:
    """Log a value under a name, or several values at once.

    Call `log("loss", 0.1)` or `log({"loss": 0.1, "entropy": 1.2})`. Numbers of Python, numpy, JAX
    and PyTorch are accepted; NaN and infinities are kept. Steps may repeat or decrease. An array or
    list of numbers is logged as statistics of its non-NaN values: `key/min`, `key/max`, `key/mean`,
    `key/std`, `key/n` and, if there are NaNs, `key/nans`. A uint8 array is an image if its shape is
    (height, width) or (height, width, 3 or 4), and a clip if it is (frames, height, width) or
    (frames, height, width, 3 or 4).

    Args:
        key: the name, at most 500 printable characters; or a mapping of names to values.
        value: the value; omitted if `key` is a mapping.
        step: the position on the x-axis. By default each name counts its own calls: 0, 1, 2, ....
            A row uses the counter of its first name.
        **axes: other axes: `env_steps`, `updates`, `episodes`, `frames`, `seconds`; and `seed`.
    """
    try:
        kind = type(value)
        if (
            (kind is float or kind is int)
            and type(key) is str
            and not axes
            and (step is None or type(step) is int)
        ):
            # The fast path for nearly all calls; it takes a third of the time of the general one.
            name = _names.get(key)
            if name is not None and value - value == 0:
                at = next(name.steps) if step is None else step
                _file.write(
                    f'{{"step": {at}, "time": {time.time():.6f}, {name.text}{value!r}}}\n'.encode()
                )
                return
        _log(key, value, step, axes)
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _problems.report(error)


def image(key: str, pixels: Any, step: Any = None, **axes: Any) -> None:
    """Log an image. It is stored as PNG; equal images are stored once.

    Args:
        key: the name.
        pixels: (height, width) or (height, width, 3 or 4), uint8 or floats from 0 to 1; or a Pillow
            image.
        step: as in `log`.
        **axes: as in `log`.
    """
    try:
        _log_media(key, step, axes, lambda media, folder: media.save_image(folder, pixels))
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _problems.report(error)


def clip(key: str, frames: Any, fps: int | float = 30.0, step: Any = None, **axes: Any) -> None:
    """Log a clip. It is stored as lossless animated WebP; equal clips are stored once.

    Args:
        key: the name.
        frames: (frames, height, width) or (frames, height, width, 3 or 4), uint8 or floats from 0
            to 1; or Pillow images.
        fps: frames per second.
        step: as in `log`.
        **axes: as in `log`.
    """
    try:
        _log_media(key, step, axes, lambda media, folder: media.save_clip(folder, frames, fps))
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _problems.report(error)


def rate(key: str, n: int | float = 1) -> None:
    """Count `n` events, and log their rate as `key/second`.

    The first call starts a window at t₀; its own events happened before t₀ and are not counted.
    The first call at a time t at least one second after t₀ logs

        key/second = Σᵢ nᵢ / (t - t₀)

    where nᵢ are the counts of the calls after t₀, this one included. Then a new window starts at t.
    At the end of the program the last window is logged with t the time of the last call, if that is
    more than 0.05 s after t₀.

    Args:
        key: the name of the events, such as `frames`.
        n: the number of events since the last call.
    """
    try:
        with _file.lock:
            now = time.perf_counter()
            begun, count, _ = _windows.get(key, (now, -n, now))
            count += n
            ended = now - begun >= WINDOW_SECONDS
            _windows[key] = (now, 0, now) if ended else (begun, count, now)
        if ended:
            log(_derived(key, "second"), count / (now - begun))
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _problems.report(error)


@final
class timed:  # noqa: N801  (used like a function)
    """Log the duration of a block or function as `key/seconds`.

    Use `with runshelf.timed("update"): ...`, or `@runshelf.timed("update")` on a function, which
    may be `async`. The duration is logged even if the code raises. For a generator function only
    the creation of the generator is timed, not its iteration.
    """

    def __init__(self, key: str) -> None:
        """Set the name of what is timed."""
        self._key = key
        self._begun: list[float] = []

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return `function`, timed at each call."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def timed_coroutine(*args: Any, **settings: Any) -> Any:
                with timed(self._key):
                    return await function(*args, **settings)

            return cast("Callable[_P, _R]", timed_coroutine)

        @functools.wraps(function)
        def timed_function(*args: _P.args, **settings: _P.kwargs) -> _R:
            with timed(self._key):
                return function(*args, **settings)

        return timed_function

    def __enter__(self) -> None:
        """Start the clock."""
        self._begun.append(time.perf_counter())

    def __exit__(self, *_: object) -> None:
        """Log the duration."""
        log(_derived(self._key, "seconds"), time.perf_counter() - self._begun.pop())


@final
class _Name:
    """A name that was logged before: its JSON text and its step counter."""

    __slots__ = ("steps", "text")

    def __init__(self, key: str) -> None:
        self.text = f"{json.dumps(key)}: "
        self.steps = itertools.count()


@final
class _NotPlain(Exception):
    """A row holds a value that JSON cannot represent."""


@final
class _Problems:
    """Reports what cannot be logged: once per kind, with a total at the end."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def report(self, error: Exception, name: str = "") -> None:
        """Count an error and print the first of its kind; raise it in strict mode.

        Args:
            error: the reason why something could not be logged.
            name: the name that was logged, if known.

        Raises:
            UsageError: `RUNSHELF_STRICT` is set.
        """
        if variable("STRICT") not in (None, "0"):
            raise UsageError(_label(name) + _one_line(error)) from error
        self.note(error, name)

    def note(self, error: Exception, name: str = "") -> None:
        """Count an error and print the first of its kind."""
        kind = str(getattr(error, "kind", type(error).__name__))
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count == 1:
            text = _label(name) + _one_line(error)
            script.say(f"not logged: {text} (reported once; RUNSHELF_STRICT=1 raises it)")

    def sum_up(self) -> None:
        """Print how many errors of each kind there were, if some were not printed."""
        total = sum(self._counts.values())
        if total > len(self._counts):
            kinds = ", ".join(f"{n} x {kind}" for kind, n in sorted(self._counts.items()))
            script.say(
                f"{total} {'value' if total == 1 else 'values'} could not be logged: {kinds}"
            )


@final
class _Refused(UserFacingError):
    """Something cannot be logged: a message, and the kind under which it is counted."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@final
class _File:
    """The log file of this process, opened at the first line."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset all state; a forked process calls this, since the parent keeps the file."""
        self.lock = threading.RLock()  # reentrant, since a signal handler may log, too
        self.folder = ""
        self._descriptor = -1
        self._torn = False
        self._is_dirty = False
        self._is_opening = False
        self._failed: tuple[float, Exception] | None = None
        self._stopped = threading.Event()
        self._syncer: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        """Append a line in one write.

        Raises:
            OSError: the line is missing in the file or incomplete.
            UserFacingError: there is no run to write to.
        """
        with self.lock:
            if self._descriptor < 0:
                self.open()
            if self._torn:
                line = b"\n" + line
            self._torn = True  # until the whole line is in the file
            try:
                rest = line[os.write(self._descriptor, line) :]
                while rest:  # only when the disk fills up
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                # The program closed all descriptors, as a daemon does at its start.
                self._descriptor = -1
                self.write(line)
            self._torn = False
            self._is_dirty = True

    def open(self) -> str:
        """Open the file if it is closed; return the run's folder.

        Raises:
            OSError: the file cannot be created.
            UserFacingError: the run cannot be created.
        """
        with self.lock:
            if self._descriptor >= 0:
                return self.folder
            if self._is_opening:
                raise _Refused("a signal handler logs while the run is created", "reentrant")
            if self._failed and time.monotonic() - self._failed[0] < RETRY_SECONDS:
                raise self._failed[1]
            self._is_opening = True
            try:
                self.folder = script.find_or_make_run(self.close)
                self._descriptor = script.open_lines(self.folder)
                self._failed = None
                # Registered after the end of the run, so that it runs before it.
                atexit.register(_flush_rates)
            except Exception as error:
                self._failed = (time.monotonic(), error)
                raise
            finally:
                self._is_opening = False
            self._torn = False
            self.begin_syncing()
            return self.folder

    def begin_syncing(self) -> None:
        """Start the thread that syncs the file, so that lines survive a power cut."""
        if self._descriptor < 0:
            return
        self._stopped = threading.Event()
        self._syncer = threading.Thread(
            target=self._sync, args=[self._stopped], name="runshelf-sync", daemon=True
        )
        with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
            self._syncer.start()

    def pause_syncing(self) -> None:
        """Stop the thread: a process with another thread must not fork."""
        self._stopped.set()
        if self._syncer is not None and self._syncer.is_alive():
            self._syncer.join(0.1)

    def close(self) -> None:
        """Close the file; the next line opens another."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _sync(self, stopped: threading.Event) -> None:
        while not stopped.wait(SYNC_SECONDS):
            if self._is_dirty:
                self._is_dirty = False
                self._sync_once()

    def _sync_once(self) -> None:
        try:
            if os.fstat(self._descriptor).st_nlink == 0:
                with self.lock:
                    self.close()
                raise _Refused(f"run `{self.folder}` was removed: opening a new file", "removed")
            os.fsync(self._descriptor)
        except (OSError, _Refused) as error:
            # EBADF: closed in the meantime by this module or by the program; nothing is lost.
            if not isinstance(error, OSError) or error.errno != errno.EBADF:
                _problems.note(error)


_file = _File()
_problems = _Problems()
_names: dict[str, _Name] = {}
_rows: dict[tuple[str, ...], _Name] = {}
# For each rate: the start of its window, the count since then, and the time of the last call.
_windows: dict[str, tuple[float, int | float, float]] = {}


def note_dropped(name: str) -> None:
    """Report a call that was dropped while this module was being loaded."""
    _problems.note(_Refused(f"`runshelf.{name}` was used while it was being loaded", "reentrant"))


def _flush_rates() -> None:
    """Log the last window of each rate."""
    with _file.lock:
        windows = dict(_windows)
        _windows.clear()
    for key, (begun, count, last) in windows.items():
        if last - begun > LEAST_WINDOW_SECONDS:
            log(_derived(key, "second"), count / (last - begun))


def _at_exit() -> None:
    """Log the last rates, end the run if this process created it, and print the totals."""
    _flush_rates()
    script.end()
    _problems.sum_up()


def _derived(key: Any, unit: str) -> Any:
    """Return the metric's name; an invalid key is returned as it is, and refused later."""
    return f"{key}/{unit}" if isinstance(key, str) else key


def _log(key: Any, value: Any, step: Any, axes: Mapping[str, Any]) -> None:
    """Log anything that the fast path of `log` does not handle."""
    if type(value) is _Missing:
        row: dict[Any, Any] = key if type(key) is dict else _mapping(key)
    else:
        row = {_hashable(key): value}
    keys = tuple(row)
    counted = _rows.get(keys)
    if counted is None:
        counted = _check_row(keys)
        row = {key: value for key, value in row.items() if key in _names or key in AXES}
        if counted is None:
            return
    try:
        text = "".join(_encode(row, 0))
        if (
            "[" in text
            or text.find("{", 1) > 0
            or "null" in text
            or len(text) > LONGEST_TEXT  # perhaps in a single value
        ):
            raise _NotPlain
    except (_NotPlain, ValueError):
        # Lists, arrays, NaN or None: convert each value on its own.
        text = json.dumps(_plain_row(row), allow_nan=False)
    if len(text) > 2:
        _write(text, keys, counted, step, axes)


def _write(
    text: str,
    keys: tuple[Any, ...],
    counted: _Name,
    step: Any,
    axes: Mapping[str, Any],
) -> None:
    """Write a row of JSON as a line that begins with its axes."""
    front = ""
    if step is not None:
        front = f'"step": {_axis("step", step)}, '
    elif "step" not in keys:
        front = f'"step": {next(counted.steps)}, '
    for axis, at in axes.items():
        front += f'"{axis}": {_axis(axis, at)}, '
    if "time" not in keys and "time" not in axes:
        front += f'"time": {time.time():.6f}, '
    if len(text) > LONGEST_LINE:
        raise _Refused(f"a row of {len(text)} characters is too long: log it in parts", "long")
    _file.write(f"{{{front}{text[1:]}\n".encode())


def _hashable(key: Any) -> Any:
    """Return `key` if it can be a key of a dict; whether it is a valid name is checked later."""
    if isinstance(key, Mapping):
        raise _Refused(
            f"a row, `{key!r:.60}`, and a second value: use runshelf.log(row, step=...)", "call"
        )
    if type(key).__hash__ is None:
        raise _Refused(f"`{key!r:.60}` is not a name: give text", "name")
    return key


def _mapping(key: Any) -> dict[Any, Any]:
    if not isinstance(key, Mapping):
        raise _Refused(
            f"`{key!r:.60}` has no value: use runshelf.log(key, value), or a mapping", "call"
        )
    return dict(cast("Mapping[Any, Any]", key))


def _check_row(keys: tuple[Any, ...]) -> _Name | None:
    """Return the name whose step counter a row uses; report its invalid names."""
    valid = [key for key in keys if _is_name(key)]
    counted = next((_names[key] for key in valid if key not in AXES), None)
    if counted is None and len(valid) == len(keys):
        raise _Refused(f"`{', '.join(keys)[:60]}` holds only axes, no metric", "axis")
    if len(valid) == len(keys) and counted and len(_rows) < _MOST_ROWS:
        _rows[keys] = counted
    return counted


def _is_name(key: Any) -> bool:
    """Return whether `key` is a valid name, and remember it; report it if it is not."""
    if type(key) is str and (key in AXES or key in _names):
        return True
    try:
        if not isinstance(key, str):
            raise _Refused(f"`{key!r:.60}` is not a name: give text", "name")
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise _Refused(
                f"the name `{key[:40]!r}` has {len(key)} characters: use 1 to {LONGEST_KEY} "
                "printable ones",
                "name",
            )
        if len(_names) >= MOST_NAMES:
            raise _Refused(f"more than {MOST_NAMES} names, from `{key[:60]}` on", "names")
    except _Refused as error:
        _problems.report(error)
        return False
    _names[str(key)] = _Name(str(key))
    return True


def _axis(name: str, at: Any) -> str:
    """Return a position on an axis as JSON."""
    if name not in AXES:
        axes = ", ".join(sorted(AXES))
        raise _Refused(f"unknown axis `{name}`{did_you_mean(name, AXES)}: use {axes}", "axis")
    number = _scalar(at)
    if number is None or isinstance(number, bool) or not math.isfinite(number):
        raise _Refused(f"`{name}={at!r:.60}`: an axis needs a finite number", "axis")
    return repr(number)


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as plain JSON values; values that cannot be logged are reported and left out."""
    plain: dict[str, Any] = {}
    for key, value in row.items():
        try:
            plain.update(_plain(key, value))
        except Exception as error:  # noqa: BLE001  (the rest of the row is logged)
            _problems.report(error, key)
    return plain


def _plain(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values that are logged for a value: itself, statistics, or a file."""
    if isinstance(value, str):
        yield key, _text(value)
        return
    number = _scalar(value)
    if number is not None:
        yield key, _finite_or_word(number)
        return
    from runshelf.store import media  # noqa: PLC0415  (needs numpy)

    array = media.as_array(value)
    saver = media.saver_of(array)
    if saver:
        yield key, saver(_file.open())
        return
    for name, statistic in media.statistics(array).items():
        yield f"{key}/{name}", _finite_or_word(statistic)


def _log_media(
    key: str, step: Any, axes: Mapping[str, Any], save: Callable[[Any, str], Any]
) -> None:
    from runshelf.store import media  # noqa: PLC0415  (needs numpy)

    keys = (key,)
    counted = _check_row(keys)
    if counted:
        text = json.dumps({key: save(media, _file.open())})
        _write(text, keys, counted, step, axes)


def _text(value: str) -> str:
    if len(value) > LONGEST_TEXT:
        raise _Refused(
            f"a text of {len(value)} characters is too long: use at most {LONGEST_TEXT}", "text"
        )
    return str(value)


def _scalar(value: Any) -> bool | int | float | None:
    """Return a single number as a Python number; None if `value` is not a single number."""
    if isinstance(value, bool | int | float):
        if type(value) in (bool, int, float):
            return value
        return float(value) if isinstance(value, float) else int(value)  # of a subclass
    shape = getattr(value, "shape", None)
    if type(value).__module__.startswith("numpy.ma") and value.mask.any():
        return None
    if shape is not None:
        item = value.item() if tuple(shape) == () and hasattr(value, "item") else None
        return item if isinstance(item, bool | int | float) else _as_float(item)
    return _as_float(value)


def _as_float(value: Any) -> float | None:
    """Return a decimal, a fraction or a low-precision number as a float; None for anything else."""
    return float(value) if hasattr(type(value), "__float__") else None


def _finite_or_word(number: int | float) -> int | float | str:
    if isinstance(number, int) or math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")


def _default(value: Any) -> Any:
    """Return a scalar of another library as a Python number, for the JSON encoder."""
    number = _scalar(value)
    if number is None:
        raise _NotPlain
    return number


def _make_encoder() -> Callable[[Any, int], Any]:
    """Return a function from a row to pieces of JSON, in C where Python provides it."""
    fast: Any = getattr(json.encoder, "c_make_encoder", None)
    if fast is None:
        slow = json.JSONEncoder(default=_default, allow_nan=False)
        return lambda row, _: slow.iterencode(row)
    text: Any = json.encoder.encode_basestring_ascii
    return fast(None, _default, text, None, ": ", ", ", False, False, False)


_encode = _make_encoder()


def _label(name: str) -> str:
    return f"`{name[:60]}`: " if name else ""


def _one_line(error: object) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, str | UserFacingError) else f"{type(error).__name__}: {text}"


def _before_fork() -> None:
    _file.pause_syncing()


def _after_fork_in_parent() -> None:
    _file.begin_syncing()


def _after_fork_in_child() -> None:
    _file.close()
    _file.forget()
    _windows.clear()  # these belong to the parent
    script.forget()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
atexit.register(_at_exit)
