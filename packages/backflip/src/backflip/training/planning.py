"""How a run is divided into phases, and over how many episodes its policies are evaluated."""

import numpy as np

from backflip.algorithms.interface import Settings
from backflip.core.spec import UNLIMITED
from backflip.drivers.driver import Driver, Phase

PHASES = 20
# Where episodes may last longer than the first, in env steps, they are taken to last the second.
LONGEST_PLANNED, ASSUMED = 20_000, 2_000
# Of each seed's evaluation; the last where one may last longer than `LONG`, in env steps.
EPISODES_IN_JAX, EPISODES_ON_HOST, LONG_EPISODES = 500, 100, 20
LONG = 5_000


def plan(updates: int, phases: int) -> list[int]:
    """Return the updates of each phase: all equal, so that one program is compiled.

    Half to twice the phases asked for will do; where no such number divides the updates, the last
    phase is shorter.
    """
    fitting = [n for n in range(-(-phases // 2), 2 * phases + 1) if updates % n == 0]
    if fitting:
        count = min(fitting, key=lambda n: abs(n - phases))
        return [updates // count] * count
    each = -(-updates // phases)
    whole, rest = divmod(updates, each)
    return [each] * whole + [rest] * (rest > 0)


def phase_count(config: Settings, driver: Driver) -> int:
    """Return about how many phases to divide the work into: 20, or fewer for long episodes.

    Where a phase's end cuts unfinished episodes, a phase lasts three of the longest episodes of
    every environment. Atari's games may last 27,000
    env steps and hardly ever do: by that limit a run would be one phase, saved at its end alone.
    Where the limit is above 20,000, a phase lasts 6,000 at least, and a longer game is always cut.
    """
    phases = min(PHASES, config.updates)
    if driver.episodes_survive_phases:
        return phases
    env_steps = config.updates * config.rollout_length  # of one environment
    limit = driver.spec.max_episode_steps or UNLIMITED
    episodes = env_steps // (limit if limit <= LONGEST_PLANNED else ASSUMED)
    return min(phases, max(1, episodes // 3))


def evaluation_episodes(driver: Driver) -> int:
    """Return how many episodes a seed is evaluated over."""
    if driver.runs_compiled:
        return EPISODES_IN_JAX
    limit = driver.spec.max_episode_steps or UNLIMITED
    return EPISODES_ON_HOST if limit <= LONG else LONG_EPISODES


def cut_episodes_warning(driver: Driver, phase: Phase, updates: int) -> str | None:
    """Return a warning if no episode ended in a phase whose end cuts episodes, else None.

    All environments are reset after it, so what comes later in an episode is never seen.
    """
    if driver.episodes_survive_phases or np.asarray(phase.metrics["episodes"]).any():
        return None
    lived = updates * driver.algorithm.rollout_length
    return (
        f"no episode of `{driver.spec.id}` ended within {lived:,} env steps, after which all begin "
        "anew: what comes later in one is never seen. Give it more --env-steps, or end episodes "
        f"earlier: --env-arg max_episode_steps={max(1, lived // 3)}"
    )
