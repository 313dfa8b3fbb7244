"""The number of queries after each phase. Needs no JAX."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FIRST_SHARE = 0.25  # of all labels, on clips of a random policy: arXiv:1706.03741, appendix A.1
HALVED_AFTER = 0.25  # of all phases, after which the rate has halved
LAST_SHARE = 0.4  # of all phases, at the end, without queries
MOST_SOONER = 3  # times the planned queries of a round, so that labels still show later behaviour


class Due(NamedTuple):
    """The number of queries before phase 1, after phase 1, ..., after the last but one.

    Attributes:
        every: all queries.
        fresh: the fresh pairs among them.
    """

    every: list[int]
    fresh: list[int]

    @property
    def others(self) -> list[int]:
        """The queries that are not fresh pairs."""
        return [every - fresh for every, fresh in zip(*self, strict=True)]

    def sooner(self, number: int, wanted: int, asked: int = 0, unit: int = 1) -> "Due":
        """Return the queries if round `number` may have more: those of the last rounds come sooner.

        The round gets up to `wanted` queries, at most `MOST_SOONER` times as many as planned. Fresh
        pairs come sooner in rounds that have no other queries.

        Args:
            number: a round, from 0; there may be none of this number.
            wanted: queries of the round.
            asked: those that a stopped process made, with the fresh pairs that it had not made yet.
            unit: queries that are asked together, of those that are not fresh pairs.
        """
        planned = sum(self.every[number : number + 1])
        return self.with_at_least(number, max(asked, min(wanted, MOST_SOONER * planned)), unit)

    def with_at_least(self, number: int, wanted: int, unit: int = 1) -> "Due":
        """Return the queries if round `number` has `wanted`, as far as the last rounds have enough.

        A round without queries stays so.

        Args:
            number: a round, from 0; there may be none of this number.
            wanted: queries of the round.
            unit: queries that are asked together, of those that are not fresh pairs.
        """
        more = wanted - sum(self.every[number : number + 1])
        others, fresh = self.others, self.fresh
        if sum(others[number : number + 1]):
            others = _brought_forward(others, number, more, unit)
        elif sum(fresh[number : number + 1]):
            fresh = _brought_forward(fresh, number, more)
        return Due([sum(both) for both in zip(others, fresh, strict=True)], fresh)


def _brought_forward(counts: Sequence[int], number: int, more: int, unit: int = 1) -> list[int]:
    """Return the counts of rounds if one has `more`, in whole units, that the last ones lose."""
    later = list(counts[number + 1 :])
    more = left = max(0, min(more, sum(later)) // unit * unit)
    for place in reversed(range(len(later))):
        taken = min(left, later[place])
        later[place], left = later[place] - taken, left - taken
    return [*counts[:number], counts[number] + more, *later]


def queries_due(
    count: int,
    phases: int,
    unit: int,
    fresh_share: float,
    *,
    learns_first: bool = False,
    explores_first: bool = False,
) -> Due:
    """Return the queries of each round.

    Args:
        count: the total number of queries; below 0 is none: a child may have more open queries of
            its parent than it asks for.
        phases: the number of training phases, at least 1.
        unit: queries that are asked together.
        fresh_share: share of the queries that are fresh pairs.
        learns_first: whether there are no queries before phase 1.
        explores_first: whether phase 1 explores; then its behaviour is not checked by fresh pairs.
    """
    count = max(count, 0)
    pairs = round(fresh_share * count) if phases > 1 + explores_first else 0
    fresh = [0] * explores_first + fresh_schedule(pairs, phases - explores_first)
    later = phases - learns_first
    others = label_schedule(count - sum(fresh), later, unit) if later else []
    others = [0] * learns_first + others
    return Due([sum(both) for both in zip(others, fresh, strict=True)], fresh)


def label_schedule(labels: int, phases: int, unit: int = 1) -> list[int]:
    """Return the number of queries before phase 1, after phase 1, ..., after the last but one.

    A quarter comes first; then the rate falls as c / (c + p) after p phases (arXiv:1706.03741,
    appendix A.1). The last two fifths of the phases have no queries, so that the policy has time
    to learn from the last labels.

    Args:
        labels: the total number of queries.
        phases: the number of training phases, at least 1.
        unit: queries that are asked together; what is left over comes first.
    """
    if unit > 1:
        rounds = [unit * count for count in label_schedule(labels // unit, phases)]
        return [rounds[0] + labels % unit, *rounds[1:]]
    if phases == 1 or labels < 1:
        return [max(labels, 0)] + [0] * (phases - 1)
    first = max(1, round(labels * FIRST_SHARE))
    half = HALVED_AFTER * phases
    rate = half / (half + np.arange(1, phases))
    rate[max(1, round((1 - LAST_SHARE) * phases)) :] = 0.0
    total = np.round(np.cumsum(rate) / rate.sum() * (labels - first)).astype(int)
    return [first, *np.diff(total, prepend=0).tolist()]


def fresh_schedule(pairs: int, phases: int) -> list[int]:
    """Return the number of fresh pairs before phase 1, after phase 1, ..., after the last but one.

    They are spread evenly over all rounds after the first, so that the newest behaviour is checked
    until the end.

    Args:
        pairs: the total number of fresh pairs.
        phases: the number of training phases, at least 1.
    """
    total = np.round(pairs * np.arange(phases) / max(phases - 1, 1)).astype(int)
    return np.diff(total, prepend=0).tolist()
