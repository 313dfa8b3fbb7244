"""Chooses the clips of a record from which queries are made.

Most clips are uniform over the record. With `early_share`, some are early: the logarithm of their
age is uniform, so that how episodes begin is seen as often as the rest. If a robot falls after 20
of 1,000 env steps, only one uniform clip in fifty shows it standing. A reward learned from such
clips gives the fall almost no weight. Some clips show rare behaviour: always the ends of episodes,
and other rare behaviour while most answers are ties. If a pendulum falls in ten of 1,000 env steps
and then hangs, one clip of a hundred shows its fall; all other pairs are ties and say nothing about
the task.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from backflip.core.types import Transition
from backflip.preferences.clips import (
    Clip,
    Windows,
    cut,
    ends_inside,
    episode_steps,
    last_steps,
    windows,
    with_pictures,
)
from backflip.preferences.distinctness import UNKNOWN
from backflip.preferences.queries import greedy_cover
from backflip.rewards.interface import TIE, LabelledComparison

CANDIDATE_CLIPS = 200  # largest number of clips from which pairs are chosen
END_SHARE = 0.25  # of clips that contain the end of an episode, if there are so many
RARE_SHARE = 0.5  # of clips of rare behaviour, while most answers are ties
MANY_TIES = 0.5  # share of ties above which most answers are ties
ROUNDING = 1e-5  # a smaller standard deviation relative to a number may be float32 rounding
SEARCHED = 3_000  # windows among which rare ones are searched for
AT_ONCE = 256  # windows whose observations are in memory at a time


class Found(NamedTuple):
    """Clips of a record, and the env step of its episode at which each begins; -1 if unknown."""

    clips: list[Clip]
    begins: list[int]


class RandomClips(NamedTuple):
    """Clips of one seed's random policy.

    Attributes:
        usual: usual clips.
        rare: clips of rare behaviour.
        longest: the largest clip length in env steps, up to the requested one, at which two clips
            fit into the episodes; 0 if they never do.
    """

    usual: list[Clip]
    rare: list[Clip]
    longest: int

    @classmethod
    def of(
        cls,
        rng: np.random.Generator,
        record: Transition,
        length: int,
        count: int,
        *,
        early: int,
        shown: bool,
    ) -> "RandomClips":
        """Return `count` clips of each kind; of images, both are the usual ones.

        Args:
            rng: draws the clips.
            record: transitions (T', M), which begin with new episodes.
            length: env steps in a clip.
            count: how many clips of each kind.
            early: how many of the usual ones are early.
            shown: whether the clips need pictures.
        """
        usual = some_clips(rng, record, length, count, shown=shown, early=early, reset=True)
        longest = length if len(usual.clips) >= 2 else longest_pair(record, length)
        if is_of_images(record):
            return cls(usual.clips, usual.clips, longest)
        found = some_clips(rng, record, length, count, shown=shown, rare=count, reset=True)
        return cls(usual.clips, found.clips, longest)

    def first(self) -> list[Clip]:
        """Return the clips of the first queries: half of them usual, the others rare."""
        half = len(self.usual) // 2
        return [*self.usual[:half], *self.rare[half:]]


def longest_pair(record: Transition, length: int) -> int:
    """Return the largest clip length, up to `length`, at which two clips fit; else 0."""
    return next((n for n in range(length, 0, -1) if len(windows(record, n)) >= 2), 0)


def is_of_images(record: Transition) -> bool:
    """Return whether the observations of a record are images."""
    return np.ndim(record.obs) > 3


def rare_clips(record: Transition, labels: Sequence[LabelledComparison], count: int) -> int:
    """Return how many of `count` clips of a record should be of rare behaviour.

    None of images: the mean picture of a clip hardly differs where its behaviour does.
    """
    ties = [label.left_preferred == TIE for label in labels]
    many = bool(ties) and float(np.mean(ties)) > MANY_TIES
    return round(RARE_SHARE * count) if many and not is_of_images(record) else 0


def some_clips(
    rng: np.random.Generator,
    record: Transition,
    length: int,
    count: int,
    *,
    shown: bool,
    early: int = 0,
    rare: int = 0,
    reset: bool = False,
) -> Found:
    """Return at most `count` clips of one seed's record, in random order.

    Args:
        rng: draws the clips.
        record: transitions (T', M).
        length: env steps in a clip.
        count: how many clips. Up to `END_SHARE` of those that are not rare contain the end of an
            episode, however rare ends are: they decide whether an end is good, and only they can
            show that a goal was reached. The rest is uniform.
        shown: whether the clips need pictures.
        early: how many of them are early.
        rare: how many of them are of rare behaviour.
        reset: whether the record begins with new episodes.
    """
    found = windows(record, length)
    found = with_pictures(record, found, length) if shown else found
    order = rng.permutation(len(found))
    if early:
        ages = ages_of(record, found, reset=reset)
        drawn = uniform_in_log(rng, ages, early)
        order = np.concatenate([drawn, order[~np.isin(order, drawn)]])
    ends = ends_inside(record, found, length)[order]
    first = np.flatnonzero(ends)[: round(END_SHARE * (count - rare))]
    order = order[np.concatenate([first, np.delete(np.arange(len(order)), first)])]
    chosen = order[: count - rare]
    if rare and len(order):
        features = clip_features(record, found.some(order[:SEARCHED]), length, reset=reset)
        chosen = np.concatenate([chosen, order[farthest(features, len(chosen), rare)]])
    places = found.some(rng.permutation(chosen))
    begins = episode_steps(record, places).tolist()
    return Found([cut(record, place, length) for place in places], begins)


def ages_of(record: Transition, places: Windows, *, reset: bool) -> Int[np.ndarray, " W"]:
    """Return the env step of its episode at which each clip begins.

    Where the episode began before the record, it is the length of the record.

    Args:
        record: transitions (T', M).
        places: where the clips are.
        reset: whether the record begins with new episodes.
    """
    begins = episode_steps(record, places)
    return np.where(begins != UNKNOWN, begins, places.times if reset else len(record.terminated))


def uniform_in_log(
    rng: np.random.Generator, ages: Int[np.ndarray, " W"], count: int
) -> Int[np.ndarray, " found"]:
    """Return the places of at most `count` ages t, drawn with weights 1 / (1 + t), in random order.

    If all ages are equally frequent, log(1 + t) is uniform among the clips that are drawn first.

    Source: Efraimidis & Spirakis 2006, "Weighted random sampling with a reservoir".
    """
    keys = np.log1p(ages) - rng.gumbel(size=len(ages))
    return np.argsort(keys, kind="stable")[:count]


def clip_features(
    record: Transition, places: Windows, length: int, *, reset: bool
) -> Float[np.ndarray, "clips F"]:
    """Return the mean and standard deviation of each observed number over each clip, and its age.

    The age of a clip is log(1 + t) if it begins t env steps after its episode, so that the first
    env steps of episodes are covered as well as the many later ones.

    Each number has a standard deviation of 1 over all clips, or is constant but for rounding.

    Args:
        record: transitions (T', M).
        places: where the clips are.
        length: env steps in a clip.
        reset: whether the record begins with new episodes.
    """
    last = last_steps(record, places, length)[:, None]
    times = np.minimum(places.times[:, None] + np.arange(length), last)
    parts = range(0, max(len(times), 1), AT_ONCE)
    seen = [record.obs[times[i : i + AT_ONCE], places.envs[i : i + AT_ONCE, None]] for i in parts]
    moments = [np.concatenate([x.mean(1), x.std(1)], 1, dtype=np.float64) for x in seen]
    features = np.column_stack(
        [np.concatenate(moments), np.log1p(ages_of(record, places, reset=reset))]
    )
    numbers = features.shape[1] // 2
    level = ROUNDING * np.abs(features[:, :numbers]).max(0)
    least = np.maximum([*level, *level, 0.0], 1e-12)
    return features / np.maximum(features.std(0), least)


def farthest(
    features: Float[np.ndarray, "clips F"], kept: int, count: int
) -> Int[np.ndarray, " found"]:
    """Return the places of `count` clips, each farthest from the first `kept` and those before it.

    Source: Gonzalez 1985, the greedy k-center rule.
    """
    others = features[kept:]
    nearest = np.full(len(others), np.inf)
    for one in features[:kept]:
        nearest = np.minimum(nearest, np.linalg.norm(others - one, axis=1))
    far = greedy_cover(nearest, lambda i: np.linalg.norm(others - others[i], axis=1), count)
    return kept + far
