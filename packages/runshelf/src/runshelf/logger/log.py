"""Logging from any program, with no set-up: `runshelf.log("loss", x)`.

One call is one line, written by one unbuffered write to a file that only this process writes,
`metrics-log-<pid>-<random>.jsonl` in the folder of the run. A line that a call returned from is
there whatever happens to the process; a thread beside makes it survive a power cut within seconds.
The run is the one that `RUNSHELF_RUN` names, as in a program that `runshelf run` started; else the
first call makes one, which the processes that this one starts log into as well.

Nothing is raised into the program. What cannot be logged is said on stderr, once for each kind of
trouble, and counted; `RUNSHELF_STRICT=1` raises it as `UsageError` instead.
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
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar, cast, final

from runshelf.environment import variable
from runshelf.errors import UsageError, UserFacingError, did_you_mean
from runshelf.logger import script

# Written out, not imported: `series`, which has them too, needs numpy.
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
_ROWS_KNOWN = 4096  # shapes of rows that are remembered as valid


@final
class _Nothing:
    """The value of a call that has none."""


_NOTHING: Final = _Nothing()


def log(key: Any, value: Any = _NOTHING, /, step: Any = None, **axes: Any) -> None:
    """Log a value under a name, or a row of them at once.

    `log("loss", 0.1)` or `log({"loss": 0.1, "entropy": 1.2})`, anywhere in a program. Numbers may
    be of Python, numpy, JAX or PyTorch; not-a-number and the infinities are kept, so is a step that
    was there before or is less than the last. An array or list of numbers is logged as statistics:
    `key/min`, `key/max`, `key/mean`, `key/std` over what is not NaN, `key/n` and, if there are any,
    `key/nans`. An array of uint8 is an image if its shape is (height, width) or (height, width,
    3 or 4), and a clip if it is (frames, height, width) or (frames, height, width, 3 or 4).

    Args:
        key: the name, at most 500 printable characters; or a mapping of names to values.
        value: the value; nothing where `key` is a mapping.
        step: where on the x-axis. By default 0, 1, 2, ...: how often the name was logged without
            one before. A row counts by its first name.
        **axes: other axes, `env_steps=...`, `updates`, `episodes`, `frames`, `seconds`; and `seed`.
    """
    try:
        kind = type(value)
        if (
            (kind is float or kind is int)
            and type(key) is str
            and not axes
            and (step is None or type(step) is int)
        ):
            # What nearly every call is, in a third of the time that the general way takes.
            name = _names.get(key)
            if name is not None and value - value == 0:
                at = next(name.steps) if step is None else step
                _file.write(
                    f'{{"step": {at}, "time": {time.time():.6f}, {name.text}{value!r}}}\n'.encode()
                )
                return
        _log(key, value, step, axes)
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _trouble.report(error)


def image(key: str, pixels: Any, step: Any = None, **axes: Any) -> None:
    """Log an image: kept as PNG, once for each content.

    Args:
        key: its name.
        pixels: (height, width) or (height, width, 3 or 4), of uint8 or of floats from 0 to 1; or an
            image of Pillow.
        step: as of `log`.
        **axes: as of `log`.
    """
    try:
        _log_media(key, step, axes, lambda media, folder: media.save_image(folder, pixels))
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _trouble.report(error)


def clip(key: str, frames: Any, fps: int | float = 30.0, step: Any = None, **axes: Any) -> None:
    """Log a clip: kept as animated WebP without loss, once for each content.

    Args:
        key: its name.
        frames: (frames, height, width) or (frames, height, width, 3 or 4), of uint8 or of floats
            from 0 to 1; or images of Pillow.
        fps: frames per second.
        step: as of `log`.
        **axes: as of `log`.
    """
    try:
        _log_media(key, step, axes, lambda media, folder: media.save_clip(folder, frames, fps))
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        _trouble.report(error)


def rate(key: str, n: int | float = 1) -> None:
    """Say that something happened `n` more times; log how often it does as `key/second`.

    Once at least a second has passed since the window began, with t₀ when it began, t now, and nᵢ
    what the calls after t₀ said, this one included:

        key/second = Σᵢ nᵢ / (t - t₀)

    and a window begins. The first call only begins one: what it tells of happened before t₀. The
    last window, which the program's end cuts short, is logged with t the time of the last call if
    that is more than 0.05 s after t₀.

    Args:
        key: what happens, as in `frames`.
        n: how often it did since the last call.
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
        _trouble.report(error)


