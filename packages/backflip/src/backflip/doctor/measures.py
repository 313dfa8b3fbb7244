"""Numbers that checks measure, each from what was logged until then."""

import math
from collections.abc import Callable

import numpy as np

from backflip.doctor.check import Running
from backflip.doctor.log import Log, Signal, Values

WINDOW = 0.02  # of the points, for medians that single values do not move
LEAST_WINDOW = 5  # points
VANISHED = 0.1  # of the largest size so far: what values are compared with is no smaller
LEAST_OF_MEAN = 0.3  # median distance / mean distance; of normal values, it is 0.845
OVERLAP = 10  # a window begins at most a tenth of its width after the one before

Combine = Callable[[Values, Values], Values]


def smoothed(
    log: Log, signal: Signal, share: float = WINDOW, summary: Callable[..., Values] = np.median
) -> Running:
    """Return medians of the newest `share` of all points, at least of `LEAST_WINDOW` points.

    `share` refers to the points that the log will have at the end of the budget, so that a median
    is the same during training and after it. NaNs are left out. There is no value before the first
    window is full. Windows of many points overlap by nine tenths, since some 500 medians are
    enough. `summary` is another statistic than the median, such as `np.mean`.
    """
    known = np.isfinite(signal.y)
    x, y = signal.x[known], signal.y[known]
    width = window_of(log, signal, share)
    if len(y) < width:
        return Running(x[:0], y[:0])
    ends = np.arange(len(y) - 1, width - 2, -max(1, width // OVERLAP))[::-1]
    windows = np.lib.stride_tricks.sliding_window_view(y, width)
    return Running(x[ends], summary(windows[ends - width + 1], axis=1))


def least_size(y: Values, share: float = VANISHED) -> Values:
    """Return the smallest size that values are compared with: a share of the largest |y| so far.

    Rewards vanish where a policy learns to avoid all costs. Errors of the values do not, and a
    replay keeps the rows of older policies.
    """
    return share * np.fmax.accumulate(np.abs(y))


def window_of(log: Log, signal: Signal, share: float) -> int:
    """Return the points of the windows of `smoothed`."""
    known = signal.x[np.isfinite(signal.y)]
    return max(LEAST_WINDOW, round(share * expected_points(log, known)))


def expected_points(log: Log, x: Values) -> float:
    """Return how many points there will be at the end of the budget, at the rate until now.

    If the budget has no end, it is the number of points until now.
    """
    more = log.budget / log.end if log.end > 0 and math.isfinite(log.budget) else 1.0
    return len(x) * min(max(1.0, more), MOST_MORE)


UNTRAINED = 1.0  # the largest size of values before they are learned
MOST_MORE = 1e9  # a log that has hardly begun expects at most this many times its points
WRONG = 1e-3  # error of an identity: rounding gives less than 1e-5, TF32 on a GPU more


def largest_return(log: Log) -> float | None:
    """Return the largest |mean return| of a training run; None if no number is logged."""
    if not log.has("episode_return_mean"):
        return None
    size = np.abs(log.signals["episode_return_mean"].y)
    known = size[np.isfinite(size)]
    return float(known.max()) if len(known) else None


def largest(running: Running) -> Running:
    """Return the largest value so far; NaNs are left out."""
    return Running(running.x, np.fmax.accumulate(running.value))


def at_the_end(found: Running) -> Running:
    """Return the last value for every env step: what is small at first may become large."""
    return found._replace(value=np.full(len(found.x), found.value[-1] if len(found.x) else 0.0))


def largest_of(log: Log, name: str) -> Running | None:
    """Return the largest value so far of a signal; None without one."""
    found = log.signals[name]
    return or_none(largest(Running(found.x, found.y)))


def smallest(running: Running) -> Running:
    """Return the smallest value so far; NaNs are left out."""
    return Running(running.x, np.fmin.accumulate(running.value))


def after(log: Log, share: float, running: Running) -> Running:
    """Return what was measured after a share of the budget."""
    later = running.x >= share * log.budget
    return Running(running.x[later], running.value[later])


def before(log: Log, share: float, running: Running) -> Running:
    """Return what was measured before a share of the budget."""
    early = running.x <= share * log.budget
    return Running(running.x[early], running.value[early])


def together(one: Signal, other: Signal, combine: Combine) -> Signal:
    """Return two signals combined, at the env steps that both have."""
    x, first, second = np.intersect1d(one.x, other.x, return_indices=True)
    with np.errstate(all="ignore"):
        return Signal(x, combine(one.y[first], other.y[second]), one.logged_as)


def ratio(above: Values, below: Values) -> Values:
    """Return a ratio; NaN where the divisor is 0."""
    return np.where(below == 0, np.nan, above / np.where(below == 0, 1.0, below))


def reward_size(log: Log) -> Signal:
    """Return max |r| of each update, from the signals `reward_min` and `reward_max`."""
    least, most = log.signals["reward_min"], log.signals["reward_max"]
    return together(least, most, lambda low, high: np.maximum(np.abs(low), np.abs(high)))


def largest_reward(log: Log) -> Signal:
    """Return max |r| of all updates so far."""
    size = reward_size(log)
    return size._replace(y=np.fmax.accumulate(size.y))


def over_largest_return(log: Log, name: str) -> Running | None:
    """Return |x| / (max |r| / (1 - γ)) of a mean of values or Q-values, the largest so far.

    Values of an untrained network are no returns: the bound is at least their size, up to
    `UNTRAINED`. None if γ is unknown or 1.
    """
    discount = log.setting("discount")
    if discount is None or not 0 <= discount < 1:
        return None
    size = largest_reward(log)
    known = log.signals[name].y[np.isfinite(log.signals[name].y)]
    untrained = min(abs(float(known[0])), UNTRAINED) if len(known) else 0.0
    bound = size._replace(y=np.maximum(size.y / (1.0 - discount), untrained))
    found = smoothed(log, together(log.signals[name], bound, ratio))
    return or_none(largest(Running(found.x, np.abs(found.value))))


def log10_of(running: Running) -> Running:
    """Return decimal logarithms of absolute values; of 0, that of the least normal number."""
    return Running(
        running.x, np.log10(np.maximum(np.abs(running.value), np.finfo(np.float32).tiny))
    )


def or_none(running: Running) -> Running | None:
    """Return what was measured; None if there is not one number."""
    return running if np.isfinite(running.value).any() else None


def noise_of(signal: Signal, around: Running) -> float:
    """Return the median distance of values from the medians around them; at least a little.

    It is the mean distance if that is far larger: returns may have two levels, as of games that are
    won or lost. Most values are then near the median, and say nothing of the others.

    Args:
        signal: the values; NaNs are left out.
        around: `smoothed(signal, ...)`.
    """
    is_known = np.isfinite(signal.y) & (signal.x >= around.x[0])
    known = signal.y[is_known]
    medians = np.interp(signal.x[is_known], around.x, around.value)
    distances = np.abs(known - medians)
    distance, mean = float(np.median(distances)), float(distances.mean())
    distance = mean if distance < LEAST_OF_MEAN * mean else distance
    return distance + 1e-3 * float(np.abs(known).max()) + 1e-9
