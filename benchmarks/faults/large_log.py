"""Time the diagnosis of a log with a million points: 25 signals of 40,000 updates.

python benchmarks/faults/large_log.py
"""

import sys
import time

import numpy as np
from measure import LOGGED

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import Log, Signal

POINTS = 40_000
MORE = (
    *("first_ratio_error", "explained_variance_mc", "value_mean", "advantage_mean"),
    *("advantage_std", "reward_mean", "reward_min", "reward_max", "grad_norm", "update_ratio"),
)


def main() -> int:
    """Print the time, and return the exit status."""
    rng = np.random.default_rng(0)
    x = np.arange(1, POINTS + 1) * 100.0
    signals = {name: Signal(x, rng.random(POINTS), name) for name in (*LOGGED, *MORE)}
    log = Log("large", "backflip", signals, algorithm="ppo", settings={"discount": 0.99})
    start = time.perf_counter()
    found = diagnose(log)
    seconds = time.perf_counter() - start
    checks = len(found.findings) + len(found.warnings) + len(found.fine)
    print(f"{len(signals) * POINTS:,} points, {checks} checks: {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
