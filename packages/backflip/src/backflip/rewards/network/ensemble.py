"""The fit of an ensemble of networks to labels, as one compiled program.

Each member is fitted to a bootstrap sample of the labels by Adam, with the loss

    Σ_labels -log P[label] / n  +  λ ‖w‖²  +  ½ (log θ)² / n

where P is the ordinal model of `backflip.core.losses.answer_probabilities` with ε = 0.1, of the
difference R_left - R_right; R is the sum of the member's output over the alive steps of a clip. The
width θ of ties is a parameter of the member, with a log-normal prior; for a teacher who never
answers with a tie it is 0, and P[left ≻ right] = 0.9 σ(R_left - R_right) + 0.05. (In runs before
2026-11-23 there is no θ, and a tie counts as half of each answer.) The labels outside the sample,
1/e of them on average, are the member's validation set. Every `CHECK_EVERY` updates λ grows by a
factor if the validation loss is more than 1.5 times the training loss, and shrinks if it is less
than 1.1 times.

Every fit starts from new weights. The result depends only on the labels and the key: a resumed run
needs no optimiser state, and undone labels have no effect.

Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2.3.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from backflip.algorithms.parts.adam import adam_step
from backflip.core.losses import NO_TIES
from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params
from backflip.rewards.interface import FitSettings
from backflip.rewards.network.architecture import (
    Standardiser,
    apply_network,
    network_inputs,
    squared_weights,
)
from backflip.rewards.network.crops import crop_all, views_of
from backflip.rewards.network.losses import Labelled, label_losses, split_losses
from backflip.rewards.network.pseudo_labels import pseudo_label_loss, pseudo_labels

MEMBERS = 3
UPDATES = 500
CHECK_EVERY = 20  # updates
LABELS_AT_ONCE = 16  # minibatch of each update
UNLABELLED_AT_ONCE = 4 * LABELS_AT_ONCE  # unlabelled pairs of each update, as in SURF
LEARNING_RATE = 1e-3
WIDTH_SHARE = 20.0  # times the learning rate, of log θ: 500 updates can move it by 10
FIRST_PENALTY, LEAST_PENALTY, LARGEST_PENALTY = 1e-3, 1e-6, 1.0  # λ
PENALTY_FACTOR = 1.5
LEAST_RATIO, LARGEST_RATIO = 1.1, 1.5  # of validation loss to training loss
SMALLEST_DEVIATION = 1e-3


class Ensemble(NamedTuple):
    """M fitted members, and their outputs for all labels.

    Attributes:
        standardiser: scales of the inputs.
        members: parameters of the networks, with a leading axis M.
        outputs: each member's output for every step.
        drawn: how often each label is in a member's sample; 0 means held out.
        penalty: the last λ.
        training_loss: the mean over each member's sample, without the penalty.
        validation_loss: the mean over its held-out labels; NaN if there are none.
        tie_width: θ; 0 without ties, and if they count as halves.
        pseudo_labels: share of the unlabelled pairs that have a pseudo-label; `()` without pairs.
    """

    standardiser: Standardiser
    members: Params
    outputs: Float[Array, "M n 2 L"]
    drawn: Float[Array, "M n"]
    penalty: Float[Array, " M"]
    training_loss: Float[Array, " M"]
    validation_loss: Float[Array, " M"]
    tie_width: Float[Array, " M"]
    pseudo_labels: Float[Array, " M"] | tuple[()] = ()


class _Data(NamedTuple):
    """What a member is fitted to.

    Attributes:
        labelled: the labels.
        views: which steps count in each view of each label; None if all labels are used whole.
        unlabelled: pairs for pseudo-labels; None without.
    """

    labelled: Labelled
    views: Bool[Array, "views n 2 L"] | None
    unlabelled: Labelled | None


class _Pairs(NamedTuple):
    """Unlabelled pairs, and the steps of them that the loss is about."""

    whole: Labelled
    seen: Bool[Array, "n 2 L"]


class _Fitting(NamedTuple):
    """What the fit of a member changes: the weights, and log θ; `()` if ties count as halves."""

    params: Params
    log_width: Float[Array, ""] | tuple[()]


class _Member(NamedTuple):
    """One member during the fit."""

    fitting: _Fitting
    moments: optax.ScaleByAdamState
    penalty: Float[Array, ""]


def fit(
    spec: EnvSpec,
    ordinal: bool,
    settings: FitSettings,
    labelled: Labelled,
    unlabelled: Labelled | None,
    start: Params,
    key: PRNGKeyArray,
) -> Ensemble:
    """Return the fitted ensemble.

    Args:
        spec: the environment's spec.
        ordinal: ties have a width; false: they count as half of each answer.
        settings: what is used besides whole labels.
        labelled: the labels.
        unlabelled: pairs for pseudo-labels, whose answers are not read; None without.
        start: initial weights of the members, with a leading axis M.
        key: for the bootstrap samples and the minibatches.
    """
    standardiser, views = standardiser_of(spec, labelled), None
    if settings.crops:
        for_crops = jax.random.fold_in(key, MEMBERS)  # after the keys of the members
        views = views_of(for_crops, labelled, settings.crops, settings.shortest_crop)
    data = _Data(labelled, views, unlabelled)

    def member(params: Params, key: PRNGKeyArray) -> tuple[Any, ...]:
        sample, order = jax.random.split(key)
        drawn = bootstrap(sample, labelled.weight)
        begin = _Fitting(params, jnp.zeros(()) if ordinal else ())
        fitted = _fit_member(spec, settings, standardiser, data, drawn, begin, order)
        outputs = all_outputs(spec, standardiser, fitted.fitting.params, labelled)
        width = tie_width(fitted.fitting.log_width, labelled)
        losses = split_losses(outputs, labelled, drawn, width)
        known = jnp.float32(NO_TIES) if width is None else width
        share = ()
        if unlabelled is not None:
            of_pairs = all_outputs(spec, standardiser, fitted.fitting.params, unlabelled)
            threshold = settings.pseudo_label_threshold
            share = pseudo_labels(of_pairs, unlabelled.alive, width, threshold)[1].mean()
        return fitted.fitting.params, outputs, drawn, fitted.penalty, *losses, known, share

    return Ensemble(standardiser, *jax.vmap(member)(start, jax.random.split(key, MEMBERS)))


def tie_width(
    log_width: Float[Array, ""] | tuple[()], labelled: Labelled
) -> Float[Array, ""] | None:
    """Return θ, which is 0 if no label is a tie; None if ties count as halves."""
    if isinstance(log_width, tuple):
        return None
    tied = (labelled.left_preferred == 0.5) & (labelled.weight > 0)
    return jnp.where(tied.any(), jnp.exp(log_width), NO_TIES)


def standardiser_of(spec: EnvSpec, labelled: Labelled) -> Standardiser:
    """Return the mean and standard deviations over alive steps; of images, one per channel."""
    alive = (labelled.alive & (labelled.weight > 0)[:, None, None])[..., None]
    count = jnp.maximum(alive.sum(), 1).astype(jnp.float32)

    def mean(x: Array) -> Array:
        left_and_right = jnp.where(alive, x, 0.0).sum((0, 2))
        return (left_and_right[0] + left_and_right[1]) / count

    centre = mean(labelled.before)
    spread = mean(jnp.square(labelled.before - centre[None, None, None]))
    change = mean(jnp.square(labelled.after - labelled.before))
    if spec.is_image:
        spread, change = (_per_channel(spec, x) for x in (spread, change))
    deviations = (jnp.maximum(jnp.sqrt(x), SMALLEST_DEVIATION) for x in (spread, change))
    return Standardiser(centre, *deviations)


def _per_channel(spec: EnvSpec, variance: Float[Array, " D"]) -> Float[Array, " D"]:
    images = variance.reshape(-1, spec.observation.shape[2] // spec.frame_stack)
    return jnp.broadcast_to(images.mean(0, keepdims=True), images.shape).reshape(-1)


def bootstrap(key: PRNGKeyArray, weight: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return how often each label is in a bootstrap sample of as many labels as there are.

    Each draw has its own key, so padding does not change the draws.
    """
    places = jnp.arange(weight.shape[0])
    count = weight.sum()
    keys = jax.vmap(partial(jax.random.fold_in, key))(places)
    drawn = jnp.floor(jax.vmap(jax.random.uniform)(keys) * count).astype(jnp.int32)
    used = places.astype(jnp.float32) < count
    return jnp.zeros_like(weight).at[drawn].add(used.astype(jnp.float32))


