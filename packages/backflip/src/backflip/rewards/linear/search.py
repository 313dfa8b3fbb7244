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

import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, Int

from backflip.rewards.linear.answers import Answers, Point, together
from backflip.rewards.linear.design import Designs
from backflip.rewards.linear.grid import Change, Grid, largest_evidence
from backflip.rewards.linear.marginal import log_evidence
from backflip.rewards.linear.posterior import MostProbable, most_probable

# The neighbours of a model are fitted if it is at least this probable, relative to the best one.
IMPROBABLE = 1e-2
MARGIN = 5.0  # in nats: a model is left out only if it is improbable by so much more

# How many models are fitted together, and of how many the neighbours are, times the labels. With
# few labels, the calls of NumPy take most of the time of a fit. With many, each fit takes long, and
# the best model so far saves others.
AT_ONCE, EXPANDED = 6400, 1600

DesignsOf = Callable[[Float[np.ndarray, "V G"]], Designs]  # the designs of models


class Fits(NamedTuple):
    """What was found.

    Attributes:
        models: the number of each model in the grid.
        best: its most probable weights.
        log_evidence: its log evidence, in nats.
    """

    models: Int[np.ndarray, " V"]
    best: MostProbable
    log_evidence: Float[np.ndarray, " V"]


def search(designs_of: DesignsOf, grid: Grid, left_preferred: Float[np.ndarray, " n"]) -> Fits:
    """Return the fits of the models that may be probable.

    First those with one active group. Then, the most probable ones first, the neighbours of each
    that is not improbable. Without labels all models are equally probable and their weights are 0,
    so the first ones are enough.
    """
    labels = len(left_preferred)
    window = _Window(designs_of, grid, left_preferred)
    single = np.flatnonzero((grid.variances > 0).sum(1) == 1)
    window.fit(dict.fromkeys(single.tolist(), Point(np.zeros((1, labels)), np.zeros(1))))
    expanded: set[int] = set()
    while labels:
        fresh = [v for v in window.probable() if v not in expanded]
        if not fresh:
            break
        fresh.sort(key=window.worth.__getitem__, reverse=True)
        chosen = fresh[: max(1, EXPANDED // labels)]
        expanded.update(chosen)
        window.expand(chosen)
    return window.fits()


def refit(
    designs_of: DesignsOf,
    grid: Grid,
    left_preferred: Float[np.ndarray, " n"],
    models: Int[np.ndarray, " V"],
    start: Point,
) -> Fits:
    """Return the fits of given models.

    Args:
        designs_of: makes the designs of models from their variances.
        grid: the models that may be fitted.
        left_preferred: the answers.
        models: the numbers of the models to fit.
        start: where the steps of each of them begin.
    """
    answers = _answers(left_preferred, grid.noises[models])
    designs = designs_of(grid.variances[models])
    best = most_probable(designs, answers, start)
    return Fits(models, best, log_evidence(designs, best, answers))


def _answers(left_preferred: Float[np.ndarray, " n"], noises: Float[np.ndarray, " V"]) -> Answers:
    once = np.ones((len(noises), len(left_preferred)))
    return Answers(once, once * left_preferred, noises)


@final
class _Window:
    """The models fitted so far, and which others are worth a fit.

    Attributes:
        points: logits and log θ of each model at its most probable weights, by its number.
        worth: log evidence and log prior of each model, by its number.
    """

    def __init__(
        self, designs_of: DesignsOf, grid: Grid, left_preferred: Float[np.ndarray, " n"]
    ) -> None:
        self._designs_of, self._grid, self._left_preferred = designs_of, grid, left_preferred
        self._most = grid.log_prior + largest_evidence(grid, left_preferred)
        self._at_once = max(1, AT_ONCE // max(len(left_preferred), 1))
        self._refuted: dict[Change, list[int]] = {}  # models that a change made improbable
        self._fits: list[Fits] = []
        self.points: dict[int, Point] = {}
        self.worth: dict[int, float] = {}

    def fits(self) -> Fits:
        """Return all fits."""
        return together(self._fits)

    def probable(self) -> list[int]:
        """Return the models whose neighbours are worth a fit."""
        least = max(self.worth.values()) + math.log(IMPROBABLE)
        return [v for v, worth in self.worth.items() if worth >= least]

    def expand(self, models: Sequence[int]) -> None:
        """Fit the neighbours of models, but for changes that made a part of one improbable."""
        changes = {
            model: {int(v): self._grid.changes(model, int(v)) for v in self._grid.near[model]}
            for model in models
        }
        starts: dict[int, Point] = {}
        for model, of_near in changes.items():
            refuted = self._refuted_in(model)
            for v in (v for v, of_it in of_near.items() if not refuted & of_it):
                starts.setdefault(v, self.points[model])
        self.fit(starts)
        for model, of_near in changes.items():
            self._refute(model, of_near)

    def _refute(self, model: int, changes: Mapping[int, Set[Change]]) -> None:
        """Remember the changes of a model that made it improbable, whichever came with them."""
        best = dict[Change, float]()
        for v in changes.keys() & self.worth.keys():
            for change in changes[v]:
                best[change] = max(best.get(change, -math.inf), self.worth[v])
        least = self.worth[model] + math.log(IMPROBABLE) - MARGIN
        for change in (change for change, worth in best.items() if worth < least):
            self._refuted.setdefault(change, []).append(model)

    def _refuted_in(self, model: int) -> set[Change]:
        """Return the changes that made a probable model improbable that is a part of this one."""
        active, probable = self._grid.active[model], set(self.probable())
        return {
            change
            for change, models in self._refuted.items()
            if any(one in probable and self._grid.active[one] <= active for one in models)
        }

    def fit(self, starts: Mapping[int, Point]) -> None:
        """Fit models that may be probable, with steps from a point of one model (V = 1) each."""
        wanted = [v for v in starts if v not in self.worth]
        for first in range(0, len(wanted), self._at_once):
            largest = max(self.worth.values(), default=-math.inf)
            least = largest + math.log(IMPROBABLE) - MARGIN
            some = wanted[first : first + self._at_once]
            models = [v for v in some if self._most[v] >= least]
            if models:
                self._fit(np.array(models), together([starts[v] for v in models]))

    def _fit(self, models: Int[np.ndarray, " N"], start: Point) -> None:
        found = refit(self._designs_of, self._grid, self._left_preferred, models, start)
        self._fits.append(found)
        worth = found.log_evidence + self._grid.log_prior[models]
        self.worth.update(zip(models.tolist(), worth.tolist(), strict=True))
        logits, log_width = found.best.point
        for row, v in enumerate(models.tolist()):
            self.points[v] = Point(logits[row : row + 1], log_width[row : row + 1])
