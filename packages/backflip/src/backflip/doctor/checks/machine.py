"""Checks of the program and the machine."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import CORES, CPU_USE, GPU_USE, LOAD, SAVED, Log, Signal, Values
from backflip.doctor.measures import after, largest, or_none, smoothed

WARM_UP_SHARE = 0.1  # nothing is judged before this share of the budget
EARLY_SHARE = 0.3  # the early speed is the largest one between the warm-up and this share of it
MEMORY_FROM = 0.5  # memory is compared with that at this share of the budget
LASTING_SHARE = 0.1  # a slow-down counts if it lasts for at least this share of the budget
SLOW_DOWN = 0.5  # a warning is given if more than this share of the early speed is lost
LOAD_OF_OTHERS = 0.5  # a remark is made if others want to run more threads than this for each core
FULL_LOAD = 1.0  # programs take turns if more threads than this want to run for each core
_RAHTZ = "M. Rahtz, Lessons Learned Reproducing a Deep RL Paper"


def speed(log: Log) -> Signal | None:
    """Return env steps per second, over about a fiftieth of the log; None without times.

    All windows have about the same number of env steps. In a monitor file each point is an episode.
    Early episodes are short, and the pause for an update lies between two of them. Windows of such
    a log are therefore a twentieth of it, so that each contains such pauses.
    """
    if log.has("env_steps_per_second"):
        return log.signals["env_steps_per_second"]
    if not log.has("seconds"):
        return None
    found = log.signals["seconds"]
    count = len(found.x)
    parts = 20 if log.library == "monitor" else 50
    width = max(1, count // parts) * np.ptp(found.x) / count if count else 0.0
    begins = np.searchsorted(found.x, found.x - width, side="right") - 1
    ends = np.flatnonzero(begins >= 0)
    steps = found.x[ends] - found.x[begins[ends]]
    seconds = found.y[ends] - found.y[begins[ends]]
    known = (seconds > 0) & (steps > 0)
    return Signal(found.x[ends][known], steps[known] / seconds[known], found.logged_as)


def own_speed(log: Log) -> Signal | None:
    """Return the speed that the program would have with its early share of the processors.

        speed / min(1, c / c_early)   where more threads want to run than there are cores

    c is the CPU use of the program; without it, 1 over the load of the machine, which is the share
    that a thread gets. Elsewhere, and if the load is not logged, the speed is left as it is: a
    program that waits for a disk or a queue uses little CPU time, and is slow nevertheless.
    """
    found = speed(log)
    if found is None or not len(found.x) or not log.has(LOAD):
        return found
    load = _at(found.x, log.signals[LOAD])
    use = (
        _at(found.x, log.signals[CPU_USE])
        if log.has(CPU_USE)
        else 1.0 / np.maximum(load, FULL_LOAD)
    )
    early = (found.x >= WARM_UP_SHARE * log.budget) & (found.x <= EARLY_SHARE * log.budget)
    usual = float(np.median(use[early] if early.any() else use))
    share = np.clip(use / max(usual, 1e-12), 1e-3, 1.0)
    return found._replace(y=np.where(load > FULL_LOAD, found.y / share, found.y))


def _at(x: Values, signal: Signal) -> Values:
    """Return the values of a signal at other env steps; NaN if it has none."""
    known = np.isfinite(signal.y)
    return (
        np.interp(x, signal.x[known], signal.y[known]) if known.any() else np.full(len(x), np.nan)
    )


def lost(log: Log, found: Signal | None) -> Running | None:
    """Return, for each env step, the smallest loss of speed from there to the end.

    It is a share of the early speed. Speeds are medians of windows of a tenth of all points. A
    slow-down counts only if it lasts to the end: a growing cost lasts, another program on the
    machine ends. The last tenth of the budget is not judged, since a slow-down there may still end.
    """
    if found is None or len(found.x) < 20:
        return None
    first = after(log, WARM_UP_SHARE, smoothed(log, found, 0.1))
    if not len(first.x):
        return None
    reference = float(
        np.max(first.value[first.x <= EARLY_SHARE * log.budget], initial=first.value[0])
    )
    share = 1.0 - first.value / max(reference, 1e-12)
    from_now_on = np.minimum.accumulate(share[::-1])[::-1]
    lasts = first.x <= first.x[-1] - LASTING_SHARE * log.budget
    return or_none(Running(first.x[lasts], from_now_on[lasts])) if lasts.any() else None


def _slows_down(log: Log) -> Running | None:
    """Return the share of the early speed that is lost while the algorithm learns.

    Env steps before learning are left out: they only fill the replay, which is faster.
    """
    found = own_speed(log)
    if found is not None and log.has("q_loss"):
        loss = log.signals["q_loss"]
        learns = found.x >= loss.x[np.isfinite(loss.y)].min(initial=np.inf)
        found = found._replace(x=found.x[learns], y=found.y[learns])
    return lost(log, found)


def _memory_grows(log: Log) -> Running | None:
    """Return how much memory has grown since the middle of the budget, as a share of it then.

        g = 3 min(growth in the first, second and last third of this time)

    Steady growth gives the total growth. Memory that grows once, as when a program is compiled,
    gives about 0.
    """
    name = "memory_mib" if log.has("memory_mib") else "memory_bytes"
    if not log.has(name):
        return None
    found = log.signals[name]
    later = after(log, MEMORY_FROM, Running(found.x, found.y))
    if len(later.x) < 10:
        return None
    memory = later.value / later.value[0]
    ends = np.arange(len(memory))
    third, two_thirds = memory[ends // 3], memory[2 * ends // 3]
    least = np.minimum(np.minimum(third - 1.0, two_thirds - third), memory - two_thirds)
    return or_none(Running(later.x[3:], 3.0 * least[3:]))


def _gpu_use(log: Log) -> Running | None:
    """Return the largest use so far of the GPU, as medians of a tenth of all points."""
    return or_none(largest(after(log, WARM_UP_SHARE, smoothed(log, log.signals[GPU_USE], 0.1))))


def own_load(log: Log) -> Signal:
    """Return how many threads of the program want to run, for each core.

        c max(L, 1) / n, at most L

    L is the load of the machine for each of its n cores, and c how many cores the program used: a
    thread gets 1 / L of a core if L is above 1. It is L itself where c or n is not logged.
    """
    load = log.signals[LOAD]
    if not log.has(CPU_USE, CORES):
        return load
    use, cores = _at(load.x, log.signals[CPU_USE]), _at(load.x, log.signals[CORES])
    threads = use / 100.0 * np.maximum(load.y, FULL_LOAD) / np.maximum(cores, 1.0)
    return load._replace(y=np.minimum(load.y, threads))


def _own_load(log: Log) -> Running | None:
    return or_none(after(log, WARM_UP_SHARE, smoothed(log, own_load(log), 0.3)))


def _load_of_others(log: Log) -> Running | None:
    load = log.signals[LOAD]
    others = np.where(load.y > FULL_LOAD, load.y - own_load(log).y, 0.0)
    return or_none(after(log, WARM_UP_SHARE, smoothed(log, load._replace(y=others), 0.3)))


def _saved(log: Log) -> Running | None:
    found = log.signals[SAVED]
    return or_none(largest(Running(found.x, found.y)))


CHECKS = (
    Check(
        id="SYS-SPEED",
        title="training slows down",
        quantity="share of the early speed that is lost and does not come back, from windows and "
        "not from an average since the start; with its early share of the processors, if more "
        "threads than cores want to run",
        measure=_slows_down,
        needs=(),
        bad_side="above",
        limit_from="convention",
        explanation="A cost grows with time: a log, a list, a replay. If the load of the machine "
        "is not logged, it may be another program.",
        causes={"machine": 0.9},
        source=f"{_RAHTZ}; Stable-Baselines3 issue 1597",
        limit=SLOW_DOWN,
        severity="warning",
    ),
    Check(
        id="SYS-SHARED",
        title="other programs use the machine",
        quantity="threads of other programs that want to run, for each core, where there are more "
        "threads than cores, as medians of a third of all points after 10 % of the budget",
        measure=_load_of_others,
        needs=(LOAD, CPU_USE, CORES),
        bad_side="above",
        limit_from="convention",
        explanation="The program waits for processors that others use. It is slower, and otherwise "
        "unharmed: SYS-SPEED then counts the speed per share of the processors.",
        causes={"machine": 0.3},
        source="arithmetic: a thread gets 1 / load of a core",
        limit=LOAD_OF_OTHERS,
        severity="remark",
    ),
    Check(
        id="SYS-GPU-IDLE",
        title="there is a GPU, and nothing uses it",
        quantity="largest use of the first GPU by all programs, in percent, after 10 % of the "
        "budget",
        measure=_gpu_use,
        needs=(GPU_USE,),
        bad_side="below",
        limit_from="convention",
        explanation="The program runs on the CPU, perhaps without saying so. Small networks are "
        "faster there.",
        causes={"machine": 0.6},
        source=f"{_RAHTZ}; Stable-Baselines3 issues 413 and 849",
        limit=10.0,
        severity="warning",
    ),
    Check(
        id="SYS-CPUS",
        title="the processors are oversubscribed",
        quantity="threads of the program that want to run, for each core, as medians of a third of "
        "all points after 10 % of the budget; those of all programs where its CPU use is not "
        "logged",
        measure=_own_load,
        needs=(LOAD,),
        bad_side="above",
        limit_from="convention",
        explanation="More threads want to run than there are cores: too many workers, or BLAS "
        "threads in each of them.",
        causes={"machine": 0.9},
        source=f"{_RAHTZ}; Stable-Baselines3 issue 1597",
        limit=1.5,
        severity="warning",
    ),
    Check(
        id="SYS-MEMORY",
        title="memory keeps growing",
        quantity="growth of the memory since the middle of the budget, three times that of the "
        "third of the time in which it grows least",
        measure=_memory_grows,
        needs=(),
        bad_side="above",
        limit_from="convention",
        explanation="The program keeps data that it no longer needs. A long run will run out of "
        "memory.",
        causes={"machine": 0.9},
        source="Stable-Baselines3 issue 1966; stable-baselines issue 1099",
        limit=0.3,
        severity="warning",
        unmeasured="the use of memory is not logged for long enough",
    ),
    Check(
        id="SYS-SAVED",
        title="saved models hold much that acting does not need",
        quantity="MiB of optimisers' states and replays in the models that were saved",
        measure=_saved,
        needs=(SAVED,),
        bad_side="above",
        limit_from="convention",
        explanation="The states of optimisers and replays are needed to continue training, not to "
        "use or share the policy.",
        causes={"machine": 0.3},
        source="Stable-Baselines3's archives hold Adam's two moments, twice the size of the policy",
        limit=100.0,
        severity="remark",
    ),
)
