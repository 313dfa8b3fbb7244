"""Settings of healthy cases that cost return, so that these runs are not healthy."""

from collections.abc import Sequence

from effect import has_effect
from fault import Case
from store import FOLDER, load


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
