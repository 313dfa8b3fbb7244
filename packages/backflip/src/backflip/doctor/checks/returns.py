"""Checks of returns, episodes and rewards."""

import numpy as np
from jaxtyping import Bool, Int

from backflip.doctor.check import Check, Running
from backflip.doctor.healthy_returns import healthy_return, patience
from backflip.doctor.log import Log, Signal, Values
from backflip.doctor.measures import (
    after,
    at_the_end,
    largest,
    log10_of,
    noise_of,
    or_none,
    ratio,
    reward_size,
    smoothed,
    together,
)
from backflip.doctor.rolling_means import FIRST, error_of_change

NEVER = 0.1  # share of the budget
SUSTAINED = 0.1
REAL = 10.0  # a rise of less than so much noise is none
EARLY, LATE = 0.2, 0.5
FIRST_OF_DQN = 20_000  # env steps in which greedy actions of sound runs can be worse than random
LEAST = -12.0  # log10 of rewards that are zeros up to rounding
LOGS_EPISODES = ("sb3", "cleanrl", "rllib")  # always, if there are any
_JONES = "A. Jones, Debugging RL, Without the Agonizing Pain"


def _falls(log: Log) -> Running | None:
    """Return how much of the rise of the return is lost again, over a tenth of the budget.

    Rise and fall are those of medians. A rise of less than `REAL` times the noise is none.
    """
    signal = log.signals["episode_return_mean"]
    found = smoothed(signal, 0.05)
    if len(found.x) < 20:
        return None
    best = np.maximum.accumulate(found.value)
    width = max(1, round(SUSTAINED * len(found.x)))
    recent = np.lib.stride_tricks.sliding_window_view(found.value, width).max(axis=1)
    peak, rise = best[width - 1 :], (best - found.value[0])[width - 1 :]
    is_real = rise > REAL * noise_of(signal, found)
    lost = np.where(is_real, (peak - recent) / np.where(is_real, rise, 1.0), 0.0)
    return or_none(largest(Running(found.x[width - 1 :], np.minimum(lost, 1.2))))


def _no_progress(log: Log) -> Running | None:
    """Return the best rise of the return over its first values, in its noise.

    A run that learns late is judged by where it ends, and not by its half.
    """
    signal = log.signals["episode_return_mean"]
    found = smoothed(signal, 0.05)
    if len(found.x) < 10:
        return None
    rise = (found.value - _first(signal)) / noise_of(signal, found)
    return or_none(after(log, LATE, Running(found.x, np.full(len(rise), np.fmax.reduce(rise)))))


def _worse_than_start(log: Log) -> Running | None:
    """Return how far the return lies below its first values, in its noise.

    Where values are means of the last episodes, the first are means of few.
    """
    signal = log.signals["episode_return_mean"]
    found = smoothed(signal, 0.1)
    if len(found.x) < 20:
        return None
    noise = max(noise_of(signal, found), error_of_change(log, signal))
    below = np.maximum(_first(signal) - found.value, 0.0) / noise
    grown = found.x >= (FIRST_OF_DQN if log.algorithm == "dqn" else 0)
    return or_none(after(log, LATE, Running(found.x[grown], below[grown])))


def _first(signal: Signal) -> float:
    """Return the return of the untrained policy: the median of the first values."""
    return float(np.median(signal.y[np.isfinite(signal.y)][:FIRST]))


def _share_of_healthy(log: Log) -> Running | None:
    """Return the best return as a share of what healthy runs reach in this environment.

        (max_{u ≥ N} R(u) - R_0) / (R* - R_0),   from p N on

    R_0 is the return of the untrained policy, R* what healthy runs reach, N the env steps that the
    slowest of them needs for half of it, and p the patience. Before N, the mean is that of episodes
    that happened to be short. A run that learns later is a slow one: only the best value counts.
    """
    healthy = healthy_return(log)
    if healthy is None:
        return None
    signal = log.signals["episode_return_mean"]
    late = signal.x >= healthy.env_steps
    found = smoothed(signal._replace(x=signal.x[late], y=signal.y[late]), 0.05)
    due = found.x[found.x >= patience(log, healthy)]
    if not len(due):
        return None
    share = (found.value.max() - healthy.untrained) / (healthy.reached - healthy.untrained)
    return Running(due, np.full(len(due), share))


