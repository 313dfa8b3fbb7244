"""What a phase's metrics say at a glance, and whether learning left the finite numbers."""

from collections.abc import Mapping, Sequence

import numpy as np

from backflip.algorithms.drivers.driver import Learner
from backflip.algorithms.drivers.thinning import ALWAYS_FINITE
from backflip.archive.run import Run
from backflip.core.errors import BackflipError, EnvironmentFailed
from backflip.core.trees import flatten
from backflip.training.progress import HEALTH


def health_of(metrics: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the newest known value of each seed, averaged over the seeds that have one."""
    health: dict[str, float] = {}
    for name in (*HEALTH, "entropy_max"):  # the entropy is told beside the largest there can be
        rows = metrics.get(name, np.empty((0, 0)))
        newest = [row[np.isfinite(row)][-1] for row in rows if np.isfinite(row).any()]
        if newest:
            health[name] = float(np.mean(newest))
    return health


def refuse_nonfinite(
    run: Run,
    metrics: Mapping[str, np.ndarray],
    learners: Learner,
    numbers: Sequence[int],
    learns_own_reward: bool,
) -> None:
    """Raise if an environment in JAX, a reward model or learning itself left the finite numbers.

    `numbers` says up to which update each record of the metrics goes.

    Environments outside JAX are checked at every env step. A true reward that is not learnt from
    may be anything.
    """
    for name, what in ALWAYS_FINITE.items():
        values = metrics.get(name, np.zeros((1, 1)))
        if not np.isfinite(values).all():
            place, row = np.argwhere(~np.isfinite(values.T))[0]
            kind, who = _to_blame(run, name, learns_own_reward)
            where = f"seed {run.seeds[row]}, update {numbers[place]}"
            hint = "; try a lower learning rate" if who == "learning" else ""
            raise kind(
                f"{who} failed at {where}: {what} is {values[row, place]}, "
                f"expected a finite number{hint}"
            )
    for name, leaf in flatten(learners.algorithm).items():
        if leaf.dtype.kind == "f" and not np.isfinite(leaf).all():
            raise BackflipError(
                f"learning failed by update {numbers[-1]}: `{name}` is not finite; "
                "try a lower learning rate"
            )


def _to_blame(run: Run, name: str, learns_own_reward: bool) -> tuple[type[BackflipError], str]:
    """Return what failed where a metric that always is finite is not, and the error to raise."""
    if name == "obs_abs_mean" or (name == "reward_mean" and learns_own_reward):
        return EnvironmentFailed, f"environment `{run.manifest['env']}`"
    return BackflipError, "the reward model" if name == "reward_mean" else "learning"
