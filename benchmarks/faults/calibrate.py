"""Measure the limits of the doctor's checks on healthy runs, and write them where it reads them.

    python benchmarks/faults/calibrate.py [GLOB ...]

`collect.py '*calibration-*'` and `collect_peers.py 'calibration-*'` make the runs. Checks with a
limit of their own are left out, and so are runs whose settings cost return: these are not healthy.
With GLOB only the runs of these names are read, and kinds of other runs keep their limits.
"""

import json
import math
import sys
from collections import defaultdict
from fnmatch import fnmatch
from statistics import median

from cases import CALIBRATION, MOVED, TAUGHT_CALIBRATION
from harmful_settings import harmful
from peers.sb3_faults import calibration
from store import FOLDER, load

from backflip.doctor.calibration import FILE, OTHERS, OURS, kind_of
from backflip.doctor.catalogue import CHECKS
from backflip.doctor.diagnosis import FEWEST, against, run_check
from backflip.doctor.log import Log


def main() -> int:
    """Write the calibration, and return the exit status."""
    worst: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    left_out = harmful(CALIBRATION, "calibration")
    names = [f"calibration-{at:02}" for at in range(len(CALIBRATION)) if at not in left_out]
    names += [f"healthy-{at:02}" for at in MOVED]
    names += [f"taughtcalibration-{at:02}" for at in range(len(TAUGHT_CALIBRATION))]
    names += [f"peers/{name}.{kind}" for name in calibration() for kind in ("files", "callback")]
    globs = sys.argv[1:]
    for name in names:
        if globs and not any(fnmatch(name, glob) for glob in globs):
            continue
        path = FOLDER / f"{name}.npz"
        if not path.exists():
            continue
        for log in load(path)[0]:
            if max((len(one.x) for one in log.signals.values()), default=0) < FEWEST:
                continue
            for check in CHECKS:
                if check.limit is not None or not check.applies_to(log):
                    continue
                running = run_check(check, log) if log.has(*check.needs) else None
                if running is not None:
                    value = against(check, running, math.nan).value
                    worst[_kind(log)][check.id].append(value)
    healthy = {
        kind: {
            check.id: _summary(values[check.id], check.bad_side)
            for check in CHECKS
            if check.id in values
        }
        for kind, values in sorted(worst.items())
    }
    if globs:
        healthy = json.loads(FILE.read_text(encoding="utf-8"))["healthy"] | healthy
    FILE.write_text(
        json.dumps({"healthy": dict(sorted(healthy.items()))}, indent=1) + "\n", encoding="utf-8"
    )
    print(f"left out: {sorted(left_out)}")
    print(f"{FILE.name}: {', '.join(f'{kind} {len(of)} checks' for kind, of in healthy.items())}")
    return 0


def _kind(log: Log) -> str:
    return kind_of(log) if log.library == OURS else f"{kind_of(log)}{OTHERS}sb3"


def _summary(values: list[float], side: str) -> list[float]:
    extreme = max(values) if side == "above" else min(values)
    return [len(values), float(f"{extreme:.5g}"), float(f"{median(values):.5g}")]


if __name__ == "__main__":
    sys.exit(main())
