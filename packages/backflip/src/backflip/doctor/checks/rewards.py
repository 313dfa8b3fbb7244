"""Checks of rewards and observations."""

import numpy as np
from jaxtyping import Bool

from backflip.doctor.check import Check, Running
from backflip.doctor.log import ON_POLICY, Log, Signal, Values
from backflip.doctor.measures import (
    after,
    at_the_end,
    largest,
    log10_of,
    or_none,
    ratio,
    reward_size,
    smoothed,
    together,
)
from backflip.rewards.calibration import spearman

CONSTANT_FROM = 0.1  # constant rewards and observations are judged from this share of the budget on
EARLY_SHARE = 0.2  # sign and size of rewards are judged from this share of the budget on
SETTLED_SHARE = 0.25  # means of rewards of both signs begin at this share of the budget
LATE_SHARE = 0.5  # rewards that are 0 or unrelated are judged from this share of the budget on
ZERO_REWARD = -12.0  # rewards whose log10 is below this are zeros but for rounding


def _per_step(log: Log) -> Signal:
    returns, lengths = log.signals["episode_return_mean"], log.signals["episode_length_mean"]
    return together(returns, lengths, ratio)


def _other_sign(log: Log) -> Running | None:
    """Return the share of updates so far at which mean reward and true reward differ in sign.

    Both are means per env step since the start, because an episode may end several updates after
    its rewards. Rewards of both signs, such as small costs and a large reward at a goal, are judged
    later, without the first quarter of the budget: costs that are divided by a running standard
    deviation weigh most at the start, and the first episodes to end are those that reach the goal.
    A replay holds rows of older policies, so its mean may have any sign that the true reward has
    had. Algorithms with a replay are therefore judged only until the true reward changes its sign.
    """
    if log.teaches:
        return None
    start, judged = (SETTLED_SHARE, LATE_SHARE) if _has_both_signs(log) else (0.0, EARLY_SHARE)
    since = start * log.budget
    true = _true_mean(log, since)
    used = _mean_so_far(_from(log.signals["reward_mean"], since))
    pair = together(true, used, lambda one, other: np.sign(one) != np.sign(other))
    strong = together(true, used, lambda one, other: _is_large(one) & _is_large(other))
    chosen = (strong.y == 1) & (pair.x >= judged * log.budget)
    if log.algorithm not in ON_POLICY:
        chosen &= _had_one_sign(smoothed(log, _per_step(log)), pair.x)
    if chosen.sum() < 5:
        return None
    wrong = pair.y[chosen].astype(float)
    return or_none(Running(pair.x[chosen], np.cumsum(wrong) / np.arange(1, len(wrong) + 1)))


def _had_one_sign(running: Running, x: Values) -> Bool[np.ndarray, " n"]:
    """Return whether all values until each env step have one sign; False before the first value."""
    low, high = np.fmin.accumulate(running.value), np.fmax.accumulate(running.value)
    until = np.searchsorted(running.x, x, side="right") - 1
    return (until >= 0) & np.append((low >= 0) | (high <= 0), False)[until]


def _has_both_signs(log: Log) -> bool:
    """Return whether some rewards are positive and others negative; False if this is not logged."""
    if not log.has("reward_min", "reward_max"):
        return False
    least, most = log.signals["reward_min"].y, log.signals["reward_max"].y
    return bool(np.fmin.reduce(least, initial=0.0) < 0 < np.fmax.reduce(most, initial=0.0))


def _true_mean(log: Log, since: float) -> Signal:
    """Return the mean true reward of an env step: the sum of returns over the sum of lengths.

    Both sums begin at the env step `since`.
    Values exist where an episode ended. If the number of episodes is not logged, all updates have
    the same weight.
    """
    returns = _from(log.signals["episode_return_mean"], since)
    lengths = _from(log.signals["episode_length_mean"], since)
    if log.has("episodes"):
        returns = together(returns, log.signals["episodes"], np.multiply)
        lengths = together(lengths, log.signals["episodes"], np.multiply)
    return together(_sum_so_far(returns), _sum_so_far(lengths), ratio)


