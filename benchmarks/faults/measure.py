"""Diagnose every run of the benchmark, and print what was found as tables.

    python benchmarks/faults/measure.py [--tuned] [--write]

Without `--tuned`, the faults and healthy runs that were held out: what is reported. `--write` puts
the tables into docs/faults.md.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cases import (
    BASES,
    CALIBRATION,
    HELD_OUT_HEALTHY,
    MOVED,
    TAUGHT,
    TAUGHT_CALIBRATION,
    TUNED,
    faulty,
)
from effect import harmful, has_effect
from fault import Case, Fault
from store import FOLDER, load

from backflip.doctor.diagnosis import Diagnosis, diagnose
from backflip.doctor.log import Log

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
LOGGED = (  # what Stable-Baselines3 and CleanRL log
    *("episode_return_mean", "episode_length_mean", "episodes", "entropy", "entropy_max"),
    *("approx_kl", "clip_fraction", "value_loss", "policy_loss", "explained_variance"),
    *("learning_rate", "q_loss", "q_mean", "epsilon", "temperature"),
)


RETURN_ALONE = frozenset(("ENV-NOTHING", "ENV-WORSE", "ENV-DROP"))  # what a person sees in a curve


class Row(NamedTuple):
    """What was found in the runs of one fault."""

    fault: Fault
    case: Case
    counts: bool
    found: float
    found_logged: float
    found_elsewhere: float
    by_return: float
    first: float
    among_three: float
    since: float


def main() -> int:
    """Print the tables, and return the exit status."""
    tuned = "--tuned" in sys.argv[1:]
    start = time.monotonic()
    rows = [row for pair in faulty() if (row := _row(*pair)) is not None]
    rows = [row for row in rows if (row.fault.family in TUNED) == tuned]
    healthy = _healthy(
        "calibration" if tuned else "healthy", CALIBRATION if tuned else HELD_OUT_HEALTHY
    )
    healthy += _healthy(
        "taughtcalibration" if tuned else "taught", TAUGHT_CALIBRATION if tuned else TAUGHT
    )
    text = "\n".join([*_summary(rows, healthy), "", *_table(rows), "", *_alarms(healthy)])
    print(text)
    print(f"\n{time.monotonic() - start:.1f} s")
    if "--write" in sys.argv[1:]:
        page = PAGE.read_text(encoding="utf-8")
        head, _, rest = page.partition("<!-- tables -->\n")
        _, _, tail = rest.partition("<!-- end of tables -->")
        PAGE.write_text(f"{head}<!-- tables -->\n{text}\n<!-- end of tables -->{tail}", "utf-8")
    return 0


def _row(fault: Fault, case: Case) -> Row | None:
    path = FOLDER / f"{fault.name}@{case.name.replace('/', '_')}.npz"
    clean = FOLDER / f"{healthy_name(case)}.npz"
    if not path.exists() or not clean.exists():
        return None
    logs, returns = load(path)
    _, expected = load(clean)
    found = [diagnose(log) for log in logs]
    logged = [diagnose(_only_logged(log)) for log in logs]
    elsewhere = [diagnose(replace(_only_logged(log), env=None)) for log in logs]
    hits = [one for one in found if one.findings]
    return Row(
        fault,
        case,
        has_effect(expected, returns),
        len(hits) / len(found),
        float(np.mean([bool(one.findings) for one in logged])),
        float(np.mean([bool(one.findings) for one in elsewhere])),
        float(np.mean([_by_return(one) for one in found])),
        float(np.mean([_rank(one, fault) == 0 for one in hits])) if hits else 0.0,
        float(np.mean([_rank(one, fault) < 3 for one in hits])) if hits else 0.0,
        float(np.median([_since(one) for one in hits])) if hits else float("nan"),
    )


def healthy_name(case: Case) -> str:
    """Return the name of the healthy run of a base case."""
    if case in BASES:
        return f"calibration-{CALIBRATION.index(case):02}"
    return f"healthy-{HELD_OUT_HEALTHY.index(case):02}"


def _only_logged(log: Log) -> Log:
    """Return the log as one of Stable-Baselines3 or CleanRL would be."""
    kept = {name: one for name, one in log.signals.items() if name in LOGGED}
    return replace(log, signals=kept)


def _by_return(one: Diagnosis) -> bool:
    """Return whether the curve of the return alone would have raised suspicion."""
    return any(m.check.id in RETURN_ALONE for m in (*one.findings, *one.warnings, *one.remarks))


def _rank(one: Diagnosis, fault: Fault) -> int:
    """Return the place of the best of the fault's causes, from 0."""
    order = [ranked.cause.id for ranked in one.causes]
    return min(order.index(cause) for cause in fault.causes if cause in order)


