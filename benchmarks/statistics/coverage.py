"""How often intervals hold and tests are wrong.

    python benchmarks/statistics/coverage.py [PART ...]

Each part is simulated with 3,000 repetitions and replaces its rows in docs/results/coverage.json;
`python benchmarks/figures.py` writes the tables of docs/statistics.md from them. All parts take
about half an hour; without a name all are measured.
"""

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from runshelf.statistics.aggregates import estimate, interquartile_mean
from runshelf.statistics.differences import welch
from runshelf.statistics.intervals import mean_interval
from runshelf.statistics.mean import joined_interval
from runshelf.statistics.permutation import permutation_test
from runshelf.statistics.proportions import clopper_pearson, wilson
from runshelf.statistics.scores import Scores
from runshelf.statistics.sequential import SequentialPlan, decide
from runshelf.statistics.superiority import probability_of_superiority

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "coverage.json"
REPETITIONS = 3_000
RESAMPLES = 600
SEED = 21
SIZES = (3, 5, 10, 20)
ROUNDING = 1e-9

Ends = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def works(share: float) -> Draw:
    """Runs that return 1 with this probability, and else 0."""
    return lambda rng, shape: (rng.random(shape) < share).astype(float)


def nearly_works(share: float) -> Draw:
    """The same with a standard deviation of 0.1 around 1 and 0."""
    return lambda rng, shape: works(share)(rng, shape) + 0.1 * rng.normal(size=shape)


RETURNS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "skewed (lognormal, σ .8)": (
        lambda rng, shape: np.exp(0.8 * rng.normal(size=shape)),
        math.exp(0.32),
    ),
    "heavy tails (Student's t, 3)": (lambda rng, shape: rng.standard_t(3, shape), 0.0),
    "70 % work, 30 % fail": (works(0.7), 0.7),
    "the same with noise .1": (nearly_works(0.7), 0.7),
    "90 % work, 10 % fail": (works(0.9), 0.9),
}
EQUAL = ("normal", "skewed (lognormal, σ .8)", "70 % work, 30 % fail")


def percentile_bootstrap(values: np.ndarray) -> Ends:
    """The middle 95 % of means of resamples, as most libraries report."""
    means = resampled_sums(values, len(values)) / len(values)
    low, high = np.percentile(means, (2.5, 97.5), axis=0)
    return low, high