def _from(signal: Signal, since: float) -> Signal:
    """Return the values of a signal from an env step on."""
    kept = signal.x >= since
    return signal._replace(x=signal.x[kept], y=signal.y[kept])


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
    """Return the rank correlation of mean rewards with true rewards per env step, of all updates.

    None if rewards are, or may be, divided by a running standard deviation: it grows with the
    returns, so that the mean falls while the true reward rises.
    """
    if log.teaches or log.settings.get("normalize_rewards", log.library != "backflip"):
        return None
    one, other = _per_step(log), log.signals["reward_mean"]
    pair = together(one, other, lambda true, _: true)
    used = together(one, other, lambda _, mean: mean)
    known = np.isfinite(pair.y) & np.isfinite(used.y)
    true, mean = pair.y[known], used.y[known]
    if len(true) < 20 or np.ptp(true) < 0.05 * np.abs(true).max():
        return None
    value = spearman(true, mean)
    if value is None:
        return None
    return or_none(after(log, LATE_SHARE, Running(pair.x[known][-1:], np.asarray([value]))))


def _reward_constant(log: Log) -> Running | None:
    """Return the range of the rewards so far divided by the largest |r|."""
    least, most = log.signals["reward_min"], log.signals["reward_max"]
    low = together(least, most, lambda low, _: np.fmin.accumulate(low))
    high = together(least, most, lambda _, high: np.fmax.accumulate(high))
    size = np.maximum(np.maximum(np.abs(low.y), np.abs(high.y)), 1e-12)
    return or_none(after(log, CONSTANT_FROM, at_the_end(Running(low.x, (high.y - low.y) / size))))


def _never_rewarded(log: Log) -> Running | None:
    """Return the largest |r| of the whole log."""
    size = reward_size(log)
    return or_none(after(log, LATE_SHARE, at_the_end(largest(Running(size.x, size.y)))))


def _reward_large(log: Log) -> Running | None:
    """Return log10 of the largest running median of max |r|.

    Costs of the first policy may be large, and soon avoided.
    """
    return or_none(log10_of(largest(smoothed(log, reward_size(log)))))


def _reward_small(log: Log) -> Running | None:
    size = reward_size(log)
    found = or_none(log10_of(largest(Running(size.x, size.y))))
    if found is None or found.value[-1] < ZERO_REWARD:  # no reward at all: REW-ZERO
        return None
    return or_none(after(log, EARLY_SHARE, at_the_end(found)))


def _obs_large(log: Log) -> Running | None:
    if log.settings.get("normalize_obs") is True:
        return None
    mean, deviation = log.signals["obs_abs_mean"], log.signals["obs_std_max"]
    return or_none(log10_of(largest(smoothed(log, together(mean, deviation, np.maximum)))))


def _obs_small(log: Log) -> Running | None:
    found = log10_of(largest(smoothed(log, log.signals["obs_std_max"])))
    return or_none(after(log, CONSTANT_FROM, found))