@final
class timed:  # noqa: N801  (used like a function)
    """Log how long something takes as `key/seconds`.

    `with runshelf.timed("update"): ...` or `@runshelf.timed("update")` above a function, `async`
    ones included. What it raises passes through, and is logged all the same. Of a generator it is
    the making that is timed, not the running.
    """

    def __init__(self, key: str) -> None:
        """Time what is called `key`."""
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
        """Begin."""
        self._begun.append(time.perf_counter())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Log how long it took."""
        log(_derived(self._key, "seconds"), time.perf_counter() - self._begun.pop())


@final
class _Name:
    """What is known of a name that was logged before."""

    __slots__ = ("steps", "text")

    def __init__(self, key: str) -> None:
        self.text = f"{json.dumps(key)}: "
        self.steps = itertools.count()


@final
class _NotPlain(Exception):
    """A row holds something that JSON has no word for."""


@final
class _Trouble:
    """What went wrong: said once for each kind, counted, and summed up at the end."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def report(self, error: Exception, name: str = "") -> None:
        """Say what kept something from being logged, the first time; raise it in strict mode.

        Args:
            error: what did.
            name: what was to be logged, if it has a name.

        Raises:
            UsageError: `RUNSHELF_STRICT` is set.
        """
        if variable("STRICT") not in (None, "0"):
            raise UsageError(_of(name) + _one_line(error)) from error
        self.note(error, name)

    def note(self, error: Exception, name: str = "") -> None:
        """Say what kept something from being logged, the first time."""
        kind = str(getattr(error, "kind", type(error).__name__))
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count == 1:
            said = _of(name) + _one_line(error)
            script.say(f"not logged: {said} (said once; RUNSHELF_STRICT=1 raises it)")

    def sum_up(self) -> None:
        """Say how much was not logged, if more than was said."""
        total = sum(self._counts.values())
        if total > len(self._counts):
            kinds = ", ".join(f"{n} x {kind}" for kind, n in sorted(self._counts.items()))
            script.say(f"{total} times something could not be logged: {kinds}")


@final
class _Refused(UserFacingError):
    """Something cannot be logged: the line that says why, and the kind of trouble."""

    def __init__(self, said: str, kind: str) -> None:
        super().__init__(said)
        self.kind = kind


