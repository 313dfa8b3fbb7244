"""The models that a fit may use: combinations of groups of features, and shares of random answers.

A model has a prior variance α of each group of features, 0 for a group that is not active, and a
share ε of random answers.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.rewards.interface import TIE

IN_PLAY = 0.1  # prior probability that a group is active
VARIANCES = (0.0, 30.0, 300.0)  # α candidates: prior variances of a label's logit; 0 first
# ε candidates, shares of random answers (half of them wrong), with their prior probabilities.
NOISES = {0.1: 0.8, 0.2: 0.15, 0.4: 0.05}


class Change(NamedTuple):
    """What a model has that another has not: a smaller α of a group, or, without group, an ε."""

    group: int | None
    value: float


@final
class Grid:
    """The models that may be fitted; each has a number.

    Attributes:
        variances: α of each group, of each model.
        noises: ε of each model.
    """

    def __init__(
        self, variances: Float[np.ndarray, "V G"], noises: Float[np.ndarray, " V"]
    ) -> None:
        self.variances, self.noises = variances, noises
        self._changes: dict[tuple[int, int], frozenset[Change]] = {}

    @cached_property
    def active(self) -> Sequence[frozenset[int]]:
        """The active groups of each model."""
        return [frozenset(np.flatnonzero(of_groups).tolist()) for of_groups in self.variances]

    @cached_property
    def near(self) -> Sequence[Int[np.ndarray, " N"]]:
        """The neighbours of each model, and itself."""
        return [np.flatnonzero(of_model) for of_model in neighbours(self)]

    @cached_property
    def log_prior(self) -> Float[np.ndarray, " V"]:
        """The log prior odds of each model against no active group, plus log P(ε)."""
        return log_prior(self)

    def changes(self, model: int, other: int) -> frozenset[Change]:
        """Return what another model has that a model has not: smaller variances, a larger ε."""
        known = self._changes.get((model, other))
        if known is None:
            known = self._changes[model, other] = frozenset(self._find_changes(model, other))
        return known

    def _find_changes(self, model: int, other: int) -> set[Change]:
        before, after = self.variances[model], self.variances[other]
        smaller = np.flatnonzero((after > 0) & (after < before))
        found = {Change(int(g), float(after[g])) for g in smaller}
        if self.noises[other] > self.noises[model]:
            found.add(Change(None, float(self.noises[other])))
        return found


def grid_of(groups: int) -> Grid:
    """Return each combination of variances with each share of random answers."""
    return _grid_of(groups, tuple(NOISES))


@cache
def _grid_of(groups: int, noises: tuple[float, ...]) -> Grid:
    variances = combinations(groups)
    of_each = np.tile(variances, (len(noises), 1))
    return Grid(of_each, np.repeat(noises, len(variances)))


def combinations(groups: int) -> Float[np.ndarray, "V G"]:
    """Return the combinations of candidate variances of the groups, with 1 to 3 active, or all.

    Three active groups, and all of them, have the same variance. Others are improbable a priori,
    and cost time.
    """
    every = itertools.product(VARIANCES, repeat=groups)
    return np.array([variances for variances in every if _is_candidate(variances)])


def _is_candidate(variances: tuple[float, ...]) -> bool:
    active = [x for x in variances if x > 0]
    return 1 <= len(active) <= 2 or (len(active) in (3, len(variances)) and len(set(active)) == 1)


def largest_evidence(
    grid: Grid, left_preferred: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " V"]:
    """Return n log(1 - ε + ε/K), the log evidence of a model that is sure of all n answers.

    K is the number of answers in use: 3, or 2 without ties.
    """
    answers = 3 if (left_preferred == TIE).any() else 2
    return len(left_preferred) * np.log1p(grid.noises * (1 / answers - 1))


def neighbours(grid: Grid) -> Bool[np.ndarray, "V V"]:
    """Return which models are neighbours: that differ in the variance of one group, or in ε.

    Those that differ in ε are neighbours if no other candidate of ε is between them. Groups with a
    common variance count as one, because it changes together: with three active groups, what
    counts is whether one more is active. All groups are neighbours of three.
    """
    variances = grid.variances
    active = variances > 0
    more = (active[:, None] != active[None]).sum(-1)
    apart = (variances[:, None] != variances[None]).sum(-1)
    levels = np.searchsorted(sorted(NOISES), grid.noises)
    steps = np.abs(levels[:, None] - levels[None])
    many = active.sum(1) >= 3
    to_all = many[:, None] & active.all(1, keepdims=True).T
    differ_in_one = np.where(many[:, None] | many[None], (more <= 1) | to_all, apart <= 1)
    return (differ_in_one & (steps == 0)) | ((apart == 0) & (steps == 1))


def log_prior(grid: Grid) -> Float[np.ndarray, " V"]:
    """Return the log prior odds of each model against no active group, plus log P(ε).

    A group is active with probability `IN_PLAY`; then all combinations of variances with the same
    active groups are equally likely. ε has the probabilities of `NOISES`.
    """
    active = grid.variances > 0
    alike = (active[:, None] == active[None]).all(-1).sum(1) / len(NOISES)
    of_noise = np.log([NOISES[float(noise)] for noise in grid.noises])
    return active.sum(1) * math.log(IN_PLAY / (1.0 - IN_PLAY)) - np.log(alike) + of_noise
