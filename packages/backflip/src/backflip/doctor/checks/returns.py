"""Checks of returns and episodes."""

import math
from collections.abc import Callable

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.errors_of_means import FIRST_VALUES, error_of_change, overlap
from backflip.doctor.log import Log, Signal, Values
from backflip.doctor.measures import (
    after,
    largest,
    noise_of,
    or_none,
    smoothed,
    together,
    window_of,
)

LENGTHS_FROM = 0.1  # lengths of episodes are judged from this share of the budget on
SUSTAINED_SHARE = 0.1  # a fall counts if it lasts for this share of the budget
LAST_SHARE = 0.95  # a log must reach this share of the budget before its end is judged
LARGEST_LOSS = 1.2  # larger falls are reported as this share of the rise
REAL_RISE = 10.0  # a rise is real if it is larger than this many times the noise of the return
CLEAR_RISE = 5.0  # times the noise of the return; with actions that do nothing, below 2.5
LATE_SHARE = 0.5  # whether the return rises is judged from this share of the budget on
SINGLE = 2.0  # so many standard errors of a mean of single returns count as the noise of a return
VISIBLE_RISE = 2.0  # below this many times the noise, the return has not risen
MOST_OF_RISE = 0.5  # evaluations count if the training return has more than this share of its rise
FEWEST_EVALUATIONS = 5  # fewer evaluations are not judged
FIRST_EPISODES = 10  # their median is no luck of a few
DQN_WARM_UP = 20_000  # env steps during which healthy DQN may return less than random actions
LOGS_SINGLE = ("cleanrl",)  # this library logs the return of each episode
LOGS_EPISODES = ("sb3", "cleanrl", "rllib")  # these libraries log every end of an episode
_JONES = "A. Jones, Debugging RL, Without the Agonizing Pain"


def _lost(log: Log) -> Running | None:
    """Return the share of the rise of the return that was lost again for a tenth of the budget.

    Rise and fall are computed from medians. A rise below `REAL_RISE` times the noise does not
    count.
    """
    signal = log.signals["episode_return_mean"]
    found = smoothed(log, signal, 0.05)
    if len(found.x) < 20 or found.x[-1] <= 0:
        return None
    ago = np.searchsorted(found.x, found.x - SUSTAINED_SHARE * log.budget)
    recent = np.asarray([found.value[one : n + 1].max() for n, one in enumerate(ago)])
    peak = np.maximum.accumulate(found.value)
    rise = peak - found.value[0]
    is_real = (rise > REAL_RISE * noise_of(signal, found)) & (ago > 0)
    lost = np.where(is_real, (peak - recent) / np.where(is_real, rise, 1.0), 0.0)
    return Running(found.x, np.minimum(lost, LARGEST_LOSS))


def _falls(log: Log) -> Running | None:
    """Return the largest share of the rise of the return that was lost so far."""
    lost = _lost(log)
    return lost and or_none(largest(lost))


def _ends_low(log: Log) -> Running | None:
    """Return, for each env step, the smallest loss of return from there to the end.

    It is a share of the rise of the return.
    """
    lost = _lost(log)
    if lost is None or lost.x[-1] < LAST_SHARE * log.budget:
        return None
    return or_none(Running(lost.x, np.minimum.accumulate(lost.value[::-1])[::-1]))


def best_rise(log: Log) -> Running | None:
    """Return the largest rise of the return above its first values, divided by its noise.

    The noise is at least the standard error of the difference of two means of a few episodes, since
    the best of many such means is above the first by chance. Of single returns, means that rise by
    `SINGLE` standard errors count as 1. Every env step gets the value of the whole log, so that a
    run that learns late is not judged by its beginning. None if there are fewer than ten values.
    """
    signal = log.signals["episode_return_mean"]
    found = smoothed(log, signal, 0.05)
    if len(found.x) < 10:
        return None
    width = window_of(log, signal, 0.05)
    noise = max(noise_of(signal, found), error_of_change(log, signal, width))
    rise = (found.value - _first(log, signal)) / noise
    best = np.fmax.reduce(rise[found.x >= _first_window(log, signal, width)], initial=-np.inf)
    if _of_equal_counts(log):
        of_means = np.fmax.reduce(_change_of_means(log, signal, max), initial=-np.inf)
        best = max(best, of_means / SINGLE)
    return Running(found.x, np.full(len(rise), best))


def rises_clearly(log: Log) -> bool:
    """Return whether the return rises by more than `CLEAR_RISE` times its noise."""
    rise = best_rise(log) if log.has("episode_return_mean") else None
    return rise is not None and bool(rise.value[-1] > CLEAR_RISE)


