"""Checks of the policy: its entropy, and how far an update moves it."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.checks.returns import best_rise, rises_clearly
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

EARLY_SHARE = 0.2  # updates are not called too small before this share of the budget
FLAT_UPDATES = 30  # a new policy may be flat for so many updates
LOGS_EACH_UPDATE = ("backflip", "sb3", "cleanrl")  # libraries with a point for each update
LATE_SHARE = 0.5  # the entropy may be high before this share of the budget, and low after it
WAIT_SHARE = 0.1  # the return may rise for this share of the budget after the policy has decided
DECIDED = 0.05  # a policy has decided if its entropy is below this share of the largest
UNDECIDED = 0.3  # a policy that begins below this share of the largest entropy was trained before
ROUNDING = 1e-6  # rounding can make a KL divergence negative by less than this
UNIT_NORMAL = 1.4189  # a normal distribution of standard deviation 1 has this entropy in nats
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
    return share and or_none(after(log, LATE_SHARE, smallest(smoothed(log, share))))


def _starts_decided(log: Log) -> Running | None:
    """Return the entropy before the first update as a share of the largest; None if it is missing.

    The first row of an unknown library may be of the tenth update, and a policy learns an easy task
    within these. So it is what the first two rows say of env step 0, or the first if that is
    larger, and such a log is not judged if its return rises clearly.
    """
    share = entropy_share(log)
    if share is None or len(share.x) < 2 or share.x[0] > 0.05 * log.budget:
        return None
    if log.library != "unknown":
        return or_none(Running(share.x[:1], share.y[:1]))
    if rises_clearly(log):
        return None
    (x, later), (first, second) = share.x[:2], share.y[:2]
    before = first + (first - second) * x / (later - x) if later > x else first
    return or_none(Running(share.x[:1], np.clip(np.fmax(before, first), 0.0, 1.0)[None]))


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
    """Return the best rise of the return, from `WAIT_SHARE` after the entropy fell below `DECIDED`.

    None for a policy that was sure of its actions from the start: it was trained before.
    """
    share, rise = entropy_share(log), best_rise(log)
    if share is None or rise is None:
        return None
    found = smoothed(log, share)
    low = np.flatnonzero(found.value < DECIDED)
    if not len(low) or share.y[np.isfinite(share.y)][0] < UNDECIDED:  # a median hides a fast fall
        return None
    since = found.x[low[0]] + WAIT_SHARE * log.budget
    return or_none(Running(rise.x[rise.x >= since], rise.value[rise.x >= since]))


def _entropy_rises(log: Log) -> Running | None:
    """Return the rise of the entropy since its first values, in nats."""
    found = smoothed(log, log.signals["entropy"])
    return or_none(largest(Running(found.x, found.value - found.value[:1])))


def _entropy_falls(log: Log) -> Running | None:
    """Return the fall of the entropy of continuous actions in the first half of the budget.

    It is divided by the number of action dimensions. That number is estimated from the first
    entropy, which is 1.42 nats for each dimension with a standard deviation of 1. None if the first
    entropy is not of one such dimension: policies that begin with little noise may have any number.
    """
    if entropy_share(log) is not None:
        return None
    logged = log.signals["entropy"]
    found = before(log, LATE_SHARE, smoothed(log, logged))
    if not len(found.value):
        return None
    dimensions = np.round(logged.y[np.isfinite(logged.y)][0] / UNIT_NORMAL)
    if dimensions < 1:
        return None
    return or_none(largest(Running(found.x, (found.value[0] - found.value) / dimensions)))


def _kl_high(log: Log) -> Running | None:
    return or_none(largest(smoothed(log, log.signals["approx_kl"])))


def _kl_once(log: Log) -> Running | None:
    found = log.signals["approx_kl"]
    return or_none(largest(Running(found.x, found.y)))


def _kl_low(log: Log) -> Running | None:
    """Return log10 of the largest KL so far; small while the policy is as flat as it began."""
    found = log10_of(largest(smoothed(log, log.signals["approx_kl"])))
    flat = FLAT_UPDATES if log.library in LOGS_EACH_UPDATE else 0
    return or_none(after(log, LATE_SHARE, Running(found.x[flat:], found.value[flat:])))


def _kl_negative(log: Log) -> Running | None:
    """Return the smallest KL divergence; None for an unknown program, whose estimate may be k1.

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
    return or_none(after(log, EARLY_SHARE, largest(smoothed(log, log.signals["clip_fraction"]))))


