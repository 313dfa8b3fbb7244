"""Makes queries: chooses pairs of clips, draws them if people answer, and stores them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Int

from backflip.core.types import Transition
from backflip.preferences.clip_sets import NewSet, add_sets
from backflip.preferences.clips import Clip, observed, to_arrays
from backflip.preferences.distinctness import UNKNOWN
from backflip.preferences.drawer import Drawer
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.preferences.rankings import (
    candidate_sets,
    most_disputed_sets,
    pairs_of,
    set_sizes,
    uniform_sets,
)
from backflip.rewards.interface import RewardModel
from backflip.training.queries.candidate_clips import (
    CANDIDATE_CLIPS,
    Found,
    RandomClips,
    rare_clips,
    some_clips,
)
from backflip.training.queries.fresh_pairs import ChosenPair, FreshPairs
from backflip.training.queries.query_choice import Known, QueryChoice
from backflip.training.teaching.config import SHORTEST_CLIP, TeachConfig
from runshelf.errors import UserFacingError

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
        say: tells the user something.
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
        say: Callable[[str], None],
    ) -> None:
        self._enough, self._shows_clips = enough, shows_clips
        self._say, self._said_no_clips = say, False
        self._env_id, self._config, self._model = env_id, config, model
        self._store, self._drawer = store, drawer
        self._fresh = FreshPairs(model, store)
        self._choice = QueryChoice(model, config)
        # Of the random policy, by seed; none if the first queries show recorded clips.
        self.random_policy: dict[int, RandomClips] = {}

    def add_queries(
        self,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        known: Known,
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
            known: what is known about the seed's reward.
            count: the number of queries, fresh pairs included.
            env_steps: env steps of the seed when the record ended.
            fresh: the numbers of the fresh pairs among them, counted over the whole run.
        """
        missing = count - self._store.count_queries(seed, env_steps)
        if missing <= 0:
            return
        drawn = self._draw(seed, random_clips, record, known, env_steps, fresh)
        about = None if record is None else known
        if self._config.ask != "compare":
            sets = self._sets(drawn, about, count)
            self._add_sets(sets, seed, env_steps, count - missing)
        else:
            pairs = self._pairs(drawn, about, count)[-missing:]
            self._add_pairs(pairs, known.reward, seed, env_steps)

    def _draw(
        self,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        known: Known,
        env_steps: int,
        fresh: range,
    ) -> "_Drawn":
        """Return the clips to choose from, and the fresh pairs."""
        rng = np.random.default_rng([seed, 1 + env_steps])
        clips, begins, newest = self._clips(rng, seed, random_clips, record, known)
        own = np.random.default_rng([seed, 1 + env_steps, FRESH])
        checks = self._fresh.draw(
            own, seed, clips[:newest], random_clips, known.reward, fresh, env_steps, known.tie_width
        )
        return _Drawn(rng, clips, begins, checks)

    def _pairs(self, drawn: "_Drawn", known: Known | None, count: int) -> list[ChosenPair]:
        """Return the clips of `count` queries, fresh pairs last; `known` is None without record."""
        rng, clips, begins, checks = drawn
        others = count - len(checks)
        chosen = self._choice.choose(rng, clips, begins, known, others) if others else ()
        return [*(ChosenPair(clips[i], clips[j], None) for i, j in chosen), *checks]

    def _sets(
        self, drawn: "_Drawn", known: Known | None, count: int
    ) -> list[tuple[Sequence[Clip], dict[str, np.ndarray] | None]]:
        """Return the sets of `count` queries; fresh pairs, which have an opinion, last."""
        rng, clips, _, checks = drawn
        opinions = None
        if known is not None and self._config.queries != "uniform":
            opinions = self._model.opinions(known.reward, [observed(clip) for clip in clips])
        found: list[tuple[Sequence[Clip], dict[str, np.ndarray] | None]] = []
        sizes = set_sizes(count - len(checks), min(self._config.clips_at_once, len(clips)))
        for size in sorted(set(sizes), reverse=True):
            number = sizes.count(size)
            if known is None or opinions is None:
                places = uniform_sets(rng, len(clips), size, number)
            else:
                candidates, width = candidate_sets(rng, len(clips), size, number), known.tie_width
                places = most_disputed_sets(opinions.clip_returns, candidates, number, width)
            found += [([clips[i] for i in one], None) for one in places]
        return [*found, *(((one.left, one.right), one.opinion) for one in checks)]

    def _add_pairs(
        self, pairs: Sequence[ChosenPair], reward: Any, seed: int, env_steps: int
    ) -> None:
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

    def _add_sets(
        self,
        sets: Sequence[tuple[Sequence[Clip], dict[str, np.ndarray] | None]],
        seed: int,
        env_steps: int,
        added: int,
    ) -> None:
        """Add sets but those of the first `added` queries."""
        ask = "rank" if self._config.ask == "rank" else "rate"
        for clips, opinion in sets:
            added -= len(pairs_of(len(clips)))
            if added >= 0:
                continue
            if self._enough():
                return
            films = [self._drawer.films(clip) for clip in clips] if self._drawer else ()
            arrays = [to_arrays(clip) for clip in clips]
            add_sets(self._store, [NewSet(seed, ask, arrays, env_steps, films, opinion)])

    def _opinion(self, reward: Any, left: Clip, right: Clip) -> dict[str, np.ndarray] | None:
        """Return the predicted reward (row 0) and the members' spread (row 1) of each step."""
        opinions = self._model.opinions(reward, [observed(left), observed(right)])
        if opinions is None:
            return None
        both = np.stack([opinions.reward, opinions.spread], 1)
        return {"left": both[0], "right": both[1]}

    def _clips(
        self,
        rng: np.random.Generator,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        known: Known,
    ) -> tuple[Sequence[Clip], Int[np.ndarray, " clips"], int]:
        """Return the clips to choose from, where in their episodes they begin, how many are new.

        The first are from the record.

        Raises:
            UserFacingError: there are fewer than two.
        """
        clips, found = list(random_clips), Found([], [])
        own = self.random_policy.get(seed)
        if record is None:
            clips = clips if own is None else own.first()
        else:
            rare = rare_clips(record, known.comparisons, CANDIDATE_CLIPS)
            clips = own.rare if rare and own is not None else clips
            random = clips[: round(self._config.random_share * CANDIDATE_CLIPS)]
            count = CANDIDATE_CLIPS - len(random) if self._config.random_share < 1 else 0
            length, shown = self._config.clip_length, self._shows_clips
            rare = min(rare, count)
            early = round(self._config.early_share * (count - rare))
            found = some_clips(rng, record, length, count, shown=shown, early=early, rare=rare)
            clips = [*found.clips, *random]
            if count and not found.clips:
                self._say_no_clips(len(record.terminated))
        if len(clips) < 2:
            raise UserFacingError(self._too_short(None if own is None else own.longest))
        unknown = [UNKNOWN] * (len(clips) - len(found.begins))
        return clips, np.array([*found.begins, *unknown]), len(found.clips)

    def _too_short(self, longest: int | None) -> str:
        """Return the message for a run that has begun and finds nothing to ask about.

        Args:
            longest: env steps of the longest clips that fit into random episodes, if known.
        """
        length = self._config.clip_length
        why = f"the rollouts of `{self._env_id}` have fewer than two clips of {length} env steps"
        shorter = max(SHORTEST_CLIP, length // 2) if longest is None else longest
        if length <= SHORTEST_CLIP or shorter < SHORTEST_CLIP:
            return f"{why}: its episodes are too short to be compared in clips"
        return f"{why}: start a new run with --set clip_length={shorter}"

    def _say_no_clips(self, env_steps: int) -> None:
        """Say once that no clip of the agent fits into its record of `env_steps` env steps."""
        if self._said_no_clips:
            return
        self._said_no_clips, length = True, self._config.clip_length
        shorter = max(SHORTEST_CLIP, min(env_steps, length) // 2)
        self._say(
            f"NO CLIP OF THE AGENT: no clip of {length} env steps fits into an episode within the "
            f"newest {env_steps} env steps of an environment of `{self._env_id}`, so queries do "
            f"not show what the agent does; start again with shorter clips, --set "
            f"clip_length={shorter}, or with longer phases"
        )


class _Drawn(NamedTuple):
    """Clips to choose from, where in their episodes they begin, and fresh pairs.

    `rng` has drawn the clips, and goes on to choose among them.
    """

    rng: np.random.Generator
    clips: Sequence[Clip]
    begins: Int[np.ndarray, " clips"]
    checks: Sequence[ChosenPair]
