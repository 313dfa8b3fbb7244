"""Do two groups differ? A permutation test of the difference of means."""

import functools
import itertools
import math
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, Int, Int8

# C(20, 10) = 184,756 ways to divide 10 and 10 runs are enumerated; 11 and 11 are drawn.
MOST_ENUMERATED = 200_000
DRAWN = 9_999
_SEED = 0
_AT_ONCE = 4_000_000  # numbers in memory
_TIE = 1e-9  # relative; sums of the same runs in another order differ by less


@final
class PermutationTest(NamedTuple):
    """The result of a two-sided test that two groups have the same distribution.

    Attributes:
        p: the share of divisions of all runs into two such groups whose means differ at least as
            much as the observed ones.
        smallest_p: the smallest p that groups of this size can have.
        exact: whether all divisions were counted; otherwise some were drawn.
    """

    p: float
    smallest_p: float
    exact: bool


def permutation_test(
    first: Float[np.ndarray, " runs"], second: Float[np.ndarray, " others"], seed: int = _SEED
) -> PermutationTest:
    """Return the two-sided p of the difference of means.

    Under the hypothesis that the groups do not differ, each of the C(n + m, n) divisions of all
    n + m runs is equally probable. If there are more than `MOST_ENUMERATED`, B = `DRAWN` are drawn
    and p = (1 + hits) / (1 + B), which is never below the level of the test. Differences that are
    equal but for rounding count as hits.

    Source: Fisher 1935; Phipson & Smyth 2010, arXiv:1603.05766, for the 1 that is added.

    Raises:
        ValueError: a group is empty, or a score is not finite.
    """
    n, m = len(first), len(second)
    if not n or not m:
        raise ValueError(f"expected at least one run in each group, got {n} and {m}")
    both = np.concatenate([first, second]).astype(float)
    if not np.isfinite(both).all():
        raise ValueError("expected finite scores: count failures first")
    both = scaled(both)
    divisions = math.comb(n + m, n)
    exact = divisions <= MOST_ENUMERATED
    # The difference of means is a(S - n/(n+m) T): only the sum S of the first group varies.
    observed = abs(both[:n].sum() - n * both.mean()) - _TIE
    if exact:
        sums = both[all_divisions(n + m, n)].sum(axis=0)
        p = float((np.abs(sums - n * both.mean()) >= observed).mean())
    else:
        p = (1 + _hits(both, n, observed, seed)) / (1 + DRAWN)
    return PermutationTest(p, smallest_p(n, m), exact)


def smallest_p(n: int, m: int) -> float:
    """Return the smallest two-sided p of a permutation test of n against m runs.

    1 / C(n + m, n), and twice that for n = m, where swapping the groups gives the same difference;
    not below 1 / (1 + B) where divisions are drawn.
    """
    divisions = math.comb(n + m, n)
    if divisions > MOST_ENUMERATED:
        return 1.0 / (1.0 + DRAWN)
    return min(1.0, (2.0 if n == m else 1.0) / divisions)


@functools.lru_cache(maxsize=4)
def all_divisions(runs: int, chosen: int) -> Int[np.ndarray, "chosen divisions"]:
    """Return the indices of every choice, one per column, in lexicographic order."""
    flat = itertools.chain.from_iterable(itertools.combinations(range(runs), chosen))
    found = np.fromiter(flat, np.intp).reshape(-1, chosen).T.copy()
    found.setflags(write=False)
    return found


def scaled(scores: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return the scores shifted and scaled into [-1, 1], so that one tolerance fits them all."""
    shifted = scores - (scores.min() / 2.0 + scores.max() / 2.0)
    largest = np.abs(shifted).max()
    return shifted / largest if largest > 0 else shifted


def _hits(both: Float[np.ndarray, " runs"], n: int, observed: float, seed: int) -> int:
    """Return how many of the drawn divisions differ at least as much as the observed one."""
    rows = max(1, _AT_ONCE // len(both))
    hits = 0
    for start in range(0, DRAWN, rows):
        members = _drawn(len(both), n, min(rows, DRAWN - start), (seed, start))
        hits += int((np.abs(members @ both - n * both.mean()) >= observed).sum())
    return hits


@functools.lru_cache(maxsize=4)
def _drawn(
    runs: int, chosen: int, rows: int, seed: tuple[int, int]
) -> Int8[np.ndarray, "rows runs"]:
    """Return which runs are in the first group, in drawn divisions; kept for the next pair."""
    members = np.zeros((rows, runs), np.int8)
    members[:, :chosen] = 1
    return np.random.default_rng(seed).permuted(members, axis=1, out=members)
