"""Advantages and returns of one stream of experience.

r_{t+1} is the reward received after acting in s_t (Sutton & Barto 2018). Every function takes one
stream of length T, which may cross episodes; batch with `jax.vmap`. No function stops gradients.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def gae(
    rewards: Float[Array, " T"],
    values: Float[Array, " T"],
    next_values: Float[Array, " T"],
    terminated: Bool[Array, " T"],
    truncated: Bool[Array, " T"],
    *,
    discount: float,
    gae_lambda: float,
) -> Float[Array, " T"]:
    """Return generalised advantage estimates A_0 .. A_{T-1}.

        δ_t = r_{t+1} + γ (1 - terminated_t) V(s_{t+1}) - V(s_t)
        A_t = δ_t + γ λ (1 - terminated_t) (1 - truncated_t) A_{t+1},   A_T = 0

    A truncated step bootstraps from V(s_{t+1}), a terminated one does not.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16. (Eq. 11 of arXiv:1707.06347 prints a
    last exponent of T-t+1; the recursion gives T-t-1.)

    Args:
        rewards: r_{t+1}.
        values: V(s_t).
        next_values: V(s_{t+1}) of the true successor, before any reset.
        terminated: the task's own rule ended the episode.
        truncated: a time limit cut the episode.
        discount: γ in [0, 1], per env step.
        gae_lambda: λ in [0, 1].

    Returns:
        A_t, in the unit of `rewards`.
    """
    delta = rewards + discount * jnp.where(terminated, 0.0, next_values) - values
    carried = jnp.where(terminated | truncated, 0.0, discount * gae_lambda)
    return _discounted_sum(delta, carried)


def reward_to_go(
    rewards: Float[Array, " T"],
    ended: Bool[Array, " T"],
    *,
    discount: float,
) -> Float[Array, " T"]:
    """Return discounted sums of the remaining rewards of the episode, without bootstrap.

        G_t = r_{t+1} + γ (1 - ended_t) G_{t+1},   G_T = 0

    Source: Sutton & Barto 2018, eq. 3.9.

    Args:
        rewards: r_{t+1}.
        ended: the episode ended after this step, terminated or truncated.
        discount: γ in [0, 1], per env step.

    Returns:
        G_t, in the unit of `rewards`.
    """
    return _discounted_sum(rewards, jnp.where(ended, 0.0, discount))


def _discounted_sum(terms: Float[Array, " T"], weights: Float[Array, " T"]) -> Float[Array, " T"]:
    """Return x_t = terms_t + weights_t x_{t+1}, with x_T = 0."""
    start = jnp.zeros((), terms.dtype)
    return jax.lax.scan(_add_following, start, (terms, weights), reverse=True)[1]


# At module level, so that JAX recognises it at the next call and compiles nothing.
def _add_following(
    following: Float[Array, ""], step: tuple[Float[Array, ""], Float[Array, ""]]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    term, weight = step
    total = term + weight * following
    return total, total
