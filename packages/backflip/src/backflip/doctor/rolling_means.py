"""Returns that are logged as means of the last episodes: their neighbours are not independent."""

import math

import numpy as np

from backflip.doctor.log import Log, Signal

WINDOW = 100  # episodes that Stable-Baselines3 and RLlib average
ROLLING = ("sb3", "rllib")  # what is logged there
FIRST = 3  # values that a return is compared with
QUARTER, NORMAL = 0.25, 3.1383  # of normal values, a quarter is closer than σ / 3.1383 to the mean


def error_of_change(log: Log, signal: Signal) -> float:
    """Return the deviation of a late mean from an early one if nothing was learned; 0 if unknown.

    It is 0, too, where the values are not such means: then their number of episodes is known.

        σ √(1 / n + 1 / W),   σ = s W / √(2 k)

    W is `WINDOW` and n the episodes in the first values. Values k episodes apart, at most W / 2,
    differ by k new and k old episodes, so that s, the deviation of their difference from its
    median, is σ √(2 k) / W, with σ that of a single return.
    """
    known = np.isfinite(signal.y)
    x, y = signal.x[known], signal.y[known]
    rolls = log.library in ROLLING and not log.has("episodes")
    if not rolls or not log.has("episode_length_mean") or len(x) < 2 * FIRST:
        return 0.0
    lengths = log.signals["episode_length_mean"]
    length = np.interp(x, lengths.x, np.maximum(np.nan_to_num(lengths.y, nan=1.0), 1.0))
    between = max(float(np.median(np.diff(x) / length[1:])), 1e-9)
    apart = int(np.clip(round(WINDOW / 2 / between), 1, len(x) // 4))
    change = y[apart:] - y[:-apart]
    # While it learns, the return moves more than by chance: the quiet quarter of the run counts.
    spread = NORMAL * float(np.quantile(np.abs(change - np.median(change)), QUARTER))
    one = spread * WINDOW / math.sqrt(2.0 * min(apart * between, WINDOW))
    first = min(max(float(x[FIRST // 2] / length[FIRST // 2]), 1.0), WINDOW)
    return one * math.sqrt(1.0 / first + 1.0 / WINDOW)
