"""The health line of a phase, and the check that learning stayed finite."""

from collections.abc import Mapping, Sequence

import numpy as np

from backflip.core.errors import EnvironmentFailed
from backflip.core.trees import flatten
from backflip.drivers.driver import Learner
from backflip.drivers.thinning import ALWAYS_FINITE
from backflip.training.progress import HEALTH
from runshelf.errors import UserFacingError
from runshelf.store.run import Run

TOO_LARGE = 1e15  # squares of sums of such numbers overflow float32
EXPECTED = "expected a finite number"
MEAN_OF = {"obs_abs_mean": "observation", "reward_mean": "reward"}  # by the metric's name
# Running statistics in an algorithm's state, and the quantity that they describe.
STATISTICS_OF = {
    "obs_statistics": "observation",
    "return_statistics": "reward",
    "running_return": "reward",
}


def health_of(metrics: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the newest finite value of each metric, averaged over the seeds that have one."""
    health: dict[str, float] = {}
    for name in (*HEALTH, "entropy_max"):
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
    *,
    learns_own_reward: bool,
    checked: bool,
) -> None:
    """Check that metrics and learners are finite.

    Where every env step is checked, a non-finite mean comes from an overflow. A true reward that
    is not trained on may have any value.

    Args:
        run: the run, for messages.
        metrics: each of shape (seeds, records).
        learners: the learners after the last record.
        numbers: the last update of each record.
        learns_own_reward: the algorithm trains on the environment's own reward.
        checked: the driver checks every observation and reward.

    Raises:
        EnvironmentFailed: an environment in JAX returned a number that is not finite.
        UserFacingError: a reward model or the algorithm produced one.
    """
    sizes = {"observation": _largest(metrics, "obs_abs_mean")}
    if learns_own_reward:
        sizes = {"reward": _largest(metrics, "reward_min", "reward_max")} | sizes
    for name, what in ALWAYS_FINITE.items():
        values = metrics.get(name, np.zeros((1, 1)))
        if not np.isfinite(values).all():
            place, row = np.argwhere(~np.isfinite(values.T))[0]
            where = f"failed at seed {run.seeds[row]}, update {numbers[place]}"
            is_number = f"{what} is {values[row, place]}"
            quantity = MEAN_OF.get(name)
            if quantity == "reward" and not learns_own_reward:
                raise UserFacingError(f"the reward model {where}: {is_number}, {EXPECTED}")
            if quantity and not checked:
                raise EnvironmentFailed(
                    f"environment `{run.manifest['env']}` {where}: {is_number} or too large, "
                    f"{EXPECTED} of at most {TOO_LARGE:g}"
                )
            if quantity:
                is_number = f"the mean {quantity} is {values[row, place]}"
            raise UserFacingError(
                f"learning {where}: {is_number}, {EXPECTED}; {_advice(sizes, quantity)}"
            )
    for name, leaf in flatten(learners.algorithm).items():
        if leaf.dtype.kind == "f" and not np.isfinite(leaf).all():
            quantity = STATISTICS_OF.get(name.partition(".")[0])
            raise UserFacingError(
                f"learning failed by update {numbers[-1]}: `{name}` is not finite; "
                f"{_advice(sizes, quantity)}"
            )


def _largest(metrics: Mapping[str, np.ndarray], *names: str) -> float:
    """Return the largest finite absolute value of some metrics, 0 if there is none."""
    known = [np.abs(metrics[name]).ravel() for name in names if name in metrics]
    sizes = np.concatenate([np.zeros(1), *known])
    return float(sizes[np.isfinite(sizes)].max())


def _advice(sizes: Mapping[str, float], cause: str | None) -> str:
    """Return what the user can do about the known cause, or about a quantity that is too large."""
    for what, size in sizes.items():
        if what == cause or (cause is None and size > TOO_LARGE):
            as_large = f", as large as {size:g}," if size > TOO_LARGE else ""
            return (
                f"{what}s{as_large} are finite, but too large to add up and to square in 32 bits: "
                f"divide them in the environment, so that none is above {TOO_LARGE:g}"
            )
    return "try a lower learning rate"
