"""Checks of the explained variance: how well state values predict returns."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import ON_POLICY, Log
from backflip.doctor.measures import (
    after,
    largest,
    or_none,
    smoothed,
    together,
)

LATE = 0.5  # of the budget
UNEXPLAINED = 0.05  # explained variance of values that are no better than a constant
NEVER, SOON = 0.1, 0.05
CONSTANT = 1e-5  # |explained variance| of one value for all states, with the rounding of float32
FIRST = 3  # updates
_JONES = "A. Jones, Debugging RL, Without the Agonizing Pain"
_SCHULMAN = "J. Schulman, The Nuts and Bolts of Deep RL Research"


def _variance_unexplained(log: Log) -> Running | None:
    """Return the largest explained variance so far; if it reaches the limit, the last one alone.

    Otherwise a training whose values began to explain returns late would be judged by the time
    before.
    """
    found = or_none(after(log, LATE, largest(smoothed(log, log.signals["explained_variance"]))))
    return found and _until_reached(found, UNEXPLAINED)


def _until_reached(found: Running, limit: float) -> Running:
    """Return what was found; once the limit was reached, the last value alone."""
    if found.value[-1] < limit:
        return found
    return Running(found.x[-1:], found.value[-1:])


def _explained_size(log: Log) -> Running | None:
    """Return the largest median of |explained variance| so far; once at the limit, the last alone.

    Values V(s) = c have 1 - Var[G - c] / Var[G] = 0, but for rounding.
    """
    found = log.signals["explained_variance"]
    size = smoothed(log, found._replace(y=np.abs(found.y)))
    found = or_none(after(log, NEVER, largest(size)))
    return found and _until_reached(found, CONSTANT)


def _explained_at_first(log: Log) -> Running | None:
    """Return the median explained variance of the first three updates; None if they are missing."""
    found = log.signals["explained_variance"]
    known = np.isfinite(found.y)
    x, y = found.x[known][:FIRST], found.y[known][:FIRST]
    if len(x) < FIRST or x[0] > SOON * log.budget:
        return None
    return Running(x[-1:], np.median(y, keepdims=True))


def _self_reference(log: Log) -> Running | None:
    lambda_returns, whole = log.signals["explained_variance"], log.signals["explained_variance_mc"]
    gap = together(
        lambda_returns, whole, lambda one, other: np.clip(one, -1, 1) - np.clip(other, -1, 1)
    )
    return or_none(after(log, LATE, largest(smoothed(log, gap))))


def _returns_constant(log: Log) -> Running | None:
    """Return the share of the updates so far whose explained variance is NaN."""
    found = log.signals["explained_variance"]
    missing = np.cumsum(np.isnan(found.y)) / np.arange(1, len(found.y) + 1)
    return or_none(after(log, NEVER, Running(found.x, missing)))


CHECKS = (
    Check(
        "PV-EV-LOW",
        "values explain nothing",
        "largest median of the explained variance so far, after half the budget",
        _variance_unexplained,
        ("explained_variance",),
        "below",
        "calibrated",
        "The value function predicts returns no better than a constant, so advantages are noise.",
        {
            "values-do-not-learn": 0.9,
            "value-targets": 0.3,
            "observations": 0.7,
            "steps-too-small": 0.6,
            "steps-too-large": 0.3,
            "reward-scale": 0.4,
            "no-reward-signal": 0.4,
            "discount": 0.2,
            "advantages": 0.1,
        },
        f"{_SCHULMAN}; Stable-Baselines3 issues 1897 and 2240",
        algorithms=ON_POLICY,
        least_margin=0.05,
        unless=("PV-CONSTANT",),
    ),
    Check(
        "PV-EV-ZERO",
        "values explain almost nothing",
        "largest median of the explained variance so far, after half the budget",
        _variance_unexplained,
        ("explained_variance",),
        "below",
        "convention",
        "Values are no better than a constant. Where rewards are rare, a healthy training looks "
        "the same.",
        {
            "values-do-not-learn": 0.9,
            "value-targets": 0.3,
            "observations": 0.7,
            "steps-too-small": 0.6,
            "steps-too-large": 0.3,
            "reward-scale": 0.4,
            "no-reward-signal": 0.4,
            "discount": 0.2,
            "unlucky-or-slow": 0.2,
        },
        f"{_SCHULMAN}; Stable-Baselines3 issues 1897 and 2240",
        limit=UNEXPLAINED,
        algorithms=ON_POLICY,
        says="remark",
        healthy_share=0.07,
        unless=("PV-EV-NEG", "PV-CONSTANT"),
    ),
    Check(
        "PV-CONSTANT",
        "values are the same in every state",
        "largest median of |explained variance| so far, after a tenth of the budget",
        _explained_size,
        ("explained_variance",),
        "below",
        "identity",
        "The value function gives one number for every observation, or numbers that are tiny "
        "against the returns. Even an untrained network tells observations apart.",
        {
            "observations": 0.5,
            "reward-scale": 0.4,
            "steps-too-large": 0.3,
            "values-do-not-learn": 0.2,
            "initialisation": 0.1,
        },
        "the definition: V(s) = c gives 1 - Var[G - c] / Var[G] = 0",
        limit=CONSTANT,
        algorithms=ON_POLICY,
    ),
    Check(
        "PV-EV-NEG",
        "values are worse than a constant",
        "largest median of the explained variance so far, after half the budget",
        _variance_unexplained,
        ("explained_variance",),
        "below",
        "convention",
        "The value function predicts returns worse than their mean would: it adds noise to the "
        "advantages.",
        {
            "values-do-not-learn": 0.8,
            "value-targets": 0.3,
            "observations": 0.3,
            "steps-too-large": 0.5,
            "reward-scale": 0.5,
            "discount": 0.2,
        },
        f"{_SCHULMAN}; Stable-Baselines3 issues 1897 and 2240",
        limit=-0.3,
        algorithms=ON_POLICY,
        says="warning",
        unless=("PV-EV-LOW",),
    ),
    Check(
        "PV-EV-TRAP",
        "the explained variance explains itself",
        "explained variance against TD(λ) returns minus that against whole returns",
        _self_reference,
        ("explained_variance", "explained_variance_mc"),
        "above",
        "calibrated",
        "TD(λ) returns contain the value, so a value without any use can seem to explain them. "
        "Whole returns say what the value knows.",
        {"value-targets": 0.5, "values-do-not-learn": 0.5, "advantages": 0.3, "discount": 0.2},
        "a critic of slow noise has 0.53 at λ = .95 (computed)",
        algorithms=ON_POLICY,
        least_margin=0.2,
        extreme=2.0,
    ),
    Check(
        "PV-EV-PERFECT",
        "values explain everything before they have learned",
        "median explained variance of the first three updates",
        _explained_at_first,
        ("explained_variance",),
        "above",
        "identity",
        "Targets that equal the values from the start are the values themselves: nothing is "
        "learned from them.",
        {"value-targets": 0.3, "logging": 0.2},
        f"{_JONES}: a residual variance of 0",
        limit=1.0 - 1e-5,
        algorithms=ON_POLICY,
        from_start=True,
    ),
    Check(
        "PV-EV-NAN",
        "all returns are equal",
        "share of updates so far without an explained variance",
        _returns_constant,
        ("explained_variance",),
        "above",
        "convention",
        "The explained variance is undefined where returns do not vary: there is nothing to learn.",
        {"no-reward-signal": 0.7, "discount": 0.4, "observations": 0.1, "logging": 0.3},
        "Stable-Baselines3 issue 816",
        limit=0.9,
        algorithms=ON_POLICY,
    ),
)
