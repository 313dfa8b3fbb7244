"""The time that a run spends on each of its parts, over all its sessions."""

import functools
import time
from collections.abc import Mapping
from typing import Literal, final

import jax

from runshelf.interrupts import check_interrupt

Part = Literal["setup", "train", "answers", "evaluate"]
PARTS = ("setup", "compile", "train", "answers", "evaluate")
COMPILING = "/jax/core/compile/"


@final
class Clock:
    """Seconds spent on each part of a run; compiling is a separate part.

    Args:
        began: `time.perf_counter()` when this session began.
    """

    def __init__(self, began: float) -> None:
        self._compiling = CompileClock()
        self._booked, self._compiled = began, 0.0
        self._here = dict.fromkeys(PARTS, 0.0)
        self._before = dict(self._here)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each part over all sessions, and their total."""
        parts = {name: self._before[name] + here for name, here in self._here.items()}
        return {**parts, "total": sum(parts.values())}

    @property
    def session(self) -> float:
        """Seconds of this session."""
        return sum(self._here.values())

    @property
    def trained(self) -> float:
        """Seconds of training in this session."""
        return self._here["train"]

    @property
    def unbooked(self) -> float:
        """Seconds since the last call of `book`, without compiling."""
        return time.perf_counter() - self._booked - (self._compiling.seconds - self._compiled)

    def resume_from(self, seconds: Mapping[str, float]) -> None:
        """Add the seconds of earlier sessions; missing parts count as 0."""
        self._before = {name: float(seconds.get(name, 0.0)) for name in PARTS}

    def book(self, part: Part) -> float:
        """Book the time since the last call on `part`; return it, without compiling."""
        check_interrupt()
        now, compiled = time.perf_counter(), self._compiling.seconds
        passed, compiling = now - self._booked, compiled - self._compiled
        self._booked, self._compiled = now, compiled
        self._here[part] += passed - compiling
        self._here["compile"] += compiling
        return passed - compiling


@final
class CompileClock:
    """Seconds that this process traces, lowers and compiles, from the clock's creation on."""

    def __init__(self) -> None:
        self._before = _seconds_of_compiling()

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return _seconds_of_compiling() - self._before


def _seconds_of_compiling() -> float:
    return sum((end - start for start, end in _compiling()), 0.0)


@functools.cache
def _compiling() -> list[tuple[float, float]]:
    """Return a list to which the time span of every compilation is appended from now on.

    JAX reports each part when it ends; a span replaces the spans nested in it.
    """
    spans: list[tuple[float, float]] = []

    def append(event: str, duration_secs: float, **_: object) -> None:
        if not event.startswith(COMPILING):
            return
        end = time.perf_counter()
        start = end - duration_secs
        while spans and spans[-1][1] > start:
            start = min(start, spans.pop()[0])
        spans.append((start, end))

    jax.monitoring.register_event_duration_secs_listener(append)
    return spans
