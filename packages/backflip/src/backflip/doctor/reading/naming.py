"""Gives logged series our names, and says how each was computed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from backflip.doctor.log import Signal, Values
from backflip.doctor.signals import SIGNALS
from runshelf.errors import UsageError, did_you_mean
from runshelf.formatting import plural
from runshelf.interop.import_tables import STEPS
from runshelf.interop.metric_names import MEANINGS, Library, library_of

ENV_STEPS = "env_steps"  # our name of the axis
AXES = ("step", ENV_STEPS, "time", "seconds", "updates", "seed", "episodes")
# Columns with one value for each training run, where a table holds several.
OF_TRAININGS = (
    "run",
    "run_id",
    "run_name",
    "trial",
    "trial_id",
    "exp_name",
    "experiment",
    "algorithm",
    "algo",
    "env",
    "env_id",
    "seed",
)
# Names that users give in their own logs, which mean one thing.
OWN_RETURNS = (
    "ep_rew_mean",
    "ep_reward_mean",
    "ep_ret",
    "ep_return",
    "episode_return",
    "episodic_return",
    "episode_reward",
    "episode_reward_mean",
    "mean_episode_reward",
    "mean_episode_return",
    "mean_return",
    "return_mean",
    "avg_return",
    "average_return",
)
OWN_LENGTHS = ("ep_len_mean", "ep_len", "episode_length", "episodic_length", "mean_episode_length")
OWN_NAMES = {
    **dict.fromkeys(OWN_RETURNS, "episode_return_mean"),
    **dict.fromkeys(OWN_LENGTHS, "episode_length_mean"),
}
RAY = "ray/tune/"  # before RLlib's names in event files
_MOST_UNKNOWN = 40
_FEWEST_BROKEN, _LEAST_BROKEN = 5, 0.05  # values at the end of a series, and their share
MANY = 0.4  # of the values: single episodes that end together are fewer
# Values of single episodes: those of several environments may end at the same step.
EPISODES = ("charts/episodic_return", "charts/episodic_length")


@final
class Logged(NamedTuple):
    """A series as it was logged: env steps and values, both in the order of the log."""

    x: Values
    y: Values


@final
class Named(NamedTuple):
    """Logged series in our names.

    Attributes:
        library: the library that wrote them, or `unknown`.
        signals: by our name.
        unknown: names without a meaning for a check.
        broken: series of names without a meaning that end in NaN or infinity.
        notes: what is wrong with the series.
    """

    library: str
    signals: dict[str, Signal]
    unknown: tuple[str, ...]
    broken: tuple[Signal, ...]
    notes: tuple[str, ...]


def named(logged: Mapping[str, Logged], mapping: Mapping[str, str]) -> Named:
    """Return logged series in our names.

    Args:
        logged: by logged name.
        mapping: our name by logged name, as the user gave it. It comes first.

    Raises:
        UsageError: the mapping names a series that does not exist, or no signal of ours.
    """
    check_mapping(logged, mapping)
    short = {name.removeprefix(RAY): one for name, one in logged.items()}
    mapping = {name.removeprefix(RAY): ours for name, ours in mapping.items()}
    library = library_of(short)
    if not library and {"r", "l", "t"} <= short.keys():
        library = "monitor"
    unknown, found = list[str](), dict[str, Signal]()
    for name, series in short.items():
        ours, factor, how = _meaning(name, library, mapping)
        if not ours:
            unknown += [] if _is_explained(name, library) else [name]
            continue
        if ours not in found or name in mapping:
            found[ours] = _signal(name, series, factor, how)
    used = [name for name in short if name in {one.logged_as for one in found.values()}]
    notes = (*_going_back(short, used), *_left_out(short, used, found))
    others = (_signal(name, short[name], 1.0, "") for name in unknown)
    broken = tuple(one for one in others if _ends_broken(one.y))
    if broken:
        named_so = _first_of([one.logged_as for one in broken])
        notes = (*notes, f"{named_so}: NaN or infinity until the end, after finite numbers")
    return Named(library or "unknown", found, tuple(unknown[:_MOST_UNKNOWN]), broken, notes)


def _ends_broken(y: Values) -> bool:
    """Return whether values are finite at first, and then NaN or infinite until the end.

    A few at the end do not count: a program may be writing them.
    """
    finite = np.flatnonzero(np.isfinite(y))
    rest = len(y) - finite[-1] - 1 if len(finite) else 0
    return rest >= max(_FEWEST_BROKEN, _LEAST_BROKEN * len(y))


def check_mapping(logged: Mapping[str, Logged], mapping: Mapping[str, str]) -> None:
    """Check that a mapping leads from a logged name to one of ours.

    Raises:
        UsageError: it does not.
    """
    for theirs, ours in mapping.items():
        if theirs not in logged and theirs in SIGNALS and ours in logged:
            raise UsageError(
                f"nothing is logged as `{theirs}`, and `{ours}` is no signal: the logged name "
                f"comes first, as --map {ours}={theirs}"
            )
        if theirs not in logged:
            raise UsageError(f"nothing is logged as `{theirs}`{did_you_mean(theirs, logged)}")
        if ours not in SIGNALS:
            raise UsageError(
                f"there is no signal `{ours}`{did_you_mean(ours, SIGNALS)}; "
                "backflip doctor --list has all"
            )


def _is_explained(name: str, library: Library) -> bool:
    """Return whether a name without a signal has a known meaning all the same."""
    known = (*AXES, *MEANINGS.get(library, {}))
    return name in known or name.lower() in (*STEPS, *OF_TRAININGS)


def _meaning(name: str, library: Library, mapping: Mapping[str, str]) -> tuple[str, float, str]:
    """Return our name, the factor, and how the value is computed; no name if it has none."""
    if name in mapping:
        return mapping[name], 1.0, ""
    meaning = MEANINGS.get(library, {}).get(name)
    if meaning and (meaning.like or meaning.ours):
        return meaning.like or meaning.ours, meaning.factor, meaning.caution
    if not library and name in SIGNALS:
        return name, 1.0, ""
    if not library and name.lower() in OWN_NAMES:
        return OWN_NAMES[name.lower()], 1.0, "taken by its name; if it is another thing, use --map"
    return "", 1.0, ""


def _signal(name: str, series: Logged, factor: float, how: str) -> Signal:
    """Return a series ordered by env steps.

    Of equal steps, the last value counts; of single episodes that end together, the mean.
    """
    x, y = series.x, series.y * factor
    known = np.isfinite(x)
    x, y = x[known], y[known]
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    last = np.append(np.diff(x) > 0, True)[: len(x)]
    if name in EPISODES and len(x):
        begins = np.flatnonzero(np.insert(last[:-1], 0, True))
        ended = np.diff(begins, append=len(y))  # episodes that end at each step
        return Signal(x[last], np.add.reduceat(y, begins) / ended, name, how)
    return Signal(x[last], y[last], name, how)


def _left_out(
    logged: Mapping[str, Logged], used: Sequence[str], found: Mapping[str, Signal]
) -> tuple[str, ...]:
    """Return one note about series of which many values have equal steps; empty if none has."""
    counts = {one.logged_as: len(one.x) for one in found.values()}
    lost = {name: int(np.isfinite(logged[name].x).sum()) - counts[name] for name in used}
    kept = [name for name in used if name not in EPISODES]
    names = [name for name in kept if lost[name] > MANY * len(logged[name].x)]
    if not names:
        return ()
    return (
        f"{_first_of(names)}: {lost[names[0]]:,} of {len(logged[names[0]].x):,} values are left "
        "out, because of equal steps the last value counts. This may be several runs in one "
        "log: give each a log of its own, or a column `seed`",
    )


def _going_back(logged: Mapping[str, Logged], used: Sequence[str]) -> tuple[str, ...]:
    """Return one note about all series whose steps go back; empty if none does."""
    steps = {name: logged[name].x[np.isfinite(logged[name].x)] for name in used}
    back = {name: int((np.diff(x) < 0).sum()) for name, x in steps.items()}
    names = [name for name, times in back.items() if times]
    if not names:
        return ()
    return (
        f"{_first_of(names)}: steps go back {plural(max(back.values()), 'time')}; values are in "
        "the order of steps. This may be two runs in one log, or a run that began again at an "
        "earlier step",
    )


def _first_of(names: Sequence[str]) -> str:
    """Return the first name, and how many more there are."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"`{names[0]}`{more}"
