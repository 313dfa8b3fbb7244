"""Labels from demonstrations: a clip of a demonstration is preferred to a clip of the agent.

Source: Ibarz et al. 2018, arXiv:1811.06521, section 2 (automatic labels). There the other clips are
of the initial policy only; here also of later ones, fewer with time.

Each round adds `demonstration_share` labels from demonstrations for each of its queries. With the
default, .25, at most one label in five is made in this way. Once the agent is as good as the
demonstration, half of these labels are wrong: one label in ten, which is the share of random
answers that a reward model allows for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import final

import numpy as np

from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.preferences.clips import Clip, to_arrays
from backflip.preferences.label_inserts import packed_clip
from backflip.preferences.label_records import DEMONSTRATION, AnsweredElsewhere
from backflip.preferences.labels import LabelStore
from backflip.preferences.trajectories import Trajectories, clip_at, windows
from backflip.training.queries.candidate_clips import CANDIDATE_CLIPS, some_clips
from backflip.training.queries.recorded_clips import (
    Recorded,
    about_source,
    kept_clips,
    read_recorded,
)
from backflip.training.teaching.config import TeachConfig
from runshelf.errors import UsageError, shown
from runshelf.formatting import plural
from runshelf.store.run import Run
from runshelf.store.times import now

DEMONSTRATED = "demonstrations.safetensors"
CONFIG = "demonstrations"  # the entry of a run's configuration
OWN, DRAWN = 3, 4  # separate these random numbers from those that choose other clips


def checked_sources(demonstrations: object) -> list[str]:
    """Return the sources that a program names.

    Raises:
        UsageError: they are not a path, text, or a list of these.
    """
    one = isinstance(demonstrations, str | Path)
    some = [demonstrations] if one else demonstrations
    if not isinstance(some, list | tuple) or not some:
        raise UsageError(
            f"`demonstrations` must be a file, or a list of files, got {shown(demonstrations)}"
        )
    for source in some:
        if not isinstance(source, str | Path):
            raise UsageError(f"`demonstrations` must be files, got {shown(source)}")
    return [str(source) for source in some]


def draw_demonstrations(
    sources: Sequence[str], spec: EnvSpec, config: TeachConfig, seed: int
) -> Recorded:
    """Return clips of demonstrations, drawn uniformly, the same number of each source.

    Args:
        sources: `.npz` files, or `minari:` and an id.
        spec: the environment's spec.
        config: the settings of teaching.
        seed: the first seed, which decides what is drawn.

    Raises:
        UsageError: a source cannot be used, or is too short for a clip; the message says why.
    """
    rng = np.random.default_rng([seed, DRAWN])
    most = max(1, CANDIDATE_CLIPS // len(sources))
    clips: list[Clip] = []
    abouts: list[dict[str, object]] = []
    for source in sources:
        found = read_recorded(source, spec, "--demonstrations")
        places = windows(found, config.clip_length)
        if not len(places):
            raise _too_short(source, found, config.clip_length)
        chosen = rng.choice(places, min(len(places), most), replace=False)
        clips += [clip_at(found, int(start), config.clip_length) for start in chosen]
        abouts.append(about_source(source, found))
    return Recorded(clips, {"sources": abouts, "drawn": len(clips)})


def demonstration_schedule(queries: Sequence[int], share: float) -> list[int]:
    """Return the number of labels that each round adds; in all `share` times the queries.

    Args:
        queries: the number of queries of each round.
        share: labels for each query.
    """
    total = np.round(share * np.cumsum(queries)).astype(int)
    return np.diff(total, prepend=0).tolist()


def demonstrations_in_words(run: Run, config: TeachConfig, rounds: Sequence[int]) -> str:
    """Return which demonstrations a run learns from, and how many labels; empty if none."""
    about = run.config.get(CONFIG)
    if not about:
        return ""
    episodes = sum(one["trajectories"] for one in about["sources"])
    files = ", ".join(f"`{one['source']}`" for one in about["sources"])
    labels = sum(demonstration_schedule(rounds, config.demonstration_share))
    return (
        f"{plural(about['drawn'], 'clip')} of {plural(episodes, 'demonstrated episode')} ({files}) "
        f"give each seed {plural(labels, 'label')} more: they are preferred to the agent's clips"
    )


@final
class Demonstrations:
    """The demonstrations of a run, and the labels made from them.

    Args:
        run: the run.
        spec: the environment's spec.
        config: the settings of teaching.
        store: the labels of the run.

    Raises:
        DamagedFile: the clips of the run are lost or damaged.
    """

    def __init__(
        self,
        run: Run,
        spec: EnvSpec,
        config: TeachConfig,
        store: LabelStore,
    ) -> None:
        known, length = bool(run.config.get(CONFIG)), config.clip_length
        self._clips = kept_clips(run.folder / DEMONSTRATED, spec, length) if known else []
        self._length, self._store = length, store
        self._share = config.demonstration_share

    def add_labels(
        self,
        rounds: Sequence[int],
        number: int,
        seed: int,
        random_clips: Sequence[Clip],
        record: Transition | None,
        env_steps: int,
    ) -> None:
        """Add the labels of one round; those that a killed process added are not added again.

        Args:
            rounds: the number of queries of each round; later ones may still change.
            number: the round.
            seed: the seed.
            random_clips: clips of the random policy, used if there is no record.
            record: the newest transitions of the agent.
            env_steps: env steps of the seed when the record ended.
        """
        count = demonstration_schedule(rounds, self._share)[number]
        if not self._clips or not count:
            return
        rng = np.random.default_rng([seed, 1 + env_steps, OWN])
        own = random_clips
        if record is not None:
            own = some_clips(rng, record, self._length, count, shown=False).clips
        if own:
            self._store.add_answered(
                self._label(rng, seed, own, env_steps, place) for place in range(count)
            )

    def _label(
        self,
        rng: np.random.Generator,
        seed: int,
        own: Sequence[Clip],
        env_steps: int,
        place: int,
    ) -> AnsweredElsewhere:
        """Return one pair with its answer; the side of the demonstration is random."""
        better = self._clips[int(rng.integers(len(self._clips)))]
        worse = own[int(rng.integers(len(own)))]
        left = bool(rng.random() < 0.5)
        better, worse = (packed_clip(to_arrays(clip)) for clip in (better, worse))
        return AnsweredElsewhere(
            clips=(better, worse) if left else (worse, better),
            seed=seed,
            env_steps=env_steps,
            answer="left" if left else "right",
            who=DEMONSTRATION,
            at=now(),
            seconds=0.0,
            origin=None,
            attempts={seed: f"{DEMONSTRATION}-{seed}-{env_steps}-{place}"},
        )


def _too_short(source: str, found: Trajectories, length: int) -> UsageError:
    longest = int(np.diff(np.flatnonzero(np.diff(found.last, prepend=-1, append=-1))).max())
    return UsageError(
        f"`{source}` has no clip of {length} env steps: its longest episode has {longest}; "
        f"try --set clip_length={max(2, longest)}, or record a longer one"
    )
