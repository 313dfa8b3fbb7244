"""What the time of a run is spent on, over all its sittings."""

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
    """Seconds spent on each part of a run; compiling is one of its own.

    Args:
        began: `time.perf_counter()` when the work of this sitting began.
    """

    def __init__(self, began: float) -> None:
        self._compiling = CompileClock()
        self._booked, self._compiled = began, 0.0
        self._here = dict.fromkeys(PARTS, 0.0)
        self._before = dict(self._here)

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent on each part, over all sittings, and in all."""
        parts = {name: self._before[name] + here for name, here in self._here.items()}
        return {**parts, "total": sum(parts.values())}

    @property
    def trained(self) -> float:
        """Seconds spent on training in this sitting."""
        return self._here["train"]

    @property
    def unbooked(self) -> float:
        """Seconds since the last booking, compiling left out."""
        return time.perf_counter() - self._booked - (self._compiling.seconds - self._compiled)

    def resume_from(self, seconds: Mapping[str, float]) -> None:
        """Count what earlier sittings spent, too; a part that none of them booked is not there."""
        self._before = {name: float(seconds.get(name, 0.0)) for name in PARTS}

    def book(self, part: Part) -> float:
        """Book the time since the last call as spent on `part`; return it, compiling left out."""
        check_interrupt()
        now, compiled = time.perf_counter(), self._compiling.seconds
        passed, compiling = now - self._booked, compiled - self._compiled
        self._booked, self._compiled = now, compiled
        self._here[part] += passed - compiling
        self._here["compile"] += compiling
        return passed - compiling


@final
class CompileClock:
    """Seconds this process has spent tracing, lowering and compiling since the clock was made."""

    def __init__(self) -> None:
        self._before = _seconds_of_compiling()

    @property
    def seconds(self) -> float:
        """The time so far."""
        return _seconds_of_compiling() - self._before


def _seconds_of_compiling() -> float:
    return sum((end - start for start, end in _compiling()), 0.0)


@functools.cache
def _compiling() -> list[tuple[float, float]]:
    """Return a list that grows by the span of whatever this process compiles from now on.

    JAX reports each part when it ends; parts within parts are taken up by the whole.
    """
    spans: list[tuple[float, float]] = []

    def hear(event: str, duration_secs: float, **_: object) -> None:
        if not event.startswith(COMPILING):
            return
        end = time.perf_counter()
        start = end - duration_secs
        while spans and spans[-1][1] > start:
            start = min(start, spans.pop()[0])
        spans.append((start, end))

    jax.monitoring.register_event_duration_secs_listener(hear)
    return spans
