"""From labelled clips to the reward that a compiled phase looks up.

A `Lesson` holds what one label says, as glimpses (the reward model's view of a clip).
`RewardFitter.refit` turns those of all seeds into the parameters of `learned_reward`, which are
data: a new fit compiles nothing.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.trees import row_of, stack_rows
from backflip.core.types import Transition
from backflip.preferences.clips import Clip
from backflip.preferences.features import (
    Encoder,
    encoded_size,
    features,
    fit_encoder,
    glimpse,
    glimpse_size,
    group_sizes,
)
from backflip.preferences.reward_model import MEMBERS, Ensemble, Labelled, fit

LARGEST_REWARD = 3.0  # in standard deviations
LEFT_PREFERRED = {"left": 1.0, "right": 0.0, "tie": 0.5}


class RewardParameters(NamedTuple):
    """One seed's fitted reward, r(x) = clip((w̄ᵀf(x) - offset) / scale, -3, 3).

    Attributes:
        encoder: from glimpses to z.
        weights: (F,) w̄, the mixture's mean given all labels.
        offset: what is subtracted from w̄ᵀf(x).
        scale: what it is divided by.
        members: (M, F) each given some of the labels; sums of wᵀf over clips differ by logits.
    """

    encoder: Encoder
    weights: Float[Array, " F"]
    offset: Float[Array, ""]
    scale: Float[Array, ""]
    members: Float[Array, "M F"]


class Glimpses(NamedTuple):
    """A clip as the reward model sees it: L steps."""

    before: Float[np.ndarray, "L D"]
    action: np.ndarray
    after: Float[np.ndarray, "L D"]
    lived: Bool[np.ndarray, " L"]


class Lesson(NamedTuple):
    """One label: two clips, and 1 for left, 0 for right, ½ for a tie."""

    left: Glimpses
    right: Glimpses
    left_preferred: float


class Fitted(NamedTuple):
    """What a refit leaves.

    Attributes:
        parameters: with a leading axis of seeds.
        metrics: per seed, under documented names.
    """

    parameters: RewardParameters
    metrics: list[dict[str, float]]


def untaught(spec: EnvSpec, seeds: int) -> RewardParameters:
    """Return parameters of a reward that is zero everywhere, for `seeds` seeds."""
    size, k = glimpse_size(spec), encoded_size(spec)
    encoder = Encoder(jnp.zeros(size), jnp.zeros((size, k)), jnp.ones(k))
    members = jnp.zeros((MEMBERS, sum(group_sizes(spec))))
    blank = RewardParameters(encoder, members[0], jnp.zeros(()), jnp.ones(()), members)
    return stack_rows([blank] * seeds)


def learned_reward(
    spec: EnvSpec, parameters: RewardParameters, batch: Transition
) -> Float[Array, "T N"]:
    """Return what the reward model says of a batch (T, N); the true reward is not looked at."""

    def row(step: tuple[Array, Array, Array]) -> Float[Array, " N"]:
        obs, action, next_obs = step
        before, after = (glimpse(spec, newest_frame(spec, x)) for x in (obs, next_obs))
        found = features(spec, parameters.encoder, before, action, after)
        worth = found @ parameters.weights
        worth = (worth - parameters.offset) / parameters.scale
        return jnp.clip(worth, -LARGEST_REWARD, LARGEST_REWARD)

    return jax.lax.map(row, (batch.obs, batch.action, batch.next_obs))


class RewardFitter:
    """Fits the rewards of all seeds; holds the compiled programs.

    Args:
        spec: the environment's.
        labels: the budget of each seed; fits are padded to it, so that one program is compiled.
    """

    def __init__(self, spec: EnvSpec, labels: int) -> None:
        self._spec, self._labels = spec, labels
        self._groups = group_sizes(spec)
        self._glimpse = jax.jit(partial(glimpse, spec))
        self._features = jax.jit(partial(features, spec))
        # One device and one seed after the other: LAPACK inside a program that is spread over
        # several CPU devices waits for itself for ever.
        self._fit: Callable[[Labelled, np.ndarray], Ensemble] = jax.jit(self._fit_seeds)

    def look(self, clip: Clip) -> Glimpses:
        """Return a clip as the reward model sees it."""
        before, after = (np.asarray(self._glimpse(x)) for x in (clip.obs, clip.next_obs))
        return Glimpses(before, clip.action, after, clip.lived)

    def look_around(
        self, record: Transition
    ) -> tuple[Float[np.ndarray, "B D"], Float[np.ndarray, "B D"]]:
        """Return glimpses before and after every step of one seed's record."""

        def look(observations: Any) -> Float[np.ndarray, "B D"]:  # in pieces: floats are large
            seen = np.stack([np.asarray(self._glimpse(row)) for row in observations])
            return seen[record.valid]

        return look(record.obs), look(record.next_obs)

    def clip_returns(
        self, parameters: RewardParameters, clips: Sequence[Clip]
    ) -> Float[np.ndarray, "clips M"]:
        """Return each member's sum of wᵀf over each clip, in logits (of one seed's parameters)."""
        sums = self._sums(parameters.encoder, [self.look(clip) for clip in clips])
        return sums @ np.asarray(parameters.members).T

    def opinion(
        self, parameters: RewardParameters, left: Clip, right: Clip
    ) -> dict[str, Float[np.ndarray, "2 L"]] | None:
        """Return what one seed's reward model thinks of two clips, step by step.

        Row 0 is the reward r(x), row 1 how far the members are apart about it: the standard
        deviation of κ wₘᵀf(x) over members m, in units of the reward. κ, one number for both
        clips, is the least-squares factor that brings the members' mean to the scale of w̄ᵀf. Steps
        not lived are 0. None where nothing has been learnt yet.
        """
        members, weights = np.asarray(parameters.members), np.asarray(parameters.weights)
        if not weights.any():
            return None
        clips = [self.look(left), self.look(right)]
        seen = self._clip_features(parameters.encoder, clips)
        worth, votes = seen @ weights, seen @ members.T
        mean = votes.mean(-1)
        factor = (worth * mean).sum() / max(float(np.square(mean).sum()), 1e-12)
        reward = np.clip(
            (worth - np.asarray(parameters.offset)) / np.asarray(parameters.scale),
            -LARGEST_REWARD,
            LARGEST_REWARD,
        )
        apart = np.abs(factor) * votes.std(-1) / np.asarray(parameters.scale)
        lived = np.stack([clip.lived for clip in clips])
        both = (np.stack([reward, apart], 1) * lived[:, None]).astype(np.float32)
        return {"left": both[0], "right": both[1]}

    def refit(
        self, lessons: Sequence[Sequence[Lesson]], encoders: Sequence[Encoder], keys: np.ndarray
    ) -> Fitted:
        """Fit every seed anew from all its lessons.

        Args:
            lessons: of each seed.
            encoders: of each seed.
            keys: raw key data, one for each seed.
        """
        seen = [self._steps(e, one) for e, one in zip(encoders, lessons, strict=True)]
        room = max([self._labels, *map(len, lessons)])  # imported labels may exceed the budget
        labelled = [
            self._pad(x.sums, [lesson.left_preferred for lesson in one], room)
            for x, one in zip(seen, lessons, strict=True)
        ]
        ensembles = jax.tree.map(np.asarray, self._fit(stack_rows(labelled), keys))
        fitted = [
            _scaled(encoder, row_of(ensembles, i), steps)
            for i, (encoder, steps) in enumerate(zip(encoders, seen, strict=True))
        ]
        return Fitted(stack_rows([one for one, _ in fitted]), [metrics for _, metrics in fitted])

    def _fit_seeds(self, labelled: Labelled, keys: Array) -> Ensemble:
        def one(seed: tuple[Labelled, Array]) -> Ensemble:
            return fit(seed[0], self._groups, jax.random.wrap_key_data(seed[1]))

        return jax.lax.map(one, (labelled, keys))

    def _steps(self, encoder: Encoder, lessons: Sequence[Lesson]) -> "_Steps":
        if not lessons:  # all skipped: a reward of zero, as of one step without features
            size = sum(self._groups)
            none = np.zeros((0, size), np.float32)
            return _Steps(np.zeros((1, size), np.float32), none, True, np.zeros(0))
        clips = [clip for lesson in lessons for clip in (lesson.left, lesson.right)]
        every = self._clip_features(encoder, clips)
        lived = np.stack([clip.lived for clip in clips])
        sums = (every * lived[..., None]).sum(1)
        preferred = np.array([lesson.left_preferred for lesson in lessons])
        return _Steps(every[lived], sums, bool(lived.all()), preferred)

    def _sums(self, encoder: Encoder, clips: Sequence[Glimpses]) -> Float[np.ndarray, "clips F"]:
        lived = np.stack([clip.lived for clip in clips])
        return (self._clip_features(encoder, clips) * lived[..., None]).sum(1)

    def _clip_features(
        self, encoder: Encoder, clips: Sequence[Glimpses]
    ) -> Float[np.ndarray, "clips L F"]:
        """Return the features of every step, in batches of one size: one program for any number."""
        each = 16
        out: list[np.ndarray] = []
        for start in range(0, len(clips), each):
            some = list(clips[start : start + each])
            filled = some + some[-1:] * (each - len(some))
            joined = Glimpses(*(np.concatenate(field) for field in zip(*filled, strict=True)))
            values = self._features(encoder, joined.before, joined.action, joined.after)
            out.append(np.asarray(values).reshape(each, -1, values.shape[-1])[: len(some)])
        return np.concatenate(out)

    def _pad(
        self, sums: Float[np.ndarray, "clips F"], preferred: Sequence[float], room: int
    ) -> Labelled:
        """Return the labels of one seed, filled up to `room` with weight 0."""
        count = len(preferred)
        difference = np.zeros((room, sums.shape[1]), np.float32)
        difference[:count] = sums[0::2] - sums[1::2]
        answers, weight = np.zeros((2, room), np.float32)
        answers[:count], weight[:count] = preferred, 1.0
        return Labelled(*(jnp.asarray(x) for x in (difference, answers, weight)))


