"""Verdicts on wrong actions: of choices by the values beside them, of numbers by what is chosen."""

from collections.abc import Sequence

import numpy as np

from backflip.doctor.probing.hypotheses import (
    BEST,
    OF_NUMBERS,
    OF_POLICIES,
    ActionHypothesis,
    PolicyHypothesis,
)
from backflip.doctor.probing.outcome import Outcome, failed

AS_NEAR = 0.02  # hypotheses whose errors differ by less cannot be told apart
NEARLY = 2  # numbers within so many tolerances are on their way
UNCONVERGED_TEXT = "Not converged yet: the actions are near to the best. Train for more env steps."


def of_actions(one: Outcome, outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a probe whose actions are wrong, with its verdict.

    Args:
        one: the outcome.
        outcomes: those of all probes.
    """
    return _of_choices(one, outcomes) if one.probe.bounds is None else _of_numbers(one, outcomes)


def _of_choices(one: Outcome, outcomes: Sequence[Outcome]) -> Outcome:
    if not len(one.values):
        return failed(one, [], one.probe.fails)
    nearest = min(OF_POLICIES, key=lambda each: _policy_error(each, one))
    is_alone = any(each.probe.id == "probe:4" and each.is_within_tolerance for each in outcomes)
    if nearest.id == "no-preference" and is_alone:
        return failed(one, [], one.probe.fails)
    return failed(one, [nearest.id], nearest.says)


def _policy_error(each: PolicyHypothesis, one: Outcome) -> float:
    correct = np.asarray(one.probe.values(one.discount) if one.probe.values else ())
    return float(np.abs(one.values.mean(0) - each.share * correct).max())


def _of_numbers(one: Outcome, outcomes: Sequence[Outcome]) -> Outcome:
    asked = [each for each in outcomes if each.probe.bounds and len(each.actions)]
    errors = {
        each: each.cost + sum(_number_error(each, here) for here in asked if not here.not_finite)
        for each in (BEST, *OF_NUMBERS)
    }
    least = min(errors.values())
    near = [each for each in errors if errors[each] <= least + AS_NEAR and each is not BEST]
    limit = min(one.probe.tolerance, one.action_error)
    told = [each for each in near if _number_error(each, one) < limit]
    if told and errors[BEST] > least:
        text = " Or: ".join(each.says for each in told)
        return failed(one, [each.id for each in told], text)
    if one.action_error <= NEARLY * one.probe.tolerance:
        return one._replace(judged="not_converged", means=UNCONVERGED_TEXT)
    return failed(one, [], one.probe.fails)


def _number_error(each: ActionHypothesis, one: Outcome) -> float:
    """Return the largest error of a seed's action from the nearest one that is predicted."""
    low, high = one.probe.bounds or (0.0, 0.0)
    (best,) = one.probe.actions or (0.0,)
    predicted = np.asarray(each.chosen(low, high, best))
    return float(np.abs(one.actions - predicted).min(1).max()) / ((high - low) / 2)
