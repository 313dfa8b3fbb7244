"""A new start of the networks in the middle of teaching.

The first reward is fitted to few labels. A policy that has learned from it explores little, and may
never leave what it found, although the newest reward says that other behaviour is better. So once
most labels are known, the networks are initialised again, and learn from a nearly final reward. The
labels stay, and so does a replay: the resets of Nikishin et al. 2022, arXiv:2205.07802.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.core.trees import stack_rows
from backflip.drivers.driver import Learner

RESTART = 0x5E5E7  # added to the seed, so that the networks are not those of the first start


def restart_phase(share: float, phases: int) -> int | None:
    """Return the number of the phase, from 0, that begins with new networks; None without one."""
    number = round(share * phases)
    return number if 0 < number < phases else None


def restarted(
    algorithm: Algorithm, seeds: Sequence[int], learners: Learner, *, schedules: bool = False
) -> Learner:
    """Return the learners with new networks.

    Args:
        algorithm: the algorithm.
        seeds: the seeds of the learners.
        learners: of all seeds.
        schedules: whether schedules start again too; with a replay they never do, because its
            exploration has been done.
    """
    fresh: Any = stack_rows([algorithm.init(seed + RESTART) for seed in seeds])
    if not schedules or algorithm.replay is not None:
        fresh = in_schedules_of(learners.algorithm, fresh)
    return learners._replace(algorithm=fresh)


def in_schedules_of(learned: Any, fresh: Any) -> Any:
    """Return fresh states at the place of others in their schedules, if there are any."""
    if "updates" not in fresh._fields:
        return fresh
    return fresh._replace(updates=np.asarray(learned.updates))
