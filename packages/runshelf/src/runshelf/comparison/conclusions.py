"""What may and may not be concluded from a pair of sides, in plain words."""

import math

from runshelf.comparison.references import Better
from runshelf.comparison.result import PairResult, SideResult
from runshelf.formatting import number, plural
from runshelf.statistics.permutation import smallest_p

_RARE = 0.1  # a failure rate that few seeds do not show
_SURE = 0.05
_MOST_SEEDS = 100


def conclusion(
    pair: PairResult,
    one: SideResult,
    other: SideResult,
    *,
    alpha: float,
    better: Better,
    tests: int,
) -> str:
    """Return the conclusion of a pair.

    Args:
        pair: the pair, with its p-values.
        one: its first side.
        other: its second side.
        alpha: the level of the tests.
        better: whether higher or lower values are better.
        tests: the number of tests that are corrected for.
    """
    n, m = len(one.seeds), len(other.seeds)
    names = f"{one.label} and {other.label}"
    if min(n, m) < 2:
        few = one.label if n < 2 else other.label
        return (
            f"{names}: with one seed of {few}, nothing can be concluded. {_run_more(alpha, tests)}"
        )
    if not math.isfinite(pair.p):
        return f"{names}: all seeds of each have the same value, so there is nothing to test"
    least = min(1.0, smallest_p(n, m) * tests)
    if pair.test == "permutation" and least > alpha:
        of_tests = f", corrected for {plural(tests, 'comparison')}" if tests > 1 else ""
        return (
            f"{names}: with {n} against {m} seeds no permutation test can show a difference at "
            f"level {alpha:g}: the smallest possible p is {least:.2g}{of_tests}. "
            f"{_run_more(alpha, tests)}"
        )
    if pair.p_corrected <= alpha:
        return _shown(pair, better, tests)
    return _not_shown(pair, alpha)


def enough_seeds(alpha: float, tests: int) -> int | None:
    """Return the number of seeds of each side from which a permutation test can reject.

    None if there are too many tests for any number.
    """
    sizes = range(2, _MOST_SEEDS)
    return next((n for n in sizes if smallest_p(n, n) * max(tests, 1) <= alpha), None)


def _run_more(alpha: float, tests: int) -> str:
    enough = enough_seeds(alpha, tests)
    return f"Run at least {enough} seeds of each" if enough else "Compare fewer groups"


def unseen(n: int) -> str:
    """Return what n seeds do not show, in words; empty if there are enough.

    A failure in one run of ten is in none of n runs with probability .9ⁿ.
    """
    missed = (1 - _RARE) ** n
    if missed <= _SURE:
        return ""
    return (
        f"with {plural(n, 'seed')}, a failure of one run in ten goes unseen with probability "
        f"{missed:.2f}, and then no interval of the mean covers it: look at the worst seed"
    )


def _shown(pair: PairResult, better: Better, tests: int) -> str:
    is_first = (pair.difference.value > 0) == (better == "higher")
    best, rest = (pair.one, pair.other) if is_first else (pair.other, pair.one)
    corrected = f", corrected for {plural(tests, 'comparison')}" if tests > 1 else ""
    text = (
        f"{best} is better than {rest}: the mean is {better} by {_size(pair)} "
        f"(p = {pair.p_corrected:.2g}{corrected}). This holds for new seeds of these settings, not "
        "for other settings"
    )
    if pair.difference.low <= 0 <= pair.difference.high:
        text += ". Welch's interval contains 0: the evidence is weak"
    return text


def _not_shown(pair: PairResult, alpha: float) -> str:
    ends = pair.difference
    text = (
        f"{pair.one} and {pair.other}: no difference is shown (p = {pair.p_corrected:.2g}, level "
        f"{alpha:g}). That does not show that they are equal"
    )
    if math.isfinite(ends.low):
        text += (
            f": a difference of the means from {number(ends.low)} to {number(ends.high)} is "
            "compatible with these seeds"
        )
    return text


def _size(pair: PairResult) -> str:
    value, low, high = (abs(end) for end in pair.difference[:3])
    if not math.isfinite(low) or pair.difference.low <= 0 <= pair.difference.high:
        return number(value)
    low, high = sorted((low, high))
    return f"{number(value)}, with a 95 % interval from {number(low)} to {number(high)}"