class _Steps(NamedTuple):
    """Features of one seed's labelled clips: of the steps lived, and summed over clips."""

    lived: Float[np.ndarray, "steps F"]
    sums: Float[np.ndarray, "clips F"]
    endless: bool
    left_preferred: Float[np.ndarray, " labels"]


def _scaled(
    encoder: Encoder, ensemble: Ensemble, steps: _Steps
) -> tuple[RewardParameters, dict[str, float]]:
    """Return parameters of a reward of standard deviation 1 over all labelled clips, and metrics.

    Models are normalised before averaging. Where some clip saw an episode end, zero is what the
    time after it is worth: nothing is subtracted, and the root mean square is scaled instead.
    """
    spread = np.maximum(_spread(steps.lived @ ensemble.models.T, steps.endless), 1e-8)
    weights = (ensemble.models / spread[:, None]).T @ ensemble.chances
    worth = steps.lived @ weights
    offset = worth.mean() if steps.endless else np.float32(0.0)
    scale = np.maximum(_spread(worth[:, None], steps.endless)[0], 1e-8)
    numbers = (weights, offset, scale, ensemble.members)
    parameters = RewardParameters(encoder, *(jnp.asarray(x, jnp.float32) for x in numbers))
    return parameters, _metrics(ensemble, steps, (worth - offset) / scale)


