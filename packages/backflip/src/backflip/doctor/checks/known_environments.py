"""Checks of returns in environments whose rewards, and what healthy runs reach, are known."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.healthy_returns import (
    healthy_return,
    healthy_return_of_library,
    patience,
)
from backflip.doctor.log import Log
from backflip.doctor.measures import after, largest, or_none, ratio, smoothed, together
from backflip.doctor.possible_returns import possible_returns

# A policy may be worse than random actions before this share of the patience: healthy ones are.
SOONEST_SHARE = 1 / 3
LATE_SHARE = 0.5  # the best return after this share of the budget is compared with random actions
ROUNDING = 1e-3  # logs are rounded: a return may be outside by this share of its size
_SAME = "the definition of the environment's reward"


def _outside(log: Log) -> Running | None:
    """Return how far a return was outside of what the environment can give, so far.

    An episode may be longer than the environment's own limit, under another wrapper.
    """
    known = possible_returns(log)
    if known is None:
        return None
    signal = log.signals["episode_return_mean"]
    low, high = known.range(_longest(log))
    outside = np.maximum(np.maximum(low - signal.y, signal.y - high), 0.0)
    rounded = ROUNDING * np.maximum(np.abs(signal.y), 1.0)
    return or_none(largest(Running(signal.x, np.where(outside > rounded, outside, 0.0))))


def _not_negated(log: Log) -> Running | None:
    """Return the largest |R / L + r| so far, with r the environment's reward of each env step.

    It is about 0 where all rewards have the opposite sign.
    """
    known = possible_returns(log)
    if known is None or known.each is None:
        return None
    returns, lengths = log.signals["episode_return_mean"], log.signals["episode_length_mean"]
    each = together(returns, lengths, ratio)
    return or_none(largest(Running(each.x, np.abs(each.y + known.each))))


def _longest(log: Log) -> float:
    """Return the largest mean length of episodes; 0 if no length is logged."""
    if not log.has("episode_length_mean"):
        return 0.0
    return float(np.fmax.reduce(log.signals["episode_length_mean"].y, initial=0.0))


def _share_of_healthy(log: Log) -> Running | None:
    """Return the best return as a share of what healthy runs reach in this environment.

        (max_{u ≥ N} R(u) - R_0) / (R* - R_0),   from p N on

    R_0 is the return of the untrained policy, R* what healthy runs reach, N the env steps that the
    slowest of them needs for half of it, and p the patience. Before N, the mean is that of episodes
    that happened to be short. A run that learns later is a slow one: only the best value counts.
    """
    healthy = healthy_return(log) if log.is_over_env_steps else None
    if healthy is None:
        return None
    signal = log.signals["episode_return_mean"]
    late = signal.x >= healthy.env_steps
    found = smoothed(log, signal._replace(x=signal.x[late], y=signal.y[late]), 0.05)
    due = found.x[found.x >= patience(log, healthy)]
    if not len(due):
        return None
    share = (found.value.max() - healthy.untrained) / (healthy.reached - healthy.untrained)
    return Running(due, np.full(len(due), share))


def _above_random(log: Log) -> Running | None:
    """Return how far the best late return lies above that of random actions.

        (max_{u in the last half} R(u) - μ) / σ

    μ and σ are the mean and the standard deviation of the return of an episode of random
    actions. Healthy runs of the same library are above it for half of their budget, once they have
    had a third of the patience. DQN gets all of it: its first greedy actions can be worse.
    """
    healthy = healthy_return_of_library(log) if log.is_over_env_steps else None
    if healthy is None or not healthy.random_std > 0:
        return None
    found = smoothed(log, log.signals["episode_return_mean"], 0.05)
    late = after(log, LATE_SHARE, found)
    share = 1.0 if log.algorithm == "dqn" else SOONEST_SHARE
    due = late.x[late.x >= patience(log, healthy, share)]
    if not len(due) or log.end < log.budget * (1 - LATE_SHARE / 2):
        return None
    best = (late.value.max() - healthy.random_mean) / healthy.random_std
    return Running(due, np.full(len(due), best))


CHECKS = (
    Check(
        id="ENV-NEGATED",
        title="returns are minus those of the environment",
        quantity="largest distance of the return divided by the length from minus the reward of an "
        "env step, in environments that give the same reward at each",
        measure=_not_negated,
        needs=("episode_return_mean", "episode_length_mean"),
        bad_side="below",
        limit_from="identity",
        explanation="The agent learns to do the opposite of the task.",
        causes={"reward-sign": 0.5},  # of sign mistakes, those made before the return is logged
        source=_SAME,
        limit=0.05,
        is_direct=True,
        unmeasured="the rewards of this environment are not known",
    ),
    Check(
        id="ENV-RANGE",
        title="returns are outside of what the environment can give",
        quantity="largest distance of a return from the range that the rewards and the time limit "
        "of this environment allow",
        measure=_outside,
        needs=("episode_return_mean",),
        bad_side="above",
        limit_from="identity",
        explanation="These are not returns of the environment's own reward: a wrapper changes it, "
        "or the log has other numbers.",
        causes={"reward-sign": 0.6, "reward-scale": 0.6},
        source=_SAME,
        limit=0.0,
        severity="warning",
        unmeasured="the rewards of this environment are not known",
    ),
    Check(
        id="ENV-RANDOM",
        title="the policy is worse than random actions",
        quantity="how far the best return of the last half of the budget lies above that of random "
        "actions, divided by the standard deviation of the return of one of their episodes; after "
        "half of the env steps that the slowest of ten healthy seeds needs for half of the way, or "
        "1.5 times as many of DQN",
        measure=_above_random,
        needs=("episode_return_mean",),
        bad_side="below",
        limit_from="convention",
        explanation="It learned to do what the environment punishes: a sign, or the advantages, "
        "are often wrong.",
        causes={
            "reward-sign": 0.5,  # in many environments random actions get the worst return already
            "policy-loss": 0.6,
            "advantages": 0.5,
            "actions": 0.4,
            "value-targets": 0.4,
            "acting-and-learning-disagree": 0.3,
            "steps-too-large": 0.3,
            "discount": 0.3,
            "target-network": 0.3,
        },
        source="OpenAI, Spinning Up as a Deep RL Researcher: compare with a policy that is known",
        limit=-0.3,
        superseded_by=("ENV-WORSE", "Q-NO-UPDATE"),
        unmeasured="no like runs in this environment were measured, or this one is too short",
    ),
    Check(
        id="ENV-BELOW",
        title="the return stays far below what healthy runs reach",
        quantity="best return as a share of the way from the untrained policy to what ten healthy "
        "seeds reach in this environment, after 1.5 times the env steps that the slowest of them "
        "needs for half of it (4 times in libraries that were not measured)",
        measure=_share_of_healthy,
        needs=("episode_return_mean",),
        bad_side="below",
        limit_from="convention",
        explanation="The same algorithm learns this environment with its default settings: a "
        "mistake, a setting or a wrapper keeps it from that.",
        causes={
            "policy-loss": 0.6,
            "advantages": 0.6,
            "value-targets": 0.6,
            "values-do-not-learn": 0.5,
            "reward-sign": 0.6,
            "reward-scale": 0.5,
            "no-reward-signal": 0.5,
            "observations": 0.6,
            "actions": 0.6,
            "steps-too-small": 0.6,
            "steps-too-large": 0.5,
            "replay": 0.5,
            "target-network": 0.5,
            "acting-and-learning-disagree": 0.5,
            "entropy-bonus": 0.5,
            "too-little-exploration": 0.5,
            "initialisation": 0.4,
            "discount": 0.4,
            "unlucky-or-slow": 0.1,
        },
        source="a known result in the same environment: A. Jones, Debugging RL; Henderson et al. "
        "2018",
        limit=0.25,
        superseded_by=("ENV-RANDOM",),
        unmeasured="no like runs in this environment were measured, or this one is too short",
    ),
)
