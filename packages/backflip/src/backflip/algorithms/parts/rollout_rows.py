"""The rows that a policy gradient learns from, prepared from a rollout."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Bool, Float

from backflip.algorithms.parts.bootstrap import next_values
from backflip.algorithms.parts.invalid_rows import blank
from backflip.algorithms.parts.stochastic_policy import Actor, ActorState, predict, preprocess
from backflip.core.types import Transition

# (rewards, values, next values, terminated, truncated), each (T,) -> advantages, targets of V
Estimator = Callable[..., tuple[Float[Array, " T"], Float[Array, " T"]]]


class Rows(NamedTuple):
    """The B = T N rows of a batch.

    Attributes:
        inputs: the observation as network input.
        action: the action taken.
        log_prob: log π_old(a|s) of the policy that acted.
        advantage: A, not normalised.
        target: G, the target of V(s).
        valid: the row is a transition.
    """

    inputs: Any
    action: Any
    log_prob: Float[Array, " B"]
    advantage: Float[Array, " B"]
    target: Float[Array, " B"]
    valid: Bool[Array, " B"]


def prepare(actor: Actor, state: ActorState, batch: Transition, estimate: Estimator) -> Rows:
    """Return the rows of a batch (axes T, N) whose invalid rows are blank.

    Args:
        actor: the actor of the batch.
        state: the state that the batch was collected with.
        batch: `extra` is what `act` returned.
        estimate: (one environment's stream) -> advantages and targets.
    """

    def value_of(obs: Any) -> Float[Array, " N"]:
        return predict(actor, state, obs)[1]

    values = batch.extra.value
    stream = (batch.reward, values, next_values(value_of, values, batch))
    advantage, target = jax.vmap(estimate, in_axes=1, out_axes=1)(
        *stream, batch.terminated, batch.truncated
    )
    flat = (batch.action, batch.extra.log_prob, advantage, target, batch.valid)
    return Rows(_inputs(actor, state, batch), *map(_flatten, flat))


def _inputs(actor: Actor, state: ActorState, batch: Transition) -> Any:
    """Return all observations as network inputs, blank where invalid."""
    of_step = partial(preprocess, actor, state.obs_statistics)
    if actor.spec.is_image:  # one step at a time needs less memory; bytes are never NaN
        return _flatten(jax.lax.map(of_step, batch.obs))
    return blank(of_step(_flatten(batch.obs)), batch.valid.reshape(-1))


def _flatten(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])
