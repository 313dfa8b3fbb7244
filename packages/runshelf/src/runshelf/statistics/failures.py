"""Runs without a finite score are failures. Leaving them out would make a method look better."""

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float


@final
class Counted(NamedTuple):
    """Groups of scores in which every failed run has a number.

    Attributes:
        groups: the scores of each group, all finite.
        failures: how many runs of each group failed.
        value: the score that failed runs got; NaN if no run failed.
    """

    groups: tuple[Float[np.ndarray, " runs"], ...]
    failures: tuple[int, ...]
    value: float

    @property
    def failed(self) -> int:
        """The number of failed runs of all groups."""
        return sum(self.failures)


def count_failures(
    groups: Sequence[Float[np.ndarray, " runs"]],
    failure_value: float | None = None,
    *,
    higher_is_better: bool = True,
) -> Counted:
    """Return the groups with a score for each failed run: one whose score is NaN or infinite.

    A failed run gets `failure_value`, or else the worst finite score of all groups together. The
    worst score can still be good, where all others worked: give a failure value if you know one,
    for example the score of a random policy.

    Raises:
        ValueError: a run failed, no failure value is given, and no group has a finite score; or the
            failure value is not finite.
    """
    arrays = [np.asarray(group, float) for group in groups]
    failures = tuple(int((~np.isfinite(array)).sum()) for array in arrays)
    if not any(failures):
        return Counted(tuple(arrays), failures, math.nan)
    value = _worst(arrays, higher_is_better) if failure_value is None else failure_value
    if not math.isfinite(value):
        raise ValueError(f"expected a finite failure value, got {value}")
    filled = tuple(np.where(np.isfinite(array), array, value) for array in arrays)
    return Counted(filled, failures, value)


def _worst(groups: Sequence[Float[np.ndarray, " runs"]], higher_is_better: bool) -> float:
    """Return the worst finite score of all groups."""
    scores = np.concatenate(groups)
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        raise ValueError(
            "no run has a finite score: give a failure value, or check the name of the metric"
        )
    return float(finite.min() if higher_is_better else finite.max())
