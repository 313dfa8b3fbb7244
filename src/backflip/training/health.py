"""What a phase's metrics say at a glance, and whether learning left the finite numbers."""

from collections.abc import Mapping, Sequence

import numpy as np

from backflip.algorithms.drivers.driver import Learner
from backflip.archive.run import Run
from backflip.core.errors import BackflipError, EnvironmentFailed
from backflip.core.trees import flatten

HEALTH = (
    "episode_return_mean",
    "entropy",
    "entropy_max",
    "approx_kl",
    "explained_variance",
    "grad_norm",
)


def health_of(metrics: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the newest known value of each seed, averaged over the seeds that have one."""
    health: dict[str, float] = {}
    for name in HEALTH:
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
    env = f"environment `{run.manifest['env']}` failed"
    rewards = env if learns_own_reward else "the reward model failed"
    of_rewards = EnvironmentFailed if learns_own_reward else BackflipError
    for name, what, kind in (
        ("obs_abs_mean", f"{env}: an observation", EnvironmentFailed),
        ("reward_mean", f"{rewards}: a reward", of_rewards),
        ("value_loss", "learning failed: the value loss", BackflipError),
        ("grad_norm", "learning failed: the gradient's norm", BackflipError),
        ("update_ratio", "learning failed: the update", BackflipError),
    ):
        values = metrics.get(name, np.zeros((1, 1)))
        if not np.isfinite(values).all():
            place, row = np.argwhere(~np.isfinite(values.T))[0]
            what, _, rest = what.partition(": ")
            value, where = values[row, place], f"seed {run.seeds[row]}, update {numbers[place]}"
            hint = "; try a lower learning rate" if what.startswith("learning") else ""
            raise kind(f"{what} at {where}: {rest} is {value}, expected a finite number{hint}")
    for name, leaf in flatten(learners.algorithm).items():
        if leaf.dtype.kind == "f" and not np.isfinite(leaf).all():
            raise BackflipError(
                f"learning failed by update {numbers[-1]}: `{name}` is not finite; "
                "try a lower learning rate"
            )
