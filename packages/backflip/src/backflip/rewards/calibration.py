"""How well probabilities and predicted returns agree with what came true."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num

BINS = 5
NOISE = 0.1  # share of random answers: arXiv:1706.03741, section 2.2.3


class Bin(NamedTuple):
    """One row of a reliability table: forecasts between two probabilities.

    Attributes:
        low: the lower end.
        high: the upper end.
        answers: forecasts in it.
        predicted: their mean; None if there are none.
        observed: the share that came true; a tie counts as a half. None if there are none.
    """

    low: float
    high: float
    answers: int
    predicted: float | None
    observed: float | None


def expected_answer(
    margin: Float[np.ndarray, "*pairs members"], tie_width: float
) -> Float[np.ndarray, "*pairs members"]:
    """Return E[y] = P[left] + ½ P[tie] = ½ (1 + σ(m - θ) - σ(-m - θ)) for margins m.

    θ is the width of ties; if it is 0, E[y] = σ(m). Answers are those of an attentive teacher.
    """
    return 0.5 * (1.0 + sigmoid(margin - tie_width) - sigmoid(-margin - tie_width))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 1.0 / (1.0 + np.exp(-np.clip(x, -50, 50)))


def left_probability(
    margins: Float[np.ndarray, "n M"], tie_width: float = 0.0
) -> Float[np.ndarray, " n"]:
    """Return P[left ≻ right] + ½ P[tie] of n pairs, the mean over members of (1 - ε) E[y] + ε/2.

    E[y] is the `expected_answer` to the margin.

    Args:
        margins: each member's predicted return of the left clip minus that of the right clip.
        tie_width: θ, the width of ties.
    """
    return ((1 - NOISE) * expected_answer(margins, tie_width) + NOISE / 2).mean(-1)


def reliability(
    predicted: Float[np.ndarray, " n"], came_true: Float[np.ndarray, " n"], bins: int = BINS
) -> list[Bin]:
    """Return the reliability table of n forecasts, with bins of equal width.

    Args:
        predicted: probabilities.
        came_true: 1, 0, or ½ for a tie.
        bins: the number of bins.
    """
    number = np.minimum((predicted * bins).astype(int), bins - 1)
    found: list[Bin] = []
    for place in range(bins):
        chosen = number == place
        means = (float(x[chosen].mean()) if chosen.any() else None for x in (predicted, came_true))
        found.append(Bin(place / bins, (place + 1) / bins, int(chosen.sum()), *means))
    return found


def calibration_error(table: list[Bin]) -> float | None:
    """Return the expected calibration error: mean |predicted - observed|, weighted by count.

    Source: Guo et al. 2017, arXiv:1706.04599, equation 3.
    """
    total = sum(one.answers for one in table)
    gaps = (
        one.answers * abs(one.predicted - one.observed)
        for one in table
        if one.predicted is not None and one.observed is not None
    )
    return sum(gaps) / total if total else None


def spearman(one: Num[np.ndarray, " n"], other: Num[np.ndarray, " n"]) -> float | None:
    """Return Spearman's rank correlation, with mean ranks of ties.

    None if one is constant, or has a number that is not finite.
    """
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    ranks = [_ranks(np.asarray(x, np.float64)) for x in (one, other)]
    if len(one) < 2 or min(x.std() for x in ranks) == 0.0:
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
