"""The standard error of a change of the return, whose values are means of few episodes."""

import math

import numpy as np

from backflip.doctor.log import Log, Signal, Values

WINDOW = 100  # libraries average the last 100 episodes by default
# These libraries log means of the last episodes.
ROLLING = ("sb3", "rllib", "rsl_rl", "rl_games", "sample_factory")
FIRST_VALUES = 3  # the return of the untrained policy is the median of this many values
# σ of normal values is 3.1383 times the distance from the mean within which a quarter of them lies.
QUARTER, STD_PER_QUARTER = 0.25, 3.1383
# Values overlap if those far apart differ by more than this many times as much as neighbours.
OVERLAPPING = 2.0
# Values hardly overlap if they differ by at least this share of how much values far apart differ.
NOT_OVERLAPPING = 0.7
# The variance of a median is this many times that of a mean of as many normal values.
MEDIAN_VARIANCE = math.pi / 2.0


def error_of_change(log: Log, signal: Signal, width: int) -> float:
    """Return the standard error of a late median minus an early one if nothing was learned.

        σ √(π / 2 (1 / 3 + 1 / width)),

    with σ the standard deviation of one logged value, from differences of neighbours; 0 if there
    are few. Means of the last episodes are not independent: see `_of_rolling_means`.

    Args:
        log: the log.
        signal: its mean returns.
        width: values of the late median; the early one is of `FIRST_VALUES`.
    """
    known = np.isfinite(signal.y)
    x, y = signal.x[known], signal.y[known]
    if len(x) < 2 * FIRST_VALUES:
        return 0.0
    apart = overlap(log, signal)
    if apart:
        return _of_second_changes(y, apart) * math.sqrt(2.0)
    # Where the number of episodes is known, a value is of those since the one before.
    if log.library in ROLLING and not log.has("episodes"):
        return _of_rolling_means(log, x, y)
    one = _spread(np.diff(y)) / math.sqrt(2.0)
    return one * math.sqrt(MEDIAN_VARIANCE * (1.0 / FIRST_VALUES + 1.0 / width))


def overlap(log: Log, signal: Signal) -> int:
    """Return how many values apart the means in a log of a user are independent; 0 if all are.

    Such logs often hold the mean of the last episodes without saying so. Then neighbours are more
    alike than values further apart, and the first values are means of few episodes.
    """
    y = signal.y[np.isfinite(signal.y)]
    if log.library != "unknown" or log.has("episodes"):
        return 0
    apart = [2**power for power in range(16) if 2**power <= len(y) // 8]
    found = [_of_second_changes(y, one) for one in apart]
    if not found or max(found) <= OVERLAPPING * found[0]:
        return 0
    grows = np.diff(found[: int(np.argmax(found)) + 1])
    if not (grows > 0).all():  # by chance, or since the return itself turns
        return 0
    return next(
        one
        for one, error in zip(apart, found, strict=True)
        if error >= NOT_OVERLAPPING * max(found)
    )


def _of_second_changes(y: Values, apart: int) -> float:
    """Return σ of one value from y(t + 2k) - 2 y(t + k) + y(t), whose variance is 6 σ²."""
    change = y[2 * apart :] - 2.0 * y[apart:-apart] + y[: -2 * apart]
    return _spread(change) / math.sqrt(6.0)


def _of_rolling_means(log: Log, x: Values, y: Values) -> float:
    """Return the standard error of a late mean of episodes minus an early one; 0 if unknown.

        σ √(1 / n + 1 / W),   σ = s W / (2 √k)

    W is `WINDOW` and n the episodes in the first values. Values k episodes apart, at most W / 2,
    differ by k new and k old episodes; the change of this difference to the next one is of 4 k
    episodes. So its standard deviation s is 2 σ √k / W, with σ that of a single return. Changes of
    differences do not count a steady rise or fall as noise, as differences do.
    """
    if not log.has("episode_length_mean") or not log.is_over_env_steps:
        return 0.0
    lengths = log.signals["episode_length_mean"]
    length = np.interp(x, lengths.x, np.maximum(np.nan_to_num(lengths.y, nan=1.0), 1.0))
    between = max(float(np.median(np.diff(x) / length[1:])), 1e-9)
    apart = int(np.clip(round(WINDOW / 2 / between), 1, len(x) // 4))
    change = y[2 * apart :] - 2.0 * y[apart:-apart] + y[: -2 * apart]
    one = _spread(change) * WINDOW / (2.0 * math.sqrt(min(apart * between, WINDOW / 2)))
    first = min(max(float(x[FIRST_VALUES // 2] / length[FIRST_VALUES // 2]), 1.0), WINDOW)
    return one * math.sqrt(1.0 / first + 1.0 / WINDOW)


def _spread(change: Values) -> float:
    """Return the standard deviation of changes around their median.

    While it learns, the return moves more than by chance: the quiet quarter of the run counts.
    """
    return STD_PER_QUARTER * float(np.quantile(np.abs(change - np.median(change)), QUARTER))
