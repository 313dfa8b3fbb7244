"""Draws fresh pairs and forecasts their answers."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, final

import numpy as np
from jaxtyping import Float

from backflip.preferences.clips import Clip, from_arrays, observed
from backflip.preferences.fresh_pairs import (
    BOTH,
    FRESH,
    LEFT,
    RIGHT,
    Forecast,
    forecast_array,
    fresh_answers,
)
from backflip.preferences.labels import LabelStore
from backflip.preferences.queries import uniform_pairs
from backflip.rewards.calibration import left_probability
from backflip.rewards.interface import Opinions, RewardModel

CLIPS = 64  # clips of the newest behaviour and of the random policy that a forecast looks at
PAIRS = 500  # pairs of them that the margin of a fresh pair is compared with
# What the newest behaviour is compared with, in turn.
Other = Literal["random", "newest", "earlier"]
OTHERS: tuple[Other, ...] = ("random", "newest", "random", "earlier")


class ChosenPair(NamedTuple):
    """Two clips, and the opinion with the forecast; None if the model is not fitted yet."""

    left: Clip
    right: Clip
    opinion: dict[str, np.ndarray] | None


@final
class FreshPairs:
    """Draws the fresh pairs of a run.

    Args:
        model: predicts the reward of clips.
        store: has the clips of earlier fresh pairs.
    """

    def __init__(self, model: RewardModel, store: LabelStore) -> None:
        self._model, self._store = model, store

    def draw(
        self,
        rng: np.random.Generator,
        seed: int,
        newest: Sequence[Clip],
        random: Sequence[Clip],
        reward: Any,
        numbers: range,
        env_steps: int,
        tie_width: float = 0.0,
    ) -> list[ChosenPair]:
        """Return fresh pairs of one seed.

        Args:
            rng: the only source of randomness.
            seed: the seed.
            newest: clips of the newest behaviour.
            random: clips of the random policy.
            reward: the reward model's parameters.
            numbers: the numbers of the fresh pairs, which determine their place in `OTHERS`.
            env_steps: env steps when the newest clips were recorded.
            tie_width: θ, the width of ties of the seed's reward.
        """
        newest, random = newest[:CLIPS], random[:CLIPS]
        if not numbers or len(newest) < 2 or not random:
            return []
        seen = self._returns(reward, [*newest, *random])
        found: list[ChosenPair] = []
        for number in numbers:
            other = OTHERS[number % len(OTHERS)]
            old = self._earlier(rng, seed, env_steps) if other == "earlier" else None
            if other == "random" or (other == "earlier" and old is None):
                other, old = "random", random[int(rng.integers(len(random)))]
            found.append(self._pair(rng, newest, other, old, reward, seen, tie_width))
        return found

    def _earlier(self, rng: np.random.Generator, seed: int, env_steps: int) -> Clip | None:
        """Return a clip that was the newest behaviour in an earlier round, if there is one."""
        earlier = [one for one in fresh_answers(self._store, seed) if one.env_steps < env_steps]
        if not earlier:
            return None
        one = earlier[rng.integers(len(earlier))]
        side = {LEFT: 0, RIGHT: 1}.get(one.forecast.newest, int(rng.integers(2)))
        return from_arrays(self._store.clips(one.query)[side])

    def _pair(
        self,
        rng: np.random.Generator,
        newest: Sequence[Clip],
        other: Other,
        old: Clip | None,
        reward: Any,
        seen: Float[np.ndarray, " clips"] | None,
        tie_width: float,
    ) -> ChosenPair:
        """Return a pair of two newest clips, or of a newest and an old clip in random order."""
        one, another = (newest[i] for i in uniform_pairs(rng, len(newest), 1)[0])
        left, right, sides = one, another, BOTH
        if old is not None:
            swapped = rng.random() < 0.5
            left, right, sides = (old, one, RIGHT) if swapped else (one, old, LEFT)
        opinions = self._model.opinions(reward, [observed(left), observed(right)])
        if opinions is None or seen is None:
            return ChosenPair(left, right, None)
        forecast = _forecast(rng, opinions, seen, len(newest), tie_width)
        forecast = forecast._replace(newest=sides, against_random=float(other == "random"))
        both = np.stack([opinions.reward, opinions.spread], 1)
        opinion = {"left": both[0], "right": both[1], FRESH: forecast_array(forecast)}
        return ChosenPair(left, right, opinion)

    def _returns(self, reward: Any, clips: Sequence[Clip]) -> Float[np.ndarray, " clips"] | None:
        opinions = self._model.opinions(reward, [observed(clip) for clip in clips])
        return None if opinions is None else opinions.reward.sum(1)


def _forecast(
    rng: np.random.Generator,
    opinions: Opinions,
    seen: Float[np.ndarray, " clips"],
    newest: int,
    tie_width: float,
) -> Forecast:
    """Return the forecast for a pair of newest clips.

    Args:
        rng: draws the pairs that its margin is compared with.
        opinions: of its two clips.
        seen: learned returns of the clips at hand: `newest` of the newest behaviour, then random.
        newest: how many are of the newest behaviour.
        tie_width: θ, the width of ties.
    """
    pairs = uniform_pairs(rng, len(seen), PAIRS)
    usual = np.abs(seen[pairs[:, 0]] - seen[pairs[:, 1]])
    left, right = opinions.reward.sum(1).tolist()
    members = opinions.clip_returns[0] - opinions.clip_returns[1]
    rank = float((usual < abs(left - right)).mean())
    difference = np.sign(seen[:newest, None] - seen[None, newest:])
    return Forecast(
        newest=BOTH,
        left=float(left_probability(members[None], tie_width)[0]),
        margin=rank if left > right else -rank,
        risen=float((difference.mean() + 1) / 2),
        against_random=0.0,
    )
