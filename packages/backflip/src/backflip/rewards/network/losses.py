"""Labels of one seed as arrays, and the loss of each label."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from backflip.core.losses import answer_probabilities, preference_loss

NOISE = 0.1  # share of random answers


class Labelled(NamedTuple):
    """Labels of one seed, padded to a fixed number n with weight 0; axis 2 is left, right."""

    before: Float[Array, "n 2 L D"]
    action: Array
    after: Float[Array, "n 2 L D"]
    alive: Bool[Array, "n 2 L"]
    left_preferred: Float[Array, " n"]
    weight: Float[Array, " n"]


def label_losses(
    outputs: Float[Array, "n 2 L"],
    labelled: Labelled,
    tie_width: Float[Array, ""] | None = None,
) -> Float[Array, " n"]:
    """Return -log P of each label; only alive steps count.

    Args:
        outputs: one member's output for each step.
        labelled: the labels.
        tie_width: θ; None if a tie counts as half of each answer.
    """
    returns = jnp.where(labelled.alive, outputs, 0.0).sum(-1)
    left, right, preferred = returns[:, 0], returns[:, 1], labelled.left_preferred
    if tie_width is None:
        return preference_loss(left, right, preferred, NOISE)
    answers = answer_probabilities(left - right, tie_width, NOISE)
    chosen = jnp.stack([preferred == 0.0, preferred == 0.5, preferred == 1.0], -1)
    return -jnp.log(jnp.where(chosen, answers, 1.0)).sum(-1)


def split_losses(
    outputs: Float[Array, "n 2 L"],
    labelled: Labelled,
    drawn: Float[Array, " n"],
    tie_width: Float[Array, ""] | None = None,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the mean loss over a member's sample, and over its held-out labels."""
    losses = label_losses(outputs, labelled, tie_width)
    held_out = labelled.weight * (drawn == 0).astype(jnp.float32)
    training = (losses * drawn).sum() / jnp.maximum(drawn.sum(), 1.0)
    return training, (losses * held_out).sum() / held_out.sum()
