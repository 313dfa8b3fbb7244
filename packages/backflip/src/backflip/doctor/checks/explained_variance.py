"""Checks of the explained variance: how well state values predict returns."""

from functools import partial

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import ON_POLICY, Log
from backflip.doctor.measures import (
    after,
    at_the_end,
    largest,
    or_none,
    smoothed,
    together,
)

LATE_SHARE = 0.5  # the explained variance is judged from this share of the budget on
EARLY_SHARE = 0.1  # values or returns without variance are judged from this share of the budget on
FIRST_SHARE = 0.05  # a log that begins after this share of the budget has no first updates
WORSE = -0.3  # values with a lower explained variance are worse than a constant
UNEXPLAINED = 0.05  # values with an explained variance below this are no better than a constant
CONSTANT = 1e-5  # |explained variance| is below this if all values are equal but for rounding
FIRST_UPDATES = 3  # the explained variance at first is the median of this many updates
_JONES = "A. Jones, Debugging RL, Without the Agonizing Pain"
_SCHULMAN = "J. Schulman, The Nuts and Bolts of Deep RL Research"


def _largest_until(limit: float, log: Log) -> Running | None:
    """Return the largest explained variance so far; once it reaches a limit, only the last value.

    Otherwise training whose values began to explain returns late would be judged by the time
    before.
    """
    found = or_none(
        after(log, LATE_SHARE, largest(smoothed(log, log.signals["explained_variance"])))
    )
    return found and _until_reached(found, limit)


def _until_reached(found: Running, limit: float) -> Running:
    """Return what was found, but only its last value if that reaches the limit."""
    if found.value[-1] < limit:
        return found
    return Running(found.x[-1:], found.value[-1:])


def _explained_size(log: Log) -> Running | None:
    """Return the largest median of |explained variance| so far; at the limit, only the last value.

    Values V(s) = c have 1 - Var[G - c] / Var[G] = 0, but for rounding.
    """
    found = log.signals["explained_variance"]
    size = smoothed(log, found._replace(y=np.abs(found.y)))
    found = or_none(after(log, EARLY_SHARE, largest(size)))
    return found and _until_reached(found, CONSTANT)


def _explained_at_first(log: Log) -> Running | None:
    """Return the median explained variance of the first three updates; None if they are missing."""
    found = log.signals["explained_variance"]
    known = np.isfinite(found.y)
    x, y = found.x[known][:FIRST_UPDATES], found.y[known][:FIRST_UPDATES]
    if len(x) < FIRST_UPDATES or x[0] > FIRST_SHARE * log.budget:
        return None
    return Running(x[-1:], np.median(y, keepdims=True))


def _self_reference(log: Log) -> Running | None:
    """Return EV(TD(λ) returns) - max(0, the best EV(whole returns) so far), medians.

    The best so far, because whole returns of a solved task hardly differ: nothing is left to
    explain then, and values that are right seem to explain less than nothing.
    """
    whole = log.signals["explained_variance_mc"]
    medians = smoothed(log, whole)
    best = whole._replace(x=medians.x, y=np.maximum(np.fmax.accumulate(medians.value), 0.0))
    gap = together(log.signals["explained_variance"], best, np.subtract)
    return or_none(after(log, LATE_SHARE, largest(smoothed(log, gap))))


def _returns_constant(log: Log) -> Running | None:
    """Return the share of the updates so far whose explained variance is NaN."""
    found = log.signals["explained_variance"]
    missing = np.cumsum(np.isnan(found.y)) / np.arange(1, len(found.y) + 1)
    return or_none(after(log, EARLY_SHARE, at_the_end(Running(found.x, missing))))


