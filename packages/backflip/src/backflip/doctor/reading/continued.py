"""Joins the log of a continued training run to the logs of the runs that it continues.

Many signs are changes since the training run began, and shares of its budget. So the doctor reads a
run of `--more` together with its parents.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from backflip.doctor.log import CORES, CPU_USE, GPU_USE, LOAD, Log, Signal
from backflip.training.parents import CONTINUES
from runshelf.errors import UserFacingError
from runshelf.store.run import Run, open_run
from runshelf.store.run_ids import is_ulid

MOST_PARENTS = 100  # a received run may name more
# A child is another process, maybe on another machine.
OF_THE_PROCESS = {CORES, CPU_USE, GPU_USE, LOAD, "env_steps_per_second", "memory_mib", "seconds"}


def began_at(config: Mapping[str, Any]) -> float:
    """Return the env steps that the parents of a run had done; 0 without parents."""
    done = config.get(CONTINUES)
    env_steps = done.get("env_steps") if isinstance(done, dict) else 0
    return float(env_steps) if isinstance(env_steps, int) else 0.0


def parents_of(run: Run) -> Iterator[Run]:
    """Yield the runs that a run continues, the newest first, as far as they are in its folder."""
    for _ in range(MOST_PARENTS):
        parent = run.manifest.get("parent")
        if not isinstance(parent, str) or not is_ulid(parent) or parent >= run.ulid:
            return
        if not began_at(run.manifest["config"]):
            return
        try:
            run = open_run(run.folder.parent / parent)
        except UserFacingError:
            return
        yield run


def joined(log: Log, earlier: Log) -> Log:
    """Return the log of a whole training run: `earlier`, until `log` begins, and then `log`.

    Labels are copied into a child: a signal that begins earlier than the log is not joined.
    """
    signals = dict(log.signals)
    for name, one in earlier.signals.items():
        if name in OF_THE_PROCESS:
            continue
        before = one.x <= log.began_at
        own = signals.get(name, Signal(one.x[:0], one.y[:0], one.logged_as))
        if len(own.x) == 0 or own.x[0] > log.began_at:
            x = np.concatenate([one.x[before], own.x])
            signals[name] = own._replace(x=x, y=np.concatenate([one.y[before], own.y]))
    return replace(log, signals=signals, began_at=earlier.began_at)
