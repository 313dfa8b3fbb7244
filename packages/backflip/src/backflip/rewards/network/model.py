"""The network reward model: an ensemble of networks, scaled and averaged.

    r(x) = clip((mean_m((f_m(x) - o_m) / s_m) - o) / s, -3, 3)

with f_m the output of member m. The scales o_m, s_m of the members and o, s of their mean come
from the alive steps of all labelled clips (`backflip.rewards.measures.scale_of`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.trees import row_of, stack_rows
from backflip.core.types import Transition
from backflip.networks.layers import Params
from backflip.rewards.inputs import (
    ClipEncoder,
    apply_to_steps,
    empty_clip,
    observation_size,
    observation_vectors,
    see_vectors,
)
from backflip.rewards.interface import (
    LABELS_ONLY,
    TIE_WIDTH,
    FitSettings,
    Fitted,
    LabelledComparison,
    ObservedClip,
    Opinions,
    Spread,
)
from backflip.rewards.measures import LARGEST_REWARD, label_metrics, reward_metrics, scale_of
from backflip.rewards.network.architecture import (
    Standardiser,
    apply_network,
    initial_network,
    network_inputs,
)
from backflip.rewards.network.ensemble import MEMBERS, Ensemble, fit
from backflip.rewards.network.losses import Labelled

FIT_METRICS = (
    "reward_model_training_loss",
    "reward_model_validation_loss",
    "reward_model_penalty",
)


PSEUDO_LABELS = "reward_model_pseudo_labels"


class NetworkParameters(NamedTuple):
    """One seed's fitted reward.

    Attributes:
        standardiser: scales of the inputs.
        members: parameters of M networks, with a leading axis M.
        member_offset: o_m.
        member_scale: s_m.
        offset: o.
        scale: s.
    """

    standardiser: Standardiser
    members: Params
    member_offset: Float[Array, " M"]
    member_scale: Float[Array, " M"]
    offset: Float[Array, ""]
    scale: Float[Array, ""]


class NetworkRewardModel:
    """Fits the ensembles of all seeds; caches encoded clips.

    Args:
        spec: the environment's spec.
        labels: the budget of each seed; fits are padded to it, so one program is compiled.
        clip_length: steps in a clip.
        settings: what a fit uses besides whole labels.
    """

    ordinal = True  # ties have a width

    def __init__(
        self,
        spec: EnvSpec,
        labels: int,
        clip_length: int,
        settings: FitSettings = LABELS_ONLY,
    ) -> None:
        self._spec, self._labels, self._length = spec, labels, clip_length
        self._settings = settings
        self._clips = ClipEncoder(partial(see_vectors, spec))

    def initial(self, seeds: int) -> NetworkParameters:
        """Return parameters of a reward that is zero everywhere."""
        size = observation_size(self._spec)
        blank = NetworkParameters(
            standardiser=Standardiser(jnp.zeros(size), jnp.ones(size), jnp.ones(size)),
            members=jax.tree.map(np.zeros_like, self._start(np.zeros(2, np.uint32))),
            member_offset=jnp.zeros(MEMBERS),
            member_scale=jnp.ones(MEMBERS),
            offset=jnp.zeros(()),
            scale=jnp.ones(()),
        )
        return stack_rows([blank] * seeds)

    def predict(self, parameters: NetworkParameters, batch: Transition) -> Float[Array, "T N"]:
        """Return the predicted reward of a batch; the true reward is not read."""
        return self.predict_spread(parameters, batch).reward

    def predict_spread(self, parameters: NetworkParameters, batch: Transition) -> Spread:
        """Return the predicted reward of a batch and the members' spread."""
        spec = self._spec

        def row(step: tuple[Array, Array, Array]) -> Spread:
            obs, action, next_obs = step
            before, after = (
                observation_vectors(spec, newest_frame(spec, x)) for x in (obs, next_obs)
            )
            outputs = member_outputs(spec, parameters, before, action, after)
            return _scaled_outputs(parameters, outputs)

        return jax.lax.map(row, (batch.obs, batch.action, batch.next_obs))

    def observe(self, record: Transition) -> None:
        """Do nothing: the networks use only labelled clips."""

    def fit(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the rewards of all seeds, each fitted from new weights to all its labels."""
        del previous
        return self._fit(comparisons, keys, None)

    def fit_unlabelled(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
        unlabelled: ObservedClip,
    ) -> Fitted:
        """Return the rewards of all seeds, fitted also to pseudo-labels of unlabelled pairs."""
        if not self._settings.pseudo_label_weight:
            return self.fit(previous, comparisons, keys)
        rows = range(len(comparisons))
        pairs = [self._pairs(ObservedClip(*row_of(tuple(unlabelled), row))) for row in rows]
        return self._fit(comparisons, keys, stack_rows(pairs))

    def _fit(
        self,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
        unlabelled: Labelled | None,
    ) -> Fitted:
        room = max([self._labels, *map(len, comparisons)])
        labelled = [self._padded(one, room) for one in comparisons]
        starts = stack_rows([self._start(key) for key in keys])
        data = stack_rows(labelled), unlabelled
        fits = _fit_seeds(self._spec, self.ordinal, self._settings, data, starts, keys)
        ensembles = jax.tree.map(np.asarray, fits)
        fitted = [
            _scaled(row_of(ensembles, row), one) if comparisons[row] else self._nothing_learned()
            for row, one in enumerate(labelled)
        ]
        metrics = [
            measured | self._width(one) | _share(one, comparisons[i])
            for i, (_, measured) in enumerate(fitted)
            for one in [row_of(ensembles, i)]
        ]
        return Fitted(stack_rows([one for one, _ in fitted]), metrics)

    def opinions(
        self, parameters: NetworkParameters, clips: Sequence[ObservedClip]
    ) -> Opinions | None:
        """Return the reward, the members' spread and their sums for each clip."""
        if not np.asarray(parameters.members["head"]["w"]).any():
            return None
        encoded = [self._clips.encode(clip) for clip in clips]
        outputs = apply_to_steps(partial(_outputs, self._spec, parameters), encoded)
        alive = np.stack([clip.alive for clip in encoded])
        reward, spread = _scaled_outputs(parameters, jnp.asarray(outputs))
        reward, spread = (np.asarray(x) * alive for x in (reward, spread))
        return Opinions(reward, spread, (outputs * alive[..., None]).sum(1))

    def _width(self, ensemble: Ensemble) -> dict[str, float]:
        """Return the metric of the tie width, where there is one."""
        return {TIE_WIDTH: float(ensemble.tie_width.mean())} if self.ordinal else {}

    def _nothing_learned(self) -> tuple[NetworkParameters, dict[str, float]]:
        measured = label_metrics(np.zeros((0, MEMBERS)), np.zeros(0), np.zeros((0, MEMBERS), bool))
        losses = dict.fromkeys(FIT_METRICS, float("nan"))
        return row_of(self.initial(1), 0), measured | reward_metrics(np.zeros(1)) | losses

    def _start(self, key: UInt32[np.ndarray, " 2"]) -> Params:
        rng = np.random.default_rng(key.tolist())
        return stack_rows([initial_network(self._spec, rng) for _ in range(MEMBERS)])

    def _pairs(self, unlabelled: ObservedClip) -> Labelled:
        """Return the unlabelled pairs of one seed, with answers that are not read."""
        pairs, steps = unlabelled.alive.shape[0], unlabelled.alive.shape
        flat = [x.reshape(-1, *x.shape[len(steps) :]) for x in unlabelled]
        before, action, after, alive = self._clips.encode(ObservedClip(*flat))
        shaped = [x.reshape(*steps, *x.shape[1:]) for x in (before, action, after, alive)]
        answers, weight = np.zeros(pairs, np.float32), np.ones(pairs, np.float32)
        return Labelled(*(jnp.asarray(x) for x in (*shaped, answers, weight)))

    def _padded(self, comparisons: Sequence[LabelledComparison], room: int) -> Labelled:
        """Return the labels of one seed, padded to `room` with weight 0."""
        clips = self._clips.labelled(comparisons) or [empty_clip(self._spec, self._length)] * 2
        count = len(comparisons)

        def pairs(arrays: Sequence[np.ndarray]) -> np.ndarray:
            found = np.stack(arrays).reshape(-1, 2, *arrays[0].shape)
            filled = np.zeros((room, *found.shape[1:]), found.dtype)
            filled[: len(found)] = found
            return filled

        before, action, after, alive = map(pairs, zip(*clips, strict=True))
        answers, weight = np.zeros((2, room), np.float32)
        answers[:count], weight[:count] = [one.left_preferred for one in comparisons], 1.0
        parts = (before, action, after, alive, answers, weight)
        return Labelled(*(jnp.asarray(x) for x in parts))


@final
class HalfTieNetworkRewardModel(NetworkRewardModel):
    """The network as in runs before 2026-11-23: a tie counts as half of each answer."""

    ordinal = False


def member_outputs(
    spec: EnvSpec,
    parameters: NetworkParameters,
    before: Float[Array, "B D"],
    action: Any,
    after: Float[Array, "B D"],
) -> Float[Array, "B M"]:
    """Return f_m of each transition, before any scaling."""
    seen = network_inputs(spec, parameters.standardiser, before, action, after)

    def member(params: Params) -> Float[Array, " B"]:
        return apply_network(spec, params, *seen)

    return jax.vmap(member, out_axes=-1)(parameters.members)


# One program serves all models of an environment, because `EnvSpec` is compared by identity.
_outputs = jax.jit(member_outputs, static_argnums=0)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _fit_seeds(
    spec: EnvSpec,
    ordinal: bool,
    settings: FitSettings,
    data: tuple[Labelled, Labelled | None],
    starts: Params,
    keys: Array,
) -> Ensemble:
    def one(seed: tuple[tuple[Labelled, Labelled | None], Params, Array]) -> Ensemble:
        labels, start, key = seed
        return fit(spec, ordinal, settings, *labels, start, jax.random.wrap_key_data(key))

    return jax.lax.map(one, (data, starts, keys))


def _scaled_outputs(parameters: NetworkParameters, outputs: Float[Array, "*steps M"]) -> Spread:
    """Return the reward and its spread for the members' outputs, of the shape of the steps."""
    shape = (*(1,) * (outputs.ndim - 1), -1)
    offset, scale = (
        jnp.reshape(x, shape) for x in (parameters.member_offset, parameters.member_scale)
    )
    members = (outputs - offset) / scale
    reward = (members.mean(-1) - parameters.offset) / parameters.scale
    clipped = jnp.clip(reward, -LARGEST_REWARD, LARGEST_REWARD)
    return Spread(clipped, members.std(-1) / parameters.scale)


def _scaled(ensemble: Ensemble, labelled: Labelled) -> tuple[NetworkParameters, dict[str, float]]:
    """Return one seed's parameters, with all scales, and metrics."""
    count = int(labelled.weight.sum())
    alive, preferred = (np.asarray(x)[:count] for x in (labelled.alive, labelled.left_preferred))
    outputs, drawn = (np.asarray(x)[:, :count] for x in (ensemble.outputs, ensemble.drawn))
    steps, endless = outputs[:, alive].T, bool(alive.all())
    of_members = scale_of(steps, endless)
    mean = ((steps - of_members.offset) / of_members.spread).mean(1)
    of_mean = scale_of(mean[:, None], endless)
    scales = (*of_members, of_mean.offset[0], of_mean.spread[0])
    parameters = NetworkParameters(
        ensemble.standardiser, ensemble.members, *(jnp.asarray(x, jnp.float32) for x in scales)
    )
    returns = (outputs * alive).sum(-1)
    measured = label_metrics((returns[..., 0] - returns[..., 1]).T, preferred, drawn.T == 0)
    measured |= reward_metrics((mean - of_mean.offset[0]) / of_mean.spread[0])
    return parameters, measured | _fit_metrics(ensemble)


def _fit_metrics(ensemble: Ensemble) -> dict[str, float]:
    """Return means over members; the geometric mean of the penalty."""
    penalty = np.exp(np.log(ensemble.penalty).mean())
    found = (ensemble.training_loss.mean(), ensemble.validation_loss.mean(), penalty)
    return {name: float(x) for name, x in zip(FIT_METRICS, found, strict=True)}


def _share(ensemble: Ensemble, labels: Sequence[LabelledComparison]) -> dict[str, float]:
    """Return the metric of pseudo-labels, where there are any: 0 before the first label."""
    if isinstance(ensemble.pseudo_labels, tuple):
        return {}
    return {PSEUDO_LABELS: float(ensemble.pseudo_labels.mean()) if labels else 0.0}
