"""What a phase's metrics say at a glance, and whether learning left the finite numbers."""

from collections.abc import Mapping, Sequence

import numpy as np

from backflip.core.errors import EnvironmentFailed
from backflip.core.trees import flatten
from backflip.drivers.driver import Learner
from backflip.drivers.thinning import ALWAYS_FINITE
from backflip.training.progress import HEALTH
from runshelf.errors import UserFacingError
from runshelf.store.run import Run

TOO_LARGE = 1e15  # sums of such numbers have squares that are no float32
EXPECTED = "expected a finite number"
LIVED = {"obs_abs_mean": "observation", "reward_mean": "reward"}  # what these are the mean of
# What an algorithm keeps of all that it has lived through, and what it is of.
SCALED_BY = {
    "obs_statistics": "observation",
    "return_statistics": "reward",
    "running_return": "reward",
}


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
    *,
    learns_own_reward: bool,
    checked: bool,
) -> None:
    """Raise if an environment in JAX, a reward model or learning itself left the finite numbers.

    Where every env step is checked, what is not finite came of adding up or squaring numbers that
    are. A true reward that is not learnt from may be anything.

    Args:
        run: whose environment and seeds are named.
        metrics: each of shape (seeds, records).
        learners: after the last record.
        numbers: up to which update each record goes.
        learns_own_reward: the reward learnt from was the environment's own.
        checked: every observation and reward was checked when the environment returned it.
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
            lived = LIVED.get(name)
            if lived == "reward" and not learns_own_reward:
                raise UserFacingError(f"the reward model {where}: {is_number}, {EXPECTED}")
            if lived and not checked:
                raise EnvironmentFailed(
                    f"environment `{run.manifest['env']}` {where}: {is_number} or too large, "
                    f"{EXPECTED} of at most {TOO_LARGE:g}"
                )
            said = f"the mean {lived} is {values[row, place]}" if lived else is_number
            raise UserFacingError(f"learning {where}: {said}, {EXPECTED}; {_advice(sizes, lived)}")
    for name, leaf in flatten(learners.algorithm).items():
        if leaf.dtype.kind == "f" and not np.isfinite(leaf).all():
            of_what = SCALED_BY.get(name.partition(".")[0])
            raise UserFacingError(
                f"learning failed by update {numbers[-1]}: `{name}` is not finite; "
                f"{_advice(sizes, of_what)}"
            )


def _largest(metrics: Mapping[str, np.ndarray], *names: str) -> float:
    """Return the largest finite size of some numbers, 0 where there is none."""
    known = [np.abs(metrics[name]).ravel() for name in names if name in metrics]
    sizes = np.concatenate([np.zeros(1), *known])
    return float(sizes[np.isfinite(sizes)].max())


def _advice(sizes: Mapping[str, float], to_blame: str | None) -> str:
    """Return what to do: about what is to blame for certain, or else is too large."""
    for what, size in sizes.items():
        if what == to_blame or (to_blame is None and size > TOO_LARGE):
            as_large = f", as large as {size:g}," if size > TOO_LARGE else ""
            return (
                f"{what}s{as_large} are finite, but too large to add up and to square in 32 bits: "
                f"divide them in the environment, so that none is above {TOO_LARGE:g}"
            )
    return "try a lower learning rate"
