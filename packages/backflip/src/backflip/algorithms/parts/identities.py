"""How far an update is from the equations that it must satisfy, as metrics.

The equations are those of `backflip.core.identities`. Only a part of the rows is checked, so that
it takes less than a hundredth of the time of the update.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from backflip.algorithms.interface import Metrics
from backflip.algorithms.parts.rollout_rows import Rows
from backflip.algorithms.parts.stochastic_policy import (
    Actor,
    ActorState,
    module_ratios,
    predict,
)
from backflip.core.identities import advantage_errors, target_errors
from backflip.core.types import Transition
from backflip.networks.layers import Params

ROWS_BETWEEN = 4096  # env steps of all environments between two checked rollouts
PART = 100  # one of so many rows of the minibatches of an update is checked
MOST = 64  # rows


def rollout_identities(
    actor: Actor,
    state: ActorState,
    params: Params,
    batch: Transition,
    rows: Rows,
    *,
    updates: Int[Array, ""],
    discount: float,
    gae_lambda: float,
) -> Metrics:
    """Return the largest errors of advantages and value targets, and what each module moved.

    All are NaN except in one update for each `ROWS_BETWEEN` env steps.

    Args:
        actor: the actor of the batch.
        state: the state that the batch was collected with.
        params: the parameters after the update.
        batch: axes (T, N), with the rewards to learn from; blank where invalid.
        rows: what is learned from.
        updates: number of updates done.
        discount: γ.
        gae_lambda: λ.
    """

    def measure() -> Metrics:
        following, known = _successors(actor, state, batch)
        stream = (batch.reward, batch.extra.value, following, batch.terminated, batch.truncated)
        options = {"discount": discount, "gae_lambda": gae_lambda}
        shape = batch.valid.shape
        of_advantages = advantage_errors(*stream, rows.advantage.reshape(shape), **options)
        of_targets = target_errors(*stream, rows.target.reshape(shape), **options)
        return {
            "advantage_error_max": largest(of_advantages, known),
            "target_error_max": largest(of_targets, known),
            **module_ratios(actor, state.params, params),
        }

    def skip() -> Metrics:
        return {name: jnp.full((), jnp.nan) for name in jax.eval_shape(measure)}

    every = -(-ROWS_BETWEEN // batch.valid.size)
    return jax.lax.cond(updates % every == 0, measure, skip)


def _successors(
    actor: Actor, state: ActorState, batch: Transition
) -> tuple[Float[Array, "T N"], Bool[Array, "T N"]]:
    """Return V of the successors, and where it is known or not needed.

    Within an episode it is that of the next row. The network runs for one row of each environment:
    the last that is truncated, or the last of all.
    """
    values, columns = batch.extra.value, jnp.arange(batch.valid.shape[1])
    length = len(values)
    backwards = jnp.argmax(batch.truncated[::-1], axis=0)
    chosen = jnp.where(batch.truncated.any(0), length - 1 - backwards, length - 1)
    following = jnp.concatenate([values[1:], values[-1:]])
    after = predict(actor, state, batch.next_obs[chosen, columns])[1]
    following = following.at[chosen, columns].set(after)
    is_inside = ~(batch.terminated | batch.truncated).at[-1].set(True)
    is_known = (is_inside | batch.terminated).at[chosen, columns].set(True)
    return following, is_known & batch.valid


def rows_to_check(batch: Transition) -> Transition:
    """Return the first rows of the first minibatch (axes U, B): the rows that are checked."""
    count = min(MOST, batch.valid.shape[1], max(1, batch.valid.size // PART))

    def first(x: Array) -> Array:
        return x[0, :count]

    return jax.tree.map(first, batch)


def largest(errors: Float[Array, "*rows"], known: Bool[Array, "*rows"]) -> Float[Array, ""]:
    """Return the largest error of the known rows; NaN without any."""
    worst = jnp.where(known, errors, -jnp.inf).max()
    return jnp.where(known.any(), worst, jnp.nan)
