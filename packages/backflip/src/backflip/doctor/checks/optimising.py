"""Checks of numbers, gradients and learning rates."""

import numpy as np
from jaxtyping import Bool

from backflip.doctor.check import Check, Running
from backflip.doctor.log import ON_POLICY, Log, Signal, Values
from backflip.doctor.measures import (
    after,
    largest,
    log10_of,
    or_none,
    ratio,
    smallest,
    smoothed,
    together,
)

EARLY_SHARE = 0.2  # small updates and missing numbers are judged from this share of the budget on
END_SHARE = 0.9  # a learning rate may be 0 after this share of the budget
ALWAYS_FINITE = (
    "policy_loss",
    "value_loss",
    "q_loss",
    "total_loss",
    "entropy",
    "approx_kl",
    "grad_norm",
    "critic_grad_norm",
    "actor_grad_norm",
    "value_grad_norm",
    "update_ratio",
    "reward_mean",
    "q_mean",
    "value_mean",
    "advantage_mean",
    "temperature",
    "obs_abs_mean",
)
# Libraries that log a return only when episodes have ended; others log NaN until one does.
LOG_FINITE_RETURNS = (
    "sb3",
    "cleanrl",
    "monitor",
    "rsl_rl",
    "skrl",
    "rl_games",
    "spinup",
    "sample_factory",
    "torchrl",
    "dopamine",
)
RETURNS = ("episode_return_mean", "evaluation_return")
_GRADIENTS = ("grad_norm", "critic_grad_norm", "value_grad_norm")
_KARPATHY = "A. Karpathy, Building makemore: log10 of updates over parameters is near -3"
_TOO_LARGE = {"steps-too-large": 0.7, "reward-scale": 0.4, "value-targets": 0.3}


def _not_finite(log: Log) -> Running | None:
    """Return the number of signals so far with a value that is NaN or infinite.

    NaNs before the first number mean that there is no value yet. They count if there is still no
    number after 20 % of the budget. Series with unknown names count if they end in NaN or infinity.
    """
    returns = RETURNS if log.library in LOG_FINITE_RETURNS else ()
    found = [
        log.signals[name] for name in (*ALWAYS_FINITE, "learning_rate", *returns) if log.has(name)
    ]
    if not found and not log.broken and not log.has("episode_return_mean"):
        return None
    begins = log.end < EARLY_SHARE * log.budget
    bad = [one.x[_broken(one.y, begins)][:1] for one in found]
    if not returns and log.has("episode_return_mean"):  # NaN may mean that no episode has ended
        one = log.signals["episode_return_mean"]
        bad.append(one.x[np.isinf(one.y)][:1])
    bad += [one.x[np.flatnonzero(np.isfinite(one.y))[-1] + 1 :][:1] for one in log.broken]
    first = np.sort(np.concatenate(bad))
    if not len(first):
        return Running(np.asarray([log.end]), np.zeros(1))
    return Running(first, np.arange(1.0, len(first) + 1))


def _broken(y: Values, begins: bool) -> Bool[np.ndarray, " n"]:
    """Return where values are not finite.

    NaNs before the first number do not count if a number follows, or while a run begins.
    """
    begun = np.maximum.accumulate(np.isfinite(y))
    waits = np.isnan(y) & ~begun & (begun[-1:] | begins)
    return ~np.isfinite(y) & ~waits


def _gradient(log: Log) -> Signal | None:
    names = [name for name in _GRADIENTS if log.has(name)]
    return log.signals[names[0]] if names else None


def _gradient_large(log: Log) -> Running | None:
    found = _gradient(log)
    return found and or_none(log10_of(largest(smoothed(log, found))))


def _gradient_small(log: Log) -> Running | None:
    found = _gradient(log)
    return found and or_none(after(log, EARLY_SHARE, log10_of(largest(smoothed(log, found)))))


def _actor_gradient_small(log: Log) -> Running | None:
    found = log10_of(largest(smoothed(log, log.signals["actor_grad_norm"])))
    return or_none(after(log, EARLY_SHARE, found))


def _actor_gradient_large(log: Log) -> Running | None:
    return or_none(log10_of(largest(smoothed(log, log.signals["actor_grad_norm"]))))


