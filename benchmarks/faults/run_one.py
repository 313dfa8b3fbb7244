"""Train one run of the benchmark by its name, and keep its log. `collect.py` calls this.

python benchmarks/faults/run_one.py NAME FILE
"""

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from cases import (
    CALIBRATION,
    HELD_OUT_HEALTHY,
    REFERENCE,
    SEEDS,
    TAUGHT,
    TAUGHT_CALIBRATION,
    faulty,
    faulty_teaching,
)
from fault import Case, Fault, broken
from store import save

from backflip.teaching_api import teach
from backflip.training.result import Result
from backflip.training.train import train
from runshelf.errors import UserFacingError
from runshelf.store.finding import find_run


def find(name: str) -> tuple[Fault | None, Case, int]:
    """Return the fault, the case and the first seed of a run."""
    kind, _, number = name.partition("-")
    if kind == "calibration" and number.isdigit():
        return None, CALIBRATION[int(number)], 0
    if kind == "healthy" and number.isdigit():
        return None, HELD_OUT_HEALTHY[int(number)], 1000
    if kind == "reference":
        return None, REFERENCE[int(number)], 7000
    if kind == "taughtcalibration":
        return None, TAUGHT_CALIBRATION[int(number)], 3000
    if kind == "taught":
        return None, TAUGHT[int(number)], 4000
    pairs = (*faulty(), *faulty_teaching())
    return next((f, c, 2000) for f, c in pairs if f"{f.name}@{c.name}" == name)


def _learn(case: Case, settings: dict[str, Any], first: int, home: str) -> Result:
    common: dict[str, Any] = {
        "seeds": SEEDS,
        "first_seed": first,
        "env_steps": case.env_steps,
        "settings": settings,
        "home": home,
    }
    if case.labels:
        return teach(case.env, algorithm=case.algorithm, labels=case.labels, **common)
    return train(case.algorithm, case.env, **common)


def main() -> int:
    """Train, keep the log, and return the exit status."""
    fault, case, first = find(sys.argv[1])
    settings = {**case.settings, **(fault.settings if fault else {})}
    with tempfile.TemporaryDirectory() as home:
        returns = [float("nan")] * SEEDS
        with broken(fault) if fault else contextlib.nullcontext():
            try:
                returns = _learn(case, settings, first, home).returns
            except UserFacingError as error:
                if "not finite" not in str(error) and "finite number" not in str(error):
                    raise
        save(Path(sys.argv[2]), find_run(Path(home), "latest").folder, returns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
