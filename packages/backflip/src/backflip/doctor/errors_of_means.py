"""The standard error of a change of the return, whose values are means of few episodes."""

import math

import numpy as np

from backflip.doctor.log import Log, Signal, Values

WINDOW = 100  # episodes that libraries average by default
ROLLING = ("sb3", "rllib", "rsl_rl", "rl_games", "sample_factory")  # what is logged there
FIRST = 3  # values that a return is compared with
QUARTER, NORMAL = 0.25, 3.1383  # of normal values, a quarter is closer than σ / 3.1383 to the mean
MORE_ALIKE = 2.0  # values overlap if those far apart differ so many times as much as neighbours
NEARLY = 0.7  # of how much values far apart differ: those so far apart hardly overlap
OF_MEDIAN = math.pi / 2.0  # variance of a median over that of a mean of as many normal values


def error_of_change(log: Log, signal: Signal, width: int) -> float:
    """Return the standard error of a late median minus an early one if nothing was learned.

        σ √(π / 2 (1 / 3 + 1 / width)),

    with σ the standard deviation of one logged value, from differences of neighbours; 0 if there
    are few. Means of the last episodes are not independent: see `_of_rolling_means`.

    Args:
        log: the log.
        signal: its mean returns.
        width: values of the late median; the early one is of `FIRST`.
    """
    known = np.isfinite(signal.y)
    x, y = signal.x[known], signal.y[known]
    if len(x) < 2 * FIRST:
        return 0.0
    apart = overlap(log, signal)
    if apart:
        return _of_second_changes(y, apart) * math.sqrt(2.0)
    # Where the number of episodes is known, a value is of those since the one before.
    if log.library in ROLLING and not log.has("episodes"):
        return _of_rolling_means(log, x, y)
    one = _spread(np.diff(y)) / math.sqrt(2.0)
    return one * math.sqrt(OF_MEDIAN * (1.0 / FIRST + 1.0 / width))


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
    if not found or max(found) <= MORE_ALIKE * found[0]:
        return 0
    grows = np.diff(found[: int(np.argmax(found)) + 1])
    if not (grows > 0).all():  # by chance, or since the return itself turns
        return 0
    return next(
        one for one, error in zip(apart, found, strict=True) if error >= NEARLY * max(found)
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
    first = min(max(float(x[FIRST // 2] / length[FIRST // 2]), 1.0), WINDOW)
    return one * math.sqrt(1.0 / first + 1.0 / WINDOW)


def _spread(change: Values) -> float:
    """Return the standard deviation of changes around their median.

    While it learns, the return moves more than by chance: the quiet quarter of the run counts.
    """
    return NORMAL * float(np.quantile(np.abs(change - np.median(change)), QUARTER))
