"""Pseudo-labels: what a member is sure of counts as an answer, with a weight.

In each update a member looks at unlabelled pairs of clips. With P its own probability of an answer,
without the share of random answers, the pseudo-label of a pair is the likelier side, and counts if

    max(P[left], P[right]) > τ,    P[left] = σ(R_left - R_right - θ)

The loss of an update is that of the labels plus λ times the mean over the unlabelled pairs of the
loss of their pseudo-labels, where a pair that does not count has a loss of 0.

Source: Park et al. 2022, arXiv:2203.10050 (SURF), eq. 3 and 4. Departures:

- unlabelled pairs are of the newest behaviour, as many as a checkpoint can keep, and not of the
  whole replay;
- the loss is the one of labels here, which assumes random answers; the threshold is on P without
  them, since with them P is at most .95;
- an answer can be a tie. A tie is never a pseudo-label, and pseudo-labels do not change the width θ
  of ties: nothing is learned about ties from pairs that show none;
- each fit starts from new weights, which are sure of nothing, so pseudo-labels follow the labels.

No gradient reaches the pseudo-label or the choice of the pairs that count.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from backflip.core.losses import NO_TIES
from backflip.rewards.network.losses import Labelled, label_losses


def pseudo_labels(
    outputs: Float[Array, "n 2 L"],
    alive: Bool[Array, "n 2 L"],
    tie_width: Float[Array, ""] | None,
    threshold: float,
) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
    """Return the likelier side of each pair (1 left, 0 right), and which pairs count.

    Args:
        outputs: one member's output for each step.
        alive: the steps that count.
        tie_width: θ; None if a tie counts as half of each answer.
        threshold: τ.
    """
    left, right = jnp.where(alive, outputs, 0.0).sum(-1).T
    width = NO_TIES if tie_width is None else tie_width
    chance = jax.nn.sigmoid(jnp.abs(left - right) - width)
    return (left > right).astype(jnp.float32), chance > threshold


def pseudo_label_loss(
    outputs: Float[Array, "n 2 L"],
    pairs: Labelled,
    seen: Bool[Array, "n 2 L"],
    tie_width: Float[Array, ""] | None,
    threshold: float,
) -> Float[Array, ""]:
    """Return the mean over pairs of the loss of their pseudo-labels; 0 of pairs that do not count.

    Args:
        outputs: one member's output for each step.
        pairs: unlabelled pairs; their answers are not read.
        seen: the steps that the loss is about, all that are alive or a crop of them. The
            pseudo-label is always that of the whole pair.
        tie_width: θ; None if a tie counts as half of each answer.
        threshold: τ.
    """
    width = None if tie_width is None else jax.lax.stop_gradient(tie_width)
    known = jax.lax.stop_gradient(outputs)
    left_preferred, counts = pseudo_labels(known, pairs.alive, width, threshold)
    answered = pairs._replace(alive=seen, left_preferred=left_preferred)
    return jnp.where(counts, label_losses(outputs, answered, width), 0.0).mean()
