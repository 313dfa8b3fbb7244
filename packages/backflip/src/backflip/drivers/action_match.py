"""Whether the actions taken are those of the policy, in algorithms that learn from a replay.

On-policy algorithms compare probabilities instead (`first_ratio_error`).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from backflip.algorithms.interface import Algorithm, Metrics, State
from backflip.core.spaces import Box
from backflip.core.spec import EnvSpec
from backflip.core.statistics import masked_mean
from backflip.core.types import Transition

KEY = 0xAC7104


def has_action_match(spec: EnvSpec, algorithm: Algorithm) -> bool:
    """Return whether `action_match` can be measured: vectors, continuous actions and a replay.

    Greedy algorithms take random choices, which are not those of the policy.
    """
    continuous = isinstance(spec.action, Box)
    return algorithm.replay is not None and continuous and len(spec.observation.shape) == 1


def action_match(
    algorithm: Algorithm, state: State, batch: Transition, key: PRNGKeyArray
) -> Metrics:
    """Return how far the actions of a rollout (T, N) follow the policy that chose them.

    With a the action taken, and y₁, y₂ two actions that the policy draws for the same observation,

        m = mean over dimensions of (Cov[a, ȳ] - ½ Cov[y₁, y₂]) / (½ (Var[a] + Var[ȳ])).

    If a is drawn as y₁ and y₂ are, E Cov[a, ȳ] = E Cov[y₁, y₂] = Var[E[y | s]], so that the
    numerator is positive on average; noise around E[y | s] does not change that. If a does not
    depend on s as the policy does, Cov[a, ȳ] is 0 and the numerator negative. A policy without a
    distribution has y₁ = y₂, its action in an evaluation.

    Args:
        algorithm: the algorithm.
        state: its state during the rollout.
        batch: the rollout.
        key: for y₁ and y₂.

    Returns:
        `action_match`, about -1.6 to 0.6 in a policy without noise; NaN if nothing varies.
    """
    draw = algorithm.evaluation_action if algorithm.sample is None else algorithm.sample
    obs, taken = (x.reshape(-1, *x.shape[2:]) for x in (batch.obs, batch.action))
    keys = jax.random.split(jax.random.fold_in(key, KEY))
    first, second = (draw(state, obs, one) for one in keys)
    of_each = jax.vmap(partial(_of_one_dimension, batch.valid.reshape(-1)), 1)
    return {"action_match": jnp.nanmean(of_each(taken, first, second))}


def _of_one_dimension(
    valid: Bool[Array, " B"],
    taken: Float[Array, " B"],
    first: Float[Array, " B"],
    second: Float[Array, " B"],
) -> Float[Array, ""]:
    """Return m of one dimension; NaN if nothing varies."""

    def covariance(one: Array, other: Array) -> Array:
        left, right = (x - masked_mean(x, valid) for x in (one, other))
        return masked_mean(left * right, valid)

    mean = (first + second) / 2
    follows = covariance(taken, mean) - covariance(first, second) / 2
    size = (covariance(taken, taken) + covariance(mean, mean)) / 2
    return jnp.where(size > 0, follows / size, jnp.nan)
