"""Fits the learned reward of a run to its labels."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, final

import jax
import numpy as np

from backflip.drivers.driver import REWARD_FIT
from backflip.preferences.clips import from_arrays, observed
from backflip.preferences.labels import LabelStore
from backflip.rewards.interface import (
    TIE,
    TIE_WIDTH,
    LabelledComparison,
    ObservedClip,
    RewardModel,
)
from backflip.training.queries.unlabelled import Unlabelled

LEFT_PREFERRED = {"left": 1.0, "right": 0.0, "tie": TIE}


@final
class RewardFits:
    """The fits of a run's reward model.

    Args:
        model: the reward model.
        store: the run's labels.
        seeds: the seeds of the run.
        unlabelled: pairs for pseudo-labels.

    Attributes:
        metrics: of the last fit, one dictionary for each seed; empty ones before.
        comparisons: the labels of the last fit, a list for each seed.
    """

    def __init__(
        self, model: RewardModel, store: LabelStore, seeds: Sequence[int], unlabelled: Unlabelled
    ) -> None:
        self._model, self._store, self._seeds = model, store, seeds
        self._unlabelled = unlabelled
        self._records = 0  # of the label store, at the last fit
        self.metrics: list[dict[str, float]] = [{} for _ in seeds]
        self.comparisons: list[list[LabelledComparison]] = [[] for _ in seeds]

    @property
    def saved(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"fit_metrics": self.metrics, "records_learnt": self._records}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from a checkpoint; from the start if it is empty."""
        self.metrics = saved.get("fit_metrics", self.metrics)
        self._records = saved.get("records_learnt", self._records)

    def has_new_labels(self, env_steps: int) -> bool:
        """Return whether labels of queries until `env_steps` changed since the last fit."""
        return self._store.count_records(env_steps) != self._records

    def fit(self, previous: Any, env_steps: int) -> Any:
        """Return the parameters fitted to all current labels of queries until `env_steps`."""
        self._records = self._store.count_records(env_steps)
        self.comparisons = [self.comparisons_of(seed, env_steps) for seed in self._seeds]
        keys = self._keys(env_steps)
        fitted = self._unlabelled.fit(self._model, previous, self.comparisons, keys)
        self.metrics = fitted.metrics
        return fitted.parameters

    def compile_ahead(self, previous: Any) -> None:
        """Fit without labels, so that the first fit with labels compiles less."""
        none = [[] for _ in self._seeds]
        self._unlabelled.fit(self._model, previous, none, self._keys(0))

    def comparisons_of(self, seed: int, env_steps: int) -> list[LabelledComparison]:
        """Return all current labels of a seed; earlier ones may have been undone."""
        return [
            LabelledComparison(
                query=answer.query,
                clips=partial(self._clips_of, answer.query),
                left_preferred=LEFT_PREFERRED[answer.answer],
                env_steps=answer.env_steps,
            )
            for answer in self._store.in_force(seed, env_steps)
        ]

    def tie_width(self, row: int) -> float:
        """Return θ of the last fit of a seed, in logits; 0 without ties."""
        return self.metrics[row].get(TIE_WIDTH, 0.0)

    def mean_metrics(self) -> dict[str, float]:
        """Return the metrics of the last fit, each averaged over the seeds that have it."""
        names = dict.fromkeys(name for metrics in self.metrics for name in metrics)
        return {
            name: float(np.mean([metrics[name] for metrics in self.metrics if name in metrics]))
            for name in names
        }

    def _clips_of(self, query: int) -> tuple[ObservedClip, ObservedClip]:
        left, right = (observed(from_arrays(clip)) for clip in self._store.clips(query))
        return left, right

    def _keys(self, env_steps: int) -> np.ndarray:
        return np.stack([key_of_fit(seed, env_steps) for seed in self._seeds])


def key_of_fit(seed: int, env_steps: int) -> np.ndarray:
    """Return the raw key of a seed's fit, which nothing else uses."""
    key = jax.random.fold_in(jax.random.key(seed), REWARD_FIT)
    return np.asarray(jax.random.key_data(jax.random.fold_in(key, env_steps)))