def _update_large(log: Log) -> Running | None:
    return or_none(log10_of(largest(smoothed(log, log.signals["update_ratio"]))))


def _update_small(log: Log) -> Running | None:
    found = log10_of(largest(smoothed(log, log.signals["update_ratio"])))
    return or_none(after(log, EARLY_SHARE, found))


def _policy_still(log: Log) -> Running | None:
    return _share_of_update(log, "policy_update_ratio")


def _value_still(log: Log) -> Running | None:
    return _share_of_update(log, "value_update_ratio")


def _share_of_update(log: Log, name: str) -> Running | None:
    """Return log10 of the largest movement so far of one module divided by that of all."""
    share = together(log.signals[name], log.signals["update_ratio"], ratio)
    return or_none(after(log, EARLY_SHARE, log10_of(largest(Running(share.x, share.y)))))


def _rate_zero(log: Log) -> Running | None:
    """Return, for env steps before 90 % of the budget, the largest learning rate from there on.

    A rate of 0 with which a warm-up begins does not count.
    """
    found = log.signals["learning_rate"]
    later = np.fmax.accumulate(found.y[::-1])[::-1]
    has_begun = np.maximum.accumulate(found.y > 0) | (found.x >= EARLY_SHARE * log.budget)
    counts = has_begun & (found.x <= END_SHARE * log.budget)
    return or_none(smallest(Running(found.x[counts], later[counts])))


def _rate_high(log: Log) -> Running | None:
    """Return the largest learning rate; None if it is unknown whether a network learns with it."""
    if log.algorithm is None and not log.has_any(*ALWAYS_FINITE):
        return None
    found = log.signals["learning_rate"]
    return or_none(largest(Running(found.x, found.y)))


