"""From a rollout to the rows that a policy gradient learns from."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Bool, Float

from backflip.algorithms.parts.actor import Actor, Acts, policy_and_value, see
from backflip.algorithms.parts.bootstrap import next_values
from backflip.algorithms.parts.masking import blank
from backflip.core.types import Transition

# (rewards, values, next values, terminated, truncated), each (T,) -> advantages, targets of V
Estimator = Callable[..., tuple[Float[Array, " T"], Float[Array, " T"]]]


class Rows(NamedTuple):
    """The batch as a loss sees it: B = T N rows.

    Attributes:
        seen: the observation, as the network takes it.
        action: the action taken.
        log_prob: log π_old(a|s) of the policy that acted.
        advantage: A, not normalised.
        target: G, what V(s) should have been.
        valid: the row is a transition.
    """

    seen: Any
    action: Any
    log_prob: Float[Array, " B"]
    advantage: Float[Array, " B"]
    target: Float[Array, " B"]
    valid: Bool[Array, " B"]


def prepare(actor: Actor, state: Acts, batch: Transition, estimate: Estimator) -> Rows:
    """Return the rows of a batch (axes T, N) whose invalid rows are blank.

    Args:
        actor: how the batch was acted.
        state: as it was then.
        batch: `extra` is what `act` remembered.
        estimate: advantages and targets of one environment's stream.
    """

    def value_of(obs: Any) -> Float[Array, " N"]:
        return policy_and_value(actor, state.params, see(actor, state.obs_statistics, obs))[1]

    values = batch.extra.value
    stream = (batch.reward, values, next_values(value_of, values, batch))
    advantage, target = jax.vmap(estimate, in_axes=1, out_axes=1)(
        *stream, batch.terminated, batch.truncated
    )
    flat = (batch.action, batch.extra.log_prob, advantage, target, batch.valid)
    return Rows(_see_all(actor, state, batch), *map(_flatten, flat))


def _see_all(actor: Actor, state: Acts, batch: Transition) -> Any:
    """Return all observations as the network takes them, blank where they are not valid."""
    look = partial(see, actor, state.obs_statistics)
    if actor.spec.is_pixels:  # step by step, which needs less memory; and bytes are never NaN
        return _flatten(jax.lax.map(look, batch.obs))
    return blank(look(_flatten(batch.obs)), batch.valid.reshape(-1))


def _flatten(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])