def _no_progress(log: Log) -> Running | None:
    found = best_rise(log)
    return found and or_none(after(log, LATE_SHARE, found))


def _worse_than_start(log: Log) -> Running | None:
    """Return how far the return lies below its first values, divided by its noise.

    The noise is at least the standard error of the difference between the first values and the late
    ones, which are means of a few episodes.
    """
    signal = log.signals["episode_return_mean"]
    found = smoothed(log, signal, 0.1)
    if len(found.x) < 20:
        return None
    width = window_of(log, signal, 0.1)
    noise = max(noise_of(signal, found), error_of_change(log, signal, width))
    start = _first(log, signal)
    below = np.maximum(start - found.value, 0.0) / noise
    if _of_equal_counts(log):
        of_means = np.maximum(-_change_of_means(log, signal, min), 0.0)
        if _are_single(log):  # the best of three says little
            below = np.minimum(below, of_means)
        below = np.maximum(below, of_means / SINGLE)
    grown = found.x >= (DQN_WARM_UP if log.algorithm == "dqn" else 0)
    return or_none(after(log, LATE_SHARE, Running(found.x[grown], below[grown])))


def _are_single(log: Log) -> bool:
    """Return whether each value is the return of one episode."""
    if log.library in LOGS_SINGLE:
        return True
    return log.has("episodes") and bool((log.signals["episodes"].y == 1.0).all())


def _of_equal_counts(log: Log) -> bool:
    """Return whether returns are single, or means of equally many consecutive episodes."""
    known = log.has("episodes") and np.ptp(log.signals["episodes"].y) == 0
    return bool(known) or _are_single(log)


def _change_of_means(log: Log, signal: Signal, cautious: Callable[..., float]) -> Values:
    """Return how far means of a tenth of the single returns lie above the first.

        (m - m_0) / (s √(2 / width)),   s² = half the mean squared difference of neighbours

    Medians of won and lost games jump, and their means do not. m_0 is the mean of the first tenth
    or the median of the first `FIRST_EPISODES`, chosen by `cautious`, `min` or `max`: a few lucky
    episodes are no better policy.
    """
    width = window_of(log, signal, 0.1)
    y = signal.y[np.isfinite(signal.y)]
    error = float(np.sqrt(np.square(np.diff(y)).mean() / width))
    means = smoothed(log, signal, 0.1, np.mean).value
    first = cautious(float(y[:width].mean()), float(np.median(y[:FIRST_EPISODES])))
    return (means - first) / (error + 1e-9)


def _first(log: Log, signal: Signal) -> float:
    """Return the return of the untrained policy: the median of the first values.

    If values are means of the last episodes, the earliest are left out: they are means of too few.
    """
    known = signal.y[np.isfinite(signal.y)]
    begin = overlap(log, signal)
    return float(np.median(known[begin : begin + FIRST_VALUES]))


def _first_window(log: Log, signal: Signal, width: int) -> float:
    """Return the env steps at the end of the first window of what `_first` does not leave out."""
    known = signal.x[np.isfinite(signal.y)]
    begin = overlap(log, signal)
    return float(known[min(begin + width, len(known)) - 1]) if begin else -math.inf