def _returns_equal(log: Log) -> Running | None:
    """Return the spread of all returns over their size."""
    found = log.signals["episode_return_mean"]
    known = np.isfinite(found.y)
    x, y = found.x[known], found.y[known]
    if len(y) < 5:
        return None
    spread = np.ptp(y) / max(np.abs(y).max(), 1e-12)
    return or_none(after(log, LATE, Running(x, np.full(len(x), spread))))


def _no_episode(log: Log) -> Running | None:
    """Return 1 if a library that logs every end of an episode logged none; else 0."""
    if log.has("episodes") or log.library not in LOGS_EPISODES or not log.signals:
        return None
    none = 0.0 if log.has("episode_return_mean") else 1.0
    return Running(np.asarray([log.end]), np.asarray([none]))


def _late_episode(log: Log) -> Running | None:
    """Return the env steps so far without the end of an episode, over the budget."""
    found = log.signals["episodes"]
    count = np.cumsum(np.nan_to_num(found.y))
    none = np.where(count > 0, 0.0, found.x / max(log.budget, 1.0))
    return or_none(Running(found.x, none))


def _per_step(log: Log) -> Signal:
    returns, lengths = log.signals["episode_return_mean"], log.signals["episode_length_mean"]
    return together(returns, lengths, ratio)


def _other_sign(log: Log) -> Running | None:
    """Return the share of updates so far at which mean reward and true reward differ in sign.

    Both are means per env step since the start: an episode ends updates after its rewards.
    """
    if log.teaches:
        return None
    true, used = _true_mean(log), _mean_so_far(log.signals["reward_mean"])
    pair = together(true, used, lambda one, other: np.sign(one) != np.sign(other))
    strong = together(true, used, lambda one, other: _is_large(one) & _is_large(other))
    chosen = (strong.y == 1) & (pair.x >= EARLY * log.budget)
    if chosen.sum() < 5:
        return None
    wrong = pair.y[chosen].astype(float)
    return or_none(Running(pair.x[chosen], np.cumsum(wrong) / np.arange(1, len(wrong) + 1)))


def _true_mean(log: Log) -> Signal:
    """Return the return of all episodes so far over their length, where an episode ended.

    Without the number of episodes, all updates count alike.
    """
    returns, lengths = log.signals["episode_return_mean"], log.signals["episode_length_mean"]
    if log.has("episodes"):
        returns = together(returns, log.signals["episodes"], np.multiply)
        lengths = together(lengths, log.signals["episodes"], np.multiply)
    return together(_sum_so_far(returns), _sum_so_far(lengths), ratio)


def _sum_so_far(signal: Signal) -> Signal:
    """Return the sum of the values so far, where there is a value."""
    known = np.isfinite(signal.y)
    return signal._replace(x=signal.x[known], y=np.cumsum(signal.y[known]))


def _mean_so_far(signal: Signal) -> Signal:
    """Return the mean of the values so far."""
    total = _sum_so_far(signal)
    return total._replace(y=total.y / np.arange(1, len(total.y) + 1))


def _is_large(values: Values) -> Bool[np.ndarray, " n"]:
    """Return where values are above a twentieth of the largest; the sign of others is noise."""
    size = np.abs(values)
    return size > 0.05 * float(np.fmax.reduce(size, initial=0.0))


