"""Scores of one group on several environments: one number per run, never per episode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Float


@final
@dataclass(frozen=True)
class Scores:
    """The score of each run, by environment. The number of runs may differ by environment.

    Attributes:
        runs: for each environment the scores of its runs, one finite number for each training run.

    Raises:
        ValueError: there is no environment, an environment has no run, a score is not finite, or
            the scores of an environment have more than one dimension.
    """

    runs: Mapping[str, Float[np.ndarray, " runs"]]

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("expected scores of at least one environment, got none")
        kept = {name: _checked(name, scores) for name, scores in self.runs.items()}
        object.__setattr__(self, "runs", MappingProxyType(kept))

    @classmethod
    def of_matrix(
        cls, matrix: Float[np.ndarray, "seeds environments"], environments: Sequence[str]
    ) -> "Scores":
        """Return the scores in a matrix of seeds x environments.

        Raises:
            ValueError: the matrix does not have two dimensions, or does not have one column for
                each environment.
        """
        matrix = np.asarray(matrix, float)
        if matrix.ndim != 2:
            raise ValueError(
                f"expected seeds x environments, got {matrix.ndim} dimensions{_AVERAGE_FIRST}"
            )
        if len(set(environments)) != len(environments) or matrix.shape[1] != len(environments):
            raise ValueError(
                f"expected one column for each of {len(environments)} different environments, "
                f"got {matrix.shape[1]} columns for {', '.join(environments)}"
            )
        return cls(dict(zip(environments, matrix.T, strict=True)))

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments."""
        return tuple(self.runs)

    @property
    def n(self) -> int:
        """The number of runs on all environments together."""
        return sum(len(scores) for scores in self.runs.values())

    def normalised(self, references: Mapping[str, tuple[float, float]]) -> "Scores":
        """Return (score - low) / (high - low), with (low, high) of each environment.

        Low is usually the mean return of a random policy, high the best known. Where lower is
        better, low is the higher number.

        Raises:
            ValueError: an environment has no references, or they are equal or not finite.
        """
        missing = [name for name in self.runs if name not in references]
        if missing:
            raise ValueError(f"no reference scores (low, high) for {', '.join(missing)}")
        return Scores(
            {name: _between(name, scores, *references[name]) for name, scores in self.runs.items()}
        )


_AVERAGE_FIRST = ": a run is one number, so average the episodes of each run first"


def _checked(name: str, scores: Float[np.ndarray, " runs"]) -> Float[np.ndarray, " runs"]:
    """Return a read-only copy of an environment's scores."""
    copy = np.array(scores, float)
    if copy.ndim != 1:
        raise ValueError(f"{name}: expected one dimension, got {copy.ndim}{_AVERAGE_FIRST}")
    if not len(copy):
        raise ValueError(f"{name}: expected at least one run, got none")
    if not np.isfinite(copy).all():
        raise ValueError(f"{name}: expected finite scores: count failures first")
    copy.setflags(write=False)
    return copy


def _between(
    name: str, scores: Float[np.ndarray, " runs"], low: float, high: float
) -> Float[np.ndarray, " runs"]:
    """Return scores with `low` at 0 and `high` at 1."""
    if not np.isfinite([low, high]).all() or low == high:
        raise ValueError(f"{name}: expected two different reference scores, got {low} and {high}")
    return (scores - low) / (high - low)
