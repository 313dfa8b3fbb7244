"""Measure what healthy runs reach in known environments, and write it where the doctor reads it.

    python benchmarks/faults/healthy_returns.py

`collect.py 'reference-*' 'calibration-*'` makes the runs; of the calibration, those with default
settings count. A case is left out, and named, if a seed is never half of the way, or if what they
learn is not more than three deviations of the final return. Where the runs are not there, what was
measured before stays.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import CALIBRATION, REFERENCE
from effect import SPREADS
from fault import Case
from store import FOLDER, load

from backflip.doctor.healthy_returns import FILE
from backflip.doctor.log import Log
from backflip.doctor.measures import smoothed
from runshelf.comparison.references import KNOWN

WINDOW = 0.1  # of the points: the first episodes to end are the short ones, not the typical ones


def main() -> int:
    """Write what was reached, and return the exit status."""
    found: dict[str, dict[str, list[float]]] = json.loads(FILE.read_text(encoding="utf-8"))
    for name, case in _runs():
        path = FOLDER / f"{name}.npz"
        if not path.exists():
            print(f"{case.name}: not trained here")
            continue
        measured = _measure(*load(path))
        if measured is None:
            print(f"{case.name}: healthy seeds do not all learn it")
            found.get(case.env, {}).pop(case.algorithm, None)
            continue
        found.setdefault(case.env, {})[case.algorithm] = [float(f"{x:.5g}") for x in measured]
        print(
            f"{case.name}: untrained {measured[0]:.1f}, reached {measured[1]:.1f}, half of the "
            f"way after {measured[2]:.0f} of {case.env_steps} env steps"
        )
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def _runs() -> Iterator[tuple[str, Case]]:
    yield from ((f"reference-{at:02}", case) for at, case in enumerate(REFERENCE))
    known = {(case.algorithm, case.env) for case in REFERENCE}
    for at, case in enumerate(CALIBRATION):
        if not case.settings and (case.algorithm, case.env) not in known:
            yield f"calibration-{at:02}", case


def _measure(logs: list[Log], returns: "np.ndarray[Any, Any]") -> tuple[float, ...] | None:
    """Return the untrained return, the median of the final ones, and when the slowest is half way.

    Of an environment without a known untrained return, the first values of the logs are taken.
    """
    curves = [smoothed(log, log.signals["episode_return_mean"], WINDOW) for log in logs]
    known = KNOWN.get(logs[0].env or "")
    untrained = known.low if known else float(np.median([curve.value[0] for curve in curves]))
    reached = float(np.median([curve.value[-1] for curve in curves]))
    half = (untrained + reached) / 2
    passed = [curve.x[curve.value >= half] for curve in curves]
    spread = float(np.std([curve.value[-1] for curve in curves], ddof=1))
    if not all(len(x) for x in passed) or reached - untrained <= SPREADS * spread:
        return None
    return untrained, reached, max(float(x[0]) for x in passed)


if __name__ == "__main__":
    sys.exit(main())
