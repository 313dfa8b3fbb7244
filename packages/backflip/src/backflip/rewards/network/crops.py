"""Temporal crops: a label also holds for pieces of its two clips.

A crop of a label is a piece of H steps of each of its clips, with the same answer. H is drawn from
the shortest length to that of a clip, and where the two pieces begin is drawn independently:

    L_crop = -log P[y | σ_left[k : k + H], σ_right[k' : k' + H]]

so the network learns that a preference does not depend on when the behaviour happens in a clip.

Source: Park et al. 2022, arXiv:2203.10050 (SURF), section 4.2. Departures:

- a label has a fixed number of crops, drawn once for each fit, and is used whole, too; SURF crops
  every label of every minibatch again, and has no whole ones;
- pairs that contain the end of an episode are not cropped: what decides them is often the end, and
  a piece without it would have a wrong answer. SURF's tasks have no ends;
- ties are not cropped: equal sums over whole clips do not make sums over pieces equal.

Crops are not labels: bootstrap samples, held-out labels, scales and metrics have whole labels only.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from backflip.rewards.interface import TIE
from backflip.rewards.network.losses import Labelled


def shortest_length(length: int, share: float) -> int:
    """Return the env steps of the shortest crop of a clip, at least 1."""
    return max(1, math.ceil(share * length - 1e-9))  # .7 * 10 is a little more than 7


def crop(key: PRNGKeyArray, alive: Bool[Array, "2 L"], shortest: int) -> Bool[Array, "2 L"]:
    """Return which steps of a pair are in its crop; all alive steps if an episode ends in it."""
    size = alive.shape[-1]
    for_length, for_begins = jax.random.split(key)
    length = jax.random.randint(for_length, (), shortest, size + 1)
    begins: Int[Array, "2 1"] = jax.random.randint(for_begins, (2, 1), 0, size - length + 1)
    step = jnp.arange(size)[None]
    inside = (step >= begins) & (step < begins + length)
    return jnp.where(alive.all(), inside, alive)


def crop_all(key: PRNGKeyArray, alive: Bool[Array, "n 2 L"], share: float) -> Bool[Array, "n 2 L"]:
    """Return a crop of each pair. Each pair has its own key, so padding changes no crop."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(alive.shape[0]))
    shortest = shortest_length(alive.shape[-1], share)
    return jax.vmap(crop, (0, 0, None))(keys, alive, shortest)


def views_of(
    key: PRNGKeyArray, labelled: Labelled, crops: int, share: float
) -> Bool[Array, "views n 2 L"]:
    """Return which steps count in each view of each label: the whole pair, then its crops."""

    def one(key: PRNGKeyArray) -> Bool[Array, "n 2 L"]:
        tied = (labelled.left_preferred == TIE)[:, None, None]
        return jnp.where(tied, labelled.alive, crop_all(key, labelled.alive, share))

    return jnp.concatenate([labelled.alive[None], jax.vmap(one)(jax.random.split(key, crops))])