CHECKS = (
    Check(
        id="PV-EV-LOW",
        title="values explain nothing",
        quantity="largest median of the explained variance so far, after half the budget",
        measure=partial(_largest_until, UNEXPLAINED),
        needs=("explained_variance",),
        bad_side="below",
        limit_from="calibrated",
        explanation="The value function predicts returns no better than a constant, so advantages "
        "are noise.",
        causes={
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
        source=f"{_SCHULMAN}; Stable-Baselines3 issues 1897 and 2240",
        algorithms=ON_POLICY,
        least_margin=0.05,
        superseded_by=("PV-CONSTANT",),
    ),
    Check(
        id="PV-EV-ZERO",
        title="values explain almost nothing",
        quantity="largest median of the explained variance so far, after half the budget",
        measure=partial(_largest_until, UNEXPLAINED),
        needs=("explained_variance",),
        bad_side="below",
        limit_from="convention",
        explanation="Values are no better than a constant. Where rewards are rare, a healthy "
        "training looks the same.",
        causes={
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
        source=f"{_SCHULMAN}; Stable-Baselines3 issues 1897 and 2240",
        limit=UNEXPLAINED,
        algorithms=ON_POLICY,
        severity="remark",
        healthy_share=0.07,
        superseded_by=("PV-EV-NEG", "PV-CONSTANT"),
    ),
    Check(
        id="PV-CONSTANT",
        title="values are the same in every state",
        quantity="largest median of |explained variance| so far, after a tenth of the budget",
        measure=_explained_size,
        needs=("explained_variance",),
        bad_side="below",
        limit_from="identity",
        explanation="The value function gives one number for every observation, or numbers that "
        "are tiny against the returns. Even an untrained network tells observations apart.",
        causes={
            "observations": 0.5,
            "reward-scale": 0.4,
            "steps-too-large": 0.3,
            "values-do-not-learn": 0.2,
            "initialisation": 0.1,
        },
        source="the definition: V(s) = c gives 1 - Var[G - c] / Var[G] = 0",
        limit=CONSTANT,
        algorithms=ON_POLICY,
    ),
    Check(
        id="PV-EV-NEG",
        title="values are worse than a constant",
        quantity="largest median of the explained variance so far, after half the budget",
        measure=partial(_largest_until, WORSE),
        needs=("explained_variance",),
        bad_side="below",
        limit_from="convention",
        explanation="The value function predicts returns worse than their mean would: it adds "
        "noise to the advantages.",
        causes={
            "values-do-not-learn": 0.8,
            "value-targets": 0.3,
            "observations": 0.3,
            "steps-too-large": 0.5,
            "reward-scale": 0.5,
            "discount": 0.2,
        },
        source=f"{_SCHULMAN}; Stable-Baselines3 issues 1897 and 2240",
        limit=WORSE,
        algorithms=ON_POLICY,
        severity="warning",
        superseded_by=("PV-EV-LOW",),
    ),
    Check(
        id="PV-EV-TRAP",
        severity="warning",  # right values cannot explain episodes that end by chance either
        title="the explained variance explains itself",
        quantity="explained variance against TD(λ) returns minus the largest median so far of that "
        "against whole returns, which counts as at least 0",
        measure=_self_reference,
        needs=("explained_variance", "explained_variance_mc"),
        bad_side="above",
        limit_from="calibrated",
        explanation="TD(λ) returns contain the value, so a value without any use can seem to "
        "explain them. Whole returns say what the value knows.",
        causes={
            "value-targets": 0.5,
            "values-do-not-learn": 0.5,
            "advantages": 0.3,
            "discount": 0.2,
        },
        source="a critic of slow noise has 0.53 at λ = .95 (computed)",
        algorithms=ON_POLICY,
        least_margin=0.2,
        extreme=1.0,
    ),
    Check(
        id="PV-EV-PERFECT",
        title="values explain everything before they have learned",
        quantity="median explained variance of the first three updates",
        measure=_explained_at_first,
        needs=("explained_variance",),
        bad_side="above",
        limit_from="identity",
        explanation="Targets that equal the values from the start are the values themselves: "
        "nothing is learned from them.",
        causes={"value-targets": 0.3, "logging": 0.2},
        source=f"{_JONES}: a residual variance of 0",
        limit=1.0 - 1e-5,
        algorithms=ON_POLICY,
        from_start=True,
    ),
    Check(
        id="PV-EV-NAN",
        title="all returns are equal",
        quantity="share of updates so far without an explained variance",
        measure=_returns_constant,
        needs=("explained_variance",),
        bad_side="above",
        limit_from="convention",
        explanation="The explained variance is undefined where returns do not vary: there is "
        "nothing to learn.",
        causes={"no-reward-signal": 0.7, "discount": 0.4, "observations": 0.1, "logging": 0.3},
        source="Stable-Baselines3 issue 816",
        limit=0.9,
        algorithms=ON_POLICY,
    ),
)
