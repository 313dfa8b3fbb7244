"""Env steps of logs whose own steps count something else: iterations, or updates.

rsl_rl logs over iterations. An iteration has a fixed number n of env steps, which follows from the
logged speed, a whole number, and the seconds of collection and of learning:

    speed = floor(n / seconds),   so that   speed · seconds <= n < (speed + 1) · seconds

Each iteration narrows n down. Tianshou logs `update/` over updates, and the rest over env steps: an
update happened when the clock says. Dopamine logs returns over iterations, and losses over env
steps: its iterations are placed by the clock, too. RLlib's event files are over iterations, and its
env steps are logged beside them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from backflip.doctor.log import (
    ITERATIONS,
    OF_EACH_ENV,
    OF_ENVS,
    SECONDS,
    UPDATES,
    Log,
    Signal,
    Values,
)
from backflip.doctor.measures import together
from backflip.doctor.reading.naming import ENV_STEPS, RAY, Logged
from runshelf.errors import UsageError
from runshelf.interop.event_columns import Column
from runshelf.interop.metric_names import Library, library_of

_SPEED, _LEARNING = "Perf/total_fps", "Perf/learning_time"
_COLLECTION = ("Perf/collection_time", "Perf/collection time")
_SLACK = 1e-5  # relative: event files hold numbers of 32 bits
_SECONDS = "/time"  # the end of names that are logged over seconds
_COUNTS = ("update/update_step", "update/gradient_step")
_FEWEST = 2  # points of a clock
_RETURNS = "Train/AverageReturns"
_RLLIB_COUNTS = tuple(
    prefix + name
    for name in ("num_env_steps_sampled_lifetime", "timesteps_total")
    for prefix in ("", RAY)
)
_BY_CLOCK = "iterations are placed among the env steps of the losses, by the times of the events"
_YEAR_2001 = 1e9  # in seconds since 1970: the env steps of a new training run begin far below
_OF_TIMES = (
    "steps begin at {first:,.0f}, as seconds since 1970 do: they are counted from the first one. "
    "Log the env steps to get the checks that need them"
)
_EACH = (
    "steps are those of each environment: `--about num_envs=N` makes env steps of them, where N "
    "environments run side by side"
)


@final
class _Clock(NamedTuple):
    """Names that a library logs over env steps, which tell when they were made.

    Attributes:
        tags: the names.
        others: the beginnings of names that are logged over something else.
    """

    tags: tuple[str, ...]
    others: tuple[str, ...]


_CLOCKS: Mapping[Library, _Clock] = {
    "tianshou": _Clock(("train/env_step", "test/env_step"), ("update/",)),
    "dopamine": _Clock(
        (
            "HuberLoss",
            "CrossEntropyLoss",
            "QuantileLoss",
            "Loss",
            "Losses/Actor",
            "Losses/HuberLoss",
            "Losses/CrossEntropyLoss",
            "Losses/QuantileLoss",
        ),
        ("Train/", "Eval/"),
    ),
}


@final
class Placed(NamedTuple):
    """Logged series, and what their steps count.

    Attributes:
        logged: by logged name.
        counts: what steps count: `env steps`, or another unit.
        notes: what was computed, or could not be.
    """

    logged: Mapping[str, Logged]
    counts: str
    notes: tuple[str, ...]


def placed(logged: Mapping[str, Logged], mapping: Mapping[str, str]) -> Placed:
    """Return series over env steps, as far as their own steps tell.

    Args:
        logged: by logged name.
        mapping: our names by logged names. If one is `env_steps`, steps are what it says.
    """
    library = "" if ENV_STEPS in mapping.values() else library_of(logged)
    if library == "rsl_rl":
        return _of_iterations(logged)
    if library == "skrl":
        return Placed(logged, OF_EACH_ENV, (_EACH,))
    if library == "tianshou" and _is_over_updates(logged):
        return Placed(logged, UPDATES, ("`update/` is over updates: no clock places them",))
    if library == "dopamine":
        return _of_dopamine(logged)
    if "rllib" in (library, library_of(name.removeprefix(RAY) for name in logged)):
        return _of_rllib(logged)
    return _of_times(logged) or Placed(logged, OF_ENVS, ())


def _of_times(logged: Mapping[str, Logged]) -> Placed | None:
    """Return series over the seconds since the first, if their steps are times; None if not."""
    first = min((float(one.x.min()) for one in logged.values() if len(one.x)), default=0.0)
    if not math.isfinite(first) or first < _YEAR_2001:
        return None
    moved = {name: Logged(one.x - first, one.y) for name, one in logged.items()}
    return Placed(moved, SECONDS, (_OF_TIMES.format(first=first),))


def _of_dopamine(logged: Mapping[str, Logged]) -> Placed:
    """Return series as they are: those over iterations may have been placed by the clock before."""
    between = np.abs(np.diff(logged[_RETURNS].x))
    if len(between) and np.median(between) > 1:
        return Placed(logged, OF_ENVS, (_BY_CLOCK,))
    return Placed(logged, ITERATIONS, ("steps are iterations: their env steps are not logged",))


def _of_rllib(logged: Mapping[str, Logged]) -> Placed:
    """Return series over the env steps that are logged, if they are over iterations."""
    counts = [logged[name] for name in _RLLIB_COUNTS if name in logged]
    if not counts or len(counts[0].x) < _FEWEST or np.array_equal(*counts[0]):
        return Placed(logged, OF_ENVS, ())
    order = np.argsort(counts[0].x, kind="stable")
    iterations, steps = counts[0].x[order], counts[0].y[order]
    moved = {
        name: Logged(np.interp(one.x, iterations, steps), one.y) for name, one in logged.items()
    }
    return Placed(moved, OF_ENVS, ("iterations are placed among the env steps that are logged",))


def _is_over_updates(logged: Mapping[str, Logged]) -> bool:
    """Return whether the number of updates is logged over itself, as it is before it is placed."""
    counts = [logged[name] for name in _COUNTS if name in logged]
    return any(np.array_equal(one.x, one.y) for one in counts)


def _of_iterations(logged: Mapping[str, Logged]) -> Placed:
    each = env_steps_of_an_iteration(logged)
    if each is None:
        note = "steps are iterations: speed and seconds do not tell how many env steps one has"
        return Placed(logged, ITERATIONS, (note,))
    moved = {
        name: one if name.endswith(_SECONDS) else Logged((one.x + 1) * each, one.y)
        for name, one in logged.items()
    }
    note = f"env steps are computed: {each:,} in each iteration, from its speed and its seconds"
    return Placed(moved, OF_ENVS, (note,))


def env_steps_of_an_iteration(logged: Mapping[str, Logged]) -> int | None:
    """Return the n that explains all logged speeds up to rounding; None if no n does.

    Of several numbers that are possible, the one with the most factors of two is returned:
    environments and steps of a rollout are round numbers.
    """
    collection = next((logged[name] for name in _COLLECTION if name in logged), None)
    if collection is None or not {_SPEED, _LEARNING} <= logged.keys():
        return None
    learning = logged[_LEARNING]
    seconds = together(Signal(*collection, ""), Signal(*learning, ""), np.add)
    least, most = (
        together(
            Signal(*logged[_SPEED], ""), seconds, lambda speed, time, up=up: (speed + up) * time
        )
        for up in (0, 1)
    )
    if not len(least.y) or not np.isfinite([*least.y, *most.y]).all():
        return None
    return _roundest(float(least.y.max()) * (1 - _SLACK), float(most.y.min()) * (1 + _SLACK))


def _roundest(least: float, most: float) -> int | None:
    """Return the whole number in a range that is divisible by the highest power of two."""
    power = 1 << max(int(most).bit_length(), 1)
    while power:
        found = -(-int(np.ceil(least)) // power) * power
        if 0 < found <= most:
            return found
        power //= 2
    return None


def with_steps_by_clock(
    logged: Mapping[str, Logged], parts: Mapping[str, Sequence[Column]]
) -> dict[str, Logged]:
    """Return series in which those over updates or iterations are over the env steps of their time.

    They are as exact as the interval between two logged numbers of env steps. Series of libraries
    without a clock stay as they are.

    Args:
        logged: by tag.
        parts: the events of each tag, with times.
    """
    tags, others = _CLOCKS.get(library_of(logged), _Clock((), ()))
    clock = [column for tag in tags for column in parts.get(tag, ())]
    if sum(len(one.times) for one in clock) < _FEWEST:
        return dict(logged)
    times, steps = (np.concatenate([one[at] for one in clock]) for at in (0, 1))
    order = np.lexsort((steps, times))
    times, steps = times[order], steps[order].astype(np.float64)
    return {
        tag: Logged(np.interp(_times_of(parts[tag]), times, steps), one.y)
        if tag.startswith(others)
        else one
        for tag, one in logged.items()
    }


def _times_of(columns: Sequence[Column]) -> Values:
    return np.concatenate([column.times for column in columns])


def has_own_axis(library: Library, name: str) -> bool:
    """Return whether a library logs a name over something else than most of its names."""
    if library == "tianshou":
        return name.startswith("info/")
    return library in ("rsl_rl", "rl_games") and name.endswith((_SECONDS, "/iter"))


def with_env_steps(log: Log, facts: Mapping[str, Any]) -> Log:
    """Return a log over env steps, if a user says how many environments its steps are of.

    Args:
        log: the log.
        facts: what the user says, with `num_envs` and `env_steps` among it.

    Raises:
        UsageError: env steps are planned, and the log is over something else.
    """
    envs = facts.get("num_envs")
    if log.counts == OF_EACH_ENV and envs is not None:
        signals = {name: one._replace(x=one.x * envs) for name, one in log.signals.items()}
        notes = tuple(note for note in log.notes if note != _EACH)
        return replace(log, signals=signals, counts=OF_ENVS, notes=notes)
    if not log.is_over_env_steps and "env_steps" in facts:
        also = "; name num_envs, too" if log.counts == OF_EACH_ENV else ""
        raise UsageError(f"`env_steps` cannot be compared with a log over {log.counts}{also}")
    return log
