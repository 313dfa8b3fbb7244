"""Whether a change costs return."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from fault import Case
from store import FOLDER, load

SPREADS = 3.0  # a change has an effect if it costs more than so many of the larger deviation


def has_effect(clean: "np.ndarray[Any, Any]", changed: "np.ndarray[Any, Any]") -> bool:
    """Return whether the mean return falls by more than three of the larger deviation."""
    if not np.isfinite(changed).all():
        return True
    spread = max(float(clean.std(ddof=1)), float(changed.std(ddof=1)))
    return float(clean.mean() - changed.mean()) > SPREADS * spread


def harmful(cases: Sequence[Case], kind: str) -> set[int]:
    """Return the places of the cases whose settings cost return, against the first of their kind.

    A setting that costs as much as a fault is one: such a run is not healthy.
    """
    found = set[int]()
    for at, case in enumerate(cases):
        first = next(n for n, one in enumerate(cases) if (one.name == case.name))
        paths = [FOLDER / f"{kind}-{number:02}.npz" for number in (first, at)]
        if first != at and all(path.exists() for path in paths):
            clean, changed = (load(path)[1] for path in paths)
            if has_effect(clean, changed):
                found.add(at)
    return found