CHECKS = (
    Check(
        id="REW-SIGN",
        title="learned and true reward have different signs",
        quantity="share of updates so far at which the mean reward that is learned from has "
        "another sign than the mean of return divided by length, after 20 % of the budget, or half "
        "of it if rewards have both signs; with a replay, as long as the true reward had one sign",
        measure=_other_sign,
        needs=("episode_return_mean", "episode_length_mean", "reward_mean"),
        bad_side="above",
        limit_from="convention",
        explanation="The algorithm learns from a reward with another sign or shift than the true "
        "one. A shift changes whether it is good to stay alive.",
        causes={"reward-sign": 0.95, "reward-model": 0.1},
        source="J. Schulman: scale rewards, but do not shift them",
        limit=0.5,
        is_direct=True,
    ),
    Check(
        id="REW-UNRELATED",
        title="learned and true reward do not move together",
        quantity="rank correlation, of all updates, of the mean reward with the return divided by "
        "the length; not if rewards are scaled by running statistics, or may be",
        measure=_unrelated,
        needs=("episode_return_mean", "episode_length_mean", "reward_mean"),
        bad_side="below",
        limit_from="calibrated",
        explanation="The reward that the algorithm receives is not the environment's.",
        causes={"reward-sign": 0.7, "no-reward-signal": 0.6, "replay": 0.2},
        source="two routes to one number",
        least_margin=0.3,
        is_pooled=True,
        extreme=-1.0,
    ),
    Check(
        id="REW-CONST",
        title="all rewards are equal",
        quantity="range of the rewards so far divided by the largest |r|, after 10 % of the budget",
        measure=_reward_constant,
        needs=("reward_min", "reward_max"),
        bad_side="below",
        limit_from="convention",
        explanation="Returns then differ by the length of episodes alone.",
        causes={"no-reward-signal": 0.7, "unlucky-or-slow": 0.2},
        source="RLDebugger",
        limit=1e-9,
        severity="remark",
        healthy_share=0.3,
    ),
    Check(
        id="REW-ZERO",
        title="there never was a reward",
        quantity="largest |r| that the algorithm learns from in the whole log, after half the "
        "budget",
        measure=_never_rewarded,
        needs=("reward_min", "reward_max"),
        bad_side="below",
        limit_from="convention",
        explanation="The algorithm has learned from zeros alone.",
        causes={"no-reward-signal": 0.9, "unlucky-or-slow": 0.3},
        source="J. Schulman: if a random policy never does the right thing, learning does neither",
        limit=1e-12,
        severity="warning",
    ),
    Check(
        id="REW-LARGE",
        title="rewards are large",
        quantity="decimal logarithm of the largest running median of max |r|, of what the "
        "algorithm learns from",
        measure=_reward_large,
        needs=("reward_min", "reward_max"),
        bad_side="above",
        limit_from="calibrated",
        explanation="Losses grow with the square of rewards, and settings are made for rewards "
        "near 1.",
        causes={"reward-scale": 0.95},
        source="Henderson et al. 2018, arXiv:1709.06560",
        least_margin=1.0,
        is_pooled=True,
    ),
    Check(
        id="REW-SMALL",
        title="rewards are tiny",
        quantity="decimal logarithm of the largest |r| that the algorithm learns from, after 20 % "
        "of the budget",
        measure=_reward_small,
        needs=("reward_min", "reward_max"),
        bad_side="below",
        limit_from="calibrated",
        explanation="Entropy bonus and rounding outweigh rewards of this size.",
        causes={"reward-scale": 0.8, "no-reward-signal": 0.8},
        source="Henderson et al. 2018, arXiv:1709.06560",
        least_margin=1.0,
        is_pooled=True,
    ),
    Check(
        id="OBS-LARGE",
        title="observations are far from unit scale",
        quantity="decimal logarithm of the largest mean or standard deviation of observed numbers, "
        "not normalised",
        measure=_obs_large,
        needs=("obs_abs_mean", "obs_std_max"),
        bad_side="above",
        limit_from="calibrated",
        explanation="Layers are made for inputs of mean 0 and standard deviation 1.",
        causes={"observations": 0.9},
        source="J. Schulman; Stable-Baselines3 issue 1801",
        least_margin=1.0,
        is_pooled=True,
        is_direct=True,
    ),
    Check(
        id="OBS-CONST",
        title="observations hardly change",
        quantity="decimal logarithm of the largest standard deviation of an observed number",
        measure=_obs_small,
        needs=("obs_std_max",),
        bad_side="below",
        limit_from="calibrated",
        explanation="The policy sees the same input in every state.",
        causes={"observations": 0.9},
        source="RLDebugger",
        least_margin=1.0,
        is_pooled=True,
        is_direct=True,
    ),
)
