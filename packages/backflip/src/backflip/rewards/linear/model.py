"""The linear reward models: Bayesian weights on a representation.

`backflip.rewards.representations` has the features, `evidence` the fit of the weights.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from backflip.core.blas import one_blas_thread
from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.trees import stack_rows
from backflip.core.types import Transition
from backflip.rewards.inputs import CLIPS_AT_ONCE, ClipEncoder, EncodedClip, apply_to_steps
from backflip.rewards.interface import (
    Embedding,
    Fitted,
    LabelledComparison,
    ObservedClip,
    Opinions,
    Spread,
)
from backflip.rewards.linear.ensembles import DOUBLED, Ensembles, last_growth
from backflip.rewards.linear.evidence import MEMBERS, prior_variances
from backflip.rewards.linear.parameters import (
    LinearParameters,
    Sparse,
    fitted_parameters,
    reward_of,
    spread_of,
    zero_if_all_ties,
)
from backflip.rewards.linear.steps import StepCache, Steps
from backflip.rewards.representations.additive import FEW_KNOTS, AdditiveFeatures
from backflip.rewards.representations.change_map import ChangeMap
from backflip.rewards.representations.collapse import has_collapsed
from backflip.rewards.representations.contacts import Contacts
from backflip.rewards.representations.interface import Inputs, Representation, Seen
from backflip.rewards.representations.intervals import IntervalFeatures
from backflip.rewards.representations.numbers import NumberFeatures
from backflip.rewards.representations.place_map import PlaceMap
from backflip.rewards.representations.slow import SlowFeatures

SMALLEST_VARIANCE = 1e-20  # of a weight, where it divides


class LinearRewardModel:
    """Fits the rewards of all seeds; caches encoders and encoded clips.

    Args:
        spec: the environment's spec.
        labels: unused; a fit compiles nothing.
        clip_length: unused.
    """

    representation_of: Callable[[EnvSpec], Representation] = SlowFeatures
    sparse = False  # whether the reward is scaled as one that is the same in most steps

    def __init__(self, spec: EnvSpec, labels: int, clip_length: int) -> None:
        del labels, clip_length
        self._spec = spec
        self.representation = type(self).representation_of(spec)
        self._groups = tuple(size for size in self.representation.sizes if size)
        self._see = partial(_see, self.representation)
        self._clips = ClipEncoder(self._see)
        self._random: list[Seen] = []  # one for each seed
        self._encoders: dict[int, _FittedEncoder] = {}  # by the row of the seed
        self._step_caches: dict[int, StepCache] = {}  # by the row of the seed
        self._ensembles: dict[int, Ensembles] = {}  # by the row of the seed

    def initial(self, seeds: int) -> LinearParameters:
        """Return parameters of a reward that is zero everywhere."""
        encoder, thresholds = self.representation.initial()
        members, zero = jnp.zeros((MEMBERS, sum(self.representation.sizes))), jnp.zeros(())
        sparse = Sparse(zero) if self.sparse else ()
        numbers = (members[0], zero, jnp.ones(()), members)
        return stack_rows([LinearParameters(encoder, *numbers, thresholds, sparse)] * seeds)

    def predict(self, parameters: LinearParameters, batch: Transition) -> Float[Array, "T N"]:
        """Return the predicted reward of a batch; the true reward is not read."""

        def reward(found: Float[Array, "N F"]) -> Float[Array, " N"]:
            return reward_of(parameters, found @ parameters.weights)

        return self._each_step(parameters, batch, reward)

    def predict_spread(self, parameters: LinearParameters, batch: Transition) -> Spread:
        """Return the reward and the members' spread; κ, as in `opinions`, is that of the batch."""

        def values(found: Float[Array, "N F"]) -> tuple[Any, Any]:
            return found @ parameters.weights, found @ parameters.members.T

        raw, of_members = self._each_step(parameters, batch, values)
        spread = spread_of(parameters, raw, of_members, batch.valid.astype(raw.dtype))
        return Spread(reward_of(parameters, raw), spread)

    def _each_step(
        self,
        parameters: LinearParameters,
        batch: Transition,
        of_features: Callable[[Float[Array, "N F"]], Any],
    ) -> Any:
        """Return a function of the features of each step, with leading axes (T, N)."""
        spec, representation = self._spec, self.representation

        def row(step: tuple[Array, Array, Array]) -> Any:
            obs, action, next_obs = step
            frames = (newest_frame(spec, x) for x in (obs, next_obs))
            before, after = representation.see(*frames)
            return of_features(representation.features(parameters.inputs, before, action, after))

        return jax.lax.map(row, (batch.obs, batch.action, batch.next_obs))

    def predict_seen(
        self, parameters: LinearParameters, seen: Seen, action: Any
    ) -> Float[Array, " B"]:
        """Return the reward of B steps, of which `representation.see` kept `seen`."""
        before, after = seen
        found = self.representation.features(parameters.inputs, before, action, after)
        return reward_of(parameters, found @ parameters.weights)

    def observe(self, record: Transition) -> None:
        """Keep what one seed's random policy saw, to fit the representation to."""
        rows = [
            tuple(map(np.asarray, self._see(*both)))
            for both in zip(record.obs, record.next_obs, strict=True)  # row by row: to save memory
        ]
        before, after = (np.stack(x)[record.valid] for x in zip(*rows, strict=True))
        self._random.append(Seen(before, after))

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
        steps = [
            self._steps(row, *both)
            for row, both in enumerate(zip(encoders, comparisons, strict=True))
        ]
        ensembles = [
            self._ensembles_of(row).fit(one, found.labelled, key)
            for row, (one, found, key) in enumerate(zip(comparisons, steps, keys, strict=True))
        ]
        fitted = [
            fitted_parameters(encoder, zero_if_all_ties(ensemble, one), one, self.sparse)
            for encoder, ensemble, one in zip(encoders, ensembles, steps, strict=True)
        ]
        collapsed = [
            {"reward_model_collapsed": float(self._has_collapsed(*both))}
            for both in zip(encoders, comparisons, strict=True)
        ]
        metrics = [one | more for (_, one), more in zip(fitted, collapsed, strict=True)]
        return Fitted(stack_rows([one for one, _ in fitted]), metrics)

    def _has_collapsed(self, inputs: Inputs, comparisons: Sequence[LabelledComparison]) -> bool:
        """Return whether the features of a seed's newest labelled clips have collapsed.

        Actions do not count: they are held at zero.
        """
        clips = self._clips.labelled(comparisons[-CLIPS_AT_ONCE // 2 :])
        if not clips:
            return False
        still = [clip._replace(action=np.zeros_like(clip.action)) for clip in clips]
        alive = np.stack([clip.alive for clip in clips])
        return has_collapsed(self._clip_features(inputs, still)[alive])

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
        found = self._clip_features(parameters.inputs, encoded)
        alive = np.stack([clip.alive for clip in encoded])
        raw, of_members = found @ weights, found @ members.T
        numbers = jax.tree.map(np.asarray, parameters)
        reward = reward_of(numbers, raw)
        spread = spread_of(numbers, raw, of_members, alive.astype(raw.dtype))
        reward, spread = ((x * alive).astype(np.float32) for x in (reward, spread))
        return Opinions(reward, spread, (found * alive[..., None]).sum(1) @ members.T)

    def embed(
        self,
        row: int,
        comparisons: Sequence[LabelledComparison],
        clips: Sequence[ObservedClip],
    ) -> Embedding | None:
        """Return clips and labels in features scaled to a prior N(0, I) of the weights.

        The prior is the mean over the models of the mixture, and so are the weights.
        """
        if not comparisons:
            return None
        with one_blas_thread():  # as in a fit: with more threads, the encoder rounds differently
            inputs = self._encoder(row, comparisons)
            steps = self._steps(row, inputs, comparisons)
            ensemble = self._ensembles_of(row).known(comparisons, steps.labelled)
        variances = prior_variances(self._groups, steps.labelled, ensemble)
        root = np.sqrt(np.maximum(variances, SMALLEST_VARIANCE))
        weights, tie_width = (ensemble.chances @ x for x in (ensemble.models, ensemble.tie_widths))
        encoded = [self._clips.encode(clip) for clip in clips]
        alive = np.stack([clip.alive for clip in encoded])[..., None]
        sums = (self._clip_features(inputs, encoded) * alive).sum(1)
        return Embedding(
            sums * root, steps.labelled.difference * root, weights / root, float(tie_width)
        )

    def _ensembles_of(self, row: int) -> Ensembles:
        return self._ensembles.setdefault(row, Ensembles(self._groups))

    def _encoder(self, row: int, comparisons: Sequence[LabelledComparison]) -> Inputs:
        """Return a seed's encoder and thresholds.

        They are fitted again each time its labels have doubled. The labels determine when that
        happened, so a resumed run has the same encoders.
        """
        used = comparisons[: last_growth([one.env_steps for one in comparisons], DOUBLED)]
        queries = tuple(one.query for one in used)
        known = self._encoders.get(row)
        if known is None or known.queries != queries:
            clips = self._clips.labelled(used)
            known = _FittedEncoder(queries, self._inputs_of(self._random[row], clips))
            self._encoders[row] = known
        return known.inputs

    def _inputs_of(self, random: Seen, clips: Sequence[EncodedClip]) -> Inputs:
        """Return what is fitted to one seed's random policy and labelled clips."""
        befores = [random.before, *(clip.before[clip.alive] for clip in clips)]
        after = np.concatenate([random.after, *(clip.after[clip.alive] for clip in clips)])
        return self.representation.fit(np.concatenate(befores), after)

    def _steps(self, row: int, inputs: Inputs, comparisons: Sequence[LabelledComparison]) -> Steps:
        def features_of(some: Sequence[LabelledComparison]) -> tuple[np.ndarray, np.ndarray]:
            clips = self._clips.labelled(some)
            return self._clip_features(inputs, clips), np.stack([clip.alive for clip in clips])

        cache = self._step_caches.setdefault(row, StepCache(sum(self._groups)))
        return cache.steps(inputs, comparisons, features_of)

    def _clip_features(
        self, inputs: Inputs, clips: Sequence[EncodedClip]
    ) -> Float[np.ndarray, "clips L F"]:
        def found(before: Any, action: Any, after: Any) -> Any:
            return _features(self.representation, inputs, before, action, after)

        return apply_to_steps(found, clips)


@final
class AdditiveRewardModel(LinearRewardModel):
    """The linear model with the threshold group: an additive function of each number."""

    representation_of = AdditiveFeatures


@final
class IntervalRewardModel(LinearRewardModel):
    """The additive model, with intervals between its thresholds besides."""

    representation_of = IntervalFeatures


@final
class NumbersRewardModel(LinearRewardModel):
    """The linear model of each number of a long vector by itself."""

    representation_of = NumberFeatures


@final
class FewKnotsRewardModel(LinearRewardModel):
    """The additive model of runs before 2026-11-25, with fewer thresholds of each number."""

    representation_of = staticmethod(partial(AdditiveFeatures, knots=FEW_KNOTS))


@final
class ChangeMapRewardModel(LinearRewardModel):
    """The linear model of where an image changes, for rewards of events such as a game's score."""

    representation_of = ChangeMap
    sparse = True


@final
class PlaceMapRewardModel(LinearRewardModel):
    """The linear model of what is where in an image, and where it changes."""

    representation_of = PlaceMap


@final
class ContactsRewardModel(LinearRewardModel):
    """The linear model of what meets what on a grid of cells, for rewards of events."""

    representation_of = Contacts
    sparse = True


class _FittedEncoder(NamedTuple):
    """An encoder with thresholds, and the queries whose clips they were fitted to."""

    queries: tuple[int, ...]
    inputs: Inputs


# One program serves all models of an environment: representations of one spec are equal.
@partial(jax.jit, static_argnums=0)
def _see(representation: Representation, obs: Any, next_obs: Any) -> Seen:
    return representation.see(obs, next_obs)


@partial(jax.jit, static_argnums=0)
def _features(
    representation: Representation, inputs: Inputs, before: Any, action: Any, after: Any
) -> Float[Array, "B F"]:
    return representation.features(inputs, before, action, after)
