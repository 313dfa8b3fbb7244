"""Verdicts on all probes together: the hypothesis that is nearest to what was learned.

The error of a hypothesis is the sum of its `distance` over all probes of values, and its cost. What
it predicts decides where a value that is not right belongs: to a mistake, or on the way to what is
right.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backflip.doctor.probing.action_verdicts import of_actions
from backflip.doctor.probing.chains import CHAINS
from backflip.doctor.probing.hypotheses import (
    OF_VALUES,
    RIGHT,
    Hypothesis,
    another_discount,
)
from backflip.doctor.probing.outcome import Outcome, failed
from backflip.doctor.probing.prediction import UNCONVERGED, distance, predicted

EXPLAINS = 0.25  # the largest error, on one probe, of a hypothesis that explains it
AS_NEAR = 0.02  # hypotheses whose errors differ by less cannot be told apart
RESOLUTION = 0.01  # predictions that differ by less cannot be told apart
ENDLESS = "probe:truncation"
ONE_STEP = {"probe:1", "probe:2"}
UNCONVERGED_TEXT = (
    "Not converged yet: the values are on their way to what is right. Train for more env steps, or "
    "with a discount of 0.9. If they stay where they are, returns are cut somewhere, as at the end "
    "of each rollout."
)

NO_ENV_STEPS_TEXT = (
    "`learn` made no env step: it does not use the environment that the factory was given."
)


class _Found(NamedTuple):
    """The nearest hypothesis, and the mistakes that cannot be told apart from it."""

    nearest: Hypothesis
    mistakes: tuple[Hypothesis, ...] = ()


def judged(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes with a verdict, the ids of the causes and what a failure means."""
    found = _nearest([one for one in outcomes if _tells_of_targets(one)])
    return [_judged(one, found, outcomes) for one in outcomes]


def _tells_of_targets(one: Outcome) -> bool:
    """Whether it has values, and they do not depend on the policy."""
    return one.probe.actions is None and len(one.values) > 0 and not one.not_finite


def _nearest(told: Sequence[Outcome]) -> _Found:
    """Return what explains all values best; right if all of them are within the tolerance."""
    if all(one.is_within_tolerance for one in told):
        return _Found(RIGHT)
    candidates = [RIGHT, *OF_VALUES]
    for one in told:
        if one.probe.id == ENDLESS and one.values.min() > 1.0:
            candidates.append(another_discount(float(one.values.mean())))
    errors = {each: each.cost + sum(_error(each, one) for one in told) for each in candidates}
    by_error = sorted(candidates, key=lambda each: errors[each])
    nearest = by_error[0]
    limit = errors[nearest] + AS_NEAR
    allowed = {each: each.cost if nearest is RIGHT else 0.0 for each in OF_VALUES}
    near = [each for each in by_error if each in allowed and errors[each] - allowed[each] <= limit]
    if nearest is not RIGHT and nearest not in near:
        near = [nearest, *near]
    return _Found(nearest, tuple(near))


def _error(each: Hypothesis, one: Outcome) -> float:
    return distance(one.values, each, CHAINS[one.probe.id], one.discount)


def _judged(one: Outcome, found: _Found, outcomes: Sequence[Outcome]) -> Outcome:
    """Return one of the outcomes with its verdict.

    Wrong actions follow from wrong targets if values of single rewards are wrong.
    """
    passing = {each.probe.id for each in outcomes if each.is_within_tolerance}
    if not one.was_asked:
        return one
    if not one.has_env_steps and not one.is_within_tolerance:
        return failed(one, ["no-env-steps"], NO_ENV_STEPS_TEXT)
    if one.not_finite:
        return failed(one, ["not-finite"], _not_finite(one))
    if one.probe.actions is not None and one.action_error > one.probe.tolerance:
        if found.nearest is not RIGHT and not passing >= ONE_STEP:
            return _blamed(one, found.mistakes)
        return of_actions(one, outcomes)
    if one.is_within_tolerance and not _is_nearer(found.nearest, one):
        return one._replace(judged="passed")
    if found.nearest is RIGHT and _error(RIGHT, one) <= UNCONVERGED + one.probe.tolerance:
        return _unconverged(one, found.mistakes)
    return _of_targets(one, found)


def _unconverged(one: Outcome, mistakes: Sequence[Hypothesis]) -> Outcome:
    """Return that values are on their way, with the mistakes that would take the same way."""
    text = UNCONVERGED_TEXT
    if mistakes:
        text += f" So far, these would look the same: {_in_words(mistakes)}"
    causes = tuple(each.id for each in mistakes)
    return one._replace(judged="not_converged", causes=causes, means=text)


def _is_nearer(mistake: Hypothesis, one: Outcome) -> bool:
    """Whether a mistake predicts values better than what is right, and clearly other ones."""
    if mistake is RIGHT or not _tells_of_targets(one):
        return False
    shown = one.values.shape[1]
    both = [
        predicted(each, CHAINS[one.probe.id], one.discount)[:shown] for each in (mistake, RIGHT)
    ]
    gap = np.abs(both[0] - both[1]).max()
    return bool(gap > RESOLUTION) and _error(mistake, one) < _error(RIGHT, one)


def _of_targets(one: Outcome, found: _Found) -> Outcome:
    """Return a failure with the hypotheses that explain it; with the probe's own text if none.

    One explains it if what it predicts is near, or at least nearer than what is right.
    """
    limit = max(EXPLAINS, _error(RIGHT, one))
    mistakes = () if found.nearest is RIGHT else found.mistakes
    told = [each for each in mistakes if _error(each, one) <= limit]
    if not told:
        return failed(one, [], one.probe.fails)
    return _blamed(one, told)


def _blamed(one: Outcome, mistakes: Sequence[Hypothesis]) -> Outcome:
    return failed(one, [each.id for each in mistakes], _in_words(mistakes))


def _in_words(told: Sequence[Hypothesis]) -> str:
    return " Or: ".join(each.says for each in told)


def _not_finite(one: Outcome) -> str:
    what, how = next(iter(one.not_finite.items()))
    return (
        f"A learned {what} is {how}: look for the first loss that is, as after a division by 0, "
        "the logarithm of 0, or steps that are too large."
    )