CHECKS = (
    Check(
        id="PI-ENT-FLAT",
        title="the policy stays random",
        quantity="smallest entropy so far divided by its maximum, after half the budget",
        measure=_stays_random,
        needs=("entropy",),
        bad_side="above",
        limit_from="calibrated",
        explanation="The policy does not learn to prefer any action.",
        causes={
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
        source=f"{_JONES}; {_SCHULMAN}",
        algorithms=ON_POLICY,
        least_margin=0.002,
        extreme=1.0,
        unmeasured="the number of actions or the late entropy is not known",
    ),
    Check(
        id="PI-ENT-HIGH",
        title="the policy is still almost random",
        quantity="smallest entropy so far divided by its maximum, after half the budget",
        measure=_stays_random,
        needs=("entropy",),
        bad_side="above",
        limit_from="convention",
        explanation="A random policy is what is left if nothing is learned. Where rewards are "
        "rare, a healthy training run looks the same.",
        causes={
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
        source=f"{_JONES}; Stable-Baselines3 issue 2240 (0.96)",
        limit=0.95,
        algorithms=ON_POLICY,
        severity="remark",
        healthy_share=0.12,
        unmeasured="the number of actions or the late entropy is not known",
    ),
    Check(
        id="PI-ENT-START",
        title="the policy prefers actions before it has learned",
        quantity="entropy of the first update divided by its maximum; of unknown libraries before "
        "it, from the first two rows",
        measure=_starts_decided,
        needs=("entropy",),
        bad_side="below",
        limit_from="calibrated",
        explanation="Before any learning, all actions should be about equally probable.",
        causes={
            "initialisation": 0.9,
            "steps-too-large": 0.4,
            "policy-loss": 0.2,
            "observations": 0.2,
        },
        source=f"{_SCHULMAN}; Andrychowicz et al. 2020, arXiv:2006.05990",
        algorithms=ON_POLICY,
        unmeasured="the number of actions or the first entropy is not known",
    ),
    Check(
        id="PI-ENT-COLLAPSE",
        title="the policy stops exploring early",
        quantity="decimal logarithm of the share of the budget after which the entropy is below 5 "
        "% of its maximum",
        measure=_collapse,
        needs=("entropy",),
        bad_side="below",
        limit_from="calibrated",
        explanation="A policy that is sure of its action sees no other one, and cannot learn that "
        "it is wrong.",
        causes={
            "steps-too-large": 0.6,
            "too-little-exploration": 0.6,
            "reward-scale": 0.3,
            "policy-loss": 0.4,
            "advantages": 0.3,
            "reward-sign": 0.2,
            "initialisation": 0.3,
            "acting-and-learning-disagree": 0.2,
        },
        source=f"{_JONES}; {_SCHULMAN}",
        algorithms=ON_POLICY,
        least_margin=0.2,
        from_start=True,
        unmeasured="the number of actions is not known",
    ),
    Check(
        id="PI-ENT-EARLY",
        title="the policy decides before the return has risen",
        quantity="how far the return has risen above its first values, divided by the noise of the "
        "return, where the entropy has fallen below 5 % of its maximum",
        measure=_decides_unproven,
        needs=("entropy", "episode_return_mean"),
        bad_side="below",
        limit_from="convention",
        explanation="The policy became sure of actions that are no better than random ones, and "
        "tries no others. Where rewards are rare, a sound training run can end so, too.",
        causes={
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
        source=f"{_JONES}; {_SCHULMAN}",
        algorithms=ON_POLICY,
        limit=2.0,
        severity="warning",
        from_start=True,
        unmeasured="it needs discrete actions, and a policy that becomes sure of them",
    ),
    Check(
        id="PI-ENT-GROW",
        title="the entropy grows",
        quantity="entropy above that of the first updates, in nats",
        measure=_entropy_rises,
        needs=("entropy",),
        bad_side="above",
        limit_from="calibrated",
        explanation="The policy becomes more random while it learns: for continuous actions, its "
        "noise grows beyond the range of the actions.",
        causes={
            "entropy-bonus": 0.7,
            "policy-loss": 0.3,
            "actions": 0.3,
            "reward-scale": 0.2,
            "steps-too-large": 0.2,
        },
        source="openai/baselines issues 371 and 470",
        algorithms=ON_POLICY,
        least_margin=0.1,
        from_start=True,
    ),
    Check(
        id="PI-STD-COLLAPSE",
        title="the noise of the actions vanishes early",
        quantity="fall of the entropy of continuous actions in the first half of the budget, in "
        "nats of one dimension",
        measure=_entropy_falls,
        needs=("entropy",),
        bad_side="above",
        limit_from="convention",
        explanation="With very little noise, neighbouring actions are never tried. A run that has "
        "solved its task may show this, too.",
        causes={"steps-too-large": 0.5, "too-little-exploration": 0.7, "policy-loss": 0.4},
        source=_SCHULMAN,
        algorithms=ON_POLICY,
        limit=3.0,
        severity="warning",
        from_start=True,
        unmeasured="it needs continuous actions, with a standard deviation near 1 at first",
    ),
    Check(
        id="PI-KL-HIGH",
        title="updates move the policy far",
        quantity="median of the newest KL divergences between the policies before and after an "
        "update",
        measure=_kl_high,
        needs=("approx_kl",),
        bad_side="above",
        limit_from="calibrated",
        explanation="One update changes the policy more than its data allow.",
        causes={
            "steps-too-large": 0.9,
            "acting-and-learning-disagree": 0.6,
            "observations": 0.2,
            "policy-loss": 0.4,
            "reward-scale": 0.1,
            "initialisation": 0.2,
        },
        source=f"{_DETAILS} (below 0.02 is usual); Stable-Baselines3 issue 1593",
        algorithms=("ppo",),
        least_margin=0.02,
    ),
    Check(
        id="PI-KL-SPIKE",
        title="one update moved the policy very far",
        quantity="largest KL divergence of one update between the policies before and after it",
        measure=_kl_once,
        needs=("approx_kl",),
        bad_side="above",
        limit_from="convention",
        explanation="One update replaced the policy: what it had learned can be lost at once.",
        causes={
            "steps-too-large": 0.7,
            "acting-and-learning-disagree": 0.3,
            "reward-scale": 0.3,
            "observations": 0.2,
            "policy-loss": 0.2,
        },
        source=f"{_DETAILS} (below 0.02 is usual)",
        limit=0.5,
        algorithms=("ppo",),
        severity="warning",
        superseded_by=("PI-KL-HIGH",),
    ),
    Check(
        id="PI-KL-TINY",
        title="updates hardly move the policy",
        quantity="decimal logarithm of the largest median of KL divergences of an update, after "
        "half of the budget and 30 updates",
        measure=_kl_low,
        needs=("approx_kl",),
        bad_side="below",
        limit_from="calibrated",
        explanation="The policy is almost the same after each update, so it cannot learn.",
        causes={
            "steps-too-small": 0.9,
            "policy-loss": 0.4,
            "reward-scale": 0.5,  # errors of values take up the gradient of a clipped sum
            "no-reward-signal": 0.3,
            "advantages": 0.2,
            "entropy-bonus": 0.3,
        },
        source=_JONES,
        algorithms=("ppo",),
        least_margin=0.5,
        unmeasured="it needs half of the budget and more than 30 updates",
    ),
    Check(
        id="PI-KL-NEG",
        title="a KL divergence is negative",
        quantity="smallest KL divergence of an update",
        measure=_kl_negative,
        needs=("approx_kl",),
        bad_side="below",
        limit_from="identity",
        explanation="The estimate (ρ - 1) - log ρ cannot be negative: it is computed wrongly.",
        causes={"logging": 0.98},
        source=_JONES,
        limit=-ROUNDING,
        algorithms=("ppo",),
    ),
    Check(
        id="PI-RATIO1",
        title="the first minibatch has a ratio other than 1",
        quantity="largest |ρ - 1| of the first minibatch of an update, median of updates",
        measure=_first_ratio,
        needs=("first_ratio_error",),
        bad_side="above",
        limit_from="identity",
        explanation="Before the first gradient step, the policy that learns is the policy that "
        "acted. It computes other probabilities, so their inputs or their modes differ.",
        causes={"acting-and-learning-disagree": 0.98, "actions": 0.4, "observations": 0.3},
        source=f"{_DETAILS}; trl issue 454",
        limit=1e-3,
        is_conclusive=True,
        algorithms=ON_POLICY,
    ),
    Check(
        id="PI-CLIP-HIGH",
        title="most rows are clipped",
        quantity="median of the newest shares of rows whose ratio is clipped",
        measure=_clips_much,
        needs=("clip_fraction",),
        bad_side="above",
        limit_from="calibrated",
        explanation="Most of the batch no longer counts: the policy left the range in which it may "
        "learn.",
        causes={"steps-too-large": 0.85, "acting-and-learning-disagree": 0.6, "policy-loss": 0.3},
        source="Stable-Baselines3 issue 1593",
        algorithms=("ppo",),
        least_margin=0.1,
        extreme=1.0,
    ),
    Check(
        id="PI-CLIP-NEVER",
        title="no row is ever clipped",
        quantity="largest median of the shares of clipped rows, after 20 % of the budget",
        measure=_clips_never,
        needs=("clip_fraction",),
        bad_side="below",
        limit_from="calibrated",
        explanation="Updates stay far inside the range in which the policy may move.",
        causes={"steps-too-small": 0.8, "policy-loss": 0.3, "no-reward-signal": 0.2},
        source=_DETAILS,
        algorithms=("ppo",),
        least_margin=0.0,
        extreme=0.0,
    ),
)