def _unrelated(log: Log) -> Running | None:
    """Return the rank correlation of mean rewards with true rewards per env step, over updates.

    Nothing where rewards are divided by a running deviation, or may be: that grows while returns
    do, so that the mean falls while the true reward rises.
    """
    if log.teaches or log.settings.get("normalize_rewards", log.library != "backflip"):
        return None
    one, other = _per_step(log), log.signals["reward_mean"]
    pair = together(one, other, lambda true, _: true)
    used = together(one, other, lambda _, mean: mean)
    known = np.isfinite(pair.y) & np.isfinite(used.y)
    true, mean = pair.y[known], used.y[known]
    if len(true) < 20 or np.ptp(true) < 0.05 * np.abs(true).max() or np.ptp(mean) == 0:
        return None
    value = float(np.corrcoef(_ranks(true), _ranks(mean))[0, 1])
    return Running(pair.x[known][-1:], np.asarray([value]))


def _ranks(values: Values) -> Int[np.ndarray, " n"]:
    return np.argsort(np.argsort(values))


def _reward_constant(log: Log) -> Running | None:
    """Return the range of the rewards so far over their size."""
    least, most = log.signals["reward_min"], log.signals["reward_max"]
    spread = together(least, most, lambda low, high: high - low)
    lowest, highest = np.fmin.accumulate(least.y), np.fmax.accumulate(most.y)
    if len(lowest) != len(spread.y):
        return None
    size = np.maximum(np.maximum(np.abs(lowest), np.abs(highest)), 1e-12)
    return or_none(after(log, NEVER, at_the_end(Running(spread.x, (highest - lowest) / size))))


def _never_rewarded(log: Log) -> Running | None:
    """Return the largest |r| so far."""
    size = reward_size(log)
    return or_none(after(log, LATE, largest(Running(size.x, size.y))))


def _reward_large(log: Log) -> Running | None:
    size = reward_size(log)
    return or_none(log10_of(largest(Running(size.x, size.y))))


def _reward_small(log: Log) -> Running | None:
    found = _reward_large(log)
    if found is None or found.value[-1] < LEAST:  # no reward at all: REW-ZERO
        return None
    return or_none(after(log, EARLY, at_the_end(found)))


def _length_constant(log: Log) -> Running | None:
    """Return the spread of the lengths so far over their size, of episodes below any limit."""
    least, most = log.signals["episode_length_min"], log.signals["episode_length_max"]
    limit = log.setting("max_episode_steps")
    spread = together(least, most, lambda low, high: (high - low) / np.maximum(high, 1.0))
    known = np.isfinite(spread.y)
    if not known.any() or limit is None or np.nanmax(most.y) >= limit:
        return None
    return or_none(after(log, NEVER, largest(Running(spread.x[known], spread.y[known]))))


def _obs_large(log: Log) -> Running | None:
    if log.settings.get("normalize_obs") is True:
        return None
    mean, deviation = log.signals["obs_abs_mean"], log.signals["obs_std_max"]
    return or_none(log10_of(largest(smoothed(together(mean, deviation, np.maximum)))))


def _obs_small(log: Log) -> Running | None:
    found = log10_of(largest(smoothed(log.signals["obs_std_max"])))
    return or_none(after(log, NEVER, found))


