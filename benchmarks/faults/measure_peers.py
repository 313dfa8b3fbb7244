"""Diagnose every run of Stable-Baselines3 and of CleanRL, and print what was found as tables.

    python benchmarks/faults/measure_peers.py [--write]

`--write` puts the tables into docs/faults.md.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
from collect_peers import kept_as
from peers import cleanrl_faults, sb3_faults
from store import load
from tables import Healthy, Returns, Row, alarms, misses, put, row, summary, table

from backflip.doctor.diagnosis import Diagnosis, diagnose

SB3_SIGNALS = (
    "the callback's file",
    "`progress.csv` alone",
    "`progress.csv` and the Monitor's files",
)
CLEANRL_SIGNALS = (
    "a callback (CleanRL has none)",
    "the event files",
    "the event files, in an environment that the doctor does not know",
)
Found = Sequence[Diagnosis]


def main() -> int:
    """Print the tables, and return the exit status."""
    start = time.monotonic()
    sb3 = _text(
        sb3_faults.faulty(),
        sb3_faults.HEALTHY,
        SB3_SIGNALS,
        lambda name: diagnoses(name, "monitored"),
    )
    cleanrl = _text(cleanrl_faults.faulty(), cleanrl_faults.HEALTHY, CLEANRL_SIGNALS, _without_env)
    print(f"{sb3}\n\n{cleanrl}\n\n{time.monotonic() - start:.1f} s")
    if "--write" in sys.argv[1:]:
        # A library without logs of its faults keeps its table.
        put({name: text for name, text in (("sb3", sb3), ("cleanrl", cleanrl)) if text})
    return 0


def _text(
    pairs: Iterable[tuple[Any, Any]],
    healthy: Iterable[Any],
    signals: tuple[str, str, str],
    of_others: Callable[[str], Found],
) -> str:
    rows = [found for pair in pairs if (found := _row(*pair, of_others)) is not None]
    sound = [found for of in healthy for found in _healthy(of.name)]
    if not rows:
        return ""
    first = summary(rows, sound, signals)
    if not all(np.isnan(one.found) for one in rows):
        either = [_either(f"{one.fault}@{one.run}") for one in rows if one.counts]
        first.append(
            "| seeds of faults with an effect with a finding in either file | "
            f"{np.mean(either):.1%} |"
        )
    return "\n".join([*first, "", *misses(rows), "", *table(rows), "", *alarms(sound)])


def _either(name: str) -> float:
    """Return the share of the seeds with a finding in one of their files."""
    pairs = zip_longest(diagnoses(name, "files"), diagnoses(name, "callback"))
    return float(np.mean([any(one.findings for one in pair if one) for pair in pairs]))


def _row(fault: Any, of: Any, of_others: Callable[[str], Found]) -> Row | None:
    name = f"{fault.name}@{of.name}"
    if not kept_as(name, "files").exists() or not kept_as(of.name, "files").exists():
        return None
    logged, other = diagnoses(name, "files"), of_others(name)
    returns = _returns(of.name), _returns(name)
    names = fault.name, of.name
    return row(names, fault.causes, returns, diagnoses(name, "callback"), logged, other)


def _healthy(name: str) -> list[Healthy]:
    kinds = {
        "files": "its own files",
        "monitored": "and the Monitor's",
        "callback": "the callback",
    }
    found = {text: diagnoses(name, kind) for kind, text in kinds.items()}
    return [Healthy(f"{name}: {text}", each) for text, each in found.items() if each]


@cache
def diagnoses(name: str, kind: str) -> Found:
    """Return the diagnosis of each seed of a run from one kind of its files."""
    path = kept_as(name, kind)
    return [diagnose(log) for log in load(path)[0]] if path.exists() else []


def _without_env(name: str) -> Found:
    return [diagnose(replace(log, env=None)) for log in load(kept_as(name, "files"))[0]]


def _returns(name: str) -> Returns:
    return load(kept_as(name, "files"))[1]


if __name__ == "__main__":
    sys.exit(main())
