"""Unlabelled pairs of the newest behaviour, which a reward model gives pseudo-labels.

They are part of the checkpoint, so that a resumed run fits its reward to the same pairs. They are
neither queries nor labels: the label store does not know them.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from jaxtyping import UInt32

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of, stack_rows
from backflip.core.types import Transition
from backflip.preferences.clips import Clip, observed
from backflip.rewards.interface import (
    FitsUnlabelled,
    Fitted,
    LabelledComparison,
    ObservedClip,
    RewardModel,
)
from backflip.training.queries.candidate_clips import some_clips
from backflip.training.teaching.config import TeachConfig

PAIRS = 64  # of each seed
# Separates the random numbers of unlabelled pairs from those of answers (1), fresh pairs (2) and
# demonstrations (3, 4), which are drawn at the same env steps.
UNLABELLED = 5

Pairs = ObservedClip | tuple[()]  # with leading axes of seeds, pairs and sides; `()` if unused


@final
class Unlabelled:
    """The unlabelled pairs of a run.

    Args:
        config: the settings of teaching.
        spec: the environment's spec.
        seeds: the seeds of the run.

    Attributes:
        pairs: those of the newest behaviour.
    """

    def __init__(self, config: TeachConfig, spec: EnvSpec, seeds: Sequence[int]) -> None:
        self._config, self._spec, self._seeds = config, spec, seeds
        self.pairs = no_pairs(config, spec, len(seeds))

    def follow(self, record: Transition, env_steps: int) -> None:
        """Draw pairs of the newest transitions; keep the old ones of a seed without two clips."""
        if isinstance(self.pairs, tuple) and not self.pairs:
            return
        rows = [self._drawn(row, record, env_steps) for row in range(len(self._seeds))]
        self.pairs = stack_rows(rows)

    def fit(
        self,
        model: RewardModel,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the fit of a reward model to labels, and to the pairs if there are any."""
        if isinstance(self.pairs, ObservedClip) and isinstance(model, FitsUnlabelled):
            return model.fit_unlabelled(previous, comparisons, keys, self.pairs)
        return model.fit(previous, comparisons, keys)

    def _drawn(self, row: int, record: Transition, env_steps: int) -> ObservedClip:
        rng = np.random.default_rng([self._seeds[row], 1 + env_steps, UNLABELLED])
        length, before = self._config.clip_length, row_of(self.pairs, row)
        clips = some_clips(rng, row_of(record, row), length, 2 * PAIRS, shown=False).clips
        return before if len(clips) < 2 else _paired(clips, before)


def no_pairs(config: TeachConfig, spec: EnvSpec, seeds: int) -> Pairs:
    """Return pairs without any alive step, which get no pseudo-labels; `()` if unused."""
    if not config.pseudo_label_weight:
        return ()
    axes, box, action = (seeds, PAIRS, 2, config.clip_length), spec.observation, spec.action
    frame = (*box.shape[:-1], box.shape[-1] // spec.frame_stack)
    seen = np.zeros((*axes, *frame), box.dtype)
    done = np.zeros(axes, np.int32)
    if not isinstance(action, Discrete):
        done = np.zeros((*axes, *action.shape), action.dtype)
    return ObservedClip(seen, done, seen, np.zeros(axes, bool))


def _paired(clips: Sequence[Clip], like: ObservedClip) -> ObservedClip:
    """Return the clips as pairs, from the first again if there are too few."""
    chosen = [observed(clips[i % len(clips)]) for i in range(2 * PAIRS)]
    arrays = zip(*chosen, strict=True)
    return ObservedClip(
        *(
            np.stack(array).reshape(old.shape).astype(old.dtype)
            for array, old in zip(arrays, like, strict=True)
        )
    )
