"""Fewer records than updates in long phases, without hiding extreme and invalid values."""

from typing import Any, final

import jax
import numpy as np
from jaxtyping import Float

MetricsOfSeeds = dict[str, Float[Any, " seeds"]]

MOST_RECORDS = 200  # per seed and phase
# Metrics that are finite after every update, and the quantity that is invalid otherwise.
ALWAYS_FINITE = {
    "obs_abs_mean": "an observation",
    "reward_mean": "a reward",
    "value_loss": "the value loss",
    "grad_norm": "the gradient's norm",
    "update_ratio": "the update",
}


def updates_per_record(updates: int) -> int:
    """Return how many updates one record of the metrics covers."""
    return -(-updates // MOST_RECORDS)


@final
class Records:
    """The metrics of a phase outside JAX, thinned during the phase.

    Args:
        every: updates per record.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._updates: list[MetricsOfSeeds] = []
        self._records: list[dict[str, Any]] = []

    def append(self, metrics: MetricsOfSeeds) -> None:
        """Add the metrics of an update, each (seeds,). They are read later: reading waits."""
        self._updates.append(metrics)
        if len(self._updates) == self._every:
            self._thin()

    def joined(self) -> dict[str, Any]:
        """Return metrics of shape (seeds, records)."""
        if self._updates:
            self._thin()

        def join(*parts: Any) -> np.ndarray:
            return np.concatenate(parts, 1)

        return jax.tree.map(join, *self._records)

    def _thin(self) -> None:
        def stack(*rows: Any) -> np.ndarray:
            return np.stack(rows, 1)

        self._records.append(thin(jax.tree.map(stack, *self._updates), self._every))
        self._updates.clear()


def thin(metrics: dict[str, Any], every: int) -> dict[str, Any]:
    """Return metrics of shape (seeds, updates) as (seeds, records), each of `every` updates.

    Counts are summed, `_min` and `_max` kept, means over episodes weighted by their number, and
    all others averaged over the updates where they are not NaN; NaN if there is none. An infinite
    value makes its whole record infinite. NaN makes the record of an `ALWAYS_FINITE` metric NaN.
    """
    if every == 1:
        return metrics
    arrays = {name: np.asarray(values) for name, values in metrics.items()}
    episodes = arrays.get("episodes")
    return {name: _thin(name, values, episodes, every) for name, values in arrays.items()}


def _thin(name: str, values: np.ndarray, episodes: np.ndarray | None, every: int) -> Any:
    parts = np.add.reduceat
    starts = np.arange(0, values.shape[1], every)
    known = ~np.isnan(values) | (name in ALWAYS_FINITE)
    some = parts(known, starts, 1, dtype=np.int64) > 0
    if name == "episodes":
        return parts(values, starts, 1)
    if name.endswith("_min"):
        return np.fmin.reduceat(values, starts, 1)
    if name.endswith("_max"):
        return np.fmax.reduceat(values, starts, 1)
    weight = known.astype(np.float64)
    if episodes is not None and name.startswith("episode_"):
        weight = weight * episodes
    total = parts(np.where(known, values, 0.0) * weight, starts, 1)
    mean = total / np.maximum(parts(weight, starts, 1), 1e-300)
    return np.where(some, mean, np.nan).astype(values.dtype)
