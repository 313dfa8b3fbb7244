"""AdaStop: group-sequential permutation tests of several groups, with family-wise control.

Source: Mathieu et al. 2024, "AdaStop: adaptive statistical testing for sound comparisons of deep RL
agents", arXiv:2306.10882.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float64

PERMUTATIONS = 20_000

_SEED = 0  # fixed, so that a look always has the same answer

Pair = tuple[str, str]


@final
class Look(NamedTuple):
    """One look.

    Attributes:
        number: its number, from 1.
        seeds: the number of seeds of each group at it.
        rejected: the pairs whose difference is shown at it.
        boundary: what the difference of the means must exceed; of the last step at this look.
        differences: the difference of the means of each pair that was still tested.
    """

    number: int
    seeds: int
    rejected: list[Pair]
    boundary: float
    differences: dict[Pair, float]


def looks_at(
    values: Mapping[str, Sequence[float]], *, looks: int, seeds_per_look: int, alpha: float
) -> list[Look]:
    """Return the looks that the values allow, until every pair is decided.

    With T_k(a, b) = |Σ a - Σ b| over the first k m seeds of each group, a pair is rejected at look
    k if T_k exceeds b_k: the smallest value that at most α / K of the permutations exceed at look k
    for the first time, for the largest T_k of the pairs still tested. Values are exchanged between
    the two groups of a pair within each look. After a rejection, b_k is computed again for the
    remaining pairs (step-down), so the probability of any false rejection is at most α.

    Args:
        values: the values of each group, in the order of their seeds.
        looks: K, the most looks.
        seeds_per_look: m, the seeds that each look adds to each group.
        alpha: α, over all pairs and looks.
    """
    open_pairs = list(combinations(values, 2))
    paths = _Paths(values, open_pairs, looks, seeds_per_look)
    alive = np.ones(PERMUTATIONS, np.bool_)
    done: list[Look] = []
    for number in range(1, looks + 1):
        n = number * seeds_per_look
        if not open_pairs or any(len(values[name]) < n for pair in open_pairs for name in pair):
            break
        tested, rejected = list(open_pairs), list[Pair]()
        boundary, crossed = 0.0, alive
        while open_pairs:
            largest = np.max([paths.permuted(pair, number) for pair in open_pairs], axis=0)
            boundary = _boundary(largest[alive], alpha / looks)
            crossed = largest > boundary
            found = [pair for pair in open_pairs if paths.observed(pair, number) > boundary]
            if not found:
                break
            rejected += found
            open_pairs = [pair for pair in open_pairs if pair not in found]
        alive = alive & ~crossed
        apart = {pair: paths.difference(pair, number) for pair in tested}
        done.append(Look(number, n, rejected, boundary / n, apart))
    return done


@final
class _Paths:
    """T_k of each pair, observed and in every permutation."""

    def __init__(
        self,
        values: Mapping[str, Sequence[float]],
        pairs: Sequence[Pair],
        looks: int,
        seeds_per_look: int,
    ) -> None:
        self._seeds = seeds_per_look
        self._observed: dict[Pair, list[float]] = {}
        self._permuted: dict[Pair, list[Float64[np.ndarray, " permutations"]]] = {}
        for place, pair in enumerate(pairs):
            one, other = (np.array(values[name], np.float64) for name in pair)
            rng = np.random.default_rng((_SEED, place))
            whole, sums = 0.0, np.zeros(PERMUTATIONS)
            self._observed[pair], self._permuted[pair] = [], []
            for look in range(min(len(one), len(other)) // seeds_per_look):
                if look == looks:
                    break
                block = slice(look * seeds_per_look, (look + 1) * seeds_per_look)
                both = np.concatenate([one[block], other[block]])
                mixed = rng.permuted(np.tile(both, (PERMUTATIONS, 1)), axis=1)
                signs = np.repeat([1.0, -1.0], seeds_per_look)
                whole += float(both @ signs)
                sums = sums + mixed @ signs
                # Rounded, so that equal differences in another order of summation stay equal.
                self._observed[pair].append(round(whole, 9))
                self._permuted[pair].append(np.round(np.abs(sums), 9))

    def observed(self, pair: Pair, look: int) -> float:
        return abs(self._observed[pair][look - 1])

    def permuted(self, pair: Pair, look: int) -> Float64[np.ndarray, " permutations"]:
        return self._permuted[pair][look - 1]

    def difference(self, pair: Pair, look: int) -> float:
        """Return the difference of the means, the first group minus the second."""
        return self._observed[pair][look - 1] / (look * self._seeds)


def _boundary(alive: Float64[np.ndarray, " n"], level: float) -> float:
    """Return the smallest value that at most a share `level` of all permutations exceeds.

    The observed order counts as one more permutation.
    """
    many = int(level * (PERMUTATIONS + 1)) - 1
    if many < 0 or not len(alive):
        return np.inf
    if many >= len(alive):
        return -1.0
    return float(np.partition(alive, len(alive) - 1 - many)[len(alive) - 1 - many])
