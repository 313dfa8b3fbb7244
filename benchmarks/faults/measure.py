"""Diagnose every run of the benchmark, and print what was found as tables.

    python benchmarks/faults/measure.py [--tuned] [--write]

Without `--tuned`, the faults and healthy runs that were held out: what is reported. `--write` puts
the tables into docs/faults.md.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cases import (
    BASES,
    CALIBRATION,
    HELD_OUT_HEALTHY,
    MOVED,
    TAUGHT,
    TAUGHT_CALIBRATION,
    TUNED,
    faulty,
    faulty_teaching,
)
from fault import Case, Fault
from harmful_settings import harmful
from store import FOLDER, load
from tables import Healthy, Row, alarms, put, row, summary, table

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import Log

LOGGED = (  # what Stable-Baselines3 and CleanRL log
    *("episode_return_mean", "episode_length_mean", "episodes", "entropy", "entropy_max"),
    *("approx_kl", "clip_fraction", "value_loss", "policy_loss", "explained_variance"),
    *("learning_rate", "q_loss", "q_mean", "epsilon", "temperature"),
)
NAMES = (
    "all signals",
    "what other libraries log",
    "what they log, in an environment that the doctor does not know",
)


def main() -> int:
    """Print the tables, and return the exit status."""
    tuned = "--tuned" in sys.argv[1:]
    start = time.monotonic()
    pairs = [pair for pair in faulty() if (pair[0].family in TUNED) == tuned]
    rows = [found for pair in pairs if (found := _row(*pair)) is not None]
    healthy = _healthy(
        "calibration" if tuned else "healthy", CALIBRATION if tuned else HELD_OUT_HEALTHY
    )
    healthy += _healthy(
        "taughtcalibration" if tuned else "taught", TAUGHT_CALIBRATION if tuned else TAUGHT
    )
    text = "\n".join([*summary(rows, healthy, NAMES), "", *table(rows), "", *alarms(healthy)])
    of_teaching = _taught_rows()
    taught = "\n".join(table(of_teaching))
    print(text, taught, sep="\n\n")
    alarms_of_moved = list(_alarms_of_moved()) or ["  none"]
    print("\nfindings in healthy runs of the calibration:", *alarms_of_moved, sep="\n")
    print(f"\n{time.monotonic() - start:.1f} s")
    if "--write" in sys.argv[1:]:
        # Without their logs, the table of the faults of teaching stays as it is.
        put({"tables": text} | ({"teaching": taught} if of_teaching else {}))
    return 0


def _row(fault: Fault, case: Case) -> Row | None:
    path = FOLDER / f"{fault.name}@{case.name.replace('/', '_')}.npz"
    clean = FOLDER / f"{healthy_name(case)}.npz"
    if not path.exists() or not clean.exists():
        return None
    logs, returns = load(path)
    return row(
        (fault.name, case.name),
        fault.causes,
        (load(clean)[1], returns),
        [diagnose(log) for log in logs],
        [diagnose(_only_logged(log)) for log in logs],
        [diagnose(replace(_only_logged(log), env=None)) for log in logs],
    )


def _taught_rows() -> list[Row]:
    """Return what was found in the faults of teaching; other libraries log nothing of the kind."""
    found = list[Row]()
    for fault, case in faulty_teaching():
        path, clean = FOLDER / f"{fault.name}@{case.name}.npz", FOLDER / f"{healthy_name(case)}.npz"
        if path.exists() and clean.exists():
            logs, returns = load(path)
            both = load(clean)[1], returns
            each = [diagnose(log) for log in logs]
            found.append(row((fault.name, case.name), fault.causes, both, each, [], []))
    return found


def healthy_name(case: Case) -> str:
    """Return the name of the healthy run of a base case."""
    if case in TAUGHT:
        return f"taught-{TAUGHT.index(case):02}"
    if case in BASES:
        return f"calibration-{CALIBRATION.index(case):02}"
    return f"healthy-{HELD_OUT_HEALTHY.index(case):02}"


def _only_logged(log: Log) -> Log:
    """Return the log as one of Stable-Baselines3 or CleanRL would be."""
    kept = {name: one for name, one in log.signals.items() if name in LOGGED}
    return replace(log, signals=kept)


def _healthy(kind: str, cases: Sequence[Case]) -> list[Healthy]:
    found, left_out = list[Healthy](), harmful(cases, kind)
    left_out |= set(MOVED) if kind == "healthy" else set()
    for at, case in enumerate(cases):
        path = FOLDER / f"{kind}-{at:02}.npz"
        if path.exists() and at not in left_out:
            changed = ", ".join(f"{name}={value}" for name, value in case.settings.items())
            each = [diagnose(log) for log in load(path)[0]]
            found.append(Healthy(f"{case.name} {changed}".strip(), each))
    return found


def _alarms_of_moved() -> Iterator[str]:
    """Yield the findings in healthy runs that belong to the calibration, which no table shows."""
    for at in MOVED:
        path = FOLDER / f"healthy-{at:02}.npz"
        for log in load(path)[0] if path.exists() else ():
            ids = [one.check.id for one in diagnose(log).findings]
            if ids:
                yield f"  {HELD_OUT_HEALTHY[at].name}, seed {log.seed}: {', '.join(ids)}"


if __name__ == "__main__":
    sys.exit(main())
