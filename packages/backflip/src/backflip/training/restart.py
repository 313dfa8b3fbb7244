"""A new start of the networks in the middle of teaching.

The first reward is fitted to few labels. A policy that has learned from it explores little, and may
never leave what it found, although the newest reward says that other behaviour is better. So once
most labels are known, the networks are initialised again, and learn from a nearly final reward. The
labels stay, and so does a replay: the resets of Nikishin et al. 2022, arXiv:2205.07802.

A new start can keep a share κ of what was learned: with θ the learned parameters and θ₀ new ones,

    θ ← κ θ + (1 - κ) θ₀    Ash & Adams 2020, arXiv:1910.08475 (shrink and perturb)

Departures from it: θ₀ is a full initialisation in place of small noise; the noise of a policy
(`log_std`) and the optimiser begin again; the statistics of observations and returns stay.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.core.trees import stack_rows
from backflip.drivers.driver import Learner

RESTART = 0x5E5E7  # added to the seed, so that the networks are not those of the first start
# Parts of the algorithms' states; all others are new after a new start.
NETWORKS = ("params", "target", "actor", "critics", "target_actor", "target_critics")
STATISTICS = ("obs_statistics", "return_statistics")


def restart_phase(share: float, phases: int) -> int | None:
    """Return the number of the phase, from 0, that begins with new networks; None without one."""
    number = round(share * phases)
    return number if 0 < number < phases else None


def restarted(
    algorithm: Algorithm,
    seeds: Sequence[int],
    learners: Learner,
    *,
    keeps: float = 0.0,
    schedules: bool = False,
) -> Learner:
    """Return the learners with new networks, which keep a share of the learned parameters.

    Args:
        algorithm: the algorithm.
        seeds: the seeds of the learners.
        learners: of all seeds.
        keeps: κ, the share of the learned parameters.
        schedules: whether schedules start again too; with a replay they never do, because its
            exploration has been done.
    """
    fresh: Any = stack_rows([algorithm.init(seed + RESTART) for seed in seeds])
    if keeps:
        fresh = partly_new(learners.algorithm, fresh, keeps)
    if not schedules or algorithm.replay is not None:
        fresh = in_schedules_of(learners.algorithm, fresh)
    return learners._replace(algorithm=fresh)


def partly_new(learned: Any, fresh: Any, keeps: float) -> Any:
    """Return κ θ + (1 - κ) θ₀ with learned statistics; all else is that of the fresh state.

    Args:
        learned: the state of an algorithm, with θ.
        fresh: a new state of the same structure, with θ₀.
        keeps: κ, from 0 to 1.
    """
    pairs = {name: (getattr(learned, name), getattr(fresh, name)) for name in fresh._fields}
    networks = {name: _mixed(*pairs[name], keeps) for name in NETWORKS if name in pairs}
    return fresh._replace(
        **networks, **{name: pairs[name][0] for name in STATISTICS if name in pairs}
    )


def _mixed(learned: Any, fresh: Any, keeps: float) -> Any:
    def mix(old: Any, new: Any) -> Any:
        return np.float32(keeps * old + (1 - keeps) * new)

    mixed = jax.tree.map(mix, learned, fresh)
    # A policy that has settled for something no longer explores: its noise is new.
    return mixed | {"log_std": fresh["log_std"]} if "log_std" in fresh else mixed


def in_schedules_of(learned: Any, fresh: Any) -> Any:
    """Return fresh states at the place of learned ones in their schedules, if there are any."""
    if "updates" not in fresh._fields:
        return fresh
    return fresh._replace(updates=np.asarray(learned.updates))