def _spread(worth: Float[np.ndarray, "steps M"], endless: bool) -> Float[np.ndarray, " M"]:
    return worth.std(0) if endless else np.sqrt(np.square(worth).mean(0))


def _metrics(
    ensemble: Ensemble, steps: _Steps, reward: Float[np.ndarray, " steps"]
) -> dict[str, float]:
    """Return what a refit measured; the held-out accuracy is of each member on labels not drawn."""
    margin = (steps.sums[0::2] - steps.sums[1::2]) @ ensemble.members.T
    decided = steps.left_preferred != 0.5
    right = (margin > 0) == (steps.left_preferred[:, None] > 0.5)
    held_out = (ensemble.drawn[:, : len(margin)] == 0).T & decided[:, None]
    return {
        "reward_model_labels": float(len(margin)),
        "reward_model_ties": float((~decided).sum()),
        "reward_model_accuracy": _mean(right[decided]),
        "reward_model_held_out_accuracy": _mean(right[held_out]),
        "reward_model_log_evidence": float(ensemble.log_evidence.max()),
        "reward_model_disagreement": _mean(np.std(np.sign(margin), axis=1)),
        "reward_model_mean": float(reward.mean()),
        "reward_model_std": float(reward.std()),
        "reward_model_min": float(reward.min()),
        "reward_model_max": float(reward.max()),
    }


def _mean(numbers: Shaped[np.ndarray, "..."]) -> float:
    return float(numbers.mean()) if numbers.size else float("nan")


def encode_all(
    around: tuple[Float[np.ndarray, "B D"], Float[np.ndarray, "B D"]], lessons: Sequence[Lesson]
) -> Encoder:
    """Return the encoder for one seed from its random record and the clips labelled so far.

    Args:
        around: glimpses of the random record, before and after each step.
        lessons: the labels.
    """
    clips = [clip for lesson in lessons for clip in (lesson.left, lesson.right)]
    befores = [around[0], *(clip.before[clip.lived] for clip in clips)]
    afters = [around[1], *(clip.after[clip.lived] for clip in clips)]
    return fit_encoder(np.concatenate(befores), np.concatenate(afters))
