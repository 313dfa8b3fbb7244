"""Checks of the program and the machine."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import GPU_USE, LOAD, Log, Signal
from backflip.doctor.measures import after, largest, or_none, smoothed

WARM = 0.1  # share of the budget
EARLY, LATE = 0.3, 0.5
_RAHTZ = "M. Rahtz, Lessons Learned Reproducing a Deep RL Paper"


def speed(log: Log) -> Signal | None:
    """Return env steps per second between logged points; None without times."""
    if log.has("env_steps_per_second"):
        return log.signals["env_steps_per_second"]
    if not log.has("seconds"):
        return None
    found = log.signals["seconds"]
    width = max(1, len(found.x) // 50)
    steps, seconds = found.x[width:] - found.x[:-width], found.y[width:] - found.y[:-width]
    known = (seconds > 0) & (steps > 0)
    return Signal(found.x[width:][known], steps[known] / seconds[known], found.logged_as)


def _slows_down(log: Log) -> Running | None:
    """Return the share of the early speed that is lost, as medians of a tenth of all points."""
    found = speed(log)
    if found is None or len(found.x) < 20:
        return None
    fast = smoothed(found, 0.1)
    first = after(log, WARM, fast)
    if not len(first.x):
        return None
    reference = float(np.max(first.value[first.x <= EARLY * log.budget], initial=first.value[0]))
    return or_none(Running(first.x, 1.0 - first.value / max(reference, 1e-12)))


def _memory_grows(log: Log) -> Running | None:
    """Return the growth of the memory since the middle of the budget, over the memory then.

    It counts as three times that of the third of the time in which it is smallest: memory that
    grows only once, as when a program is compiled, does not keep growing.
    """
    name = "memory_mib" if log.has("memory_mib") else "memory_bytes"
    if not log.has(name):
        return None
    found = log.signals[name]
    later = after(log, LATE, Running(found.x, found.y))
    if len(later.x) < 10:
        return None
    memory = later.value / later.value[0]
    ends = np.arange(len(memory))
    third, two_thirds = memory[ends // 3], memory[2 * ends // 3]
    least = np.minimum(np.minimum(third - 1.0, two_thirds - third), memory - two_thirds)
    return or_none(Running(later.x[3:], 3.0 * least[3:]))


def _gpu_use(log: Log) -> Running | None:
    """Return the largest use so far of the GPU, as medians of a tenth of all points."""
    return or_none(largest(after(log, WARM, smoothed(log.signals[GPU_USE], 0.1))))


def _load(log: Log) -> Running | None:
    """Return the load of the machine, as medians of a third of all points."""
    return or_none(after(log, WARM, smoothed(log.signals[LOAD], 0.3)))


CHECKS = (
    Check(
        "SYS-SPEED",
        "training slows down",
        "share of the early speed that is lost, from windows and not from an average since the "
        "start",
        _slows_down,
        (),
        "above",
        "convention",
        "A cost grows with time: a log, a list, a replay, or another program.",
        {"machine": 0.9},
        f"{_RAHTZ}; Stable-Baselines3 issue 1597",
        limit=0.5,
        says="warning",
    ),
    Check(
        "SYS-GPU-IDLE",
        "there is a GPU, and nothing uses it",
        "largest use of the first GPU by all programs, in percent, after 10 % of the budget",
        _gpu_use,
        (GPU_USE,),
        "below",
        "convention",
        "The program runs on the CPU, perhaps without saying so. Small networks are faster there.",
        {"machine": 0.6},
        f"{_RAHTZ}; Stable-Baselines3 issues 413 and 849",
        limit=10.0,
        says="warning",
    ),
    Check(
        "SYS-CPUS",
        "the processors are oversubscribed",
        "load of the machine, all programs together, in threads for each core, as medians of a "
        "third of all points after 10 % of the budget",
        _load,
        (LOAD,),
        "above",
        "convention",
        "More threads want to run than there are cores: too many workers, BLAS threads in each of "
        "them, or other programs.",
        {"machine": 0.9},
        f"{_RAHTZ}; Stable-Baselines3 issue 1597",
        limit=1.5,
        says="warning",
    ),
    Check(
        "SYS-MEMORY",
        "memory keeps growing",
        "growth of the memory since the middle of the budget, three times that of the third of "
        "the time in which it grows least",
        _memory_grows,
        (),
        "above",
        "convention",
        "Something is kept that should be dropped; long runs end by it.",
        {"machine": 0.9},
        "Stable-Baselines3 issue 1966; stable-baselines issue 1099",
        limit=0.3,
        says="warning",
    ),
)
