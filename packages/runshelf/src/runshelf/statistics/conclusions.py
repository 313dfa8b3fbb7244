"""What may be concluded from results, and what may not, in plain sentences.

Functions of results alone: they compute no statistic and read no run.
"""

from collections.abc import Iterator

from runshelf.formatting import number, plural
from runshelf.statistics.differences import Difference
from runshelf.statistics.estimate import Estimate
from runshelf.statistics.permutation import smallest_p
from runshelf.statistics.scores import Scores
from runshelf.statistics.sequential import SequentialPlan, SequentialState

ALPHA = 0.05
# Up to this n no interval of the mean covers it if one run in ten fails: docs/statistics.md.
FEW = 10


def of_mean(name: str, mean: Estimate) -> tuple[str, ...]:
    """Return what the mean of a group allows to say."""
    return tuple(_of_mean(name, mean))


def _of_mean(name: str, mean: Estimate) -> Iterator[str]:
    if mean.n == 0:
        yield f"{name} has no run with a score."
        return
    if mean.n == 1:
        yield f"{name} has one run: no interval can be given, and another seed may differ."
        return
    if not mean.has_width:
        yield f"All {mean.n} runs of {name} have the same score, so its interval has no width."
    if mean.n <= FEW:
        unseen = 1.0 - 0.05 ** (1.0 / mean.n)
        yield (
            f"{name} has {mean.n} runs: if some runs fail, no interval of the mean can be trusted. "
            f"A failure that happens in {_percent(unseen)} of runs stays unseen in 1 of 20 groups "
            "of this size. Look at the worst run."
        )


def of_difference(
    first: str,
    second: str,
    sizes: tuple[int, int],
    found: Difference,
    *,
    adjusted_p: float | None = None,
    comparisons: int = 1,
    alpha: float = ALPHA,
) -> tuple[str, ...]:
    """Return what the comparison of two groups allows to say.

    Args:
        first: the name of the first group.
        second: the name of the second group.
        sizes: the numbers of runs n and m.
        found: the comparison.
        adjusted_p: p after Holm's correction for several comparisons; None for p itself.
        comparisons: how many comparisons were made together.
        alpha: the level of the test.
    """
    p = found.test.p if adjusted_p is None else adjusted_p
    sentences = [
        *_of_failures(first, sizes[0], found.failures[0], found.failure_value),
        *_of_failures(second, sizes[1], found.failures[1], found.failure_value),
    ]
    if found.test.smallest_p * comparisons > alpha:
        sentences += [_impossible(sizes, found.test.smallest_p, comparisons, alpha)]
    elif p <= alpha:
        sentences += _shown(first, second, found.means, p, alpha)
    else:
        sentences += [_not_shown(first, second, found.means, p, alpha)]
    return (*sentences, *_of_superiority(first, second, found.superiority))


def _of_failures(name: str, n: int, failures: int, value: float) -> Iterator[str]:
    if failures:
        verb = "has" if failures == 1 else "have"
        yield f"{failures} of {plural(n, 'run')} of {name} {verb} no finite score: " + (
            f"counted as {number(value)}."
        )


def _impossible(sizes: tuple[int, int], smallest: float, comparisons: int, alpha: float) -> str:
    n, m = sizes
    among = f" among {comparisons} comparisons" if comparisons > 1 else ""
    enough = _enough_runs(comparisons, alpha)
    more = f": at least {enough} against {enough} are needed" if enough else ""
    return (
        f"With {n} against {m} runs no permutation test can show a difference at {number(alpha)}"
        f"{among}, because the smallest possible p is {number(smallest)}{more}."
    )


def _enough_runs(comparisons: int, alpha: float) -> int | None:
    """Return the smallest equal n that can show a difference."""
    sizes = range(2, 100)
    return next((n for n in sizes if smallest_p(n, n) * comparisons <= alpha), None)


def _shown(first: str, second: str, means: Estimate, p: float, alpha: float) -> Iterator[str]:
    higher, lower = (first, second) if means.value > 0 else (second, first)
    yield (
        f"{higher} has the higher mean than {lower}, by {number(abs(means.value))}: a difference "
        f"this large is rare between equal groups (p = {number(p)} <= {number(alpha)})."
    )
    if means.has_interval and means.low <= 0.0 <= means.high:
        yield (
            f"The interval of {first} minus {second}, {_ends(means)}, includes 0 all the same, so "
            "the size of the difference remains open."
        )
    elif means.has_interval:
        yield f"The interval of {first} minus {second} is {_ends(means)}."


def _not_shown(first: str, second: str, means: Estimate, p: float, alpha: float) -> str:
    why = f"p = {number(p)} > {number(alpha)}"
    if not means.has_interval:
        return f"No difference between {first} and {second} is shown ({why})."
    return (
        f"No difference between {first} and {second} is shown ({why}). That does not prove them "
        f"equal: the interval of {first} minus {second} is {_ends(means)}."
    )


def _of_superiority(first: str, second: str, found: Estimate) -> Iterator[str]:
    if found.has_interval:
        yield (
            f"A run of {first} is higher than a run of {second} in {_percent(found.value)} of "
            f"pairs (interval {_percent(found.low)} to {_percent(found.high)}; ties count half)."
        )


def of_scores(name: str, scores: Scores) -> tuple[str, ...]:
    """Return what the aggregate of a group on several environments allows to say."""
    fewest = min(len(runs) for runs in scores.runs.values())
    if fewest < 2:
        return (f"{name} has an environment with one run: no interval can be given.",)
    if fewest < FEW:
        return (
            f"{name} has {fewest} runs on an environment: the bootstrap interval over environments "
            f"is too narrow below {FEW}.",
        )
    return ()


def of_sequence(plan: SequentialPlan, state: SequentialState) -> tuple[str, ...]:
    """Return what a sequential comparison allows to say, and what it needs next."""
    sentences = [
        f"{first} and {second}: {_of_decision(decision, first, state.decided_at[first, second])}."
        for (first, second), decision in state.decisions.items()
        if decision != "undecided"
    ]
    if plan.first_decisive_look is None:
        sentences.append(
            f"This plan cannot find any difference: {plan.runs_per_look} runs a look are too few "
            f"for alpha {number(plan.alpha)} over {plural(plan.looks, 'look')}."
        )
    elif state.needed and state.looks_done + 1 < plan.first_decisive_look:
        sentences.append(f"No difference can be found before look {plan.first_decisive_look}.")
    for name, many in state.needed.items():
        sentences.append(
            f"{name} needs {plural(many, 'more run')} for look {state.looks_done + 1}."
        )
    return tuple(sentences)


def _of_decision(decision: str, first: str, look: int) -> str:
    if decision == "equal":
        return f"no difference was found in {plural(look, 'look')}, which does not prove them equal"
    return f"{first} has the {'higher' if decision == 'better' else 'lower'} mean (look {look})"


def _ends(estimate: Estimate) -> str:
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _percent(share: float) -> str:
    """Return a share as a whole percentage; small and large ones stay apart from 0 and 100 %."""
    if 0.0 < share < 0.005:
        return "less than 1 %"
    if 0.995 <= share < 1.0:
        return "more than 99 %"
    return f"{100.0 * share:.0f} %"
