"""The mistakes that probes can name, each as data from which the values it leads to follow.

A learner of values solves V(s) = k E[r + γ b V(s')], where k is 1, and b is 1 except where a step
terminates. A mistake in its targets changes the steps, γ or k. `prediction` computes the values.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from backflip.doctor.probing.chains import Chain, Step

Change = Callable[[Chain], Chain]
OfDiscount = Callable[[float], float]  # a number for the γ that the learner states


def _same(discount: float) -> float:
    return discount


def _square(discount: float) -> float:
    return discount**2


def _always(number: float) -> OfDiscount:
    def of(discount: float) -> float:
        del discount
        return number

    return of


class Hypothesis(NamedTuple):
    """What a learner may do.

    Attributes:
        id: its name in the output of `--json`.
        says: what is wrong, and where to look.
        change: the steps that it learns from, for the steps that happen.
        discount: the γ that it uses, for the γ that it states.
        share: k, the share of each target that it learns, for the γ that it states.
        decays: λ of the λ-returns for which values differ: 0 for one step, 1 for whole episodes.
        runs_away: values leave the predicted ones in their direction, without bound.
        cost: by how much it must be nearer than another one, as an error: what is right costs
            nothing, and what is fitted to the values costs most.
    """

    id: str
    says: str
    change: Change = lambda chain: chain
    discount: OfDiscount = _same
    share: OfDiscount = _always(1.0)
    decays: tuple[float, ...] = (0.0,)
    runs_away: bool = False
    cost: float = 0.05


def _each(change: Callable[[Step], Step]) -> Change:
    return lambda chain: tuple(tuple(change(step) for step in episode) for episode in chain)


def _rewards_a_step_late(chain: Chain) -> Chain:
    """Give each step the reward of the step before, which may be of another episode."""
    return tuple(
        tuple(
            step._replace(reward=before.reward)
            for step, before in zip(episode, (earlier[-1], *episode), strict=False)
        )
        for earlier in chain
        for episode in chain
    )


def _observations_a_step_late(chain: Chain) -> Chain:
    """Give each step but the first the observation of the step before."""
    return tuple(
        tuple(
            step._replace(state=before.state)
            for step, before in zip(episode, (episode[0], *episode), strict=False)
        )
        for episode in chain
    )


def _starts_from_the_last_episode(chain: Chain) -> Chain:
    """Give the first step the last observation of an episode, which may be another one."""
    return tuple(
        (episode[0]._replace(state=earlier[-1].next_state), *episode[1:])
        for earlier in chain
        for episode in chain
    )


RIGHT = Hypothesis("right", "The targets are right.", decays=(0.0, 1.0), cost=0.0)
OF_VALUES = (
    Hypothesis(
        "nothing-learned",
        "Values stay at 0: the reward does not reach the target, or no step of the optimiser "
        "reaches the value function.",
        share=_always(0.0),
    ),
    Hypothesis(
        "wrong-sign",
        "Values move away from their rewards: the sign of the reward, of the value loss, or of "
        "the advantage in the target.",
        change=_each(lambda step: step._replace(reward=-step.reward)),
        runs_away=True,
    ),
    Hypothesis(
        "half-target",
        "Values are half of what is right: the target lacks V(s), as an advantage in place of a "
        "return does.",
        share=_always(0.5),
        decays=(0.0, 1.0),
    ),
    Hypothesis(
        "advantage-not-detached",
        "Values are too large by the entropy of the policy: the policy loss moves the value, as "
        "the advantage in it is not detached; or the value has entropy in it.",
        change=_each(lambda step: step._replace(reward=step.reward + math.log(step.choices))),
    ),
    Hypothesis(
        "no-discount",
        "γ is not applied: later rewards count in full.",
        discount=_always(1.0),
    ),
    Hypothesis(
        "discounted-twice",
        "γ is applied twice in each step: γ² in place of γ.",
        discount=_square,
    ),
    Hypothesis(
        "own-reward-discounted",
        "The reward of a step itself is discounted: γ is applied once too often to each target.",
        share=_same,
    ),
    Hypothesis(
        "no-bootstrap",
        "Nothing is bootstrapped: targets lack γV(s'), or the target network is never updated, or "
        "not within so few env steps.",
        change=_each(lambda step: step._replace(bootstraps=False)),
    ),
    Hypothesis(
        "truncation-ends",
        "A truncated step is treated as a terminated one: nothing is bootstrapped there.",
        change=_each(lambda step: step._replace(bootstraps=step.bootstraps and not step.truncated)),
        decays=(0.0, 1.0),
    ),
    Hypothesis(
        "bootstrap-through-ends",
        "A terminated step is bootstrapped: the target must not have γV(s') there.",
        change=_each(lambda step: step._replace(bootstraps=True)),
    ),
    Hypothesis(
        "inverted-ends",
        "The mask of termination is inverted: γV(s') is added where an episode terminates, and "
        "only there.",
        change=_each(lambda step: step._replace(bootstraps=not step.bootstraps)),
    ),
    Hypothesis(
        "bootstrap-from-s",
        "The target bootstraps from s in place of s': γV(s) in place of γV(s').",
        change=_each(lambda step: step._replace(next_state=step.state)),
    ),
    Hypothesis(
        "rewards-late",
        "Rewards are a step late: each target has the reward of the step before.",
        change=_rewards_a_step_late,
    ),
    Hypothesis(
        "observations-late",
        "Observations are a step late: a target is learned at the observation of the step before.",
        change=_observations_a_step_late,
    ),
    Hypothesis(
        "observations-early",
        "Targets are learned at s' in place of s: the observation is overwritten, or stored after "
        "the step.",
        change=_each(lambda step: step._replace(state=step.next_state)),
    ),
    Hypothesis(
        "stale-reset",
        "An episode begins with the last observation of the one before: the observation of `reset` "
        "is not used.",
        change=_starts_from_the_last_episode,
    ),
    Hypothesis(
        "observation-ignored",
        "All observations have one value, the mean of their targets: observations do not reach the "
        "value function, belong to other targets, or shapes (B, 1) and (B,) broadcast in the loss.",
        change=_each(lambda step: step._replace(state=0, next_state=0)),
        decays=(0.0, 1.0),
    ),
)


def another_discount(endless: float) -> Hypothesis:
    """Return that γ is the one for which a reward of 1 for ever has a value.

    Args:
        endless: the value, above 1: γ = 1 - 1/V.
    """
    implied = 1.0 - 1.0 / endless
    return Hypothesis(
        "another-discount",
        f"Values are those of a γ of {implied:.4g}: another γ is used than `discount` states.",
        discount=_always(implied),
        cost=0.2,
    )


class PolicyHypothesis(NamedTuple):
    """What a policy that chooses wrong actions may have learned.

    Attributes:
        id: its name in the output of `--json`.
        says: what is wrong, and where to look.
        share: the values that it predicts, as a share of those of the best actions.
    """

    id: str
    says: str
    share: float


class ActionHypothesis(NamedTuple):
    """What a policy that chooses numbers may do instead of the best.

    Attributes:
        id: its name in the output of `--json`.
        says: what is wrong, and where to look.
        chosen: the actions that it predicts, for the lower and the upper bound and the best action.
        cost: by how much it must be nearer than another one.
    """

    id: str
    says: str
    chosen: Callable[[float, float, float], tuple[float, ...]]
    cost: float = 0.05


def _clipped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)


def _best(low: float, high: float, best: float) -> tuple[float, ...]:
    del low, high
    return (best,)


def _unscaled(low: float, high: float, best: float) -> tuple[float, ...]:
    return (_clipped(_clipped(best, -1.0, 1.0), low, high),)


def _without_centre(low: float, high: float, best: float) -> tuple[float, ...]:
    half = (high - low) / 2
    return (_clipped(_clipped(best, -half, half), low, high),)


def _half_the_range(low: float, high: float, best: float) -> tuple[float, ...]:
    centre, quarter = (low + high) / 2, (high - low) / 4
    return (_clipped(best, centre - quarter, centre + quarter),)


def _worst(low: float, high: float, best: float) -> tuple[float, ...]:
    farthest = max(best - low, high - best)
    return tuple(one for one in (low, high) if abs(one - best) == farthest)


def _unmoved(low: float, high: float, best: float) -> tuple[float, ...]:
    del best
    return (_clipped(0.0, low, high), (low + high) / 2)


BEST = ActionHypothesis("right", "The best actions are chosen.", _best, cost=0.0)
OF_NUMBERS = (
    ActionHypothesis(
        "wrong-way",
        "The policy goes to the worst action: the sign of the policy loss, of the advantage, or of "
        "the gradient that a critic gives it.",
        _worst,
    ),
    ActionHypothesis(
        "unmoved",
        "The policy stays where it starts: no gradient reaches it, or no optimiser has its "
        "parameters.",
        _unmoved,
    ),
    ActionHypothesis(
        "unscaled",
        "The policy stays in [-1, 1]: actions are not scaled to the bounds of the environment.",
        _unscaled,
    ),
    ActionHypothesis(
        "without-centre",
        "Actions are scaled by half the range of the bounds, and their centre is not added.",
        _without_centre,
    ),
    ActionHypothesis(
        "half-the-range",
        "The policy reaches half of the range: a squashed action is scaled by too little.",
        _half_the_range,
    ),
)

OF_POLICIES = (
    PolicyHypothesis(
        "wrong-way",
        "The policy prefers the worse actions, and values are theirs: the sign of the advantage or "
        "of the policy loss, or the log-probability of another action.",
        -1.0,
    ),
    PolicyHypothesis(
        "no-preference",
        "Values are those of no preference: no gradient reaches the policy, or advantages and "
        "log-probabilities belong to other actions.",
        0.0,
    ),
    PolicyHypothesis(
        "wrong-act",
        "Values are those of the best actions, and `act` chooses others: look at `act` alone.",
        1.0,
    ),
)
