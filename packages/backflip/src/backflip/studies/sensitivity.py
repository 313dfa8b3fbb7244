"""How sensitive an algorithm is to its hyper-parameters, over several environments.

Scores are normalised for each environment e by the 5th and 95th percentiles over the settings h:

    Γ(e, h) = (p(e, h) - p₅(e)) / (p₉₅(e) - p₅(e))

Sensitivity is the score that one fixed setting loses against settings tuned for each environment:

    Φ = 1/|E| Σ_e max_h Γ(e, h) - max_h 1/|E| Σ_e Γ(e, h)

The effective dimensionality d is the smallest number of hyper-parameters that must be tuned for
each environment to reach 95 % of the tuned score, while the others keep the fixed setting.

Source: Adkins, Bowling & White 2024, arXiv:2412.07165. They try a full grid of few
hyper-parameters; so does `grid_of`. `one_at_a_time` moves every hyper-parameter from the default,
one at a time, which costs a few settings for each and sees no interactions: its Φ is a lower bound
of that of the grid around it. Where the percentiles are equal, Γ is between the lowest and the
highest score.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from backflip.algorithms.entry import AlgorithmEntry
from backflip.core.spec import EnvSpec
from backflip.studies.setting_values import BUDGET, as_value, defaults_of, nearby_values, problem_of
from runshelf.errors import UsageError
from runshelf.sweeps.space import MOST_CONFIGURATIONS, Value, Values

ENOUGH = 0.95
_LOW, _HIGH = 5.0, 95.0
_MOST_SUBSETS = 20_000  # subsets of hyper-parameters that are tried exactly


@final
class Sensitivity(NamedTuple):
    """How sensitive an algorithm is.

    Attributes:
        tuned: 1/|E| Σ_e max_h Γ, the mean score of settings tuned for each environment.
        fixed: the mean score of the best single setting.
        setting: the number of that setting.
        best: the number of the best setting for each environment.
        by_count: the best mean score with 0, 1, 2, ... hyper-parameters tuned.
        names: the hyper-parameters that are added for each count.
    """

    tuned: float
    fixed: float
    setting: int
    best: tuple[int, ...]
    by_count: tuple[float, ...]
    names: tuple[tuple[str, ...], ...]

    @property
    def phi(self) -> float:
        """Φ, the score that one fixed setting loses."""
        return self.tuned - self.fixed

    @property
    def dimensionality(self) -> int:
        """How many hyper-parameters must be tuned to reach 95 % of the tuned score."""
        enough = ENOUGH * self.tuned - 1e-12
        return next(count for count, score in enumerate(self.by_count) if score >= enough)


def normalised(
    scores: Float[np.ndarray, "environments settings"],
) -> Float[np.ndarray, "environments settings"]:
    """Return Γ; a setting that failed (NaN) has the lowest score, equal scores give 1.

    If so few settings differ from the others that both percentiles are the same, the lowest and the
    highest score take their place: one setting may be the only one that learns.
    """
    filled = np.where(np.isfinite(scores), scores, np.nanmin(scores, axis=1, keepdims=True))
    percentiles = np.percentile(filled, (_LOW, _HIGH), axis=1, keepdims=True)
    ends = np.stack([filled.min(axis=1, keepdims=True), filled.max(axis=1, keepdims=True)])
    low, high = np.where(percentiles[0] < percentiles[1], percentiles, ends)
    spread = high - low
    return np.where(spread > 0, (filled - low) / np.where(spread > 0, spread, 1.0), 1.0)


def sensitivity(
    scores: Float[np.ndarray, "environments settings"], settings: Sequence[Values]
) -> Sensitivity:
    """Return Φ and d of an algorithm.

    Args:
        scores: p(e, h), the mean score of each setting in each environment; NaN if it failed.
        settings: the values of each setting.
    """
    gamma = normalised(scores)
    fixed = int(gamma.mean(axis=0).argmax())
    names = list(settings[0])
    moved = [frozenset(n for n in names if one[n] != settings[fixed][n]) for one in settings]
    by_count: list[float] = []
    chosen: list[tuple[str, ...]] = []
    for count in range(len(names) + 1):
        subset, score = _best_subset(gamma, moved, names, count, chosen)
        by_count.append(score)
        chosen.append(subset)
    return Sensitivity(
        tuned=float(gamma.max(axis=1).mean()),
        fixed=float(gamma[:, fixed].mean()),
        setting=fixed,
        best=tuple(int(n) for n in gamma.argmax(axis=1)),
        by_count=tuple(by_count),
        names=tuple(chosen),
    )


def _best_subset(
    gamma: Float[np.ndarray, "environments settings"],
    moved: Sequence[frozenset[str]],
    names: Sequence[str],
    count: int,
    before: Sequence[tuple[str, ...]],
) -> tuple[tuple[str, ...], float]:
    """Return the subset of so many hyper-parameters whose tuning helps most, and its score.

    Where there are too many subsets, the best one with one less is extended.
    """
    used = sorted(frozenset[str]().union(*moved), key=list(names).index)
    if count > len(used):
        return before[-1], float(gamma.max(axis=1).mean())
    subsets = list(itertools.islice(itertools.combinations(used, count), _MOST_SUBSETS + 1))
    if len(subsets) > _MOST_SUBSETS:
        subsets = [(*before[-1], name) for name in used if name not in before[-1]]

    def score(subset: tuple[str, ...]) -> float:
        free = [n for n, one in enumerate(moved) if one <= set(subset)]
        return float(gamma[:, free].max(axis=1).mean())

    best = max(subsets, key=score)
    return best, score(best)


def one_at_a_time(
    entry: AlgorithmEntry, specs: Sequence[EnvSpec]
) -> tuple[list[dict[str, Value]], list[str]]:
    """Return the defaults, and each hyper-parameter moved to values nearby; and what was left out.

    The defaults are those of the first environment, for all: one setting is one setting.
    """
    defaults = defaults_of(entry, specs[0])
    searched: dict[str, list[Any]] = {}
    left_out: list[str] = []
    for name, setting in entry.settings.items():
        if name in BUDGET:
            continue
        values = [
            value
            for value in nearby_values(setting, defaults)
            if not any(problem_of(entry, s, {**defaults, name: value}) for s in specs)
        ]
        if values:
            searched[name] = values
        else:
            left_out.append(name)
    base = {name: as_value(defaults[name]) for name in searched}
    moved = [
        {**base, name: as_value(value)} for name, values in searched.items() for value in values
    ]
    return [base, *moved], left_out


def grid_of(choices: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Return every combination of values.

    Raises:
        UsageError: there are too many.
    """
    count = math.prod(map(len, choices.values()))
    if count > MOST_CONFIGURATIONS:
        raise UsageError(
            f"this grid has {count:,} settings, the limit is {MOST_CONFIGURATIONS:,}; name fewer "
            "values with --over"
        )
    combinations = itertools.product(*choices.values())
    return [dict(zip(choices, values, strict=True)) for values in combinations]
