"""Normalised scores over several environments."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from runshelf.comparison.result import AcrossResult, EnvironmentResult, SideResult
from runshelf.statistics.aggregates import AGGREGATES, estimate, performance_profile
from runshelf.statistics.improvement import probability_of_improvement
from runshelf.statistics.scores import Scores

MOST_FOR_ALL_PAIRS = 10
SCORES_PER_UNIT = 40
_MOST_SCORES = 2_000
_LOWEST = -_MOST_SCORES // SCORES_PER_UNIT // 2  # so that 0 to 1 is always among the scores


def across(found: Sequence[EnvironmentResult]) -> AcrossResult | None:
    """Return statistics of normalised scores.

    None without two environments whose references are known, and that two sides have.
    """
    usable = [one for one in found if one.reference and _has_values(one)]
    labels = _labels(usable)
    if len(usable) < 2 or len(labels) < 1:
        return None
    scores = [_scores(usable, label) for label in labels]
    every = np.concatenate([of for one in scores for of in one.runs.values()])
    thresholds = _thresholds(float(every.min()), float(every.max()))
    pairs = list(combinations(range(len(labels)), 2))
    if len(labels) > MOST_FOR_ALL_PAIRS:
        pairs = [(0, n) for n in range(1, len(labels))]
    return AcrossResult(
        envs=[one.env for one in usable],
        labels=labels,
        iqm=[estimate(one, AGGREGATES["iqm"]) for one in scores],
        mean=[estimate(one, AGGREGATES["mean"]) for one in scores],
        profiles=[performance_profile(one, thresholds) for one in scores],
        improvement=[
            (labels[a], labels[b], probability_of_improvement(scores[a], scores[b]))
            for a, b in pairs
        ],
        notes=_notes(found, usable, labels),
    )


def _thresholds(least: float, most: float) -> np.ndarray:
    """Return scores from 0, or below it, to 1, or above it, in fortieths.

    Of a wide range, only the part around 0 to 1 is there: a single run can have a score of -500.
    """
    first = max(np.floor(min(0.0, least)), _LOWEST)
    last = np.ceil(4 * max(1.0, most)) / 4
    many = min(round(SCORES_PER_UNIT * (last - first)), _MOST_SCORES)
    return first + np.arange(many + 1) / SCORES_PER_UNIT


def _labels(usable: Sequence[EnvironmentResult]) -> list[str]:
    """Return the labels of the sides that have every environment, in order."""
    if not usable:
        return []
    everywhere = set.intersection(*({side.label for side in one.sides} for one in usable))
    return [side.label for side in usable[0].sides if side.label in everywhere]


def _has_values(one: EnvironmentResult) -> bool:
    return all(np.isfinite(side.counted).all() for side in one.sides)


def _scores(usable: Sequence[EnvironmentResult], label: str) -> Scores:
    """Return the normalised scores of a side."""
    values = {one.env: np.array(_side(one, label).counted) for one in usable}
    ends = {one.env: (one.reference.low, one.reference.high) for one in usable if one.reference}
    return Scores(values).normalised(ends)


def _side(one: EnvironmentResult, label: str) -> SideResult:
    return next(side for side in one.sides if side.label == label)


def _notes(
    found: Sequence[EnvironmentResult], usable: Sequence[EnvironmentResult], labels: Sequence[str]
) -> list[str]:
    notes: list[str] = []
    if unknown := [one.env for one in found if not one.reference]:
        notes.append(
            f"left out, since their scores 0 and 1 are unknown: {', '.join(unknown)} "
            "(--low ENV=X --high ENV=X)"
        )
    some = dict.fromkeys(side.label for one in usable for side in one.sides)
    if without := [label for label in some if label not in labels]:
        notes.append(f"left out, since they lack an environment: {', '.join(without)}")
    seeds = sorted({len(side.seeds) for one in usable for side in one.sides})
    if seeds[0] == 1:
        notes.append("groups with 1 seed in an environment have no intervals")
    if few := [count for count in seeds if 1 < count < 10]:
        notes.append(f"with {few[0]} seeds in an environment, these intervals are too narrow")
    return notes
