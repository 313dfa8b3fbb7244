"""Checks of the policy: its entropy, and how far an update moves it."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.checks.returns import best_rise
from backflip.doctor.log import ON_POLICY, Log, Signal
from backflip.doctor.measures import (
    after,
    before,
    largest,
    log10_of,
    or_none,
    smallest,
    smoothed,
    together,
)

EARLY, LATE = 0.2, 0.5  # shares of the budget
WAIT = 0.1  # of the budget, for a return that rises after the policy has decided
DECIDED, OPEN = 0.05, 0.3  # shares of the largest entropy
ROUNDING = 1e-6
UNIT_NORMAL = 1.4189  # entropy of a normal distribution with a deviation of 1, in nats
_JONES = "A. Jones, Debugging RL, Without the Agonizing Pain"
_SCHULMAN = "J. Schulman, The Nuts and Bolts of Deep RL Research"
_DETAILS = "Huang et al. 2022, The 37 implementation details of PPO"


def entropy_share(log: Log) -> Signal | None:
    """Return the entropy as a share of the largest possible one; None if that is unknown.

    Without a logged maximum, that of the number of actions is used.
    """
    entropy = log.signals["entropy"]
    if "entropy_max" in log.signals:
        return together(entropy, log.signals["entropy_max"], np.divide)
    actions = log.setting("actions")
    if actions is None or actions < 2:
        return None
    return entropy._replace(y=entropy.y / np.log(actions))


def _stays_random(log: Log) -> Running | None:
    share = entropy_share(log)
    return share and or_none(after(log, LATE, smallest(smoothed(log, share))))


def _starts_decided(log: Log) -> Running | None:
    """Return the share of the first update, for as long as it is the newest."""
    share = entropy_share(log)
    if share is None or len(share.x) < 2 or share.x[0] > 0.05 * log.budget:
        return None
    return or_none(Running(share.x[:1], share.y[:1]))


def _collapse(log: Log) -> Running | None:
    """Return log10 of the share of the budget at which the entropy first was below `DECIDED`."""
    share = entropy_share(log)
    if share is None:
        return None
    found = smoothed(log, share)
    low = np.flatnonzero(found.value < DECIDED)
    at = found.x[low[:1]] if len(low) else found.x[-1:]
    share_then = at / log.budget if len(low) else np.ones(len(at))
    return or_none(Running(at, np.log10(share_then)))


def _decides_unproven(log: Log) -> Running | None:
    """Return the best rise of the return, from a while after the entropy fell below `DECIDED`.

    A policy that was sure of its actions from the start was trained before.
    """
    share, rise = entropy_share(log), best_rise(log)
    if share is None or rise is None:
        return None
    found = smoothed(log, share)
    low = np.flatnonzero(found.value < DECIDED)
    if not len(low) or share.y[np.isfinite(share.y)][0] < OPEN:  # a median hides a fast fall
        return None
    since = found.x[low[0]] + WAIT * log.budget
    return or_none(Running(rise.x[rise.x >= since], rise.value[rise.x >= since]))


def _entropy_rises(log: Log) -> Running | None:
    """Return the rise of the entropy since its first values, in nats."""
    found = smoothed(log, log.signals["entropy"])
    return or_none(largest(Running(found.x, found.value - found.value[:1])))


def _entropy_falls(log: Log) -> Running | None:
    """Return the fall of the entropy of continuous actions in the first half of the budget.

    It is that of one action dimension. Their number is taken from the first entropy, which is 1.42
    for each dimension with a deviation of 1.
    """
    if entropy_share(log) is not None:
        return None
    found = before(log, LATE, smoothed(log, log.signals["entropy"]))
    if not len(found.value):
        return None
    dimensions = max(1.0, np.round(found.value[0] / UNIT_NORMAL))
    return or_none(largest(Running(found.x, (found.value[0] - found.value) / dimensions)))


def _kl_high(log: Log) -> Running | None:
    return or_none(largest(smoothed(log, log.signals["approx_kl"])))


def _kl_once(log: Log) -> Running | None:
    found = log.signals["approx_kl"]
    return or_none(largest(Running(found.x, found.y)))


def _kl_low(log: Log) -> Running | None:
    return or_none(after(log, EARLY, log10_of(largest(smoothed(log, log.signals["approx_kl"])))))


def _kl_negative(log: Log) -> Running | None:
    """Return the smallest KL divergence; None if a program is unknown: its estimate may be k1.

    The mean of log π_old - log π, k1, is negative now and then without a mistake.
    """
    found = log.signals["approx_kl"]
    if log.library == "unknown" and found.logged_as == "approx_kl":
        return None
    return or_none(smallest(Running(found.x, found.y)))


def _first_ratio(log: Log) -> Running | None:
    return or_none(largest(smoothed(log, log.signals["first_ratio_error"])))


def _clips_much(log: Log) -> Running | None:
    return or_none(largest(smoothed(log, log.signals["clip_fraction"])))


def _clips_never(log: Log) -> Running | None:
    return or_none(after(log, EARLY, largest(smoothed(log, log.signals["clip_fraction"]))))


CHECKS = (
    Check(
        "PI-ENT-FLAT",
        "the policy stays random",
        "smallest entropy so far over its maximum, after half the budget",
        _stays_random,
        ("entropy",),
        "above",
        "calibrated",
        "The policy does not learn to prefer any action.",
        {
            "entropy-bonus": 0.8,
            "steps-too-small": 0.7,
            "policy-loss": 0.4,
            "no-reward-signal": 0.6,
            "advantages": 0.3,
            "reward-scale": 0.3,
            "observations": 0.3,
            "values-do-not-learn": 0.15,
            "unlucky-or-slow": 0.15,
        },
        f"{_JONES}; {_SCHULMAN}",
        algorithms=ON_POLICY,
        least_margin=0.002,
        extreme=1.0,
    ),
    Check(
        "PI-ENT-HIGH",
        "the policy is still almost random",
        "smallest entropy so far over its maximum, after half the budget",
        _stays_random,
        ("entropy",),
        "above",
        "convention",
        "A random policy is what is left if nothing is learned. Where rewards are rare, a healthy "
        "training looks the same.",
        {
            "entropy-bonus": 0.8,
            "steps-too-small": 0.7,
            "policy-loss": 0.4,
            "no-reward-signal": 0.6,
            "advantages": 0.3,
            "reward-scale": 0.3,
            "observations": 0.3,
            "acting-and-learning-disagree": 0.4,
            "unlucky-or-slow": 0.3,
        },
        f"{_JONES}; Stable-Baselines3 issue 2240 (0.96)",
        limit=0.95,
        algorithms=ON_POLICY,
        says="remark",
        healthy_share=0.12,
    ),
    Check(
        "PI-ENT-START",
        "the policy prefers actions before it has learnt",
        "entropy of the first update over its maximum",
        _starts_decided,
        ("entropy",),
        "below",
        "calibrated",
        "Before any learning, all actions should be about equally probable.",
        {"initialisation": 0.9, "steps-too-large": 0.4, "policy-loss": 0.2, "observations": 0.2},
        f"{_SCHULMAN}; Andrychowicz et al. 2020, arXiv:2006.05990",
        algorithms=ON_POLICY,
    ),
    Check(
        "PI-ENT-COLLAPSE",
        "the policy stops exploring early",
        "decimal logarithm of the share of the budget after which the entropy is below 5 % of "
        "its maximum",
        _collapse,
        ("entropy",),
        "below",
        "calibrated",
        "A policy that is sure of its action sees no other one, and cannot learn that it is wrong.",
        {
            "steps-too-large": 0.6,
            "too-little-exploration": 0.6,
            "reward-scale": 0.3,
            "policy-loss": 0.4,
            "advantages": 0.3,
            "reward-sign": 0.2,
            "initialisation": 0.3,
            "acting-and-learning-disagree": 0.2,
        },
        f"{_JONES}; {_SCHULMAN}",
        algorithms=ON_POLICY,
        least_margin=0.2,
        from_start=True,
    ),
    Check(
        "PI-ENT-EARLY",
        "the policy decides before the return has risen",
        "rise of the return over its first values, in its noise, where the entropy has fallen "
        "below 5 % of its maximum",
        _decides_unproven,
        ("entropy", "episode_return_mean"),
        "below",
        "convention",
        "The policy became sure of actions that are no better than random ones, and tries no "
        "others. Where rewards are rare, a sound training can end so, too.",
        {
            "steps-too-large": 0.7,
            "too-little-exploration": 0.5,
            "entropy-bonus": 0.5,
            "policy-loss": 0.5,
            "value-targets": 0.4,
            "advantages": 0.4,
            "reward-sign": 0.3,
            "acting-and-learning-disagree": 0.4,
            "reward-scale": 0.3,
        },
        f"{_JONES}; {_SCHULMAN}",
        algorithms=ON_POLICY,
        limit=2.0,
        says="warning",
        from_start=True,
    ),
    Check(
        "PI-ENT-GROW",
        "the entropy grows",
        "entropy above that of the first updates, in nats",
        _entropy_rises,
        ("entropy",),
        "above",
        "calibrated",
        "The policy becomes more random while it learns: for continuous actions, its noise grows "
        "beyond the range of the actions.",
        {
            "entropy-bonus": 0.7,
            "policy-loss": 0.3,
            "actions": 0.3,
            "reward-scale": 0.2,
            "steps-too-large": 0.2,
        },
        "openai/baselines issues 371 and 470",
        algorithms=ON_POLICY,
        least_margin=0.1,
        from_start=True,
    ),
    Check(
        "PI-STD-COLLAPSE",
        "the noise of the actions vanishes early",
        "fall of the entropy of continuous actions in the first half of the budget, in nats of "
        "one dimension",
        _entropy_falls,
        ("entropy",),
        "above",
        "convention",
        "With very little noise, neighbouring actions are never tried. A run that has solved its "
        "task may show this, too.",
        {"steps-too-large": 0.5, "too-little-exploration": 0.7, "policy-loss": 0.4},
        _SCHULMAN,
        algorithms=ON_POLICY,
        limit=3.0,
        says="warning",
        from_start=True,
    ),
    Check(
        "PI-KL-HIGH",
        "updates move the policy far",
        "median of the newest KL divergences between the policies before and after an update",
        _kl_high,
        ("approx_kl",),
        "above",
        "calibrated",
        "One update changes the policy more than its data allow.",
        {
            "steps-too-large": 0.9,
            "acting-and-learning-disagree": 0.6,
            "observations": 0.2,
            "policy-loss": 0.4,
            "reward-scale": 0.1,
            "initialisation": 0.2,
        },
        f"{_DETAILS} (below 0.02 is usual); Stable-Baselines3 issue 1593",
        algorithms=("ppo",),
        least_margin=0.02,
    ),
    Check(
        "PI-KL-SPIKE",
        "one update moved the policy very far",
        "largest KL divergence of one update between the policies before and after it",
        _kl_once,
        ("approx_kl",),
        "above",
        "convention",
        "One update replaced the policy: what it had learnt can be lost at once.",
        {
            "steps-too-large": 0.7,
            "acting-and-learning-disagree": 0.3,
            "reward-scale": 0.3,
            "observations": 0.2,
            "policy-loss": 0.2,
        },
        f"{_DETAILS} (below 0.02 is usual)",
        limit=0.5,
        algorithms=("ppo",),
        says="warning",
        unless=("PI-KL-HIGH",),
    ),
    Check(
        "PI-KL-TINY",
        "updates hardly move the policy",
        "decimal logarithm of the largest median of KL divergences of an update, after 20 % of the "
        "budget",
        _kl_low,
        ("approx_kl",),
        "below",
        "calibrated",
        "The policy is almost the same after each update, so it cannot learn.",
        {
            "steps-too-small": 0.9,
            "policy-loss": 0.4,
            "reward-scale": 0.5,  # errors of values take up the gradient of a clipped sum
            "no-reward-signal": 0.3,
            "advantages": 0.2,
            "entropy-bonus": 0.3,
        },
        _JONES,
        algorithms=("ppo",),
        least_margin=0.5,
    ),
    Check(
        "PI-KL-NEG",
        "a KL divergence is negative",
        "smallest KL divergence of an update",
        _kl_negative,
        ("approx_kl",),
        "below",
        "identity",
        "The estimate (ρ - 1) - log ρ cannot be negative: it is computed wrongly.",
        {"logging": 0.98},
        _JONES,
        limit=-ROUNDING,
        algorithms=("ppo",),
    ),
    Check(
        "PI-RATIO1",
        "the first minibatch has a ratio other than 1",
        "largest |ρ - 1| of the first minibatch of an update, median of updates",
        _first_ratio,
        ("first_ratio_error",),
        "above",
        "identity",
        "Before the first gradient step, the policy that learns is the policy that acted. It "
        "computes other probabilities, so their inputs or their modes differ.",
        {"acting-and-learning-disagree": 0.98, "actions": 0.4, "observations": 0.3},
        f"{_DETAILS}; trl issue 454",
        limit=1e-3,
        is_conclusive=True,
        algorithms=ON_POLICY,
    ),
    Check(
        "PI-CLIP-HIGH",
        "most rows are clipped",
        "median of the newest shares of rows whose ratio is clipped",
        _clips_much,
        ("clip_fraction",),
        "above",
        "calibrated",
        "Most of the batch no longer counts: the policy left the range in which it may learn.",
        {"steps-too-large": 0.85, "acting-and-learning-disagree": 0.6, "policy-loss": 0.3},
        "Stable-Baselines3 issue 1593",
        algorithms=("ppo",),
        least_margin=0.1,
        extreme=1.0,
    ),
    Check(
        "PI-CLIP-NEVER",
        "no row is ever clipped",
        "largest median of the shares of clipped rows, after 20 % of the budget",
        _clips_never,
        ("clip_fraction",),
        "below",
        "calibrated",
        "Updates stay far inside the range in which the policy may move.",
        {"steps-too-small": 0.8, "policy-loss": 0.3, "no-reward-signal": 0.2},
        _DETAILS,
        algorithms=("ppo",),
        least_margin=0.0,
        extreme=0.0,
    ),
)
