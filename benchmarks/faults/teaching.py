"""Faults of teaching: of answers, of their way to the reward model, and of the learned reward."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from fault import Change, Fault

ANSWER = "preferences.teachers:SimulatedTeacher.answer"
CLIPS = "training.reward_learning.reward_fits:RewardFits._clips_of"
COMPARISONS = "training.reward_learning.reward_fits:RewardFits.comparisons_of"
FIT = "training.teaching.loop:TeachRun._fit_reward"
PREDICT = "rewards.linear.model:LinearRewardModel.predict"
OTHER_SIDE = {"left": "right", "right": "left"}


def _answered(change: Callable[[Any, Any, np.random.Generator], Any]) -> Change:
    """Return a patch that changes the teacher's answer to a query."""

    def patch(answer: Any) -> Any:
        def changed(self: Any, query: Any, rng: np.random.Generator) -> Any:
            return change(answer(self, query, rng), query, rng)

        return changed

    return patch


def _inverted(answer: Any, query: Any, rng: np.random.Generator) -> Any:
    del query, rng
    return OTHER_SIDE.get(answer, answer)


def _random(answer: Any, query: Any, rng: np.random.Generator) -> Any:
    del answer, query
    return str(rng.choice(("left", "right")))


def _mostly_left(answer: Any, query: Any, rng: np.random.Generator) -> Any:
    del query
    return "left" if rng.random() < 0.9 else answer


def _clips_of_another_query(clips_of: Any) -> Any:
    """Each answer is about the clips of the query before."""

    def changed(self: Any, query: int) -> Any:
        return clips_of(self, max(query - 1, 1))

    return changed


def _sides_mixed_up(clips_of: Any) -> Any:
    """Left and right are exchanged in every second query."""

    def changed(self: Any, query: int) -> Any:
        left, right = clips_of(self, query)
        return (right, left) if query % 2 else (left, right)

    return changed


def _first_labels_only(comparisons: Any) -> Any:
    """Later labels never reach the fit."""

    def changed(self: Any, seed: int, env_steps: int) -> Any:
        return comparisons(self, seed, env_steps)[:5]

    return changed


def _never_used(fit_reward: Any) -> Any:
    """The agent learns from the reward of the first fit."""
    first: dict[int, Any] = {}

    def changed(self: Any, number: int, reward: Any) -> Any:
        fitted = fit_reward(self, number, reward)
        return first.setdefault(id(self), fitted)

    return changed


def _other_predictions(change: Callable[[Any], Any]) -> Change:
    """Return a patch of the reward that the agent learns from, and not of the fit."""

    def patch(predict: Any) -> Any:
        def changed(self: Any, parameters: Any, batch: Any) -> Any:
            return predict(self, parameters, change(batch))

        return changed

    return patch


def _negated(predict: Any) -> Any:
    def changed(self: Any, parameters: Any, batch: Any) -> Any:
        return -predict(self, parameters, batch)

    return changed


def _scaled(batch: Any) -> Any:
    return batch._replace(obs=batch.obs / 10.0, next_obs=batch.next_obs / 10.0)


def _of_neighbour(batch: Any) -> Any:
    return batch._replace(
        obs=jnp.roll(batch.obs, 1, axis=-2), next_obs=jnp.roll(batch.next_obs, 1, axis=-2)
    )


FAULTS = tuple(
    Fault(name, "teaching", causes, ("teach",), patches={place: patch})
    for name, causes, place, patch in (
        ("answers-inverted", ("labels", "reward-sign"), ANSWER, _answered(_inverted)),
        ("answers-random", ("labels",), ANSWER, _answered(_random)),
        ("answers-mostly-left", ("labels",), ANSWER, _answered(_mostly_left)),
        ("clips-of-another-query", ("labels", "reward-model"), CLIPS, _clips_of_another_query),
        ("sides-mixed-up", ("labels", "reward-model"), CLIPS, _sides_mixed_up),
        ("first-labels-only", ("reward-model", "labels"), COMPARISONS, _first_labels_only),
        ("reward-of-the-first-fit", ("reward-paths", "reward-model"), FIT, _never_used),
        ("reward-negated-for-agent", ("reward-paths", "reward-sign"), PREDICT, _negated),
        ("scaled-for-agent", ("reward-paths",), PREDICT, _other_predictions(_scaled)),
        ("of-neighbour-for-agent", ("reward-paths",), PREDICT, _other_predictions(_of_neighbour)),
    )
)