def _since(one: Diagnosis) -> float:
    """Return the share of the budget after which the first finding was there."""
    return min(found.since for found in one.findings) / one.log.budget


class Healthy(NamedTuple):
    """What was found in a healthy configuration."""

    case: Case
    seeds: int
    alarms: list[Diagnosis]
    warnings: int
    by_return: int


def _healthy(kind: str, cases: Sequence[Case]) -> list[Healthy]:
    found, left_out = list[Healthy](), harmful(cases, kind)
    left_out |= set(MOVED) if kind == "healthy" else set()
    for at, case in enumerate(cases):
        path = FOLDER / f"{kind}-{at:02}.npz"
        if path.exists() and at not in left_out:
            each = [diagnose(log) for log in load(path)[0]]
            alarms = [one for one in each if one.findings]
            warned = sum(bool(one.warnings) and not one.findings for one in each)
            by_return = sum(map(_by_return, each))
            found.append(Healthy(case, len(each), alarms, warned, by_return))
    return found


def _summary(rows: list[Row], healthy: list[Healthy]) -> list[str]:
    real = [row for row in rows if row.counts]
    quiet = [row for row in rows if not row.counts]
    seeds = sum(one.seeds for one in healthy)
    alarms = sum(len(one.alarms) for one in healthy)
    warned = sum(one.warnings for one in healthy)

    def mean(values: list[float]) -> str:
        return f"{np.mean(values):.1%}" if values else "-"

    early = [row.since <= 0.2 for row in real if row.found > 0.5]
    return [
        "| measured | figure |",
        "|---|---|",
        f"| faults with an effect, of all | {len(real)} of {len(rows)} |",
        f"| their seeds with a finding, all signals | {mean([row.found for row in real])} |",
        f"| the same from what other libraries log | {mean([row.found_logged for row in real])} |",
        "| the same in an environment that the doctor does not know | "
        f"{mean([row.found_elsewhere for row in real])} |",
        f"| the same by the return alone | {mean([row.by_return for row in real])} |",
        f"| true cause first, of the seeds with a finding | {mean([r.first for r in real])} |",
        f"| true cause among the first three | {mean([row.among_three for row in real])} |",
        f"| faults found before 20 % of the budget | {mean([float(one) for one in early])} |",
        f"| seeds with a finding, faults without effect | {mean([row.found for row in quiet])} |",
        f"| healthy seeds with a finding | {alarms} of {seeds} ({alarms / max(seeds, 1):.1%}) |",
        f"| the same by the return alone | {sum(one.by_return for one in healthy)} of {seeds} |",
        f"| healthy seeds with a warning only | {warned} of {seeds} |",
    ]


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| fault | run | effect | found | from logs | cause first | among three | since |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (not row.counts, row.fault.name, row.case.name)):
        cells = [f"{x:.0%}" for x in (row.found, row.found_logged, row.first, row.among_three)]
        since = "-" if np.isnan(row.since) else f"{row.since:.0%}"
        effect = "yes" if row.counts else "no"
        lines.append(
            f"| {row.fault.name} | {row.case.name} | {effect} | {' | '.join(cells)} | {since} |"
        )
    return lines


def _alarms(healthy: list[Healthy]) -> list[str]:
    lines = ["| healthy run | seeds | with a finding | checks |", "|---|---|---|---|"]
    for one in healthy:
        ids = sorted({found.check.id for alarm in one.alarms for found in alarm.findings})
        changed = ", ".join(f"{name}={value}" for name, value in one.case.settings.items())
        lines.append(
            f"| {one.case.name} {changed} | {one.seeds} | {len(one.alarms)} | {', '.join(ids)} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
