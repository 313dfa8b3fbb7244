"""What the new scores of rows say against their references: better, worse, or not to be told.

Each row is one permutation test of the difference of means. Holm's correction counts the rows whose
scores differ, so that a change which leaves all rows equally good is called worse or better in at
most one battery of twenty. Equal scores need no test.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, final

import numpy as np

from runshelf.batteries.rows import BatteryRow
from runshelf.statistics.differences import Difference, difference
from runshelf.statistics.multiplicity import holm
from runshelf.statistics.permutation import smallest_p

LEVEL = 0.05
Word = Literal["same", "better", "worse", "cannot tell", "new", "failed"]


@final
class Verdict(NamedTuple):
    """What is known about one row.

    Attributes:
        row: the row.
        word: the verdict.
        scores: the new scores by seed, NaN for a failed seed; empty if the command failed.
        difference: new minus reference; None without both.
        p: Holm's adjusted p value; None for a row that was not tested.
        note: why it cannot be told, or why the command failed; may be empty.
    """

    row: BatteryRow
    word: Word
    scores: tuple[float, ...]
    difference: Difference | None = None
    p: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the row is as good as before, as far as can be told."""
        return self.word not in ("worse", "failed")


def judged(
    rows: Sequence[BatteryRow],
    scores: Mapping[str, Sequence[float]],
    failures: Mapping[str, str],
) -> list[Verdict]:
    """Return the verdicts on rows that were measured.

    Args:
        rows: the rows.
        scores: new scores by the name of the row, one for each seed.
        failures: why a command failed, by the name of the row.
    """
    first = {
        row.name: _untested(row, tuple(scores.get(row.name, ())), failures.get(row.name, ""))
        for row in rows
        if row.name in scores or row.name in failures
    }
    tested = {
        name: one.difference.test.p
        for name, one in first.items()
        if one.difference is not None and one.word == "cannot tell" and len(one.scores) > 1
    }
    adjusted = dict(zip(tested, holm(np.array([*tested.values()])).tolist(), strict=True))
    return [
        _tested(one, one.difference, adjusted[name], len(tested))
        if name in adjusted and one.difference is not None
        else one
        for name, one in first.items()
    ]


def _untested(row: BatteryRow, scores: tuple[float, ...], failure: str) -> Verdict:
    """Return what is known without a test; a row to be tested has a difference."""
    if failure or not any(map(math.isfinite, scores)):
        return Verdict(row, "failed", (), note=failure or "no seed has a finite score")
    if not row.scores:
        return Verdict(row, "new", scores, note="it has no reference; keep this one with --accept")
    if row.has_scores(scores):
        return Verdict(row, "same", scores)
    if not any(map(math.isfinite, row.scores)):
        return Verdict(row, "better", scores, note="every seed of the reference failed")
    better_is_higher = not row.minimise
    found = difference(np.array(scores), np.array(row.scores), higher_is_better=better_is_higher)
    if len(scores) < 2:
        return Verdict(row, "cannot tell", scores, found, note="one seed each")
    low, high = found.means.low, found.means.high
    if row.tolerance and -row.tolerance <= low and high <= row.tolerance:
        return Verdict(row, "same", scores, found, note=f"within {row.tolerance:g}")
    return Verdict(row, "cannot tell", scores, found)


def _tested(one: Verdict, found: Difference, p: float, tests: int) -> Verdict:
    change = found.means.value
    if p <= LEVEL and abs(change) > one.row.tolerance:
        is_better = (change < 0) == bool(one.row.minimise)
        return one._replace(word="better" if is_better else "worse", p=p)
    least = min(smallest_p(len(one.scores), len(one.row.scores)) * tests, 1.0)
    few = least > LEVEL
    note = f"with so few seeds no difference can be shown (smallest p {least:.2g})" if few else ""
    return one._replace(p=p, note=note)
