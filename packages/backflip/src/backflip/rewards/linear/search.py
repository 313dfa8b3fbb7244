"""The search for probable models: combinations of groups of features, and shares of random answers.

A model has a prior variance α of each group of features, 0 for a group that is not active, and a
share ε of random answers. There are too many to fit all of them, and many labels leave few
probable ones. So the search begins with one active group and goes on to the neighbours of what is
probable. Left out is a model that would be improbable even if it were sure of every answer. So is a
change (a smaller variance of a group, a larger ε) that made a model with fewer groups improbable,
as long as that model itself is probable: with more groups, there is less for noise to explain.

Source: Madigan & Raftery 1994, "Model selection and accounting for model uncertainty in graphical
models using Occam's window", JASA 89. They leave out what is larger than a rejected model; here one
more group is always tried, since it may need the others.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.rewards.interface import TIE
from backflip.rewards.linear.answers import Answers, Point
from backflip.rewards.linear.design import Design
from backflip.rewards.linear.marginal import log_evidence
from backflip.rewards.linear.posterior import MostProbable, most_probable

IN_PLAY = 0.1  # prior probability that a group is active
VARIANCES = (0.0, 30.0, 300.0)  # α candidates: prior variances of a label's logit; 0 first
# ε candidates, shares of random answers (half of them wrong), with their prior probabilities.
NOISES = {0.1: 0.8, 0.2: 0.15, 0.4: 0.05}
# The neighbours of a model are fitted if it is at least this probable, relative to the best one.
IMPROBABLE = 1e-2
MARGIN = 5.0  # in nats: a model is left out only if it is improbable by so much more

DesignOf = Callable[[Float[np.ndarray, " G"]], Design]  # the design of some variances


class Change(NamedTuple):
    """What a model has that another has not: a smaller α of a group, or, without group, an ε."""

    group: int | None
    value: float


class Fit(NamedTuple):
    """The most probable weights of a model, and its log evidence."""

    best: MostProbable
    log_evidence: float


class Grid(NamedTuple):
    """The models that may be fitted: α of each group, and ε."""

    variances: Float[np.ndarray, "V G"]
    noises: Float[np.ndarray, " V"]

    def active(self, model: int) -> frozenset[int]:
        """Return the active groups of a model."""
        return frozenset(np.flatnonzero(self.variances[model]).tolist())

    def changes(self, model: int, other: int) -> set[Change]:
        """Return what another model has that a model has not: smaller variances, a larger ε."""
        before, after = self.variances[model], self.variances[other]
        smaller = np.flatnonzero((after > 0) & (after < before))
        found = {Change(int(g), float(after[g])) for g in smaller}
        if self.noises[other] > self.noises[model]:
            found.add(Change(None, float(self.noises[other])))
        return found


def grid_of(groups: int) -> Grid:
    """Return each combination of variances with each share of random answers."""
    variances, noises = combinations(groups), np.array(list(NOISES))
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


def search(
    design_of: DesignOf, grid: Grid, left_preferred: Float[np.ndarray, " n"]
) -> dict[int, Fit]:
    """Return the fits of the models that may be probable, by their number in the grid.

    First those with one active group. Then, the most probable one first, the neighbours of each
    that is not improbable. Without labels all models are equally probable and their weights are 0,
    so the first ones are enough.
    """
    window, near = _Window(design_of, grid, left_preferred), neighbours(grid)
    single = (grid.variances > 0).sum(1) == 1
    window.fit(np.flatnonzero(single), Point(np.zeros(len(left_preferred)), 0.0))
    expanded: set[int] = set()
    while len(left_preferred):
        fresh = [v for v in window.probable() if v not in expanded]
        if not fresh:
            break
        best = max(fresh, key=window.worth.__getitem__)
        expanded.add(best)
        window.expand(best, np.flatnonzero(near[best]))
    return window.found


@final
class _Window:
    """The models fitted so far, and which others are worth a fit.

    Attributes:
        found: the fits, by the number of the model in the grid.
        worth: log evidence and log prior of those found.
    """

    def __init__(
        self, design_of: DesignOf, grid: Grid, left_preferred: Float[np.ndarray, " n"]
    ) -> None:
        self._design_of, self._grid, self._left_preferred = design_of, grid, left_preferred
        self._log_prior = log_prior(grid)
        self._most = self._log_prior + largest_evidence(grid, left_preferred)
        self._once = np.ones(len(left_preferred))
        self._refuted: dict[Change, list[int]] = {}  # models that a change made improbable
        self.found: dict[int, Fit] = {}
        self.worth: dict[int, float] = {}

    def probable(self) -> list[int]:
        """Return the models whose neighbours are worth a fit."""
        least = max(self.worth.values()) + math.log(IMPROBABLE)
        return [v for v, worth in self.worth.items() if worth >= least]

    def expand(self, model: int, near: Int[np.ndarray, " N"]) -> None:
        """Fit the neighbours of a model, but for changes that made a part of it improbable."""
        changes = {int(v): self._grid.changes(model, int(v)) for v in near}
        refuted = self._refuted_in(model)
        wanted = [v for v, of_it in changes.items() if not refuted & of_it]
        self.fit(np.array(wanted, int), self.found[model].best.point)
        best = dict[Change, float]()
        for v, of_it in changes.items():
            for change in of_it if v in self.found else ():
                best[change] = max(best.get(change, -math.inf), self.worth[v])
        least = self.worth[model] + math.log(IMPROBABLE) - MARGIN
        for change in (change for change, worth in best.items() if worth < least):
            self._refuted.setdefault(change, []).append(model)

    def _refuted_in(self, model: int) -> set[Change]:
        """Return the changes that made a probable model improbable that is a part of this one."""
        active, probable = self._grid.active(model), set(self.probable())
        return {
            change
            for change, models in self._refuted.items()
            if any(one in probable and self._grid.active(one) <= active for one in models)
        }

    def fit(self, wanted: Int[np.ndarray, " N"], start: Point) -> None:
        """Fit models that may be probable, with steps from `start`."""
        for v in map(int, wanted):
            largest = max(self.worth.values(), default=-math.inf)
            least = largest + math.log(IMPROBABLE) - MARGIN
            if v not in self.found and self._most[v] >= least:
                answers = Answers(self._once, self._left_preferred, float(self._grid.noises[v]))
                design = self._design_of(self._grid.variances[v])
                best = most_probable(design, answers, start)
                self.found[v] = Fit(best, log_evidence(design, best))
                self.worth[v] = self.found[v].log_evidence + float(self._log_prior[v])


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
