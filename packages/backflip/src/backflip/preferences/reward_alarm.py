"""The reward alarm: notices a policy that exploits errors of the reward model. Needs no JAX.

On fresh pairs (`backflip.preferences.fresh_pairs`) what the learned reward says is compared with
the answer. While the learned return of the newest behaviour is above that of the random policy, a
sound reward model agrees with the teacher more often than chance:

    E[x_i | past] >= a_i

- Newest against random behaviour: x_i is 1 if the teacher prefers the newest clip, 0 if not. With u
  the probability that a newest clip has a larger learned return than a random one,
  a_i = 1/2 + NEWER (2 u - 1). A tie says nothing: many tasks give no reward in most clips.
- Two newest clips, or one and an earlier one that the learned reward does not prefer: x_i is 1 if
  the answer agrees with the learned reward, 0 if not, 1/2 for a tie. With p <= .95 the probability
  of agreement that the model states, and s in [0, 1] the rank of the difference of learned returns
  (for models that are never sure),
  a_i = 1/2 + max(SURE (2 p - 1) / 0.9, LARGE (s - 0.4) / 0.6, 0). If both clips have the same
  learned return, no answer agrees or disagrees, and the pair does not count.

The test is a bet against the hypothesis: under it, the product of 1 + λ_i (a_i - x_i) with
λ_i = θ / (1 - a_i) is a nonnegative supermartingale that starts at 1. So is its mean over θ and
over the check with which betting starts (a reward that was sound at first may fail later), and over
the seeds and all seeds together. It exceeds 1/α at any time with a probability of at most α
(Ville's inequality). So the alarm may be looked at after every answer.

Source: betting on bounded means, Waudby-Smith and Ramdas 2024, arXiv:2010.09686, section 4.
Departures: one-sided; a fixed mixture of θ and of starts instead of adaptive bets.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from backflip.preferences.fresh_pairs import BOTH, LEFT, Forecast, FreshAnswer

FALSE_ALARMS = 0.05  # α: the largest probability of an alarm in a run with a sound reward model
NEWER = 0.3  # the teacher prefers new to random in 80 % of pairs if learned returns never overlap
SURE = 0.35  # a sound model agrees in 85 % of the pairs of which it says 95 %, or more
LARGE = 0.25  # and in 75 % of the pairs whose learned returns differ most
RISEN = 0.6  # the learned return has risen if new beats random with this probability
BETS = (0.25, 0.5, 0.75, 0.95)  # θ
STARTS = 4  # betting starts at the first check, after a quarter of the planned checks, ...

State = Literal["alarm", "no alarm", "not enough checks"]
_AGREES = {"left": 1.0, "tie": 0.5, "right": 0.0}


class Check(NamedTuple):
    """One answered fresh pair.

    Attributes:
        env_steps: when its newest clips were recorded.
        agreement: 1 if the answer agrees with the learned reward, 0 if not, 1/2 for a tie.
        expected: the probability of agreement that the reward model states.
        new_preferred: 1 if the teacher prefers the newest clip to the old one, 0 if not, 1/2 for a
            tie; None for a pair of two newest clips.
        outcome: x.
        bound: a; None if the check does not count.
    """

    env_steps: int
    agreement: float
    expected: float
    new_preferred: float | None
    outcome: float
    bound: float | None


class Alarm(NamedTuple):
    """What the checks of a run say.

    Attributes:
        state: `alarm`, `no alarm`, or `not enough checks`: even if every answer had disagreed,
            there would be no alarm yet.
        checks: answered fresh pairs.
        agreement: mean agreement; None without checks.
        expected: the mean agreement that the reward model states.
        against_old: answered pairs of newest against old behaviour.
        new_preferred: share of these in which the teacher prefers the newest; None without any.
        evidence: the largest value of the test so far; the alarm is raised at 1 / `FALSE_ALARMS`.
        raised_at: env steps of the check that raised the alarm; None if there is no alarm.
    """

    state: State
    checks: int
    agreement: float | None
    expected: float | None
    against_old: int
    new_preferred: float | None
    evidence: float
    raised_at: int | None


def checks_of(answers: Sequence[FreshAnswer]) -> list[Check]:
    """Return the checks of one seed in order, without skipped and open pairs."""
    return [_check(one) for one in answers if one.answer in _AGREES]


def _check(one: FreshAnswer) -> Check:
    forecast, left = one.forecast, _AGREES[one.answer or ""]
    agreement, expected = _agreement(forecast, left)
    new = None if forecast.newest == BOTH else left if forecast.newest == LEFT else 1.0 - left
    if forecast.against_random and new is not None:
        outcome, bound = new, _bound_of_new(forecast, new)
    else:
        outcome, bound = agreement, _bound_of_agreement(forecast, expected)
    if forecast.risen < RISEN:
        bound = None
    return Check(one.env_steps, agreement, expected, new, outcome, bound)


def _agreement(forecast: Forecast, left: float) -> tuple[float, float]:
    """Return the agreement of an answer, 1 for left, with the learned reward, and as it states it.

    Both are 1/2 for a pair with equal learned returns.
    """
    if not forecast.margin:
        return 0.5, 0.5
    if forecast.margin > 0:
        return left, forecast.left
    return 1.0 - left, 1.0 - forecast.left


def _bound_of_new(forecast: Forecast, new: float) -> float | None:
    """Return the least expected preference for new over random behaviour; None for a tie."""
    return None if new == 0.5 else 0.5 + NEWER * (2 * forecast.risen - 1)


def _bound_of_agreement(forecast: Forecast, expected: float) -> float | None:
    """Return the least expected agreement.

    None if the learned reward prefers neither clip, or an earlier one.
    """
    if not forecast.margin:
        return None
    if forecast.newest != BOTH and (forecast.newest == LEFT) != (forecast.margin > 0):
        return None
    sure = SURE * (2 * min(expected, 0.95) - 1) / 0.9
    return 0.5 + max(sure, LARGE * (abs(forecast.margin) - 0.4) / 0.6, 0.0)


def alarm_of(checks: Mapping[int, Sequence[Check]], planned: int) -> Alarm:
    """Return what the checks of some seeds say together.

    Args:
        checks: of each seed, in the order of asking.
        planned: fresh pairs of each seed in the whole run.
    """
    every = list(itertools.chain.from_iterable(checks.values()))
    values = _evidence(checks, planned)
    raised = [at for at, value in values if value >= 1 / FALSE_ALARMS]
    worst = {seed: [_if_wrong(check) for check in some] for seed, some in checks.items()}
    enough = any(value >= 1 / FALSE_ALARMS for _, value in _evidence(worst, planned))
    new = [check.new_preferred for check in every if check.new_preferred is not None]
    return Alarm(
        state="alarm" if raised else "no alarm" if enough else "not enough checks",
        checks=len(every),
        agreement=_mean([check.agreement for check in every]),
        expected=_mean([check.expected for check in every]),
        against_old=len(new),
        new_preferred=_mean(new),
        evidence=max([1.0, *(value for _, value in values)]),
        raised_at=raised[0] if raised else None,
    )


def _if_wrong(check: Check) -> Check:
    """Return the check as if the answer disagreed; one that does not count, with a sure model."""
    bound = 0.5 + SURE if check.bound is None else check.bound
    return check._replace(outcome=0.0, bound=bound)


def _evidence(checks: Mapping[int, Sequence[Check]], planned: int) -> list[tuple[int, float]]:
    """Return the value of the test after each round of checks, with its env steps."""
    rounds = sorted({check.env_steps for some in checks.values() for check in some})
    alone = np.mean([_after_rounds(some, planned, rounds) for some in checks.values()], axis=0)
    pooled = sorted(itertools.chain.from_iterable(checks.values()), key=lambda one: one.env_steps)
    together = _after_rounds(pooled, planned * len(checks), rounds)
    return [*zip(rounds, ((alone + together) / 2).tolist(), strict=True)]


def _after_rounds(
    checks: Sequence[Check], planned: int, rounds: Sequence[int]
) -> Float[np.ndarray, " rounds"]:
    values = np.concatenate([[1.0], betting(checks, planned)])
    times = [check.env_steps for check in checks]
    return values[np.searchsorted(times, rounds, side="right")]


def betting(checks: Sequence[Check], planned: int) -> Float[np.ndarray, " checks"]:
    """Return the value of the test after each check, in order.

    Args:
        checks: the checks.
        planned: their number at the end of the run, which determines when betting starts.
    """
    # Where `counts` is false, any bound will do.
    bound = np.array([0.5 if check.bound is None else check.bound for check in checks])
    counts = np.array([check.bound is not None for check in checks], bool)
    gain = np.where(counts, bound - np.array([check.outcome for check in checks]), 0.0)
    starts = sorted({start * planned // STARTS for start in range(STARTS)})
    logs = [
        np.cumsum(np.where(np.arange(len(checks)) < start, 0.0, np.log1p(bet * gain / (1 - bound))))
        for bet, start in itertools.product(BETS, starts)
    ]
    mean = np.logaddexp.reduce(np.array(logs), axis=0) - math.log(len(logs))
    return np.exp(np.minimum(mean, 500.0))


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
