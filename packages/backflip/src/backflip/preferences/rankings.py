"""Rankings and ratings of several clips, and the comparisons that follow from them. Needs no JAX.

A set of k clips is ranked in one answer, or its clips are rated one by one. Either gives each clip
a score, and the k (k - 1) / 2 pairs of the set are labelled by comparing scores: the higher one is
preferred, equal ones tie.

All pairs are used, not only the k - 1 neighbours in the ranking. Neighbours differ least, so a
mistake is likeliest there; that the first clip is better than the last is what a ranking says most
surely. The pairs are not independent, but a reward model that has all of them fits the order as a
whole: InstructGPT does the same (Ouyang et al. 2022, arXiv:2203.02155, section 3.5).
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from backflip.preferences.label_records import Answer
from backflip.preferences.queries import CANDIDATES
from backflip.rewards.calibration import expected_answer

BEST_RATING = 9  # of people, who rate from 1: one key for each. Programs give any numbers.


def pairs_of(clips: int) -> list[tuple[int, int]]:
    """Return all pairs of a set, as places of its clips."""
    return list(itertools.combinations(range(clips), 2))


def set_sizes(queries: int, at_once: int) -> list[int]:
    """Return the sizes of sets whose pairs are exactly so many queries, the largest first.

    Args:
        queries: the number of pairs, in all sets together.
        at_once: the largest number of clips in a set, at least 2.
    """
    sizes: list[int] = []
    for size in range(at_once, 1, -1):
        sets, queries = divmod(queries, math.comb(size, 2))
        sizes += [size] * sets
    return sizes


def answer_of(left: float | None, right: float | None) -> Answer:
    """Return the answer to a pair with these scores; None is a clip that cannot be told."""
    if left is None or right is None:
        return "skip"
    return "tie" if left == right else "left" if left > right else "right"


def scores_of_ranking(ranking: Any, clips: int) -> list[float] | None:
    """Return a score for each clip, the largest for the best.

    Args:
        ranking: places of the clips, counted from 0, the best first. Clips that are equally good
            stand in a list of their own: `[2, [0, 3], 1]`.
        clips: the number of clips.

    Returns:
        None if it is not a ranking of all clips.
    """
    if not isinstance(ranking, list | tuple | np.ndarray):
        return None
    scores: dict[int, float] = {}
    for rank, place in enumerate(ranking):
        alike: Sequence[Any] = place if isinstance(place, list | tuple) else [place]
        for one in alike:
            if not _is_place(one, clips) or int(one) in scores:
                return None
            scores[int(one)] = float(clips - rank)
    return [scores[place] for place in range(clips)] if len(scores) == clips else None


def scores_of_ratings(ratings: Any, clips: int) -> list[float | None] | None:
    """Return a score for each clip from the ratings of a person.

    Args:
        ratings: of each clip a whole number from 1 to `BEST_RATING`, the best; None for a clip that
            cannot be told.
        clips: the number of clips.

    Returns:
        None if they are not ratings of all clips.
    """
    if not isinstance(ratings, list | tuple) or len(ratings) != clips:
        return None
    if not all(one is None or (_is_place(one, BEST_RATING + 1) and one >= 1) for one in ratings):
        return None
    return [None if one is None else float(one) for one in ratings]


def _is_place(value: Any, clips: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and 0 <= int(value) < clips


def uniform_sets(
    rng: np.random.Generator, clips: int, size: int, count: int
) -> Int[np.ndarray, "count size"]:
    """Return `count` uniformly drawn sets of different clips, as indices below `clips`."""
    return np.array([rng.choice(clips, size, replace=False) for _ in range(count)])


def most_disputed_sets(
    clip_returns: Float[np.ndarray, "clips members"],
    sets: Int[np.ndarray, "candidates size"],
    count: int,
    tie_width: float = 0.0,
) -> Int[np.ndarray, "count size"]:
    """Return the sets on whose pairs the members disagree most.

    Disagreement is that of `backflip.preferences.queries.most_disputed`, averaged over the pairs of
    the set.

    Args:
        clip_returns: R, each member's sum of predicted rewards over each clip.
        sets: candidate sets, as indices of clips.
        count: the number of sets to return.
        tie_width: θ, as in `most_disputed`.
    """
    one, other = np.array(pairs_of(sets.shape[1])).T
    margin = clip_returns[sets[:, one]] - clip_returns[sets[:, other]]
    disputed = expected_answer(margin, tie_width).var(axis=2).mean(axis=1)
    return sets[np.argsort(-disputed, kind="stable")[:count]]


def candidate_sets(
    rng: np.random.Generator, clips: int, size: int, count: int
) -> Int[np.ndarray, "candidates size"]:
    """Return sets from which `most_disputed_sets` chooses."""
    return uniform_sets(rng, clips, size, CANDIDATES * count)
