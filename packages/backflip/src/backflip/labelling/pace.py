"""The rule that decides when the next phase of training may start while people answer.

Each phase adds a round of queries. The next phase may start once answering the open queries will
take about as long as the phase. Then new queries are ready when the last open one is answered, and
the reward model is as recent as possible. At most the queries of the newest round may be open, so
training advances by at most one phase without answers.

People who answer faster than phases take would wait for the next round. So while they are present,
a round has as many queries as they can answer until the one after it; they come from the last
rounds (`backflip.preferences.schedule`).
"""

import math

from backflip.labelling.taking import AHEAD


def open_pairs_allowed(
    newest_round: int, *, phase_seconds: float, per_minute: float | None, people: int = 1
) -> int:
    """Return the largest number of open pairs at which the next phase may start.

        min(n, a p + ⌈t v⌉)

    n pairs were added in the newest round, each of p people holds a = 4 pairs (one on the screen,
    three loaded), a phase takes t seconds, v pairs are answered per second.

    Args:
        newest_round: n, over all seeds; 0 if no queries will follow: then wait for all answers.
        phase_seconds: t, from the start of a phase to its new pairs.
        per_minute: 60 v; None before the second answer.
        people: p, those who are present.
    """
    return min(newest_round, AHEAD * max(people, 1) + _answered(phase_seconds, per_minute))


def pairs_to_stay_busy(*, phase_seconds: float, per_minute: float | None, people: int) -> int:
    """Return how many open pairs people need, so that they do not wait until the next round.

        ⌈t v⌉ + min(a p, ⌈t v⌉)

    The symbols are those of `open_pairs_allowed`. The second term is for a phase that takes longer
    than the last one, and for pairs that other people hold. Where phases are short, it is small
    too: labels come from many phases then.

    Args:
        phase_seconds: t, from the start of a phase to its new pairs.
        per_minute: 60 v; None before the second answer.
        people: p, those who are present.
    """
    answered = _answered(phase_seconds, per_minute)
    return answered + min(AHEAD * people, answered)


def _answered(phase_seconds: float, per_minute: float | None) -> int:
    """Return ⌈t v⌉, the pairs that are answered during a phase."""
    return math.ceil(phase_seconds * (per_minute or 0.0) / 60.0)
