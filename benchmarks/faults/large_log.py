"""Time the diagnosis of a log with a million points: a run of ours, an event file, a CSV file.

python benchmarks/faults/large_log.py
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import LOGGED

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import Log, Signal
from backflip.doctor.reading.log_files import logs_in
from runshelf.interop.event_files import scalar_event, version_event

POINTS = 40_000
MORE = (
    *("first_ratio_error", "explained_variance_mc", "value_mean", "advantage_mean"),
    *("advantage_std", "reward_mean", "reward_min", "reward_max", "grad_norm", "update_ratio"),
)
# What Stable-Baselines3 logs.
TAGS = (
    *("rollout/ep_len_mean", "rollout/ep_rew_mean", "time/fps", "train/approx_kl"),
    *("train/clip_fraction", "train/clip_range", "train/entropy_loss", "train/loss"),
    *("train/explained_variance", "train/learning_rate", "train/policy_gradient_loss"),
    *("train/std", "train/value_loss"),
)
ITERATIONS = 1_000_000 // len(TAGS)


def main() -> int:
    """Print the times, and return the exit status."""
    rng = np.random.default_rng(0)
    x = np.arange(1, POINTS + 1) * 100.0
    signals = {name: Signal(x, rng.random(POINTS), name) for name in (*LOGGED, *MORE)}
    log = Log("large", "backflip", signals, algorithm="ppo", settings={"discount": 0.99})
    _time(f"a run of ours, {len(signals) * POINTS:,} points", lambda: log)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "events.out.tfevents.1.host").write_bytes(_event_file(rng))
        said = f"an event file, {ITERATIONS * len(TAGS):,} points"
        _time(said, lambda: logs_in(Path(folder), {})[0])
        table = Path(folder) / "progress.csv"
        table.write_text(_csv_file(rng))
        said = f"a CSV file, {ITERATIONS * len(TAGS):,} points"
        _time(said, lambda: logs_in(table, {})[0])
    return 0


def _time(what: str, read: Callable[[], Log]) -> None:
    start = time.perf_counter()
    log = read()
    was_read = time.perf_counter()
    found = diagnose(log)
    end = time.perf_counter()
    checks = len(found.findings) + len(found.warnings) + len(found.fine)
    read_in, all_in = was_read - start, end - start
    print(f"{what}, {checks} checks: {all_in:.2f} s, of which reading {read_in:.2f} s")


def _event_file(rng: np.random.Generator) -> bytes:
    """Return an event file of random numbers: all tags, iteration after iteration."""
    records = [
        scalar_event(1.7e9 + iteration / 10, 2048 * iteration, [(tag, number)])
        for iteration, row in enumerate(rng.random((ITERATIONS, len(TAGS))), 1)
        for tag, number in zip(TAGS, row.tolist(), strict=True)
    ]
    return b"".join([version_event(1.7e9), *records])


def _csv_file(rng: np.random.Generator) -> str:
    """Return a CSV file of random numbers, with env steps in its first column."""
    lines = [
        ",".join([str(2048 * iteration), *map(str, row.tolist())])
        for iteration, row in enumerate(rng.random((ITERATIONS, len(TAGS))), 1)
    ]
    return "\n".join([",".join(["time/total_timesteps", *TAGS]), *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
