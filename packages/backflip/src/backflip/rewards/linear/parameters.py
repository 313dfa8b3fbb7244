"""The parameters of a fitted linear reward, and the reward that they give."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.rewards.interface import TIE, TIE_WIDTH
from backflip.rewards.linear.evidence import Ensemble
from backflip.rewards.linear.steps import Steps
from backflip.rewards.measures import (
    LARGEST_REWARD,
    LARGEST_SPARSE,
    Labels,
    label_metrics,
    reward_metrics,
    scale_of,
    sparse_scale,
)
from backflip.rewards.representations.interface import Inputs

NEGLIGIBLE = 1e-6  # probability of a model that is left out of the mean


class Sparse(NamedTuple):
    """The rest of the scale of a sparse reward (`measures.SparseScale`)."""

    dead_zone: Float[Array, ""]


class LinearParameters(NamedTuple):
    """One seed's fitted reward, r(x) = clip((w̄ᵀf(x) - offset) / scale, -3, 3).

    A sparse reward is r(x) = clip(soft(w̄ᵀf(x) - offset) / scale, -1.5, 1.5).

    Attributes:
        encoder: the representation's arrays.
        weights: w̄, the mean of the mixture fitted to all labels.
        offset: subtracted from w̄ᵀf(x).
        scale: divides what is left.
        members: w of each member, fitted to a bootstrap sample; differences of wᵀf summed over
            clips are logits.
        thresholds: of the threshold group; `()` in other representations.
        sparse: the dead zone of a sparse reward; `()` for other rewards.
    """

    encoder: Any
    weights: Float[Array, " F"]
    offset: Float[Array, ""]
    scale: Float[Array, ""]
    members: Float[Array, "M F"]
    thresholds: Any = ()
    sparse: Sparse | tuple[()] = ()

    @property
    def inputs(self) -> Inputs:
        """What the features are computed with."""
        return Inputs(self.encoder, self.thresholds)


def reward_of(parameters: LinearParameters, raw: Any) -> Any:
    """Return the reward for w̄ᵀf(x), a JAX or a NumPy array."""
    x, largest = raw - parameters.offset, LARGEST_REWARD
    if isinstance(parameters.sparse, Sparse):
        (dead_zone,) = parameters.sparse
        x, largest = x - x.clip(-dead_zone, dead_zone), LARGEST_SPARSE
    return (x / parameters.scale).clip(-largest, largest)


def spread_of(parameters: LinearParameters, raw: Any, of_members: Any, counted: Any) -> Any:
    """Return the spread for w̄ᵀf(x) and each wₘᵀf(x), JAX or NumPy arrays; κ is of counted steps."""
    mean = of_members.mean(-1)
    factor = (raw * mean * counted).sum() / (mean * mean * counted).sum().clip(1e-12)
    return abs(factor) * of_members.std(-1) / parameters.scale


def zero_if_all_ties(ensemble: Ensemble, steps: Steps) -> Ensemble:
    """Return the ensemble, or, if all answers are ties, that of a reward of zero.

    Then nothing is known but that the clips so far are alike. What the fit leaves is rounding
    noise, which the scaling of the reward would blow up.
    """
    if not len(steps.left_preferred) or (steps.left_preferred != TIE).any():
        return ensemble
    models, members = np.zeros_like(ensemble.models), np.zeros_like(ensemble.members)
    return ensemble._replace(models=models, members=members)


def fitted_parameters(
    inputs: Inputs, ensemble: Ensemble, steps: Steps, sparse: bool
) -> tuple[LinearParameters, dict[str, float]]:
    """Return one seed's parameters, scaled over all labelled clips, and metrics.

    Models are scaled before they are averaged.
    """
    probable = ensemble.chances > NEGLIGIBLE
    models, chances = ensemble.models[probable], ensemble.chances[probable]
    of_models = steps.alive @ models.T
    share = chances / scale_of(of_models, steps.endless).spread
    weights, raw = share @ models, of_models @ share
    if sparse:
        held_out = ensemble.drawn.T == 0
        labels = Labels(steps.clip, steps.left_preferred)
        of_members = steps.alive @ ensemble.members.T
        offset, dead_zone, scale = sparse_scale(raw, of_members, held_out, labels)
        rest = Sparse(jnp.float32(dead_zone))
    else:
        offset, scale = (x[0] for x in scale_of(raw[:, None], steps.endless))
        rest = ()
    numbers = (weights, offset, scale, ensemble.members)
    w, b, c, members = (jnp.asarray(x, jnp.float32) for x in numbers)
    parameters = LinearParameters(
        encoder=inputs.encoder,
        weights=w,
        offset=b,
        scale=c,
        members=members,
        thresholds=inputs.thresholds,
        sparse=rest,
    )
    return parameters, _metrics(ensemble, steps, (raw - offset) / scale)


def _metrics(
    ensemble: Ensemble, steps: Steps, reward: Float[np.ndarray, " steps"]
) -> dict[str, float]:
    margin = steps.labelled.difference @ ensemble.members.T
    held_out = ensemble.drawn.T == 0
    measured = label_metrics(margin, steps.left_preferred, held_out) | reward_metrics(reward)
    return measured | {
        "reward_model_log_evidence": float(ensemble.log_evidence.max()),
        TIE_WIDTH: float(ensemble.tie_widths @ ensemble.chances),
        "reward_model_noise": float(ensemble.noises @ ensemble.chances),
    }