@final
class _File:
    """The file that this process logs into, opened at the first line."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a forked process must: its parent goes on with the file."""
        self.lock = threading.RLock()  # not a plain one: a signal's handler may log, too
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
            OSError: it is not in the file, or not whole.
            UserFacingError: there is no run to write to.
        """
        with self.lock:
            if self._descriptor < 0:
                self.open()
            if self._torn:
                line = b"\n" + line
            self._torn = True  # until the whole line is known to be in the file
            try:
                rest = line[os.write(self._descriptor, line) :]
                while rest:  # never, but for a disk that fills up
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                # The program closed whatever was open, as one that becomes a daemon does.
                self._descriptor = -1
                self.write(line)
            self._torn = False
            self._is_dirty = True

    def open(self) -> str:
        """Return the folder of the run, after opening this process's file in it.

        Raises:
            OSError: the file cannot be made.
            UserFacingError: the run cannot be made.
        """
        with self.lock:
            if self._descriptor >= 0:
                return self.folder
            if self._is_opening:
                raise _Refused("a signal's handler logs while the run is being made", "reentrant")
            if self._failed and time.monotonic() - self._failed[0] < RETRY_SECONDS:
                raise self._failed[1]
            self._is_opening = True
            try:
                self.folder = script.find_or_make_run(self.close)
                self._descriptor = script.open_lines(self.folder)
                self._failed = None
                # Before the run ends, which was registered just now if at all.
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
        """Start the thread that makes what was written survive a power cut."""
        if self._descriptor < 0:
            return
        self._stopped = threading.Event()
        self._syncer = threading.Thread(
            target=self._sync, args=[self._stopped], name="runshelf-sync", daemon=True
        )
        with contextlib.suppress(RuntimeError):  # the interpreter is about to end
            self._syncer.start()

    def pause_syncing(self) -> None:
        """Stop that thread: a process must not fork beside one."""
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
                # Somebody removed the run: what is written goes nowhere.
                with self.lock:
                    self.close()
                raise _Refused(f"the run `{self.folder}` was removed: logging anew", "removed")
            os.fsync(self._descriptor)
        except (OSError, _Refused) as error:
            # Closed meanwhile, at the end or by the program: what was written is in the file.
            if not isinstance(error, OSError) or error.errno != errno.EBADF:
                _trouble.note(error)


_file = _File()
_trouble = _Trouble()
_names: dict[str, _Name] = {}
_rows: dict[tuple[str, ...], _Name] = {}
# Of each rate: when its window began, what has been said since, and when that was said last.
_windows: dict[str, tuple[float, int | float, float]] = {}


def note_dropped(name: str) -> None:
    """Say and count that something was logged while this module was being loaded."""
    _trouble.note(_Refused(f"`runshelf.{name}` was used while it was being loaded", "reentrant"))


def _flush_rates() -> None:
    """Log the windows that the program's end cuts short."""
    with _file.lock:
        windows = dict(_windows)
        _windows.clear()
    for key, (begun, count, last) in windows.items():
        if last - begun > LEAST_WINDOW_SECONDS:
            log(_derived(key, "second"), count / (last - begun))


def _at_exit() -> None:
    """Log what is not logged yet; a run that this made ends here, as no handler comes after."""
    _flush_rates()
    script.end()
    _trouble.sum_up()


def _derived(key: Any, unit: str) -> Any:
    """Return the name of what is measured; what is no name stays as it is, and is refused."""
    return f"{key}/{unit}" if isinstance(key, str) else key


def _log(key: Any, value: Any, step: Any, axes: Mapping[str, Any]) -> None:
    """Log what is not a plain number of Python under a name known already."""
    if type(value) is _Nothing:
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
            or len(text) > LONGEST_TEXT  # perhaps of one value
        ):
            raise _NotPlain
    except (_NotPlain, ValueError):
        # Lists, arrays, NaN, None: value by value.
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
    """Write the line of a row that is JSON, with its axes before it."""
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
        raise _Refused(f"a row of {len(text)} characters: log it in parts", "long")
    _file.write(f"{{{front}{text[1:]}\n".encode())


def _hashable(key: Any) -> Any:
    """Return a name, or what is refused as one later."""
    if isinstance(key, Mapping):
        raise _Refused(
            f"a row, `{key!r:.60}`, with a value beside it: runshelf.log(row, step=...)", "call"
        )
    if type(key).__hash__ is None:
        raise _Refused(f"`{key!r:.60}` as a name: give text", "name")
    return key


def _mapping(key: Any) -> dict[Any, Any]:
    if not isinstance(key, Mapping):
        raise _Refused(
            f"`{key!r:.60}` without a value: runshelf.log(key, value), or a mapping", "call"
        )
    return dict(cast("Mapping[Any, Any]", key))


