"""The rule that decides when the next phase of training may start while people answer.

Each phase adds a round of queries. The next phase may start once answering the open queries will
take about as long as the phase. Then new queries are ready when the last open one is answered, and
the reward model is as recent as possible. At most the queries of the newest round may be open, so
training advances by at most one phase without answers.
"""

import math

from backflip.labelling.label_queue import AHEAD


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
    meanwhile = math.ceil(phase_seconds * (per_minute or 0.0) / 60.0)
    return min(newest_round, AHEAD * max(people, 1) + meanwhile)