def _fit_member(
    spec: EnvSpec,
    settings: FitSettings,
    standardiser: Standardiser,
    data: _Data,
    drawn: Float[Array, " n"],
    begin: _Fitting,
    key: PRNGKeyArray,
) -> _Member:
    labelled, sample = data.labelled, jnp.cumsum(drawn)
    shares = None
    if not isinstance(begin.log_width, tuple):
        ones = jax.tree.map(jnp.ones_like, begin.params)
        shares = _Fitting(ones, jnp.float32(WIDTH_SHARE))

    def loss(
        fitting: _Fitting, penalty: Array, batch: Labelled, pairs: _Pairs | None
    ) -> Float[Array, ""]:
        outputs = _outputs(spec, standardiser, fitting.params, batch)
        width = tie_width(fitting.log_width, labelled)
        found = label_losses(outputs, batch, width).mean()
        found += penalty * squared_weights(fitting.params)
        if not isinstance(fitting.log_width, tuple):
            found += 0.5 * jnp.square(fitting.log_width) / jnp.maximum(sample[-1], 1.0)
        if pairs is not None:
            outputs = _outputs(spec, standardiser, fitting.params, pairs.whole)
            threshold = settings.pseudo_label_threshold
            of_pairs = pseudo_label_loss(outputs, *pairs, width, threshold)
            found += settings.pseudo_label_weight * of_pairs
        return found

    def update(member: _Member, key: PRNGKeyArray) -> tuple[_Member, None]:
        keys = (key,) * 3 if settings.only_labels else jax.random.split(key, 3)
        batch = _some_labels(keys[0], keys[1], data, sample)
        pairs = _some_pairs(keys[2], settings, data.unlabelled)
        gradient = jax.grad(loss)(member.fitting, member.penalty, batch, pairs)
        fitting, moments, _ = adam_step(
            member.fitting, gradient, member.moments, LEARNING_RATE, shares=shares
        )
        return member._replace(fitting=fitting, moments=moments), None

    def stretch(member: _Member, keys: Key[Array, " updates"]) -> tuple[_Member, None]:
        member, _ = jax.lax.scan(update, member, keys)
        outputs = all_outputs(spec, standardiser, member.fitting.params, labelled)
        width = tie_width(member.fitting.log_width, labelled)
        training, validation = split_losses(outputs, labelled, drawn, width)
        return member._replace(penalty=adapted(member.penalty, training, validation)), None

    zeros = jax.tree.map(jnp.zeros_like, begin)
    moments = optax.ScaleByAdamState(jnp.zeros((), jnp.int32), zeros, zeros)
    first = _Member(begin, moments, jnp.float32(FIRST_PENALTY))
    keys = jax.random.split(key, (UPDATES // CHECK_EVERY, CHECK_EVERY))
    return jax.lax.scan(stretch, first, keys)[0]


def _some_labels(
    draw: PRNGKeyArray, see: PRNGKeyArray, data: _Data, sample: Float[Array, " n"]
) -> Labelled:
    """Return a minibatch of a sample, given as cumulated counts; with crops, a view of each."""
    at = jax.random.uniform(draw, (LABELS_AT_ONCE,)) * sample[-1]
    chosen = jnp.searchsorted(sample, at, side="right")

    def rows(x: Array) -> Array:
        return x[chosen]

    batch: Labelled = jax.tree.map(rows, data.labelled)
    if data.views is None:
        return batch
    view = jax.random.randint(see, (LABELS_AT_ONCE,), 0, len(data.views))
    return batch._replace(alive=data.views[view, chosen])


def _some_pairs(
    key: PRNGKeyArray, settings: FitSettings, unlabelled: Labelled | None
) -> _Pairs | None:
    """Return a minibatch of unlabelled pairs, cropped if labels are."""
    if unlabelled is None:
        return None
    draw, for_crops = jax.random.split(key)
    chosen = jax.random.randint(draw, (UNLABELLED_AT_ONCE,), 0, len(unlabelled.weight))

    def rows(x: Array) -> Array:
        return x[chosen]

    batch: Labelled = jax.tree.map(rows, unlabelled)
    if not settings.crops:
        return _Pairs(batch, batch.alive)
    return _Pairs(batch, crop_all(for_crops, batch.alive, settings.shortest_crop))


def adapted(
    penalty: Float[Array, ""], training: Float[Array, ""], validation: Float[Array, ""]
) -> Float[Array, ""]:
    """Return λ, changed if validation loss / training loss is not between 1.1 and 1.5.

    Without held-out labels the ratio is NaN and λ does not change.
    """
    ratio = validation / training
    factor = jnp.where(ratio > LARGEST_RATIO, PENALTY_FACTOR, 1.0)
    factor = jnp.where(ratio < LEAST_RATIO, 1.0 / PENALTY_FACTOR, factor)
    return jnp.clip(penalty * factor, LEAST_PENALTY, LARGEST_PENALTY)


def all_outputs(
    spec: EnvSpec, standardiser: Standardiser, params: Params, labelled: Labelled
) -> Float[Array, "n 2 L"]:
    """Return one member's outputs for all labels, computed in batches to save memory."""

    def one(label: Labelled) -> Float[Array, "2 L"]:
        def lead(x: Array) -> Array:
            return x[None]

        return _outputs(spec, standardiser, params, jax.tree.map(lead, label))[0]

    return jax.lax.map(one, labelled, batch_size=LABELS_AT_ONCE)


def _outputs(
    spec: EnvSpec, standardiser: Standardiser, params: Params, labelled: Labelled
) -> Float[Array, "n 2 L"]:
    def steps(x: Array) -> Array:
        return x.reshape(-1, *x.shape[3:])

    before, action, after = map(steps, labelled[:3])
    seen = network_inputs(spec, standardiser, before, action, after)
    return apply_network(spec, params, *seen).reshape(labelled.alive.shape)
