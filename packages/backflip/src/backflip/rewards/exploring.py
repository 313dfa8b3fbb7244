"""The reward of exploring, for as long as labels say nothing: before the first, and while all tie.

It is high where few other states are, so the policy spreads over the states it can reach, and the
first clips differ:

    r(s') = 0.1 (log(1 + ‖z(s') - z_k(s')‖) - m) / c

z(s') is the observation after the step as a vector of D numbers, each in standard deviations of the
batch (of pictures all pixels in one unit) and divided by √D; z_k(s') is the k-th nearest of up to
`PARTICLES` rows spread over the batch, without the row itself; m is the mean over the batch and c
the standard deviation, at least m / 100. The reward is small, and its mean is subtracted, because
most of it may be what the policy does not change, such as cars that drive by, and lasts for many
steps. Values are then large, and their gradients make a policy deterministic that shares layers
with them: of MinAtar's Freeway with m = 0 as well as with 1 in place of 0.1.

What the batch is decides what "few other states" means. On-policy it is a rollout. In JAX,
off-policy, it is the rows drawn from the replay, which holds all states seen so far: the reward is
computed at each draw and falls where the policy has been. Outside JAX, a phase begins by computing
the reward of the whole replay, some thousand rows at a time; a row collected later gets its reward
within its rollout, and keeps it until the next phase (`backflip.drivers.replay_rewards`).

Source: the particle estimate of the entropy of states, Liu & Abbeel 2021 (APT), arXiv:2103.04551,
eqs. 4 and 5, and Lee et al. 2021 (PEBBLE), arXiv:2106.05091, section 4.1. Departures: one nearest
neighbour, the k-th, as in PEBBLE, with the constant 1 of APT in the logarithm; a part of a batch
instead of the whole replay; mean and scale as above; no representation is learned.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.types import Transition
from backflip.rewards.inputs import observation_vectors

PARTICLES = 512
NEIGHBOUR = 5  # k
ROWS_AT_ONCE = 256  # whose distances are computed together, to save memory
LEAST_DEVIATION = 1e-6
SCALE = 0.1  # standard deviation of the reward
LEAST_SHARE = 0.01  # of the mean distance; smaller deviations are rounding noise


class MayExplore(NamedTuple):
    """The parameters of a reward that explores for some seeds, with a leading axis of seeds.

    Attributes:
        model: the reward model's parameters.
        explores: whether a seed explores.
    """

    model: Any
    explores: Bool[Any, "*seeds"]


def exploring_reward(spec: EnvSpec, batch: Transition) -> Float[Array, "T N"]:
    """Return the reward of exploring of each row of a batch (T, N); 0 where rows are not valid."""
    rows = batch.valid.size
    frames = newest_frame(spec, batch.next_obs)
    states = observation_vectors(spec, frames.reshape(rows, *frames.shape[2:]))
    valid = batch.valid.reshape(rows)
    found = jnp.log1p(neighbour_distances(_scaled(states, valid, alike=spec.is_image), valid))
    mean = jnp.where(valid, found, 0.0).sum() / _count(valid)
    centred = jnp.where(valid, found - mean, 0.0)
    deviation = jnp.sqrt(jnp.square(centred).sum() / _count(valid))
    unit = jnp.maximum(deviation, LEAST_SHARE * mean)
    scaled = SCALE * centred / jnp.maximum(unit, LEAST_DEVIATION)
    return scaled.reshape(batch.valid.shape)


def neighbour_distances(
    states: Float[Array, "rows D"], valid: Bool[Array, " rows"]
) -> Float[Array, " rows"]:
    """Return each row's distance to its k-th nearest particle; 0 if there are fewer than k.

    Particles are up to `PARTICLES` valid rows, equally far apart in the batch. A row is not its own
    neighbour.
    """
    rows = states.shape[0]
    places = jnp.arange(min(rows, PARTICLES)) * rows // min(rows, PARTICLES)
    particles, usable = states[places], valid[places]
    squares = jnp.square(particles).sum(1)

    def of_row(row: tuple[Array, Array, Array]) -> Array:
        state, place, _ = row
        apart = squares - 2.0 * particles @ state + jnp.square(state).sum()
        apart = jnp.where(usable & (places != place), apart, jnp.inf)
        nearest, _ = jax.lax.top_k(-apart, min(NEIGHBOUR, apart.shape[0]))
        furthest = -nearest[-1]
        return jnp.where(jnp.isfinite(furthest), jnp.sqrt(jnp.maximum(furthest, 0.0)), 0.0)

    return jax.lax.map(of_row, (states, jnp.arange(rows), valid), batch_size=ROWS_AT_ONCE)


def _scaled(
    states: Float[Array, "rows D"], valid: Bool[Array, " rows"], *, alike: bool
) -> Float[Array, "rows D"]:
    """Return states in standard deviations of each number, or of all numbers `alike`, over √D."""
    there = valid[:, None]
    centre = jnp.where(there, states, 0.0).sum(0) / _count(valid)
    centred = jnp.where(there, states - centre[None], 0.0)
    variance = jnp.square(centred).sum(0) / _count(valid)
    variance = jnp.broadcast_to(variance.mean(), variance.shape) if alike else variance
    deviation = jnp.maximum(jnp.sqrt(variance), LEAST_DEVIATION)
    return centred / deviation[None] / jnp.sqrt(jnp.float32(states.shape[1]))


def _count(valid: Bool[Array, " rows"]) -> Float[Array, ""]:
    return jnp.maximum(valid.sum(dtype=jnp.float32), 1.0)