def _check_row(keys: tuple[Any, ...]) -> _Name | None:
    """Return the name by which a row counts, after refusing the names it may not have."""
    valid = [key for key in keys if _is_name(key)]
    counted = next((_names[key] for key in valid if key not in AXES), None)
    if counted is None and len(valid) == len(keys):
        raise _Refused(f"`{', '.join(keys)[:60]}`, no metric: these are names of axes", "axis")
    if len(valid) == len(keys) and counted and len(_rows) < _ROWS_KNOWN:
        _rows[keys] = counted
    return counted


def _is_name(key: Any) -> bool:
    """Return whether `key` is a name, known from now on; report it if it may not be one."""
    if type(key) is str and (key in AXES or key in _names):
        return True
    try:
        if not isinstance(key, str):
            raise _Refused(f"`{key!r:.60}` as a name: give text", "name")
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise _Refused(
                f"a name of {len(key)} characters, `{key[:40]!r}`: give 1 to {LONGEST_KEY} "
                "printable ones",
                "name",
            )
        if len(_names) >= MOST_NAMES:
            raise _Refused(f"more than {MOST_NAMES} names, from `{key[:60]}` on", "names")
    except _Refused as error:
        _trouble.report(error)
        return False
    _names[str(key)] = _Name(str(key))
    return True


def _axis(name: str, at: Any) -> str:
    """Return a place on an axis as JSON."""
    if name not in AXES:
        raise _Refused(
            f"`{name}` is no axis{did_you_mean(name, AXES)}: use {', '.join(sorted(AXES))}", "axis"
        )
    number = _scalar(at)
    if number is None or isinstance(number, bool) or not math.isfinite(number):
        raise _Refused(f"`{name}={at!r:.60}` is no place on an axis: give a number", "axis")
    return repr(number)


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as plain JSON values, without what cannot be logged; that is reported."""
    plain: dict[str, Any] = {}
    for key, value in row.items():
        try:
            plain.update(_plain(key, value))
        except Exception as error:  # noqa: BLE001  (the other values of the row are logged)
            _trouble.report(error, key)
    return plain


def _plain(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a value is logged as: itself, or statistics, or a file."""
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
            f"a text of {len(value)} characters: at most {LONGEST_TEXT} are logged", "text"
        )
    return str(value)


def _scalar(value: Any) -> bool | int | float | None:
    """Return a single number as one of Python; None for what is none."""
    if isinstance(value, bool | int | float):
        return value if type(value) in (bool, int, float) else _of_subclass(value)
    shape = getattr(value, "shape", None)
    if type(value).__module__.startswith("numpy.ma") and value.mask.any():
        return None
    if shape is not None:
        item = value.item() if tuple(shape) == () and hasattr(value, "item") else None
        return item if isinstance(item, bool | int | float) else _as_float(item)
    return _as_float(value)


def _of_subclass(value: int | float) -> int | float:
    return float(value) if isinstance(value, float) else int(value)


def _as_float(value: Any) -> float | None:
    """Return a decimal, a fraction or a number of few bits as a float; None for what is none."""
    return float(value) if hasattr(type(value), "__float__") else None


def _finite_or_word(number: int | float) -> int | float | str:
    if isinstance(number, int) or math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")


def _default(value: Any) -> Any:
    """Return a scalar of another library as one of Python, while a row is written as JSON."""
    number = _scalar(value)
    if number is None:
        raise _NotPlain
    return number


def _make_encoder() -> Callable[[Any, int], Any]:
    """Return what turns a row into pieces of JSON, written in C where Python has that."""
    fast: Any = getattr(json.encoder, "c_make_encoder", None)
    if fast is None:
        slow = json.JSONEncoder(default=_default, allow_nan=False)
        return lambda row, _: slow.iterencode(row)
    text: Any = json.encoder.encode_basestring_ascii
    return fast(None, _default, text, None, ": ", ", ", False, False, False)


_encode = _make_encoder()


def _of(name: str) -> str:
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
    _windows.clear()  # of the parent
    script.forget()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
atexit.register(_at_exit)