def bootstrap_t(values: np.ndarray) -> Ends:
    """The bootstrap of the studentised mean; resamples without spread are left out."""
    n = len(values)
    centred = values - values.mean(axis=0)
    mean = resampled_sums(centred, n) / n
    variance = (resampled_sums(centred**2, n) / n - mean**2) * n / (n - 1)
    spread = values.std(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(variance > 1e-12 * spread**2, mean / np.sqrt(variance), 0.0)
        t = np.where(variance > 1e-12 * spread**2, t, np.nan)
    t[:, spread == 0] = 0.0
    low, high = np.nanpercentile(t, (2.5, 97.5), axis=0)
    return values.mean(axis=0) - high * spread, values.mean(axis=0) - low * spread


def resampled_sums(values: np.ndarray, n: int) -> np.ndarray:
    """Sums of resamples; the same resamples for every column."""
    draws = np.random.default_rng(SEED).integers(n, size=(RESAMPLES, n))
    counts = np.stack([np.bincount(draw, minlength=n) for draw in draws])
    return counts @ values


def student(values: np.ndarray) -> Ends:
    """Student's interval."""
    found = mean_interval(values)
    return found.low, found.high


def joined(values: np.ndarray) -> Ends:
    """The default of comparisons."""
    found = joined_interval(values)
    return found.low, found.high


MEANS: dict[str, Callable[[np.ndarray], Ends]] = {
    "Student": student,
    "percentile bootstrap": percentile_bootstrap,
    "bootstrap-t": bootstrap_t,
    "default": joined,
}


def held(low: Any, high: Any, truth: float) -> float:
    """The share of intervals that hold the truth."""
    low, high = np.asarray(low), np.asarray(high)
    return round(float(((low <= truth + ROUNDING) & (high >= truth - ROUNDING)).mean()), 4)


def mean_rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage of the mean, and the width of the default in units of Student's."""
    for name, (draw, truth) in RETURNS.items():
        for n in SIZES:
            values = draw(rng, (n, REPETITIONS))
            ends = {method: interval(values) for method, interval in MEANS.items()}
            widths = {method: float((high - low).mean()) for method, (low, high) in ends.items()}
            yield {
                "returns": name,
                "n": n,
                **{method: held(low, high, truth) for method, (low, high) in ends.items()},
                "width": round(widths["default"] / widths["Student"], 3),
            }


def proportion_rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Exact coverage of k of n, by the binomial distribution; nothing is simulated."""
    del rng
    for share in (0.5, 0.7, 0.9):
        for n in SIZES:
            chance = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
            row: dict[str, Any] = {"works": share, "n": n}
            for name, interval in (("Wilson", wilson), ("Clopper-Pearson", clopper_pearson)):
                ends = [interval(k, n) for k in range(n + 1)]
                covers = [one.low <= share <= one.high for one in ends]
                row[name] = round(sum(c for c, yes in zip(chance, covers, strict=True) if yes), 4)
            yield row


def shifted(draw: Draw, shift: float, scale: float = 1.0) -> Draw:
    """A distribution moved and stretched."""
    return lambda rng, shape: shift + scale * draw(rng, shape)


NORMAL, SKEWED = RETURNS["normal"][0], RETURNS["skewed (lognormal, σ .8)"][0]
TWO: dict[str, tuple[Draw, Draw]] = {
    "normal, the same": (NORMAL, NORMAL),
    "normal, shifted by 1, three times the spread": (NORMAL, shifted(NORMAL, 1.0, 3.0)),
    "skewed, the same": (SKEWED, SKEWED),
    "skewed, one scaled by 2": (SKEWED, shifted(SKEWED, 0.0, 2.0)),
    "70 % work, both": (works(0.7), works(0.7)),
    "70 % against 90 % work": (works(0.7), works(0.9)),
}


def difference_rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage of Welch's interval and of that of P(X > Y), n against n runs."""
    for name, (one, other) in TWO.items():
        many, more = one(rng, (1_000_000,)), np.sort(other(rng, (1_000_000,)))
        apart = many.mean() - more.mean()
        below = np.searchsorted(more, many, "left") + np.searchsorted(more, many, "right")
        superiority = below.mean() / 2 / len(more)
        for n in SIZES:
            first, second = one(rng, (REPETITIONS, n)), other(rng, (REPETITIONS, n))
            found = [welch(x, y) for x, y in zip(first, second, strict=True)]
            won = [probability_of_superiority(x, y) for x, y in zip(first, second, strict=True)]
            yield {
                "groups": name,
                "n": n,
                "Welch": held([one.low for one in found], [one.high for one in found], apart),
                "P(X > Y)": held([one.low for one in won], [one.high for one in won], superiority),
            }


LEVELS: dict[str, tuple[Draw, Draw]] = {
    **{name: (RETURNS[name][0], RETURNS[name][0]) for name in EQUAL},
    "the same mean, three times the spread": (NORMAL, shifted(NORMAL, 0.0, 3.0)),
    "the same mean, one skewed": (
        SKEWED,
        shifted(NORMAL, math.exp(0.32), math.exp(0.32) * math.sqrt(math.exp(0.64) - 1.0)),
    ),
}


def permutation_rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often the permutation test finds a difference between equal means, at .05."""
    for name, (one, other) in LEVELS.items():
        for n in (4, *SIZES[1:]):
            first, second = one(rng, (REPETITIONS, n)), other(rng, (REPETITIONS, n))
            p = [permutation_test(x, y).p for x, y in zip(first, second, strict=True)]
            intervals = [welch(x, y) for x, y in zip(first, second, strict=True)]
            yield {
                "groups": name,
                "n": n,
                "permutation": round(float(np.mean(np.array(p) <= 0.05)), 4),
                "Welch": round(
                    1.0 - held([i.low for i in intervals], [i.high for i in intervals], 0.0), 4
                ),
            }


PLANS = {"5 looks of 5 runs": SequentialPlan(5, 5), "3 looks of 4 runs": SequentialPlan(3, 4)}


def sequential_rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often a sequential comparison calls two equal groups different, at .05."""
    for plan_name, plan in PLANS.items():
        for name in EQUAL:
            row: dict[str, Any] = {"plan": plan_name, "returns": name}
            for groups in (2, 3):
                shape = (REPETITIONS, groups, plan.most_runs)
                draws = RETURNS[name][0](rng, shape)
                row[f"{groups} equal groups"] = false_findings(plan, draws, groups)
            moved = RETURNS[name][0](rng, (REPETITIONS, 3, plan.most_runs))
            moved[:, 2] += 3.0 * moved.std()
            row["2 equal groups of 3"] = false_findings(plan, moved, 2)
            yield row


def false_findings(plan: SequentialPlan, draws: np.ndarray, equal: int) -> float:
    """The share of comparisons in which two of the first `equal` groups are called different."""
    wrong = 0
    for groups in draws:
        decisions = decide(plan, {str(i): group for i, group in enumerate(groups)}).decisions
        wrong += any(
            decision != "equal" for pair, decision in decisions.items() if int(pair[1]) < equal
        )
    return round(wrong / len(draws), 4)


def environment_rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage of the interquartile mean on 5 environments with means 0, .25, .5, .75 and 1."""
    centres = np.linspace(0.0, 1.0, 5)
    names = ("a", "b", "c", "d", "e")
    for name in EQUAL:
        draw = shifted(RETURNS[name][0], 0.0, 0.3)
        # With few runs the estimate is biased if returns are skewed; the truth is that of many.
        many = Scores.of_matrix(draw(rng, (200_000, 5)) + centres, names)
        truth = float(interquartile_mean({key: runs[None] for key, runs in many.runs.items()})[0])
        for n in SIZES:
            drawn = draw(rng, (REPETITIONS, n, 5)) + centres
            found = [estimate(Scores.of_matrix(one, names), interquartile_mean) for one in drawn]
            covered = held([one.low for one in found], [one.high for one in found], truth)
            yield {"returns": name, "n": n, "interquartile mean": covered}


PARTS: dict[str, Callable[[np.random.Generator], Iterator[dict[str, Any]]]] = {
    "mean": mean_rows,
    "proportion": proportion_rows,
    "difference": difference_rows,
    "permutation": permutation_rows,
    "sequential": sequential_rows,
    "environments": environment_rows,
}


def main() -> None:
    """Measure the parts named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", help=f"among {', '.join(PARTS)}")
    names = parser.parse_args().part or list(PARTS)
    for name in names:
        rows = []
        for row in PARTS[name](np.random.default_rng(SEED)):
            print(json.dumps(row, ensure_ascii=False), flush=True)
            rows.append(row)
        write(name, rows)


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Replace the rows of one part in the data file."""
    data = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=RESULTS.parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    data[name] = {
        "command": f"python benchmarks/statistics/coverage.py {name}",
        "commit": commit,
        "repetitions": REPETITIONS,
        "seed": SEED,
        "rows": rows,
    }
    ordered = {part: data[part] for part in PARTS if part in data}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
