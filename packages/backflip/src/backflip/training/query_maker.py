"""Questions: which pairs of clips are asked about, drawn where people answer, into the store."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from backflip.core.types import Transition
from backflip.preferences.clips import Clip, cut, observed, to_arrays, windows
from backflip.preferences.drawer import Drawer
from backflip.preferences.labels import LabelStore, NewQuery
from backflip.preferences.queries import CANDIDATES, most_disputed, uniform_pairs
from backflip.rewards.interface import RewardModel
from backflip.training.teach_config import TeachConfig
from runshelf.errors import UsageError

CLIPS_LOOKED_AT = 200  # of which pairs are made, at most


@final
class QueryMaker:
    """Asks about what was lived through.

    Args:
        env_id: for messages.
        config: how much is looked at, and by which rule pairs are chosen.
        model: predicts the reward of clips.
        store: where questions go.
        drawer: for people; None where a simulated teacher answers.
        enough: whether people have said that there are labels enough.
    """

    def __init__(
        self,
        env_id: str,
        config: TeachConfig,
        model: RewardModel,
        store: LabelStore,
        drawer: Drawer | None,
        enough: Callable[[], bool],
    ) -> None:
        self._enough = enough
        self._env_id, self._config, self._model = env_id, config, model
        self._store, self._drawer = store, drawer

    def ask(
        self,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        reward: Any,
        count: int,
        env_steps: int,
    ) -> None:
        """Ask `count` questions about one seed's record, or about random clips if there is none.

        What a killed process had asked of them already is not asked again.
        """
        missing = count - self._store.count_queries(seed, env_steps)
        if missing <= 0:
            return
        rng = np.random.default_rng([seed, 1 + env_steps])
        clips = self._clips(rng, random_clips, record)
        pairs = self._choose(rng, clips, reward, count, first=record is None)[-missing:]
        if self._drawer is None:
            self._store.add_queries(
                NewQuery(seed, to_arrays(clips[left]), to_arrays(clips[right]), env_steps)
                for left, right in pairs
            )
            return
        for left, right in pairs:  # one by one: who waits sees the first as soon as it is drawn
            if self._enough():
                return
            self._ask_people(seed, clips[left], clips[right], reward, env_steps, self._drawer)

    def _ask_people(
        self,
        seed: int,
        left: Clip,
        right: Clip,
        reward: Any,
        env_steps: int,
        drawer: Drawer,
    ) -> None:
        films = drawer.films(left), drawer.films(right)
        opinion = self._opinion(reward, left, right)
        query = NewQuery(seed, to_arrays(left), to_arrays(right), env_steps, films, opinion)
        self._store.add_queries([query])

    def _opinion(self, reward: Any, left: Clip, right: Clip) -> dict[str, np.ndarray] | None:
        """Return the predicted reward (row 0) and the members' spread (row 1) of each step."""
        opinions = self._model.opinions(reward, [observed(left), observed(right)])
        if opinions is None:
            return None
        both = np.stack([opinions.reward, opinions.spread], 1)
        return {"left": both[0], "right": both[1]}

    def _clips(
        self, rng: np.random.Generator, random_clips: Sequence[Clip], record: Transition | None
    ) -> Sequence[Clip]:
        """Return the clips to choose from.

        Raises:
            UsageError: there are no two.
        """
        clips = list(random_clips)
        if record is not None:
            again = clips[: round(self._config.random_share * CLIPS_LOOKED_AT)]
            count = CLIPS_LOOKED_AT - len(again)
            clips = [*some_clips(rng, record, self._config.clip_length, count), *again]
        if len(clips) < 2:
            length = self._config.clip_length
            raise UsageError(
                f"no two clips of {length} env steps fit into what `{self._env_id}` lived "
                f"through; try --set clip_length={max(2, length // 2)}"
            )
        return clips

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
        looked_at, pairs = np.unique(candidates, return_inverse=True)
        opinions = self._model.opinions(reward, [observed(clips[i]) for i in looked_at])
        if opinions is None:
            return candidates[:count]
        pairs = pairs.reshape(candidates.shape)
        return looked_at[most_disputed(opinions.clip_returns, pairs, count)]


def some_clips(rng: np.random.Generator, record: Transition, length: int, count: int) -> list[Clip]:
    """Return `count` clips of one seed's record, or as many as there are."""
    places = windows(record, length)
    chosen = rng.permutation(len(places))[:count]
    return [cut(record, places[i], length) for i in chosen]
