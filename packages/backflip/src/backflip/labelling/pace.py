"""When training may go on while people answer: neither far ahead of them nor idle. No JAX here.

After each phase questions are asked about it. The next phase may begin as soon as so few of them
are open that answering these will take about as long as the phase: then there are new questions
when the last one is answered, and the reward that is learnt from is as new as can be. However
long a phase takes, at most the questions of the newest round may be open: whoever goes for lunch
finds the agent one phase on, not a day.
"""

import math

from backflip.labelling.label_queue import AHEAD


def may_go_on(
    unanswered: int,
    *,
    newest_round: int,
    phase_seconds: float,
    per_minute: float | None,
    people: int = 1,
) -> bool:
    """Return whether the next phase may begin.

        u ≤ min(n, a p + ⌈t v⌉)

    u pairs are open, n were asked in the newest round, a = 4 pairs are held by each of p people
    (one on the screen, three loaded), a phase takes t seconds, v pairs are answered a second.

    Args:
        unanswered: u.
        newest_round: n, of all seeds; 0 where nothing is asked any more, so that what is open is
            waited for.
        phase_seconds: t, from going on to new pairs.
        per_minute: 60 v; None while nobody has answered twice.
        people: p, who answered or took a pair lately.
    """
    meanwhile = math.ceil(phase_seconds * (per_minute or 0.0) / 60.0)
    return unanswered <= min(newest_round, AHEAD * max(people, 1) + meanwhile)
