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
import functools
import inspect
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, ParamSpec, TypeVar, cast, final

from runshelf.errors import shown
from runshelf.logger import script
from runshelf.logger.line_file import LineFile
from runshelf.logger.names import AXES, MOST_NAMES, Name, check_row, names, position, rows
from runshelf.logger.problems import Refused, problems
from runshelf.logger.values import (
    LONGEST_TEXT,
    NotPlain,
    checked_text,
    encode,
    finite_or_word,
    scalar,
)
from runshelf.steady_clock import SteadyClock

LONGEST_LINE = 1_000_000
_known_types: set[type] = {int, float, bool, str}
WINDOW_SECONDS = 1.0
LEAST_WINDOW_SECONDS = 0.05

_P = ParamSpec("_P")
_R = TypeVar("_R")


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
            name = names.get(key)
            if name is not None and value - value == 0:
                at = next(name.steps) if step is None else step
                _file.write(
                    f'{{"step": {at}, "time": {_now():.6f}, {name.text}{value!r}}}\n'.encode()
                )
                return
        _log(key, value, step, axes)
    except Exception as error:  # noqa: BLE001  (logging must not break a program)
        problems.report(error)


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
        problems.report(error)


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
        problems.report(error)


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
        problems.report(error)


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


def note_dropped(name: str) -> None:
    """Report a call that was dropped while this module was being loaded."""
    problems.note(Refused(f"`runshelf.{name}` was used while it was being loaded", "reentrant"))


def _flush_rates() -> None:
    """Log the last window of each rate, before the run ends."""
    with _file.lock:
        windows = dict(_windows)
        _windows.clear()
    for key, (begun, count, last) in windows.items():
        if last - begun > LEAST_WINDOW_SECONDS:
            log(_derived(key, "second"), count / (last - begun))


_file = LineFile(before_end=_flush_rates)
_now: Final = SteadyClock().now
# For each rate: the start of its window, the count since then, and the time of the last call.
_windows: dict[str, tuple[float, int | float, float]] = {}


def _at_exit() -> None:
    """Log the last rates, end the run if this process created it, and print the totals."""
    _flush_rates()
    script.end()
    problems.sum_up()


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
    counted = rows.get(keys)
    if counted is None:
        counted = check_row(keys)
        row = {key: value for key, value in row.items() if key in names or key in AXES}
        if counted is None:
            return
    try:
        if not _known_types.issuperset(map(type, row.values())):
            _learn_types(row.values())
        text = "".join(encode(row, 0))
        if (
            "[" in text
            or text.find("{", 1) > 0
            or "null" in text
            or len(text) > LONGEST_TEXT  # perhaps in a single value
        ):
            raise NotPlain
    except Exception:  # noqa: BLE001  (one bad value does not spoil the others of its row)
        # Lists, arrays, NaN or None, or a value that raises: convert each value on its own.
        text = json.dumps(_plain_row(row), allow_nan=False)
    if len(text) > 2:
        _write(text, keys, counted, step, axes)


def _learn_types(values: Iterable[object]) -> None:
    """Remember the types of values that the JSON encoder does not iterate over.

    Raises:
        NotPlain: a value is of another type; it may be endless.
    """
    for kind in map(type, values):
        if issubclass(kind, list | tuple | dict):
            raise NotPlain
        _known_types.add(kind)


def _write(
    text: str,
    keys: tuple[Any, ...],
    counted: Name,
    step: Any,
    axes: Mapping[str, Any],
) -> None:
    """Write a row of JSON as a line that begins with its axes."""
    front = ""
    if step is not None:
        front = f'"step": {position("step", step)}, '
    elif "step" not in keys:
        front = f'"step": {next(counted.steps)}, '
    for axis, at in axes.items():
        front += f'"{axis}": {position(axis, at)}, '
    if "time" not in keys and "time" not in axes:
        front += f'"time": {_now():.6f}, '
    if len(text) > LONGEST_LINE:
        raise Refused(f"a row of {len(text)} characters is too long: log it in parts", "long")
    _file.write(f"{{{front}{text[1:]}\n".encode())


def _hashable(key: Any) -> Any:
    """Return `key` if it can be a key of a dict; whether it is a valid name is checked later."""
    if isinstance(key, Mapping):
        raise Refused(
            f"a row, `{shown(key)[:60]}`, and a second value: use runshelf.log(row, step=...)",
            "call",
        )
    if type(key).__hash__ is None:
        raise Refused(f"`{shown(key)[:60]}` is not a name: give text", "name")
    return key


def _mapping(key: Any) -> dict[Any, Any]:
    if not isinstance(key, Mapping):
        raise Refused(
            f"`{shown(key)[:60]}` has no value: use runshelf.log(key, value), or a mapping", "call"
        )
    row = cast("Mapping[Any, Any]", key)
    found = list(itertools.islice(row, MOST_NAMES + 1))
    if len(found) > MOST_NAMES:
        raise Refused(f"a row of more than {MOST_NAMES} values: log it in parts", "long")
    return {name: row[name] for name in found}


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as plain JSON values; values that cannot be logged are reported and left out."""
    plain: dict[str, Any] = {}
    for key, value in row.items():
        try:
            plain.update(_plain(key, value))
        except Exception as error:  # noqa: BLE001  (the rest of the row is logged)
            problems.report(error, key)
    return plain


def _plain(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values that are logged for a value: itself, statistics, or a file."""
    if isinstance(value, str):
        yield key, checked_text(value)
        return
    number = scalar(value)
    if number is not None:
        yield key, finite_or_word(number)
        return
    from runshelf.store import media  # noqa: PLC0415  (needs numpy)

    array = media.as_array(value)
    saver = media.saver_of(array)
    if saver:
        yield key, saver(_file.open())
        return
    for name, statistic in media.statistics(array).items():
        yield f"{key}/{name}", finite_or_word(statistic)


def _log_media(
    key: str, step: Any, axes: Mapping[str, Any], save: Callable[[Any, str], Any]
) -> None:
    from runshelf.store import media  # noqa: PLC0415  (needs numpy)

    keys = (key,)
    counted = check_row(keys)
    if counted:
        text = json.dumps({key: save(media, _file.open())})
        _write(text, keys, counted, step, axes)


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
