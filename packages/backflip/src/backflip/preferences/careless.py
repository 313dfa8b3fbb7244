"""Notices a person who always presses the same key, or answers at random. Needs no JAX.

Always the same key. The sides of a pair are random, so of a careful teacher's answers `left` and
`right` either has probability 1/2, whatever is taught. The exact two-sided binomial test looks at
all of them and at the latest `LATEST`. The labels of a set follow from one answer, so they are left
out.

At random. Some pairs are shown again, with random sides (`backflip.labelling.label_queue`). Let a
careful person repeat an answer with probability p1 = .8 or more (.82 with one wrong answer in ten),
one who answers at random with p0 = 1/2 or less. After a repeats with the same and d with another
answer the odds of random answers are

    (p0 / p1)^a ((1 - p0) / (1 - p1))^d

For a careful person they ever reach `SURE` with probability at most 1 / `SURE` (Ville's
inequality). While they are above 1, more pairs are shown again (`repeat_share`). Odds of `LIKELY`
suffice if also the reward model agrees with the answers no better than chance, on fresh pairs: it
forecast these answers before they were given (`backflip.preferences.fresh_pairs`).

Source: Wald 1945, Sequential tests of statistical hypotheses, section 3 (the odds).
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from backflip.preferences.fresh_pairs import forecast_of
from backflip.preferences.label_records import DEMONSTRATION, mirrored
from backflip.preferences.labels import LabelStore

SAME_KEY = 2e-5  # largest p-value at which answers are on one side too often
LATEST = 30  # answers in which a change of habit shows
CAREFUL, RANDOM = 0.8, 0.5  # p1, p0
SURE, LIKELY = 30.0, 8.0  # odds of random answers
CHANCE = 0.1  # smallest p-value at which agreement is no better than chance
FEWEST_CHECKS = 10
USUAL_SHARE, DOUBTFUL_SHARE = 0.05, 0.33  # share of repeats among the pairs shown to a person

State = Literal["", "same key", "random"]


class Signs(NamedTuple):
    """What a person's answers in force say about their care.

    Attributes:
        sides: the answers `left` (True) and `right` (False), oldest first; repeats included.
        repeats: whether the answer to each repeated pair was the same, oldest first.
        checks: whether the forecast agreed with each decided answer to a fresh pair.
    """

    sides: Sequence[bool]
    repeats: Sequence[bool]
    checks: Sequence[bool]


def state_of(signs: Signs) -> State:
    """Return what a person seems to do; empty if nothing speaks against them."""
    if any(binomial(sum(some), len(some)) < SAME_KEY for some in _stretches(signs.sides)):
        return "same key"
    odds = odds_of_random(signs.repeats)
    likely = odds >= LIKELY and _no_better_than_chance(signs.checks)
    return "random" if odds >= SURE or likely else ""


def repeat_share(repeats: Sequence[bool]) -> float:
    """Return the share of repeats among the next pairs of a person, after some repeats."""
    return DOUBTFUL_SHARE if odds_of_random(repeats) > 1.0 else USUAL_SHARE


def odds_of_random(repeats: Sequence[bool]) -> float:
    """Return the odds of random against careful answers after some repeats."""
    same = sum(repeats)
    odds = same * math.log(RANDOM / CAREFUL)
    odds += (len(repeats) - same) * math.log((1 - RANDOM) / (1 - CAREFUL))
    return math.exp(min(odds, 500.0))


def binomial(successes: int, trials: int) -> float:
    """Return the two-sided exact p-value for a probability of 1/2; 1 without trials."""
    extreme = max(successes, trials - successes)
    return min(1.0, 2.0 * _upper_tail(extreme, trials))


def _upper_tail(successes: int, trials: int) -> float:
    """Return P[X >= successes] of a binomial variable with probability 1/2."""
    below = math.lgamma(successes + 1) + math.lgamma(trials - successes + 1)
    term = math.exp(math.lgamma(trials + 1) - below - trials * math.log(2.0))
    total = 0.0
    for count in range(successes, trials + 1):  # each term follows from the one before
        total += term
        term *= (trials - count) / (count + 1)
        if 2 * count > trials and term < 1e-18 * total:
            break
    return min(total, 1.0)


def _no_better_than_chance(checks: Sequence[bool]) -> bool:
    return len(checks) >= FEWEST_CHECKS and _upper_tail(sum(checks), len(checks)) > CHANCE


def _stretches(sides: Sequence[bool]) -> list[Sequence[bool]]:
    return [sides, sides[-LATEST:]]


def signs_of(store: LabelStore, who: str) -> Signs:
    """Return the signs of a person in a label store; checks only where they matter."""
    sides = store.file.rows(
        "SELECT e.answer = 'left' FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE e.who = ? AND e.answer IN ('left', 'right') AND q.origin IS NULL"
        " AND q.clip_set IS NULL ORDER BY e.id",
        (who,),
    )
    repeats = repeats_of(store, who)
    matter = LIKELY <= odds_of_random(repeats) < SURE
    return Signs([bool(left) for (left,) in sides], repeats, _checks(store, who) if matter else ())


def repeats_of(store: LabelStore, who: str) -> list[bool]:
    """Return whether a person's answer to each pair shown again was the same, oldest first."""
    rows = store.file.rows(
        "SELECT a.answer, b.answer, p.left_clip = q.left_clip FROM queries q"
        " JOIN queries p ON p.id = q.repeats JOIN effective a ON a.query = p.id"
        " JOIN effective b ON b.query = q.id WHERE a.who = ? AND b.who = ? ORDER BY b.id",
        (who, who),
    )
    return [first == (second if same else mirrored(second)) for first, second, same in rows]


def _checks(store: LabelStore, who: str) -> list[bool]:
    fresh = store.file.rows(
        "SELECT q.opinion, e.answer FROM queries q JOIN effective e ON e.query = q.id"
        " WHERE e.who = ? AND e.answer IN ('left', 'right') AND q.opinion IS NOT NULL"
        " AND q.repeats IS NULL AND q.origin IS NULL",
        (who,),
    )
    forecasts = [(forecast_of(opinion), answer) for opinion, answer in fresh]
    return [
        (one.margin > 0) == (answer == "left")
        for one, answer in forecasts
        if one is not None and one.margin
    ]


def in_words(signs: Signs) -> str:
    """Return what a person seems to do, with the numbers that say so; empty if nothing does."""
    state = state_of(signs)
    if state == "same key":
        shown = next(
            some
            for some in reversed(_stretches(signs.sides))
            if binomial(sum(some), len(some)) < SAME_KEY
        )
        key = "left" if 2 * sum(shown) > len(shown) else "right"
        count = max(sum(shown), len(shown) - sum(shown))
        return (
            f"`{key}` is {count} of the last {len(shown)} answers, though the better clip is on "
            "either side equally often"
        )
    if state == "random":
        again = f"{sum(signs.repeats)} of {len(signs.repeats)} pairs shown again"
        return f"{again} got the same answer, about as many as by chance"
    return ""


def careless_people(store: LabelStore) -> dict[str, str]:
    """Return those who seem to answer carelessly, and what says so.

    Imported answers, and those that demonstrations made, are left out.
    """
    people = store.file.rows(
        "SELECT DISTINCT e.who FROM effective e JOIN queries q ON q.id = e.query"
        " WHERE q.origin IS NULL AND e.who <> ? ORDER BY e.who",
        (DEMONSTRATION,),
    )
    found = {who: in_words(signs_of(store, who)) for (who,) in people}
    return {who: words for who, words in found.items() if words}
