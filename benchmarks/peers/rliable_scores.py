"""Aggregate scores with rliable: JSON on standard input, one JSON line on standard output.

Input: `scores`, for each group a matrix of runs x tasks; `pairs`, groups to compare; `thresholds`;
`resamples`. Output: for each group and pair a list of [value, low, high]. Runs in rliable's
environment.
"""

import json
import sys

import numpy as np
from rliable import library, metrics

asked = json.load(sys.stdin)
scores = {name: np.array(matrix) for name, matrix in asked["scores"].items()}
thresholds, resamples = np.array(asked["thresholds"]), asked["resamples"]
np.random.seed(0)  # noqa: NPY002  (rliable draws from numpy's global generator)


def aggregates(matrix):
    """In the order iqm, mean, median, optimality gap."""
    return np.array(
        [
            metrics.aggregate_iqm(matrix),
            metrics.aggregate_mean(matrix),
            metrics.aggregate_median(matrix),
            metrics.aggregate_optimality_gap(matrix),
        ]
    )


def improvement(first, second):
    """In an array, as rliable wants it."""
    return np.array([metrics.probability_of_improvement(first, second)])


def listed(points, ends):
    """[value, low, high] of each number."""
    return {
        name: np.stack([np.atleast_1d(points[name]), *ends[name]], axis=1).tolist()
        for name in points
    }


compared = {f"{a} > {b}": [scores[a], scores[b]] for a, b in asked["pairs"]}
result = {
    "aggregates": listed(*library.get_interval_estimates(scores, aggregates, reps=resamples)),
    "improvement": listed(*library.get_interval_estimates(compared, improvement, reps=resamples)),
    "profile": listed(*library.create_performance_profile(scores, thresholds, reps=resamples)),
}
print(json.dumps(result))
