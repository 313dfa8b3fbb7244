"""Seeds that end before the others: from there on, a mean is over fewer seeds."""

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool

from runshelf.durations import duration
from runshelf.formatting import number
from runshelf.web.drawing.alignment import Aligned, Member
from runshelf.web.sanitize import clean

# A seed that ends within this share of the axis before the last one ends with it.
_NEAR = 0.02
_MOST_NAMED = 3


@final
class SeedEnd(NamedTuple):
    """A seed that ends before the others, and where."""

    label: str
    x: float


def early_ends(members: Sequence[Member]) -> list[SeedEnd]:
    """Return the seeds whose values end before those of the longest seed, the earliest first."""
    found: list[SeedEnd] = []
    for member in members:
        known = member.x[np.isfinite(member.x) & np.isfinite(member.y)]
        if len(known):
            found.append(SeedEnd(member.label, max(float(known[-1]), _end_without_values(member))))
    starts = [float(member.x[0]) for member in members if len(member.x)]
    if not found:
        return []
    last = max(end.x for end in found)
    near = _NEAR * (last - min(starts))
    return sorted((end for end in found if end.x < last - near), key=lambda end: end.x)


def _end_without_values(member: Member) -> float:
    """Return the end of a seed whose last records had nothing to measure, as no episode ended.

    A curve that ends with NaN or infinity ends at its last finite value.
    """
    return member.end if np.isfinite(member.y[-1]) else -math.inf


def fewer_seeds(aligned: Aligned) -> Bool[np.ndarray, " grid"]:
    """Return where fewer seeds have a value than have values at all."""
    there = np.isfinite(aligned.values)
    return there.sum(axis=0) < there.any(axis=1).sum()


def ends_note(ends: Sequence[SeedEnd], seeds: int, *, clock: bool = False) -> str:
    """Return a remark for the legend: where seeds end, and what the mean is from there on.

    Args:
        ends: the seeds that end early, the earliest first.
        seeds: the number of all seeds.
        clock: whether positions are seconds.
    """
    text = duration if clock else number
    named = [f"{clean(end.label, 60)} ends at {text(end.x)}" for end in ends[:_MOST_NAMED]]
    more = f", {len(ends) - _MOST_NAMED} more end later" if len(ends) > _MOST_NAMED else ""
    rest = seeds - len(ends)
    return f"{', '.join(named)}{more}: the thin line is the mean of fewer seeds, {rest} at the end"
