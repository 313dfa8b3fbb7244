"""The linear reward model and the additive one, which has one more group of features.

`features` has the inputs, `evidence` the fit of the weights.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from backflip.core.blas import one_blas_thread
from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.trees import row_of, stack_rows
from backflip.core.types import Transition
from backflip.rewards.inputs import (
    ClipEncoder,
    EncodedClip,
    apply_to_steps,
    observation_size,
    observation_vectors,
)
from backflip.rewards.interface import Fitted, LabelledComparison, ObservedClip, Opinions
from backflip.rewards.linear.evidence import MEMBERS, Ensemble, Labelled, fit
from backflip.rewards.linear.features import (
    KNOTS,
    Encoder,
    Thresholds,
    distance_weights,
    encoded_size,
    features,
    fit_encoder,
    fit_thresholds,
    group_sizes,
)
from backflip.rewards.measures import (
    LARGEST_REWARD,
    label_metrics,
    reward_metrics,
    scale_of,
)

TIE = 0.5  # `left_preferred` of a tie


class LinearParameters(NamedTuple):
    """One seed's fitted reward, r(x) = clip((w̄ᵀf(x) - offset) / scale, -3, 3).

    Attributes:
        encoder: maps observation vectors to z.
        weights: w̄, the mean of the mixture fitted to all labels.
        offset: subtracted from w̄ᵀf(x).
        scale: divides w̄ᵀf(x) - offset.
        members: w of each member, fitted to a bootstrap sample; differences of wᵀf summed over
            clips are logits.
        thresholds: of the threshold group; `()` in the linear model.
    """

    encoder: Encoder
    weights: Float[Array, " F"]
    offset: Float[Array, ""]
    scale: Float[Array, ""]
    members: Float[Array, "M F"]
    thresholds: Thresholds | tuple[()] = ()


class LinearRewardModel:
    """Fits the rewards of all seeds; caches encoders and encoded clips.

    Args:
        spec: the environment's spec.
        labels: the budget of each seed; fits are padded to it, so one program is compiled.
        clip_length: unused.
    """

    knots = 0  # thresholds of each number

    def __init__(self, spec: EnvSpec, labels: int, clip_length: int) -> None:
        del clip_length
        self._spec, self._labels = spec, labels
        self._groups = group_sizes(spec, self.knots)
        self._clips = ClipEncoder(spec)
        self._random: list[_Random] = []  # one for each seed
        self._encoders: dict[int, _FittedEncoder] = {}  # by the row of the seed

    def initial(self, seeds: int) -> LinearParameters:
        """Return parameters of a reward that is zero everywhere."""
        size, k = observation_size(self._spec), encoded_size(self._spec)
        encoder = Encoder(jnp.zeros(size), jnp.zeros((size, k)), jnp.ones(k))
        members = jnp.zeros((MEMBERS, sum(self._groups)))
        ones = jnp.ones((k, self.knots))
        thresholds = Thresholds(0 * ones, ones) if self.knots else ()
        numbers = (members[0], jnp.zeros(()), jnp.ones(()), members)
        blank = LinearParameters(encoder, *numbers, thresholds)
        return stack_rows([blank] * seeds)

    def predict(self, parameters: LinearParameters, batch: Transition) -> Float[Array, "T N"]:
        """Return the predicted reward of a batch; the true reward is not read."""
        spec = self._spec

        def row(step: tuple[Array, Array, Array]) -> Float[Array, " N"]:
            obs, action, next_obs = step
            before, after = (
                observation_vectors(spec, newest_frame(spec, x)) for x in (obs, next_obs)
            )
            found = features(spec, parameters.encoder, before, action, after, parameters.thresholds)
            reward = (found @ parameters.weights - parameters.offset) / parameters.scale
            return jnp.clip(reward, -LARGEST_REWARD, LARGEST_REWARD)

        return jax.lax.map(row, (batch.obs, batch.action, batch.next_obs))

    def observe(self, record: Transition) -> None:
        """Keep the observations of one seed's random policy to fit encoders to."""

        def vectors(observations: Any) -> Float[np.ndarray, "B D"]:  # row by row: to save memory
            rows = np.stack([self._clips.vectors(row) for row in observations])
            return rows[record.valid]

        self._random.append(_Random(vectors(record.obs), vectors(record.next_obs)))

    def fit(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the rewards of all seeds, each fitted from scratch to all its labels."""
        del previous
        with one_blas_thread():
            return self._fit(comparisons, keys)

    def _fit(
        self,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        encoders = [self._encoder(row, one) for row, one in enumerate(comparisons)]
        steps = [self._steps(e, one) for e, one in zip(encoders, comparisons, strict=True)]
        room = max([self._labels, *map(len, comparisons)])
        labelled = stack_rows([_padded(one, room) for one in steps])
        ensembles = jax.tree.map(np.asarray, _fit_seeds(self._groups.used, labelled, keys))
        fitted = [
            _scaled(encoder, self._or_explore(row_of(ensembles, i), one), one)
            for i, (encoder, one) in enumerate(zip(encoders, steps, strict=True))
        ]
        return Fitted(stack_rows([one for one, _ in fitted]), [metrics for _, metrics in fitted])

    def _or_explore(self, ensemble: Ensemble, steps: "_Steps") -> Ensemble:
        """Return the ensemble, or, if all answers are ties, the reward of exploring.

        Then nothing is known but that the clips so far are alike. What the fit leaves is rounding
        noise, which the scaling of the reward would blow up. The reward is the squared distance
        from the mean of the observed data instead, so that the policy shows something new.
        """
        if not len(steps.left_preferred) or (steps.left_preferred != TIE).any():
            return ensemble
        distance = distance_weights(self._spec, self._groups)
        models = np.broadcast_to(distance, ensemble.models.shape)
        return ensemble._replace(models=models, members=np.zeros_like(ensemble.members))

    def opinions(
        self, parameters: LinearParameters, clips: Sequence[ObservedClip]
    ) -> Opinions | None:
        """Return the reward, the members' spread and their sums for each clip.

        The spread is the standard deviation of κ wₘᵀf(x) over members m, in units of the reward.
        κ is the least-squares factor, common to all clips, that scales the members' mean to w̄ᵀf.
        """
        members, weights = np.asarray(parameters.members), np.asarray(parameters.weights)
        if not weights.any():
            return None
        encoded = [self._clips.encode(clip) for clip in clips]
        found = self._clip_features(_Inputs(parameters.encoder, parameters.thresholds), encoded)
        alive = np.stack([clip.alive for clip in encoded])
        raw, of_members = found @ weights, found @ members.T
        mean, scale = of_members.mean(-1), np.asarray(parameters.scale)
        factor = (raw * mean).sum() / max(float(np.square(mean).sum()), 1e-12)
        reward = (raw - np.asarray(parameters.offset)) / scale
        reward = np.clip(reward, -LARGEST_REWARD, LARGEST_REWARD)
        spread = np.abs(factor) * of_members.std(-1) / scale
        reward, spread = ((x * alive).astype(np.float32) for x in (reward, spread))
        return Opinions(reward, spread, (found * alive[..., None]).sum(1) @ members.T)

    def _encoder(self, row: int, comparisons: Sequence[LabelledComparison]) -> "_Inputs":
        """Return a seed's encoder and thresholds.

        They are fitted again each time its labels have doubled. The labels determine when that
        happened, so a resumed run has the same encoders.
        """
        used = comparisons[: last_doubling([one.env_steps for one in comparisons])]
        queries = tuple(one.query for one in used)
        known = self._encoders.get(row)
        if known is None or known.queries != queries:
            clips = self._clips.labelled(used)
            known = _FittedEncoder(queries, self._inputs_of(self._random[row], clips))
            self._encoders[row] = known
        return known.inputs

    def _inputs_of(self, random: "_Random", clips: Sequence[EncodedClip]) -> "_Inputs":
        """Return what is fitted to one seed's random policy and labelled clips."""
        befores = [random.before, *(clip.before[clip.alive] for clip in clips)]
        after = np.concatenate([random.after, *(clip.after[clip.alive] for clip in clips)])
        encoder = fit_encoder(np.concatenate(befores), after)
        return _Inputs(encoder, fit_thresholds(encoder, after) if self.knots else ())

    def _steps(self, inputs: "_Inputs", comparisons: Sequence[LabelledComparison]) -> "_Steps":
        if not comparisons:  # one step with features of zero gives a reward of zero
            size = sum(self._groups)
            none = np.zeros((0, size), np.float32)
            return _Steps(np.zeros((1, size), np.float32), none, True, np.zeros(0))
        clips = self._clips.labelled(comparisons)
        every = self._clip_features(inputs, clips)
        alive = np.stack([clip.alive for clip in clips])
        sums = (every * alive[..., None]).sum(1)
        preferred = np.array([one.left_preferred for one in comparisons])
        return _Steps(every[alive], sums, bool(alive.all()), preferred)

    def _clip_features(
        self, inputs: "_Inputs", clips: Sequence[EncodedClip]
    ) -> Float[np.ndarray, "clips L F"]:
        def found(before: Any, action: Any, after: Any) -> Any:
            return _features(self._spec, inputs.encoder, before, action, after, inputs.thresholds)

        return apply_to_steps(found, clips)


@final
class AdditiveRewardModel(LinearRewardModel):
    """The linear model with the threshold group: an additive function of each number."""

    knots = KNOTS


class _Inputs(NamedTuple):
    """What features are computed with; fitted without labels."""

    encoder: Encoder
    thresholds: Thresholds | tuple[()]


class _Random(NamedTuple):
    """Observation vectors before and after each step of one seed's random policy."""

    before: Float[np.ndarray, "B D"]
    after: Float[np.ndarray, "B D"]


class _FittedEncoder(NamedTuple):
    """An encoder with thresholds, and the queries whose clips they were fitted to."""

    queries: tuple[int, ...]
    inputs: _Inputs


class _Steps(NamedTuple):
    """Features of one seed's labelled clips: for each alive step, and summed over each clip."""

    alive: Float[np.ndarray, "steps F"]
    sums: Float[np.ndarray, "clips F"]
    endless: bool
    left_preferred: Float[np.ndarray, " labels"]


_features = jax.jit(features, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def _fit_seeds(groups: tuple[int, ...], labelled: Labelled, keys: Array) -> Ensemble:
    # One seed after the other on one device: LAPACK hangs in a program that runs on several CPU
    # devices.
    def one(seed: tuple[Labelled, Array]) -> Ensemble:
        return fit(seed[0], groups, jax.random.wrap_key_data(seed[1]))

    return jax.lax.map(one, (labelled, keys))


def _padded(steps: _Steps, room: int) -> Labelled:
    """Return the labels of one seed, padded to `room` with weight 0."""
    count = len(steps.left_preferred)
    difference = np.zeros((room, steps.sums.shape[1]), np.float32)
    difference[:count] = steps.sums[0::2] - steps.sums[1::2]
    answers, weight = np.zeros((2, room), np.float32)
    answers[:count], weight[:count] = steps.left_preferred, 1.0
    return Labelled(*(jnp.asarray(x) for x in (difference, answers, weight)))


def _scaled(
    inputs: _Inputs, ensemble: Ensemble, steps: _Steps
) -> tuple[LinearParameters, dict[str, float]]:
    """Return one seed's parameters, scaled over all labelled clips, and metrics.

    Models are scaled before they are averaged.
    """
    spread = scale_of(steps.alive @ ensemble.models.T, steps.endless).spread
    weights = (ensemble.models / spread[:, None]).T @ ensemble.chances
    raw = steps.alive @ weights
    offset, scale = (x[0] for x in scale_of(raw[:, None], steps.endless))
    numbers = (weights, offset, scale, ensemble.members)
    w, b, c, members = (jnp.asarray(x, jnp.float32) for x in numbers)
    parameters = LinearParameters(inputs.encoder, w, b, c, members, inputs.thresholds)
    return parameters, _metrics(ensemble, steps, (raw - offset) / scale)


def _metrics(
    ensemble: Ensemble, steps: _Steps, reward: Float[np.ndarray, " steps"]
) -> dict[str, float]:
    margin = (steps.sums[0::2] - steps.sums[1::2]) @ ensemble.members.T
    held_out = np.asarray(ensemble.drawn)[:, : len(margin)].T == 0
    measured = label_metrics(margin, steps.left_preferred, held_out) | reward_metrics(reward)
    return measured | {
        "reward_model_log_evidence": float(ensemble.log_evidence.max()),
        "reward_model_tie_width": float(ensemble.tie_widths @ ensemble.chances),
    }


def last_doubling(query_env_steps: Sequence[int]) -> int:
    """Return the number of labels at the last round after which they had doubled; 0 if none.

    Args:
        query_env_steps: env steps at which the query of each label was made.
    """
    labels = 0
    for env_steps in sorted(set(query_env_steps)):
        so_far = sum(at <= env_steps for at in query_env_steps)
        if so_far >= 2 * labels:
            labels = so_far
    return labels
