"""Makes queries: chooses pairs of clips, draws them if people answer, and stores them."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from backflip.core.types import Transition
from backflip.preferences.clips import (
    Clip,
    Window,
    cut,
    ends_inside,
    observed,
    to_arrays,
    windows,
    with_pictures,
)
from backflip.preferences.drawer import Drawer
from backflip.preferences.labels import LabelStore, NewQuery
from backflip.preferences.queries import CANDIDATES, most_disputed, uniform_pairs
from backflip.rewards.interface import RewardModel
from backflip.training.fresh_pairs import ChosenPair, FreshPairs
from backflip.training.teach_config import TeachConfig
from runshelf.errors import UsageError

CANDIDATE_CLIPS = 200  # largest number of clips from which pairs are chosen
END_SHARE = 0.25  # of clips that contain the end of an episode, if there are so many
FRESH = 2  # separates the random numbers of fresh pairs from those that choose other clips


@final
class QueryMaker:
    """Makes queries about collected transitions.

    Args:
        env_id: the environment's id, for messages.
        config: the settings of teaching.
        model: predicts the reward of clips.
        store: the store that queries are added to.
        drawer: draws films for people; None if a program answers.
        enough: returns whether people have ended labelling.
        shows_clips: whether the teacher may look at pictures of the clips.
    """

    def __init__(
        self,
        env_id: str,
        config: TeachConfig,
        model: RewardModel,
        store: LabelStore,
        drawer: Drawer | None,
        enough: Callable[[], bool],
        *,
        shows_clips: bool,
    ) -> None:
        self._enough, self._shows_clips = enough, shows_clips
        self._env_id, self._config, self._model = env_id, config, model
        self._store, self._drawer = store, drawer
        self._fresh = FreshPairs(model, store)

    def add_queries(
        self,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        reward: Any,
        count: int,
        env_steps: int,
        fresh: range = range(0),
    ) -> None:
        """Add `count` queries about one seed's record, or about random clips if it is None.

        Queries that a killed process already added are not added again.

        Args:
            seed: the seed.
            random_clips: clips of the random policy.
            record: the newest transitions.
            reward: the reward model's parameters.
            count: the number of queries, fresh pairs included.
            env_steps: env steps of the seed when the record ended.
            fresh: the numbers of the fresh pairs among them, counted over the whole run.
        """
        missing = count - self._store.count_queries(seed, env_steps)
        if missing <= 0:
            return
        pairs = self._pairs(seed, random_clips, record, reward, count, env_steps, fresh)[-missing:]
        if self._drawer is None:
            self._store.add_queries(
                NewQuery(seed, to_arrays(one), to_arrays(other), env_steps, opinion=opinion)
                for one, other, opinion in pairs
            )
            return
        for one, other, opinion in pairs:  # one at a time: people see each as soon as it is drawn
            if self._enough():
                return
            films = self._drawer.films(one), self._drawer.films(other)
            opinion = opinion or self._opinion(reward, one, other)
            query = NewQuery(seed, to_arrays(one), to_arrays(other), env_steps, films, opinion)
            self._store.add_queries([query])

    def _pairs(
        self,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        reward: Any,
        count: int,
        env_steps: int,
        fresh: range,
    ) -> list[ChosenPair]:
        """Return the clips of `count` queries, fresh pairs last."""
        rng = np.random.default_rng([seed, 1 + env_steps])
        clips, newest = self._clips(rng, random_clips, record)
        own = np.random.default_rng([seed, 1 + env_steps, FRESH])
        checks = self._fresh.draw(own, seed, clips[:newest], random_clips, reward, fresh, env_steps)
        others = count - len(checks)
        chosen = self._choose(rng, clips, reward, others, first=record is None) if others else ()
        return [*(ChosenPair(clips[i], clips[j], None) for i, j in chosen), *checks]

    def _opinion(self, reward: Any, left: Clip, right: Clip) -> dict[str, np.ndarray] | None:
        """Return the predicted reward (row 0) and the members' spread (row 1) of each step."""
        opinions = self._model.opinions(reward, [observed(left), observed(right)])
        if opinions is None:
            return None
        both = np.stack([opinions.reward, opinions.spread], 1)
        return {"left": both[0], "right": both[1]}

    def _clips(
        self, rng: np.random.Generator, random_clips: Sequence[Clip], record: Transition | None
    ) -> tuple[Sequence[Clip], int]:
        """Return the clips to choose from, and how many of the first are from the record.

        Raises:
            UsageError: there are fewer than two.
        """
        clips, newest = list(random_clips), 0
        if record is not None:
            random = clips[: round(self._config.random_share * CANDIDATE_CLIPS)]
            count = CANDIDATE_CLIPS - len(random) if self._config.random_share < 1 else 0
            length, shown = self._config.clip_length, self._shows_clips
            found = some_clips(rng, record, length, count, shown=shown)
            clips, newest = [*found, *random], len(found)
        if len(clips) < 2:
            length = self._config.clip_length
            raise UsageError(
                f"the rollouts of `{self._env_id}` have fewer than two clips of {length} env "
                f"steps; try --set clip_length={max(2, length // 2)}"
            )
        return clips, newest

    def _choose(
        self,
        rng: np.random.Generator,
        clips: Sequence[Clip],
        reward: Any,
        count: int,
        *,
        first: bool,
    ) -> np.ndarray:
        if first or self._config.queries == "uniform":
            return uniform_pairs(rng, len(clips), count)
        candidates = uniform_pairs(rng, len(clips), CANDIDATES * count)
        used, pairs = np.unique(candidates, return_inverse=True)
        opinions = self._model.opinions(reward, [observed(clips[i]) for i in used])
        if opinions is None:
            return candidates[:count]
        pairs = pairs.reshape(candidates.shape)
        return used[most_disputed(opinions.clip_returns, pairs, count)]


def some_clips(
    rng: np.random.Generator, record: Transition, length: int, count: int, *, shown: bool
) -> list[Clip]:
    """Return at most `count` random clips of one seed's record, with pictures if `shown`.

    Up to `END_SHARE` of them contain the end of an episode, however rare ends are: they decide
    whether an end is good, and only they can show that a goal was reached.
    """
    found: Sequence[Window] = windows(record, length)
    found = with_pictures(record, found, length) if shown else found
    order = rng.permutation(len(found))
    ends = np.array(ends_inside(record, found, length), bool)[order]
    first = np.flatnonzero(ends)[: round(END_SHARE * count)]
    rest = np.delete(np.arange(len(order)), first)
    chosen = order[np.concatenate([first, rest])[:count]]
    return [cut(record, found[i], length) for i in rng.permutation(chosen)]
