"""The limits of checks that are calibrated: what healthy runs showed, with a margin.

`calibration.json` holds, for each kind of run and each check, the worst and the typical value of
healthy runs. `benchmarks/faults/calibrate.py` measures them. The limit is

    worst ± max(MARGIN |worst - typical|, the check's least margin)

of the runs of the same kind, away from the typical run. Kinds are the algorithm and the kind of
actions, as `ppo/discrete`; runs of `teach` are `ppo+teach/discrete`, runs of Stable-Baselines3
`ppo/discrete@sb3`. Few runs of other libraries and of `teach` were measured: these get the most
lenient limit of the algorithm, and without any of the algorithm, that of all kinds. Runs of other
libraries set no limit for ours.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, final

from backflip.doctor.check import Check
from backflip.doctor.log import Log

FILE = Path(__file__).with_name("calibration.json")
MARGIN = 0.25
TAUGHT = "+teach"
OURS = "backflip"
OTHERS = "@"  # before the name of another library


@final
class Healthy(NamedTuple):
    """What a check measured in healthy runs of one kind.

    Attributes:
        runs: the number of runs, one per seed.
        worst: the value closest to the bad side, over all runs.
        typical: the median over the runs of their worst values.
    """

    runs: int
    worst: float
    typical: float


Calibration = Mapping[str, Mapping[str, Healthy]]


@cache
def calibration() -> Calibration:
    """Return the shipped measurements: by kind of run, then by check."""
    loaded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        kind: {check: Healthy(*values) for check, values in checks.items()}
        for kind, checks in loaded["healthy"].items()
    }


def kind_of(log: Log) -> str:
    """Return the kind of a run: its algorithm, whether of `teach`, and the kind of its actions."""
    counted = log.setting("actions") is not None
    discrete = log.has("entropy_max") or log.algorithm == "dqn" or counted
    taught = TAUGHT if log.teaches else ""
    return f"{log.algorithm or 'unknown'}{taught}/{'discrete' if discrete else 'continuous'}"


def limit_of(check: Check, log: Log, known: Calibration | None = None) -> float | None:
    """Return the limit of a check for a log.

    None if nothing was measured that could set one, or if healthy runs showed everything up to the
    worst value that can be measured.
    """
    if check.limit is not None:
        return check.limit
    chosen = _chosen(check, log, calibration() if known is None else known)
    limits = [beyond(check, one) for one in chosen.values()]
    if not limits:
        return None
    limit = max(limits) if check.bad_side == "above" else min(limits)
    return limit if can_be_crossed(check, limit) else None


def can_be_crossed(check: Check, limit: float) -> bool:
    """Return whether a number can be beyond a limit: it is not if healthy runs reach the worst."""
    if check.extreme is None:
        return True
    return limit < check.extreme if check.bad_side == "above" else limit > check.extreme


def why_no_limit(check: Check, log: Log, known: Calibration | None = None) -> str:
    """Return why a calibrated check has no limit for a log."""
    if _chosen(check, log, calibration() if known is None else known):
        return "healthy runs of this kind show all that it can measure"
    return "no healthy run of this kind was measured"


def kinds_in_words(check: Check, log: Log) -> str:
    """Return the kinds of healthy runs that set the limit of a calibrated check."""
    chosen = _chosen(check, log, calibration())
    algorithms = {kind.partition("/")[0].removesuffix(TAUGHT) for kind in chosen}
    if len(chosen) == 1:
        return f"the kind {next(iter(chosen))}"
    return f"the algorithm {algorithms.pop()}" if len(algorithms) == 1 else "all algorithms"


def _chosen(check: Check, log: Log, known: Calibration) -> Mapping[str, Healthy]:
    """Return what sets the limit of a check for a log, by kind of run."""
    kinds = {
        kind: of[check.id]
        for kind, of in known.items()
        if check.id in of
        and (log.teaches or TAUGHT not in kind)
        and (log.library != OURS or OTHERS not in kind)
    }
    names = (log.algorithm, f"{log.algorithm}{TAUGHT}")
    alike = {kind: one for kind, one in kinds.items() if kind.partition("/")[0] in names}
    if check.is_pooled or not alike:
        return kinds
    own = kind_of(log)
    return {own: kinds[own]} if _is_as_measured(log) and own in kinds else alike


def _is_as_measured(log: Log) -> bool:
    """Return whether a run is like those of the calibration: of ours, with the true reward."""
    return log.library == OURS and not log.teaches


def beyond(check: Check, healthy: Healthy) -> float:
    """Return the limit that healthy runs of one kind set."""
    margin = max(MARGIN * abs(healthy.worst - healthy.typical), check.least_margin)
    return healthy.worst + margin if check.bad_side == "above" else healthy.worst - margin
