"""Checks of algorithms that learn action values from a replay."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.checks.returns import rises_clearly
from backflip.doctor.log import OFF_POLICY, Log
from backflip.doctor.measures import (
    WRONG,
    after,
    at_the_end,
    largest,
    largest_of,
    largest_return,
    largest_reward,
    log10_of,
    or_none,
    over_largest_return,
    ratio,
    smallest,
    smoothed,
    together,
)
from backflip.doctor.reading.from_settings import HOW

EARLY_SHARE = 0.2  # errors and the temperature are judged from this share of the budget on
LATE_SHARE = 0.6  # the size of values and ε are judged from this share of the budget on
STUCK_SHARE = 0.2  # actions stick to a bound if they stay there for this share of the budget
FEWEST_POINTS = 10  # movements of the target network are not judged from fewer points
MANY_RETURNS = 10.0  # an error of values above this many times the largest return is a finding
# No value of these can be above max |r| / (1 - γ): they have no reward for entropy.
BOUNDED = ("dqn", "ddpg", "td3")
LOGGED_WITH_UPDATES = ("q_loss", "td_error_abs_mean", "learning_rate")
LEARNS_POLICY = ("ddpg", "td3", "sac")
_RLKIT = "rlkit issue 50; Stable-Baselines3 issues 781 and 1372"


def _beyond_bound(log: Log) -> Running | None:
    """Return |mean Q| divided by the largest possible one, max |r| / (1 - γ)."""
    return over_largest_return(log, "q_mean")


def _loss_beyond_returns(log: Log) -> Running | None:
    """Return the error of a loss divided by the largest |return|; None for learned rewards.

    The error is the root of a squared error; for a Huber loss, it is the loss itself if that is
    larger. Predicting 0 everywhere gives an error of about one return, so a sound error is smaller.
    Early returns are near 0 where rewards are rare; therefore the largest return of the whole log
    is used.
    """
    returns = largest_return(log)
    if log.teaches or not returns:
        return None
    signal = log.signals["q_loss"]
    loss = smoothed(log, signal)
    error = np.sqrt(np.maximum(loss.value, 0.0))
    if "huber" in f"{signal.logged_as} {signal.how}".lower():
        error = np.maximum(error, loss.value)
    return or_none(largest(Running(loss.x, error / returns)))


def _targets_wrong(log: Log) -> Running | None:
    return largest_of(log, "target_error_max")


def _target_still(log: Log) -> Running | None:
    """Return the longest time so far without a movement of the target network.

    The unit is the interval that the setting gives, or that between two points of the log if it is
    longer.
    """
    moved = log.signals["target_update_ratio"]
    known = np.isfinite(moved.y)
    x, has_moved = moved.x[known], moved.y[known] > 0
    if len(x) < FEWEST_POINTS:
        return None
    usual = max(log.setting("target_update_interval") or 0.0, float(np.median(np.diff(x))), 1.0)
    last = np.maximum.accumulate(np.where(has_moved, x, x[0]))
    return or_none(largest(Running(x, (x - last) / usual)))


def _error(log: Log) -> Running | None:
    """Return |TD error| / (largest |r| + α |H| so far); without entropy, α H is 0."""
    size = largest_reward(log)
    if log.has("temperature", "entropy"):
        bonus = together(log.signals["temperature"], log.signals["entropy"], np.multiply)
        most = bonus._replace(y=np.fmax.accumulate(np.abs(bonus.y)))
        size = together(size, most, np.add)
    found = smoothed(log, together(log.signals["td_error_abs_mean"], size, ratio))
    return or_none(after(log, EARLY_SHARE, largest(found)))


def _learns_late(log: Log) -> Running | None:
    """Return the share of the budget so far without a gradient step.

    Only for logs of Stable-Baselines3, which contain a loss and the learning rate of each update. A
    learning rate that follows from a setting is of no update.
    """
    if log.library != "sb3" or log.algorithm not in OFF_POLICY:
        return None
    logged = [log.signals[name] for name in LOGGED_WITH_UPDATES if log.has(name)]
    learned = [one.x[0] for one in logged if one.how != HOW]
    x = log.signals["episode_return_mean"].x
    return Running(x, np.minimum(x, min(learned, default=np.inf)) / max(log.budget, 1.0))


def _policy_learns_late(log: Log) -> Running | None:
    """Return the share of the budget in which action values were learned and no policy was.

    Only for Stable-Baselines3's own log, which has a loss of the policy from its first update on.
    """
    is_own = log.library == "sb3" and not log.has("td_error_abs_mean")
    if not is_own or log.algorithm not in LEARNS_POLICY:
        return None
    x = log.signals["q_loss"].x
    first = log.signals["policy_loss"].x[0] if log.has("policy_loss") else np.inf
    return Running(x, (np.minimum(x, first) - x[0]) / max(log.budget, 1.0))


def _behind_target(log: Log) -> Running | None:
    """Return |mean target - mean Q| divided by the mean |TD error|."""
    gap = together(log.signals["target_mean"], log.signals["q_mean"], lambda t, q: np.abs(t - q))
    behind = together(gap, log.signals["td_error_abs_mean"], ratio)
    later = behind.x >= EARLY_SHARE * log.budget  # untrained values are far behind: no window
    return or_none(largest(smoothed(log, behind._replace(x=behind.x[later], y=behind.y[later]))))


def _level(log: Log) -> Running | None:
    """Return log10 of the largest |mean Q| so far / mean |r|.

    None for rewards of both signs, and if the return rises clearly: where a policy soon ends costs,
    values are as small as what is left of them, and the replay still has the old rewards.
    """
    least, most = log.signals["reward_min"], log.signals["reward_max"]
    low, high = float(np.fmin.reduce(least.y)), float(np.fmax.reduce(most.y))
    slack = 1e-3 * max(abs(low), abs(high))
    if (low < -slack and high > slack) or rises_clearly(log):
        return None
    size = together(log.signals["q_mean"], log.signals["reward_mean"], ratio)
    return or_none(
        after(log, LATE_SHARE, log10_of(largest(smoothed(log, size._replace(y=np.abs(size.y))))))
    )


def _epsilon_rises(log: Log) -> Running | None:
    found = log.signals["epsilon"]
    rises = np.concatenate([np.zeros(min(1, len(found.y))), np.diff(found.y)])
    return or_none(largest(Running(found.x, rises)))


def _epsilon_late(log: Log) -> Running | None:
    """Return the smallest ε so far; None for a run that ends before it learns (Q-NOSTART)."""
    found = log.signals["epsilon"]
    if (log.setting("learning_starts") or 0.0) >= log.budget:
        return None
    return or_none(after(log, LATE_SHARE, smallest(Running(found.x, found.y))))


def _temperature(log: Log) -> Running | None:
    found = log.signals["temperature"]
    with np.errstate(all="ignore"):
        grown = np.log10(found.y / found.y[0])
    return or_none(largest(Running(found.x, grown)))


def _temperature_low(log: Log) -> Running | None:
    found = log.signals["temperature"]
    with np.errstate(all="ignore"):
        grown = np.log10(found.y / found.y[0])
    return or_none(smallest(Running(found.x, grown)))


def _saturated(log: Log) -> Running | None:
    """Return the largest share of actions at a bound that lasted for a fifth of the budget.

    Policies of healthy runs choose the bounds early, and leave them again.
    """
    found = smoothed(log, log.signals["action_saturation"])
    begins = np.searchsorted(found.x, found.x - STUCK_SHARE * log.budget, side="right") - 1
    ends = np.flatnonzero(begins >= 0)
    lowest = np.asarray([found.value[begins[end] : end + 1].min() for end in ends])
    return or_none(largest(Running(found.x[ends], lowest)))


def _temperature_fixed(log: Log) -> Running | None:
    """Return 1 if the temperature has its first value in the whole log, from 20 % on; else 0."""
    found = log.signals["temperature"]
    fixed = np.asarray(np.maximum.accumulate(np.abs(found.y - found.y[0])) == 0, np.float64)
    return or_none(after(log, EARLY_SHARE, at_the_end(Running(found.x, fixed))))


CHECKS = (
    Check(
        id="Q-BOUND",
        title="action values are larger than any return",
        quantity="|mean Q| divided by max |r| / (1 - γ)",
        measure=_beyond_bound,
        needs=("reward_min", "reward_max", "q_mean"),
        bad_side="above",
        limit_from="identity",
        explanation="No discounted return can be that large: the values diverge.",
        causes={
            "value-targets": 0.8,
            "target-network": 0.5,
            "steps-too-large": 0.5,
            "replay": 0.2,
            "policy-loss": 0.1,
        },
        source=f"an identity; {_RLKIT}",
        limit=1.5,
        algorithms=BOUNDED,
    ),
    Check(
        id="Q-TARGET-WRONG",
        title="targets of the action values are not those of their definition",
        quantity="largest error so far of a target in r + γ (1 - terminated) V(s'), as a share of "
        "the largest sum of its terms",
        measure=_targets_wrong,
        needs=("target_error_max",),
        bad_side="above",
        limit_from="identity",
        explanation="Computed once more from the same rows and networks, the targets are others: "
        "the mask of ends, the discount, the reward or the choice of the next action is wrong.",
        causes={"value-targets": 0.9},
        source="an identity; RLDebugger, Q target check",
        limit=WRONG,
        is_conclusive=True,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-TARGET-STILL",
        title="the target network does not move",
        quantity="longest time so far without a movement of the target network, in intervals of "
        "its setting, or of the log where that is longer",
        measure=_target_still,
        needs=("target_update_ratio",),
        bad_side="above",
        limit_from="identity",
        explanation="Targets are those of a network that is older than the settings say.",
        causes={"target-network": 0.6},
        source="RLDebugger; Stack Overflow 57106676",
        limit=3.0,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-ERROR",
        title="the error of the action values is large",
        quantity="mean |TD error| divided by the largest |r|, with that of the entropy of SAC, "
        "median of updates after 20 % of the budget",
        measure=_error,
        needs=("td_error_abs_mean", "reward_min", "reward_max"),
        bad_side="above",
        limit_from="calibrated",
        explanation="Values do not agree with their own targets.",
        causes={
            "value-targets": 0.5,
            "target-network": 0.5,
            "steps-too-large": 0.6,
            "replay": 0.4,
            "reward-scale": 0.1,
        },
        source="RLDebugger, Q target check",
        algorithms=OFF_POLICY,
        least_margin=0.2,
        is_pooled=True,
    ),
    Check(
        id="Q-LOSS",
        title="the loss of the action values is huge",
        quantity="root of the median loss divided by the largest mean return; for a Huber loss, "
        "the loss itself if it is larger",
        measure=_loss_beyond_returns,
        needs=("q_loss", "episode_return_mean"),
        bad_side="above",
        limit_from="convention",
        explanation="Values are wrong by many times what an episode returns: they diverge, or "
        "rewards have another scale than returns.",
        causes={
            "steps-too-large": 0.5,
            "value-targets": 0.5,
            "target-network": 0.5,
            "reward-scale": 0.5,
            "discount": 0.4,
        },
        source="values that are 0 everywhere are wrong by about a return",
        limit=MANY_RETURNS,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-NO-UPDATE",
        title="no gradient step is taken",
        quantity="share of the budget before a loss or a learning rate is logged by "
        "Stable-Baselines3",
        measure=_learns_late,
        needs=("episode_return_mean",),
        bad_side="above",
        limit_from="convention",
        explanation="Episodes end and nothing is learned from them: the run is shorter than the "
        "wait before the first gradient step, or nothing calls for one.",
        causes={"replay": 0.9},
        source="Stable-Baselines3 issue 526: its own example did this",
        limit=0.5,
        is_direct=True,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-NO-POLICY-LOSS",
        title="action values are learned and no policy is",
        quantity="share of the budget after the first loss of the action values and before the "
        "first of the policy, in Stable-Baselines3's own log",
        measure=_policy_learns_late,
        needs=("q_loss",),
        bad_side="above",
        limit_from="convention",
        explanation="The policy stays as it was initialised: its updates are too rare, or never "
        "called.",
        causes={"policy-loss": 0.9},
        source="Fujimoto et al. 2018, arXiv:1802.09477: a policy update for every second of the "
        "critics",
        limit=0.2,
        is_direct=True,
        algorithms=LEARNS_POLICY,
    ),
    Check(
        id="Q-BEHIND",
        title="action values stay behind their targets",
        quantity="|mean target - mean Q| divided by the mean |TD error|, after 20 % of the budget",
        measure=_behind_target,
        needs=("target_mean", "q_mean", "td_error_abs_mean"),
        bad_side="above",
        limit_from="calibrated",
        explanation="Errors have one sign: values run after targets that move, or do not learn.",
        causes={
            "target-network": 0.6,
            "steps-too-small": 0.6,
            "value-targets": 0.4,
            "values-do-not-learn": 0.6,
            "temperature": 0.5,
        },
        source="RLDebugger, Q target check",
        algorithms=OFF_POLICY,
        least_margin=0.2,
        extreme=1.0,
    ),
    Check(
        id="Q-LEVEL",
        title="action values stay at the size of one reward",
        quantity="decimal logarithm of the largest |mean Q| so far divided by the mean |r|, after "
        "60 % of the budget: values that include entropy may pass through 0 before; not if the "
        "return rises clearly",
        measure=_level,
        needs=("q_mean", "reward_mean", "reward_min", "reward_max"),
        bad_side="below",
        limit_from="calibrated",
        explanation="Values do not add up rewards over time: the target network never changes, or "
        "nothing is bootstrapped.",
        causes={
            "target-network": 0.7,
            "value-targets": 0.6,
            "steps-too-small": 0.6,
            "no-reward-signal": 0.3,
            "discount": 0.6,
            "values-do-not-learn": 0.5,
            "temperature": 0.5,
        },
        source="two routes to one number",
        algorithms=OFF_POLICY,
        least_margin=0.2,
        is_pooled=True,
        severity="warning",
    ),
    Check(
        id="Q-EPS-RISE",
        title="the share of random actions rises",
        quantity="largest rise of ε between two updates",
        measure=_epsilon_rises,
        needs=("epsilon",),
        bad_side="above",
        limit_from="identity",
        explanation="The share of random actions falls in every schedule of the literature.",
        causes={"too-much-exploration": 0.6, "logging": 0.2},
        source="Stack Overflow 54385568; RLDebugger",
        limit=1e-6,
        algorithms=("dqn",),
    ),
    Check(
        id="Q-EPS-HIGH",
        title="the share of random actions stays high",
        quantity="ε after 60 % of the budget",
        measure=_epsilon_late,
        needs=("epsilon",),
        bad_side="above",
        limit_from="setting",
        explanation="Most actions of the last part of the run are random.",
        causes={"too-much-exploration": 0.9},
        source="Mnih et al. 2015: ε reaches its end within 10 % of the run",
        limit=0.5,
        algorithms=("dqn",),
    ),
    Check(
        id="Q-TEMPERATURE",
        title="the temperature grows",
        quantity="decimal logarithm of the temperature divided by its first value",
        measure=_temperature,
        needs=("temperature",),
        bad_side="above",
        limit_from="calibrated",
        explanation="Entropy becomes worth more than reward, and the values follow it.",
        causes={
            "temperature": 0.8,
            "reward-scale": 0.4,
            "policy-loss": 0.5,
            "steps-too-large": 0.2,
        },
        source=_RLKIT,
        algorithms=("sac",),
        least_margin=0.5,
        from_start=True,
    ),
    Check(
        id="Q-TEMPERATURE-LOW",
        title="the temperature is small",
        quantity="smallest decimal logarithm of the temperature divided by its first value",
        measure=_temperature_low,
        needs=("temperature",),
        bad_side="below",
        limit_from="calibrated",
        explanation="Entropy is worth little. Where values hardly depend on the action and the "
        "entropy is at its target, that is right; elsewhere the policy stops exploring.",
        causes={"temperature": 0.7, "too-little-exploration": 0.5, "policy-loss": 0.3},
        source="Haarnoja et al. 2018, arXiv:1812.05905",
        algorithms=("sac",),
        least_margin=0.5,
        severity="remark",
        from_start=True,
    ),
    Check(
        id="Q-TEMPERATURE-FIXED",
        title="the temperature is fixed",
        quantity="1 if the temperature has its first value, after 20 % of the budget",
        measure=_temperature_fixed,
        needs=("temperature",),
        bad_side="above",
        limit_from="convention",
        explanation="The value of entropy does not adapt: whether it fits depends on the scale of "
        "the rewards.",
        causes={"temperature": 0.8},
        source="Haarnoja et al. 2018, arXiv:1812.05905, section 5",
        limit=0.5,
        algorithms=("sac",),
        severity="remark",
    ),
    Check(
        id="Q-SATURATED",
        title="actions stick to their bounds",
        quantity="share of the policy's actions at a bound, the smallest of 20 % of the budget",
        measure=_saturated,
        needs=("action_saturation",),
        bad_side="above",
        limit_from="calibrated",
        explanation="A tanh at its end has no gradient: the policy hardly comes back. Some tasks "
        "are solved at the bounds, such as swimming.",
        causes={
            "steps-too-large": 0.5,
            "policy-loss": 0.5,
            "observations": 0.3,
            "value-targets": 0.3,
        },
        source="rlkit issue 50; Stable-Baselines3 issue 1801",
        algorithms=("ddpg", "td3"),
        least_margin=0.05,
        severity="warning",
        extreme=1.0,
    ),
)