CHECKS = (
    Check(
        "ENV-DROP",
        "the return falls after it had risen",
        "share of the rise of the return that is lost again for 10 % of the budget",
        _falls,
        ("episode_return_mean",),
        "above",
        "calibrated",
        "The policy had learnt, and lost it.",
        {
            "steps-too-large": 0.5,
            "acting-and-learning-disagree": 0.3,
            "value-targets": 0.3,
            "too-little-exploration": 0.2,
            "replay": 0.3,
            "reward-sign": 0.2,
            "target-network": 0.3,
        },
        "Stable-Baselines3 issue 324; Dohare et al. 2023",
        least_margin=0.2,
    ),
    Check(
        "ENV-WORSE",
        "the return falls below that of the untrained policy",
        "how far the return lies below the first ones, in its noise, after half the budget; of DQN "
        "not before 20,000 env steps: its first greedy actions can be worse than random ones",
        _worse_than_start,
        ("episode_return_mean",),
        "above",
        "calibrated",
        "Learning makes the policy worse than it was by chance: something has the wrong sign.",
        {
            "reward-sign": 0.9,
            "policy-loss": 0.7,
            "advantages": 0.6,
            "actions": 0.5,
            "acting-and-learning-disagree": 0.4,
            "steps-too-large": 0.3,
            "value-targets": 0.3,
        },
        _JONES,
        least_margin=3.0,
    ),
    Check(
        "ENV-NOTHING",
        "the return does not rise",
        "rise of the return over its first values, in its noise, after half the budget",
        _no_progress,
        ("episode_return_mean",),
        "below",
        "convention",
        "No learning is visible. A hard task looks the same: this alone proves no mistake.",
        {
            "no-reward-signal": 0.7,
            "unlucky-or-slow": 0.8,
            "steps-too-small": 0.7,
            "policy-loss": 0.7,
            "observations": 0.6,
            "advantages": 0.5,
            "values-do-not-learn": 0.3,
            "reward-sign": 0.7,
            "actions": 0.5,
            "replay": 0.5,
            "target-network": 0.5,
            "acting-and-learning-disagree": 0.5,
            "value-targets": 0.4,
            "entropy-bonus": 0.4,
            "reward-scale": 0.4,
            "steps-too-large": 0.4,
            "too-little-exploration": 0.4,
            "initialisation": 0.3,
            "discount": 0.3,
        },
        "watching the return alone names 56 % of faulty seeds, with 23 % false alarms",
        limit=2.0,
        says="remark",
        healthy_share=0.14,
    ),
    Check(
        "ENV-BELOW",
        "the return stays far below what healthy runs reach",
        "best return as a share of the way from the untrained policy to what ten healthy seeds "
        "reach in this environment, after 1.5 times the env steps that the slowest of them needs "
        "for half of it (4 times in other libraries)",
        _share_of_healthy,
        ("episode_return_mean",),
        "below",
        "convention",
        "The same algorithm learns this environment with its default settings: a mistake, a "
        "setting or a wrapper keeps it from that.",
        {
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
        "a known result in the same environment: A. Jones, Debugging RL; Henderson et al. 2018",
        limit=0.25,
    ),
    Check(
        "ENV-EQUAL",
        "all returns are equal",
        "spread of all returns over their size, after half the budget",
        _returns_equal,
        ("episode_return_mean",),
        "below",
        "convention",
        "No behaviour is better than another one: there is nothing to learn from.",
        {"no-reward-signal": 0.8, "actions": 0.3, "unlucky-or-slow": 0.2},
        "FinRL issue 713; RLDebugger",
        limit=1e-6,
        says="remark",
    ),
    Check(
        "ENV-NOEP",
        "no end of an episode is logged",
        "1 if a library that logs returns of episodes logged none",
        _no_episode,
        (),
        "above",
        "convention",
        "Without ends there are no returns to look at. Stable-Baselines3 logs none without "
        "a Monitor (VecMonitor), and CleanRL's scripts none with Gymnasium 1.0.",
        {"logging": 0.98, "no-reward-signal": 0.02, "unlucky-or-slow": 0.01},
        "CleanRL issue 499",
        limit=0.5,
    ),
    Check(
        "ENV-NOEND",
        "no episode ends",
        "share of the budget before the first episode ends",
        _late_episode,
        ("episodes",),
        "above",
        "convention",
        "Episodes are longer than half of the budget, or never end: the agent has not seen a "
        "whole one.",
        {"unlucky-or-slow": 0.4, "no-reward-signal": 0.2, "actions": 0.2, "logging": 0.3},
        "CleanRL issue 499",
        limit=0.5,
        says="warning",
    ),
    Check(
        "ENV-LEN",
        "all episodes have one length",
        "spread of the lengths of episodes that end before the time limit",
        _length_constant,
        ("episode_length_min", "episode_length_max"),
        "below",
        "convention",
        "Episodes end by a counter, not by what happens.",
        {"actions": 0.4, "no-reward-signal": 0.3},
        _JONES,
        limit=1e-9,
        says="warning",
    ),
    Check(
        "REW-SIGN",
        "learned and true reward have different signs",
        "share of updates so far at which the mean reward that is learned from has another sign "
        "than the mean of return over length, after 20 % of the budget",
        _other_sign,
        ("episode_return_mean", "episode_length_mean", "reward_mean"),
        "above",
        "convention",
        "The algorithm learns from a reward with another sign or shift than the true one. A shift "
        "changes whether it is good to stay alive.",
        {"reward-sign": 0.95, "reward-model": 0.1},
        "J. Schulman: scale rewards, but do not shift them",
        limit=0.5,
    ),
    Check(
        "REW-UNRELATED",
        "learned and true reward do not move together",
        "rank correlation over updates of the mean reward with return over length; not if rewards "
        "are scaled by running statistics, or may be",
        _unrelated,
        ("episode_return_mean", "episode_length_mean", "reward_mean"),
        "below",
        "calibrated",
        "The reward that the algorithm receives is not the environment's.",
        {"reward-sign": 0.7, "no-reward-signal": 0.6, "replay": 0.2},
        "two routes to one number",
        least_margin=0.3,
        is_pooled=True,
    ),
    Check(
        "REW-CONST",
        "all rewards are equal",
        "range of the rewards so far over their size, after 10 % of the budget",
        _reward_constant,
        ("reward_min", "reward_max"),
        "below",
        "convention",
        "Returns then differ by the length of episodes alone.",
        {"no-reward-signal": 0.7, "unlucky-or-slow": 0.2},
        "RLDebugger",
        limit=1e-9,
        says="remark",
        healthy_share=0.3,
    ),
    Check(
        "REW-ZERO",
        "there never was a reward",
        "largest |r| that the algorithm learns from, after half the budget",
        _never_rewarded,
        ("reward_min", "reward_max"),
        "below",
        "convention",
        "For half the budget, the algorithm has learned from zeros.",
        {"no-reward-signal": 0.9, "unlucky-or-slow": 0.3},
        "J. Schulman: if a random policy never does the right thing, learning does neither",
        limit=1e-12,
        says="warning",
    ),
    Check(
        "REW-LARGE",
        "rewards are large",
        "decimal logarithm of the largest |r| that the algorithm learns from",
        _reward_large,
        ("reward_min", "reward_max"),
        "above",
        "calibrated",
        "Losses grow with the square of rewards, and settings are made for rewards near 1.",
        {"reward-scale": 0.95},
        "Henderson et al. 2018, arXiv:1709.06560",
        least_margin=1.0,
        is_pooled=True,
    ),
    Check(
        "REW-SMALL",
        "rewards are tiny",
        "decimal logarithm of the largest |r| that the algorithm learns from, after 20 % of the "
        "budget",
        _reward_small,
        ("reward_min", "reward_max"),
        "below",
        "calibrated",
        "Entropy bonus and rounding outweigh rewards of this size.",
        {"reward-scale": 0.8, "no-reward-signal": 0.8},
        "Henderson et al. 2018, arXiv:1709.06560",
        least_margin=1.0,
        is_pooled=True,
    ),
    Check(
        "OBS-LARGE",
        "observations are far from unit scale",
        "decimal logarithm of the largest mean or deviation of observed numbers, not normalised",
        _obs_large,
        ("obs_abs_mean", "obs_std_max"),
        "above",
        "calibrated",
        "Layers are made for inputs of mean 0 and deviation 1.",
        {"observations": 0.9},
        "J. Schulman; Stable-Baselines3 issue 1801",
        least_margin=1.0,
        is_pooled=True,
    ),
    Check(
        "OBS-CONST",
        "observations hardly change",
        "decimal logarithm of the largest deviation of an observed number",
        _obs_small,
        ("obs_std_max",),
        "below",
        "calibrated",
        "The policy sees the same input in every state.",
        {"observations": 0.9},
        "RLDebugger",
        least_margin=1.0,
        is_pooled=True,
    ),
)
