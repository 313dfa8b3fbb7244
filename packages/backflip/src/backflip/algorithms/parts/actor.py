"""How a policy with a value function acts: the same for every algorithm that has both."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.parts.scaling import scale_obs
from backflip.core.distributions import Categorical, DiagonalNormal
from backflip.core.spec import Discrete, EnvSpec
from backflip.core.statistics import RunningStatistics
from backflip.networks.actor_critic import ActorCritic
from backflip.networks.layers import Params


class Actor(NamedTuple):
    """What is fixed about acting.

    Attributes:
        spec: the environment's spaces.
        net: policy and value function.
        normalize_obs: scale observations, vectors that is, by running mean and deviation.
    """

    spec: EnvSpec
    net: ActorCritic
    normalize_obs: bool


@runtime_checkable
class Acts(Protocol):
    """The state of an algorithm, as far as acting needs it."""

    @property
    def params(self) -> Params:
        """Of the network, and `log_std` (A,) for continuous actions."""
        ...

    @property
    def obs_statistics(self) -> RunningStatistics:
        """Of all observations since the start."""
        ...


class ActingPart(NamedTuple):
    """What acting needs of a state, for a checkpoint of that alone."""

    params: Params
    obs_statistics: RunningStatistics


class Remembered(NamedTuple):
    """What acting leaves for the update: log π(a|s) and V(s)."""

    log_prob: Float[Array, " N"]
    value: Float[Array, " N"]


def first_params(actor: Actor, seed: int, initial_log_std: float) -> Params:
    """Return parameters before the first update, as NumPy arrays."""
    params = actor.net.init(np.random.default_rng(seed))
    if not isinstance(actor.spec.action, Discrete):
        params["log_std"] = np.full(actor.spec.action.shape, initial_log_std, np.float32)
    return params


def observed_shape(spec: EnvSpec) -> tuple[int, ...]:
    """Return the shape of the statistics of observations; images have none worth keeping."""
    return () if spec.is_pixels else spec.observation.shape


def acting_part(state: Acts) -> ActingPart:
    """Return what acting needs: the network's parameters and the normaliser of observations."""
    return ActingPart(state.params, state.obs_statistics)


def with_acting_part(state: Any, part: ActingPart) -> Any:
    """Return the state with another policy in it."""
    return state._replace(params=part.params, obs_statistics=part.obs_statistics)


def see(actor: Actor, obs_statistics: RunningStatistics, obs: Any) -> Any:
    """Return what the network takes. Every path that consumes an observation comes through here."""
    if actor.normalize_obs:
        obs = scale_obs(obs_statistics, obs)
    return actor.net.see(obs)


def policy_and_value(
    actor: Actor, params: Params, seen: Any
) -> tuple[Categorical | DiagonalNormal, Float[Array, " B"]]:
    """Return π(·|s) and V(s) of what `see` returned."""
    head, value = actor.net.apply(params, seen)
    if isinstance(actor.spec.action, Discrete):
        return Categorical(head), value
    return DiagonalNormal(head, jnp.broadcast_to(params["log_std"], head.shape)), value


def act(actor: Actor, state: Acts, obs: Any, key: PRNGKeyArray) -> tuple[Any, Remembered]:
    """Draw an action for each of N observations."""
    policy, value = policy_and_value(actor, state.params, see(actor, state.obs_statistics, obs))
    action = policy.sample(key)
    return action, Remembered(policy.log_prob(action), value)


def evaluation_action(actor: Actor, state: Acts, obs: Any, key: PRNGKeyArray) -> Any:
    """Return what a policy that has done learning does: its mode; from pixels, a sample.

    Where the picture alone does not settle the action, a deterministic policy can go to and fro
    for ever; so Atari's players sample, as they did when they learnt.
    """
    if actor.spec.is_pixels:
        return act(actor, state, obs, key)[0]
    seen = see(actor, state.obs_statistics, obs)
    return policy_and_value(actor, state.params, seen)[0].mode()


def assess(actor: Actor, state: Acts, obs: Any) -> dict[str, Float[Array, " N"]]:
    """Return V(s) and the entropy of π(·|s) for each of N observations."""
    seen = see(actor, state.obs_statistics, obs)
    policy, value = policy_and_value(actor, state.params, seen)
    return {"value": value, "entropy": policy.entropy()}