CHECKS = (
    Check(
        id="NN-NAN",
        title="a value is not finite",
        quantity="number of signals with a NaN or an infinity, among those that are always finite, "
        "and of series of unknown names that end so",
        measure=_not_finite,
        needs=(),
        bad_side="above",
        limit_from="identity",
        explanation="From this update on, parameters hold no information.",
        causes={
            "steps-too-large": 0.5,
            "observations": 0.3,
            "reward-scale": 0.3,
            "value-targets": 0.3,
            "policy-loss": 0.2,
        },
        source="Stable-Baselines3 issues 1401 and 1593; IsaacLab issue 1999",
        limit=0.5,
    ),
    Check(
        id="NN-GRAD-LARGE",
        title="gradients are huge",
        quantity="decimal logarithm of the largest median of gradient norms, before clipping",
        measure=_gradient_large,
        needs=(),
        bad_side="above",
        limit_from="calibrated",
        explanation="Clipping hides the size of a gradient: only its direction is left, that of "
        "the largest term.",
        causes={
            "reward-scale": 0.85,
            "steps-too-large": 0.3,
            "value-targets": 0.5,
            "observations": 0.2,
            "temperature": 0.4,
        },
        source="ml_debug: gradient clipping masks problems",
        least_margin=1.0,
        is_pooled=True,
        unmeasured="no norm of the gradient is logged",
    ),
    Check(
        id="NN-GRAD-SMALL",
        title="gradients vanish",
        quantity="decimal logarithm of the largest median of gradient norms, after 20 % of the "
        "budget",
        measure=_gradient_small,
        needs=(),
        bad_side="below",
        limit_from="calibrated",
        explanation="Nothing tells the parameters where to go.",
        causes={
            "no-reward-signal": 0.4,
            "policy-loss": 0.3,
            "values-do-not-learn": 0.4,
            "reward-scale": 0.4,
            "observations": 0.2,
        },
        source="ml_debug",
        least_margin=1.0,
        is_pooled=True,
        unmeasured="no norm of the gradient is logged",
    ),
    Check(
        id="NN-ACTOR-SMALL",
        title="the policy gets no gradient",
        quantity="decimal logarithm of the largest median of the policy's gradient norms",
        measure=_actor_gradient_small,
        needs=("actor_grad_norm",),
        bad_side="below",
        limit_from="calibrated",
        explanation="The policy's loss does not depend on its parameters, or hardly.",
        causes={"policy-loss": 0.8, "no-reward-signal": 0.3, "values-do-not-learn": 0.3},
        source="rlkit issue 50",
        least_margin=1.0,
        algorithms=("ddpg", "td3", "sac"),
    ),
    Check(
        id="NN-ACTOR-LARGE",
        title="the policy's gradients are huge",
        quantity="decimal logarithm of the largest median of the policy's gradient norms",
        measure=_actor_gradient_large,
        needs=("actor_grad_norm",),
        bad_side="above",
        limit_from="calibrated",
        explanation="Action values are steep or large, and the policy follows them blindly.",
        causes={
            "value-targets": 0.5,
            "reward-scale": 0.6,
            "target-network": 0.4,
            "steps-too-large": 0.5,
            "temperature": 0.4,
        },
        source="rlkit issue 50",
        least_margin=1.0,
        algorithms=("ddpg", "td3", "sac"),
    ),
    Check(
        id="NN-UPDATE-LARGE",
        title="parameters change fast",
        quantity="decimal logarithm of ‖θ' - θ‖ / ‖θ‖ of an update, largest median",
        measure=_update_large,
        needs=("update_ratio",),
        bad_side="above",
        limit_from="calibrated",
        explanation="Steps are large against the parameters themselves.",
        causes={"steps-too-large": 0.95, "initialisation": 0.2},
        source=_KARPATHY,
        least_margin=1.5,
    ),
    Check(
        id="NN-UPDATE-SMALL",
        title="parameters hardly change",
        quantity="decimal logarithm of ‖θ' - θ‖ / ‖θ‖ of an update, largest median after 20 % of "
        "the budget",
        measure=_update_small,
        needs=("update_ratio",),
        bad_side="below",
        limit_from="calibrated",
        explanation="Steps are too small to learn within the budget.",
        causes={"steps-too-small": 0.95, "policy-loss": 0.15, "initialisation": 0.2},
        source=_KARPATHY,
        least_margin=1.5,
    ),
    Check(
        id="NN-POLICY-STILL",
        title="the policy does not change",
        quantity="decimal logarithm of the largest movement so far of the policy's parameters "
        "divided by that of all parameters, after 20 % of the budget",
        measure=_policy_still,
        needs=("policy_update_ratio", "update_ratio"),
        bad_side="below",
        limit_from="identity",
        explanation="No gradient reaches the policy, while other parameters move.",
        causes={"policy-loss": 0.7, "advantages": 0.3, "no-reward-signal": 0.1},
        source="the gradient of each module, looked at alone; rlkit issue 50",
        limit=-6.0,
        algorithms=ON_POLICY,
    ),
    Check(
        id="NN-VALUE-STILL",
        title="the value function does not change",
        quantity="decimal logarithm of the largest movement so far of the value function's own "
        "parameters divided by that of all parameters, after 20 % of the budget",
        measure=_value_still,
        needs=("value_update_ratio", "update_ratio"),
        bad_side="below",
        limit_from="identity",
        explanation="No gradient reaches the value function, while other parameters move.",
        causes={"values-do-not-learn": 0.8, "value-targets": 0.1},
        source="the gradient of each module, looked at alone",
        limit=-6.0,
        algorithms=ON_POLICY,
    ),
    Check(
        id="NN-LR-ZERO",
        title="the learning rate is 0 before the end",
        quantity="learning rate from an env step on, at most, for steps before 90 % of the budget",
        measure=_rate_zero,
        needs=("learning_rate",),
        bad_side="below",
        limit_from="setting",
        explanation="The schedule ends before the run: nothing is learned afterwards.",
        causes={"steps-too-small": 0.8},
        source="Stable-Baselines3's schedules run from 1 to 0, not from 0 to 1",
        limit=1e-12,
    ),
    Check(
        id="NN-LR-HIGH",
        title="the learning rate is high",
        quantity="largest learning rate",
        measure=_rate_high,
        needs=("learning_rate",),
        bad_side="above",
        limit_from="setting",
        explanation="Adam moves each parameter by about the learning rate, at every step.",
        causes={"steps-too-large": 0.8},
        source="Andrychowicz et al. 2020, arXiv:2006.05990: 3e-4 is safe",
        limit=1e-2,
    ),
)