def _evaluated(log: Log) -> Running | None:
    """Return the share of the rise of the training return that evaluations show.

        median over the last k evaluations u of (E(u) - R_0) / (R(u) - R_0)

    E is the return of evaluations, R that of training, R_0 its first values. Only evaluations count
    at which the training return has at least half of its largest rise. k is half of their number,
    at least five, since means of the last episodes show a collapse later than evaluations do. None
    if there are fewer than five.
    """
    trained, evaluated = log.signals["episode_return_mean"], log.signals["evaluation_return"]
    found = smoothed(log, trained, 0.05)
    rise = best_rise(log)
    if rise is None or not rise.value[-1] > VISIBLE_RISE:
        return None
    first = _first(log, trained)
    most = np.fmax.reduce(found.value) - first
    known = np.isfinite(evaluated.y) & (evaluated.x >= found.x[0])
    reached = np.interp(evaluated.x[known], found.x, found.value) - first
    late = reached > MOST_OF_RISE * most
    shares = (evaluated.y[known][late] - first) / reached[late]
    count = max(FEWEST_EVALUATIONS, len(shares) // 2)
    if len(shares) < count:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(shares, count)
    return Running(evaluated.x[known][late][count - 1 :], np.median(windows, axis=1))


def _returns_equal(log: Log) -> Running | None:
    """Return the range of all returns divided by the largest |return|."""
    found = log.signals["episode_return_mean"]
    known = np.isfinite(found.y)
    x, y = found.x[known], found.y[known]
    if len(y) < 5:
        return None
    spread = np.ptp(y) / max(np.abs(y).max(), 1e-12)
    return or_none(after(log, LATE_SHARE, Running(x, np.full(len(x), spread))))


def _no_episode(log: Log) -> Running | None:
    """Return 1 if a library that logs every end of an episode logged none; else 0."""
    if log.has("episodes") or log.library not in LOGS_EPISODES or not log.signals:
        return None
    none = 0.0 if log.has("episode_return_mean") else 1.0
    found = Running(np.asarray([log.end]), np.asarray([none]))
    return or_none(after(log, LENGTHS_FROM, found))  # the first episode may be long


def _late_episode(log: Log) -> Running | None:
    """Return the share of the budget of this log before an episode ends; 0 after the first end."""
    found = log.signals["episodes"]
    count = np.cumsum(np.nan_to_num(found.y))
    budget = max(log.budget - log.began_at, 1.0)
    none = np.where(count > 0, 0.0, (found.x - log.began_at) / budget)
    return or_none(Running(found.x, none))


def _length_constant(log: Log) -> Running | None:
    """Return the range of the episode lengths so far divided by the largest.

    None if the limit of env steps is unknown, or an episode has reached it.
    """
    least, most = log.signals["episode_length_min"], log.signals["episode_length_max"]
    limit = log.setting("max_episode_steps")
    least = least._replace(y=np.fmin.accumulate(least.y))
    most = most._replace(y=np.fmax.accumulate(most.y))
    spread = together(least, most, lambda low, high: (high - low) / np.maximum(high, 1.0))
    known = np.isfinite(spread.y)
    if not known.any() or limit is None or most.y[-1] >= limit:
        return None
    return or_none(after(log, LENGTHS_FROM, Running(spread.x[known], spread.y[known])))


CHECKS = (
    Check(
        id="ENV-DROP",
        title="the return falls after it had risen",
        quantity="share of the rise of the return that is lost again for 10 % of the budget",
        measure=_falls,
        needs=("episode_return_mean",),
        bad_side="above",
        limit_from="calibrated",
        explanation="The policy had learned, and lost it.",
        causes={
            "steps-too-large": 0.5,
            "acting-and-learning-disagree": 0.3,
            "value-targets": 0.3,
            "too-little-exploration": 0.2,
            "replay": 0.3,
            "reward-sign": 0.2,
            "target-network": 0.3,
        },
        source="Stable-Baselines3 issue 324; Dohare et al. 2023",
        least_margin=0.2,
        extreme=LARGEST_LOSS,
    ),
    Check(
        id="ENV-END",
        title="the return ends where it began",
        quantity="share of the rise of the return that is lost for 10 % of the budget, and not "
        "regained until its end; not if ENV-DROP found a fall",
        measure=_ends_low,
        needs=("episode_return_mean",),
        bad_side="above",
        limit_from="convention",
        explanation="The policy had learned, and what is left at the end is no better than the "
        "untrained one. Of some algorithms, a few seeds of a healthy program do this: run more "
        "seeds, and keep the best policy.",
        causes={
            "steps-too-large": 0.5,
            "acting-and-learning-disagree": 0.3,
            "value-targets": 0.3,
            "too-little-exploration": 0.3,
            "replay": 0.3,
            "reward-sign": 0.2,
            "target-network": 0.3,
            "unlucky-or-slow": 0.3,
        },
        source="Stable-Baselines3 issue 324; Dohare et al. 2023",
        limit=0.9,
        superseded_by=("ENV-DROP",),
        severity="warning",
    ),
    Check(
        id="ENV-LOST",
        title="the return ends well below its best",
        quantity="share of the rise of the return that is lost for 10 % of the budget, and not "
        "regained until its end; not if ENV-END found it",
        measure=_ends_low,
        needs=("episode_return_mean",),
        bad_side="above",
        limit_from="convention",
        explanation="Part of what the policy had learned is gone at the end. Returns of healthy "
        "programs fall like this, too: run more seeds, keep the best policy, and try a smaller "
        "learning rate at the end.",
        causes={
            "steps-too-large": 0.4,
            "too-little-exploration": 0.3,
            "acting-and-learning-disagree": 0.2,
            "value-targets": 0.2,
            "unlucky-or-slow": 0.4,
        },
        source="Stable-Baselines3 issue 324; Dohare et al. 2023",
        limit=0.3,
        superseded_by=("ENV-END",),
        severity="remark",
        healthy_share=0.13,  # 4 of 30 of Stable-Baselines3, all of DQN on CartPole
    ),
    Check(
        id="ENV-WORSE",
        title="the return falls below that of the untrained policy",
        quantity="how far the return lies below the first ones, divided by the noise of the "
        "return, after half the budget; of single episodes, their means count, too; for DQN not "
        "before 20,000 env steps: its first greedy actions can be worse than random ones",
        measure=_worse_than_start,
        needs=("episode_return_mean",),
        bad_side="above",
        limit_from="calibrated",
        explanation="Learning makes the policy worse than it was by chance: often a sign is wrong.",
        causes={
            "reward-sign": 0.9,
            "policy-loss": 0.7,
            "advantages": 0.6,
            "actions": 0.5,
            "acting-and-learning-disagree": 0.4,
            "steps-too-large": 0.3,
            "value-targets": 0.3,
        },
        source=_JONES,
        least_margin=3.0,
        from_start=True,
        superseded_by=("ENV-DROP", "Q-NO-UPDATE"),  # a policy that had learned, or never did
    ),
    Check(
        id="ENV-NOTHING",
        title="the return does not rise",
        quantity="how far the return has risen above its first values, divided by the noise of the "
        "return (median distance from its running median, or the error of its means if that is "
        "larger); measured after half the budget",
        measure=_no_progress,
        needs=("episode_return_mean",),
        bad_side="below",
        limit_from="convention",
        explanation="No learning is visible. A hard task looks the same: this alone proves no "
        "mistake.",
        causes={
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
        source="watching the return alone names 56 % of faulty seeds, with 23 % false alarms",
        limit=VISIBLE_RISE,
        severity="remark",
        healthy_share=0.14,
        from_start=True,
    ),
    Check(
        id="ENV-EVALGAP",
        title="evaluations do not show what training has learned",
        quantity="share of the rise of the training return that evaluations have, where the "
        "training return has at least half of its rise: the median of half of them",
        measure=_evaluated,
        needs=("episode_return_mean", "evaluation_return"),
        bad_side="below",
        limit_from="convention",
        explanation="The evaluated policy is far worse than the one that trains: it sees other "
        "observations, acts in another environment, or needs the noise of its actions.",
        causes={"evaluation": 0.97},
        source="SB3 issues 406, 1256, 1556 and 2091",
        limit=0.15,
        from_start=True,
        is_direct=True,
    ),
    Check(
        id="ENV-EQUAL",
        title="all returns are equal",
        quantity="range of all returns divided by the largest |return|, after half the budget",
        measure=_returns_equal,
        needs=("episode_return_mean",),
        bad_side="below",
        limit_from="convention",
        explanation="No behaviour is better than another one: there is nothing to learn from.",
        causes={"no-reward-signal": 0.8, "actions": 0.3, "unlucky-or-slow": 0.2},
        source="FinRL issue 713; RLDebugger",
        limit=1e-6,
        severity="remark",
    ),
    Check(
        id="ENV-NOEP",
        title="no end of an episode is logged",
        quantity="1 if a library that logs returns of episodes logged none",
        measure=_no_episode,
        needs=(),
        bad_side="above",
        limit_from="convention",
        explanation="Without ends there are no returns to look at. Stable-Baselines3 logs none "
        "without a Monitor (VecMonitor), and CleanRL's scripts none with Gymnasium 1.0.",
        causes={"logging": 0.98, "no-reward-signal": 0.02, "unlucky-or-slow": 0.01},
        source="CleanRL issue 499",
        limit=0.5,
    ),
    Check(
        id="ENV-NOEND",
        title="no episode ends",
        quantity="share of the budget before the first episode ends",
        measure=_late_episode,
        needs=("episodes",),
        bad_side="above",
        limit_from="convention",
        explanation="Episodes are longer than half of the budget, or never end: the agent has not "
        "seen a whole one.",
        causes={"unlucky-or-slow": 0.4, "no-reward-signal": 0.2, "actions": 0.2, "logging": 0.3},
        source="CleanRL issue 499",
        limit=0.5,
        severity="warning",
    ),
    Check(
        id="ENV-LEN",
        title="all episodes have one length",
        quantity="spread of the lengths of episodes that end before the time limit",
        measure=_length_constant,
        needs=("episode_length_min", "episode_length_max"),
        bad_side="below",
        limit_from="convention",
        explanation="Episodes end by a counter, not by what happens.",
        causes={"actions": 0.4, "no-reward-signal": 0.3},
        source=_JONES,
        limit=1e-9,
        severity="warning",
    ),
)
