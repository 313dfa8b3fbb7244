"""A stochastic policy with a value function: how VPG, A2C and PPO act."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from backflip.algorithms.parts.normalization import scale_obs, wrap_angles
from backflip.core.colored_noise import colored_normal
from backflip.core.distributions import Categorical, DiagonalNormal
from backflip.core.gradients import update_ratio
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.statistics import RunningStatistics
from backflip.networks.actor_critic import ActorCritic
from backflip.networks.layers import Params


class Actor(NamedTuple):
    """The static part of acting.

    Attributes:
        spec: the environment's spaces.
        net: policy and value function.
        normalize_obs: scale vector observations by running mean and standard deviation.
        angles: indices of the observed numbers that are wrapped to [-π, π).
        bound_mean: keep the mean of a continuous policy within the action space.
        noise_color: β of the noise of a continuous policy in training; 0 is independent noise.
    """

    spec: EnvSpec
    net: ActorCritic
    normalize_obs: bool
    angles: tuple[int, ...] = ()
    bound_mean: bool = False
    noise_color: float = 0.0


@runtime_checkable
class ActorState(Protocol):
    """The fields of an algorithm's state that acting reads."""

    @property
    def params(self) -> Params:
        """Network parameters, and `log_std` (A,) for continuous actions."""
        ...

    @property
    def obs_statistics(self) -> RunningStatistics:
        """Statistics of all valid observations since the start."""
        ...


class SavedPolicy(NamedTuple):
    """The part of a state that acts after training."""

    params: Params
    obs_statistics: RunningStatistics


class ActionInfo(NamedTuple):
    """What `update` needs of an action: log π(a|s) and V(s)."""

    log_prob: Float[Array, " N"]
    value: Float[Array, " N"]


def first_params(actor: Actor, seed: int, initial_log_std: float) -> Params:
    """Return the parameters before the first update, as NumPy arrays."""
    params = actor.net.init(np.random.default_rng(seed))
    if not isinstance(actor.spec.action, Discrete):
        params["log_std"] = np.full(actor.spec.action.shape, initial_log_std, np.float32)
    return params


def with_least_log_std(params: Params, least: float) -> Params:
    """Return the parameters with log σ of at least `least`; those of discrete policies as given."""
    if "log_std" not in params:
        return params
    return params | {"log_std": jnp.maximum(params["log_std"], least)}


def acting_parameters(actor: Actor, params: Params) -> Params:
    """Return 1 for parameters that the policy depends on, else 0, broadcastable to `params`."""
    of_net = actor.net.acts({name: x for name, x in params.items() if name != "log_std"})
    return of_net | {name: np.float32(1.0) for name in params if name == "log_std"}


def module_ratios(actor: Actor, before: Params, after: Params) -> dict[str, Float[Array, ""]]:
    """Return ‖θ' - θ‖ / ‖θ‖ of the parameters that the policy depends on, and of all others."""
    acts = acting_parameters(actor, before)

    def ratio(part: Callable[[Any], Any]) -> Float[Array, ""]:
        def of_part(x: Array, share: Any) -> Array:
            return x * part(share)

        return update_ratio(*(jax.tree.map(of_part, params, acts) for params in (before, after)))

    return {
        "policy_update_ratio": ratio(lambda share: share),
        "value_update_ratio": ratio(lambda share: 1.0 - share),
    }


def observed_shape(spec: EnvSpec) -> tuple[int, ...]:
    """Return the shape of the observation statistics; () for images, which have none."""
    return () if spec.is_image else spec.observation.shape


def saved_policy(state: ActorState) -> SavedPolicy:
    """Return the network's parameters and the observation statistics."""
    return SavedPolicy(state.params, state.obs_statistics)


def with_saved_policy(state: Any, part: SavedPolicy) -> Any:
    """Return the state with the parameters and statistics of `part`."""
    return state._replace(params=part.params, obs_statistics=part.obs_statistics)


def preprocess(actor: Actor, obs_statistics: RunningStatistics, obs: Any) -> Any:
    """Return the network's inputs. Every use of an observation goes through this function."""
    if actor.angles:
        obs = wrap_angles(actor.angles, obs)
    if actor.normalize_obs:
        obs = scale_obs(obs_statistics, obs)
    return actor.net.preprocess(obs)


def policy_and_value(
    actor: Actor, params: Params, inputs: Any
) -> tuple[Categorical | DiagonalNormal, Float[Array, " B"]]:
    """Return π(·|s) and V(s) for the network's inputs."""
    head, value = actor.net.apply(params, inputs)
    if isinstance(actor.spec.action, Discrete):
        return Categorical(head), value
    if actor.bound_mean:
        head = bounded(actor.spec.action, head)
    return DiagonalNormal(head, jnp.broadcast_to(params["log_std"], head.shape)), value


def bounded(space: Box, head: Float[Array, "B A"]) -> Float[Array, "B A"]:
    """Return c + h tanh(x / h), with the center c and half the width h of the action space.

    A mean far outside of the space has every sample clipped to the same action, so that nothing is
    explored and no gradient leads back. Near zero, the head's unit is that of the action. A
    dimension without two bounds keeps the head's output x.
    """
    low, high = (np.where(space.bounded, x, u) for x, u in ((space.low, -1.0), (space.high, 1.0)))
    center, half = (high + low)[None] / 2, (high - low)[None] / 2
    within = jnp.tanh(head / half) * half + center
    return within if space.bounded.all() else jnp.where(space.bounded[None], within, head)


def act(
    actor: Actor, state: ActorState, obs: Any, key: Key[Array, "*octaves"]
) -> tuple[Any, ActionInfo]:
    """Draw an action for each of N observations.

    Noise of a color is correlated over env steps, but each action is from π(·|s).
    """
    policy, value = predict(actor, state, obs)
    if has_colored_noise(actor) and isinstance(policy, DiagonalNormal):
        action = policy.at(colored_normal(key, policy.mean.shape, actor.noise_color))
    else:
        action = policy.sample(key)
    return action, ActionInfo(policy.log_prob(action), value)


def has_colored_noise(actor: Actor) -> bool:
    """Return whether `act` draws noise that is correlated over env steps."""
    return actor.noise_color > 0 and not isinstance(actor.spec.action, Discrete)


def sample(actor: Actor, state: ActorState, obs: Any, key: PRNGKeyArray) -> Any:
    """Draw an action for each of N observations, independent of all others."""
    return predict(actor, state, obs)[0].sample(key)


def evaluation_action(actor: Actor, state: ActorState, obs: Any, key: PRNGKeyArray) -> Any:
    """Return the mode of the policy for each of N observations; from pixels, a sample.

    If one image does not determine the best action, a deterministic policy can alternate between
    two states forever. So policies from pixels sample, as in training.
    """
    if actor.spec.is_image:
        return sample(actor, state, obs, key)
    return predict(actor, state, obs)[0].mode()


def assess(actor: Actor, state: ActorState, obs: Any) -> dict[str, Float[Array, " N"]]:
    """Return V(s) and the entropy of π(·|s) for each of N observations."""
    policy, value = predict(actor, state, obs)
    return {"value": value, "entropy": policy.entropy()}


def predict(
    actor: Actor, state: ActorState, obs: Any
) -> tuple[Categorical | DiagonalNormal, Float[Array, " N"]]:
    """Return π(·|s) and V(s) of N observations."""
    return policy_and_value(actor, state.params, preprocess(actor, state.obs_statistics, obs))
