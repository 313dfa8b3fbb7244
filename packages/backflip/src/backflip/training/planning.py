"""The phases of a run, and the number of its evaluation episodes."""

import numpy as np

from backflip.core.spec import UNLIMITED
from backflip.drivers.driver import Driver, Phase

PHASES = 20
MANY_PHASES = -(-3 * PHASES // 4)  # the fewest that `plan` makes of `PHASES`
# Episodes with a limit above the first number, in env steps, are assumed to last the second.
LONGEST_PLANNED, ASSUMED = 20_000, 2_000
# Evaluation episodes of each seed; `LONG_EPISODES` if one may last more than `LONG` env steps.
EPISODES_IN_JAX, EPISODES_ON_HOST, LONG_EPISODES = 500, 100, 20
LONG = 5_000


def plan(updates: int, phases: int) -> list[int]:
    """Return the updates of each phase: all equal if possible, so that one program is compiled.

    The number of phases is the divisor of `updates` nearest to `phases`, if one lies within a
    quarter of it. Otherwise the last phase is longer or shorter than the others.
    """
    near = range(-(-3 * phases // 4), 5 * phases // 4 + 1)
    fitting = [n for n in near if updates % n == 0]
    if fitting:
        count = min(fitting, key=lambda n: abs(n - phases))
        return [updates // count] * count
    lengths = {max(1, updates // phases), -(-updates // phases)}
    return min((_unequal(updates, each) for each in lengths), key=lambda p: abs(len(p) - phases))


def planned_phases(updates: int, phases: int, first: int) -> list[int]:
    """Return the updates of each phase, after one of `first` updates unless that is 0."""
    return [*([first] if first else []), *plan(updates - first, phases)]


def _unequal(updates: int, each: int) -> list[int]:
    """Return phases of `each` updates; the last has up to half as many more or fewer."""
    whole, rest = divmod(updates, each)
    if 2 * rest < each:
        return [each] * (whole - 1) + [each + rest]
    return [each] * whole + [rest]


def phases_of_length(updates: int, least: int, most: int) -> int:
    """Return the largest number of phases, at most `most`, of at least `least` updates each.

    The last may have fewer. If there is no such number, return two, because queries need two
    phases, or one if `most` is one.
    """
    for count in range(most, 2, -1):
        if plan(updates, count)[0] >= least:
            return count
    return min(most, 2)


def phase_count(updates: int, driver: Driver) -> int:
    """Return the approximate number of phases: 20, or fewer for long episodes.

    If a phase's end cuts unfinished episodes, a phase lasts at least three episodes of the longest
    kind. Atari games may last 27,000 env steps but hardly ever do. So with a limit above 20,000, a
    phase lasts at least 6,000 env steps, and longer episodes are cut.
    """
    phases = min(PHASES, updates)
    if driver.episodes_survive_phases:
        return phases
    env_steps = updates * driver.algorithm.rollout_length  # of one environment
    limit = driver.spec.max_episode_steps or UNLIMITED
    episodes = env_steps // (limit if limit <= LONGEST_PLANNED else ASSUMED)
    return min(phases, max(1, episodes // 3))


def evaluation_episodes(driver: Driver) -> int:
    """Return the number of evaluation episodes of each seed."""
    if driver.runs_compiled:
        return EPISODES_IN_JAX
    limit = driver.spec.max_episode_steps or UNLIMITED
    return EPISODES_ON_HOST if limit <= LONG else LONG_EPISODES


def cut_episodes_warning(driver: Driver, phase: Phase, updates: int) -> str | None:
    """Return a warning if no episode ended in a phase whose end cuts episodes, else None."""
    if driver.episodes_survive_phases or np.asarray(phase.metrics["episodes"]).any():
        return None
    env_steps = updates * driver.algorithm.rollout_length
    return (
        f"no episode of `{driver.spec.id}` ended within {env_steps:,} env steps, after which all "
        "environments are reset: later parts of an episode are never reached. Use more "
        "--env-steps, or shorter episodes: "
        f"--env-arg max_episode_steps={max(1, env_steps // 3)}"
    )
