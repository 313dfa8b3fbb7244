"""Progress of labelling: counts, the rate, and how well answers agree."""

import itertools
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from backflip.labelling.answer_history import can_redo
from backflip.preferences.careless import in_words, signs_of
from backflip.preferences.label_records import DEMONSTRATION, mirrored
from backflip.preferences.labels import LabelStore
from runshelf.store.times import seconds_of

LONGEST_BREAK = 60.0  # seconds; a longer gap between two answers is a break


class Tally(NamedTuple):
    """Progress of labelling, as one person sees it. Answers that were undone do not count.

    Attributes:
        labels: answers that count towards the budget.
        mine: this person's answers, repeats included.
        open: pairs without an answer.
        per_minute: recent labels per minute, without breaks; None before the second label.
        repeated: repeats that this person answered.
        self_agreement: share of them with the same answer as the first time; None if none.
        shared: pairs that two people answered.
        agreement: share of them with the same answer; None if none.
        can_redo: whether this person has undone an answer that `redo` restores.
        careless: why this person seems to answer carelessly; empty if nothing says so.
    """

    labels: int
    mine: int
    open: int
    per_minute: float | None
    repeated: int
    self_agreement: float | None
    shared: int
    agreement: float | None
    can_redo: bool
    careless: str = ""


def tally_of(store: LabelStore, who: str) -> Tally:
    """Return the progress of labelling as `who` sees it."""
    counts = store.counts()
    repeats = _repeats_answered(store)
    own = [same for first, second, same in repeats if first == second == who]
    others = [same for first, second, same in repeats if first != second]
    mine = store.file.rows("SELECT count(*) FROM effective WHERE who = ?", (who,))
    return Tally(
        labels=counts.labels,
        mine=int(mine[0][0]),
        open=counts.pending,
        per_minute=labels_per_minute(store),
        repeated=len(own),
        self_agreement=_share_of(own),
        shared=len(others),
        agreement=_share_of(others),
        can_redo=can_redo(store.file, who),
        careless=in_words(signs_of(store, who)),
    )


def labels_per_minute(store: LabelStore, newest: int = 30) -> float | None:
    """Return the recent number of labels per minute, without breaks longer than a minute.

    None if all labels were given at one time: there is one, or they are those of one set of clips.
    A corrected answer counts at the time when it was first given.
    """
    spent = _seconds_between(store, newest)
    seconds = sum(gap for gap, _ in spent)
    return 60.0 * sum(labels for _, labels in spent) / seconds if spent else None


def labels_per_minute_without_waiting(store: LabelStore, newest: int = 30) -> float | None:
    """Return the usual number of labels per minute while there are pairs, by the median answer.

    People who wait for pairs answer fewer of them in a minute than they could.
    """
    spent = _seconds_between(store, newest)
    return 60.0 / median(gap / labels for gap, labels in spent) if spent else None


def _seconds_between(store: LabelStore, newest: int) -> list[tuple[float, int]]:
    """Return the seconds before each of the newest labels that count, and the labels given then."""
    rows = store.file.rows(
        "SELECT s.at FROM standing s JOIN queries q ON q.id = s.query"
        " WHERE q.origin IS NULL AND s.answer IS NOT NULL AND s.replaces IS NULL AND s.who <> ?"
        " ORDER BY s.id DESC LIMIT ?",
        (DEMONSTRATION, newest),
    )
    times = [seconds_of(at) for (at,) in reversed(rows)]
    known = [at for at in times if at is not None]  # a received run may have anything here
    given = [(at, len(list(labels))) for at, labels in itertools.groupby(known)]
    gaps = [(b - a, labels) for (a, _), (b, labels) in itertools.pairwise(given)]
    # Below 0: the clock was set back.
    return [(gap, labels) for gap, labels in gaps if 0.0 < gap <= LONGEST_BREAK]


def _repeats_answered(store: LabelStore) -> list[tuple[str, str, bool]]:
    """Return for each answered repeat: first person, second person, whether they agree."""
    rows = store.file.rows(
        "SELECT a.who, b.who, a.answer, b.answer, p.left_clip = q.left_clip"
        " FROM queries q JOIN queries p ON p.id = q.repeats"
        " JOIN effective a ON a.query = p.id JOIN effective b ON b.query = q.id"
    )
    return [
        (first, second, one == (other if unflipped else mirrored(other)))
        for first, second, one, other, unflipped in rows
    ]


def _share_of(same: Sequence[bool]) -> float | None:
    return sum(same) / len(same) if same else None
