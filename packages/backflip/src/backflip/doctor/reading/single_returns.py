"""Returns of the newest episodes, from the means of the last 100 that Stable-Baselines3 logs."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from backflip.doctor.errors_of_means import WINDOW
from backflip.doctor.log import Log, Signal, Values

LEAST_POINTS = 200  # means of episodes; a log of fewer than twice as many has single episodes
SLACK = 0.01  # of the env steps, by which lengths may miss them
_HOW = "of the episodes since the line before, from the means of the last 100"
_BY_MONITOR = "of {}, from the Monitor's file"
_RETURN, _LENGTH = "episode_return_mean", "episode_length_mean"


def unrolled(signals: Mapping[str, Signal], counts: Signal) -> Mapping[str, Signal]:
    """Return the signals with means of the episodes that ended since the line before.

    The signals stay as they are if the means do not tell: counts of episodes begin above 100, lines
    do not fall on whole hundreds, or the lengths do not add up to the env steps. Another window
    than 100 episodes is not noticed where all episodes have one length.

    Args:
        signals: by our name, with means of the last 100 episodes.
        counts: the number of episodes until each line.
    """
    returns, lengths = signals.get(_RETURN), signals.get(_LENGTH)
    if returns is None or lengths is None:
        return signals
    if not np.array_equal(returns.x, counts.x) or not np.array_equal(returns.x, lengths.x):
        return signals
    known = np.isfinite(returns.y) & np.isfinite(lengths.y) & np.isfinite(counts.y)
    if not known.any():
        return signals
    x, count = returns.x[known], counts.y[known]
    of_returns, of_lengths = (sums(one.y[known], count) for one in (returns, lengths))
    if of_returns is None or of_lengths is None or np.any(np.abs(of_lengths - x) > SLACK * x):
        return signals
    ended = np.diff(count, prepend=0.0)
    return {
        **signals,
        _RETURN: Signal(x, np.diff(of_returns, prepend=0.0) / ended, returns.logged_as, _HOW),
        _LENGTH: Signal(x, np.diff(of_lengths, prepend=0.0) / ended, lengths.logged_as, _HOW),
        "episodes": Signal(x, ended, counts.logged_as),
    }


def sums(means: Values, counts: Values, window: int = WINDOW) -> Values | None:
    """Return the sum over all episodes until each line, from means of the last ones.

        P(c) = W m(c) + P(c - W),   W = min(c, window)

    None if a P(c - W) is not known, or if the counts do not rise.
    """
    if np.any(np.diff(counts, prepend=0.0) <= 0):
        return None
    until = {0: 0.0}
    for mean, count in zip(means.tolist(), counts.astype(int).tolist(), strict=True):
        before = until.get(count - min(count, window))
        if before is None:
            return None
        until[count] = min(count, window) * mean + before
    return np.asarray(list(until.values())[1:], np.float64)


def monitored(log: Log, returns: Signal, lengths: Signal, envs: int) -> Log:
    """Return a log with the episodes of its Monitor in place of means of many.

    Consecutive episodes are joined to means, as many to each as leave `LEAST_POINTS` means: single
    returns of a game that is won or lost have two values, and no noise that a median would show.

    The log stays as it is if the Monitor does not hold all episodes: their lengths must add up to
    the env steps of the log, but for one episode of each environment that has not ended.
    """
    unfinished = envs * float(lengths.y.max())
    if not log.end - unfinished <= lengths.x[-1] <= (1.0 + SLACK) * log.end:
        return log
    count = max(1, len(returns.y) // LEAST_POINTS)
    how = _BY_MONITOR.format(f"{count} episodes each" if count > 1 else "single episodes")
    joined = {_RETURN: _joined(returns, count, how), _LENGTH: _joined(lengths, count, how)}
    episodes = joined[_RETURN]._replace(y=np.full(len(joined[_RETURN].y), float(count)))
    return replace(log, signals={**log.signals, **joined, "episodes": episodes})


def _joined(signal: Signal, count: int, how: str) -> Signal:
    """Return means of `count` consecutive values, at the last of each; a rest is left out."""
    whole = len(signal.y) // count * count
    x, y = (values[:whole].reshape(-1, count) for values in (signal.x, signal.y))
    return Signal(x[:, -1], y.mean(axis=1), signal.logged_as, how)
