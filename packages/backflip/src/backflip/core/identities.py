"""Equations that hold in every correct update, each written without the code that it checks.

The functions return by how much an update violates its equation, as a share of the sizes that the
equation adds up: 0 except for rounding. They use neither `backflip.core.returns` nor
`backflip.core.targets`, so that a mistake there shows.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

TINY = 1e-30
TIE = 1e-5  # share of the values' size within which two actions count as equally good


def advantage_errors(
    rewards: Float[Array, "T N"],
    values: Float[Array, "T N"],
    next_values: Float[Array, "T N"],
    terminated: Bool[Array, "T N"],
    truncated: Bool[Array, "T N"],
    advantages: Float[Array, "T N"],
    *,
    discount: float,
    gae_lambda: float,
) -> Float[Array, "T N"]:
    """Return by how much each advantage violates the recursion of its definition.

        |A_t - r_{t+1} - γ V(s_{t+1}) + V(s_t) - γ λ A_{t+1}| / S

    γ V(s_{t+1}) is left out after a terminated step, and A_{t+1} after a terminated or truncated
    one and after the last. S is the largest |r| + |V(s)| + |V(s')| + |A| of all rows.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16.

    Args:
        rewards: r_{t+1}.
        values: V(s_t).
        next_values: V(s_{t+1}) of the true successor.
        terminated: the task's own rule ended the episode.
        truncated: a time limit cut the episode.
        advantages: A_t, as learned from, before any normalisation.
        discount: γ.
        gae_lambda: λ.
    """
    following = jnp.where(terminated, 0.0, next_values)
    rest = jnp.where(terminated | truncated, 0.0, _next_row(advantages))
    expected = rewards + discount * following - values + discount * gae_lambda * rest
    return _share(advantages - expected, rewards, values, following, advantages)


def target_errors(
    rewards: Float[Array, "T N"],
    values: Float[Array, "T N"],
    next_values: Float[Array, "T N"],
    terminated: Bool[Array, "T N"],
    truncated: Bool[Array, "T N"],
    targets: Float[Array, "T N"],
    *,
    discount: float,
    gae_lambda: float,
) -> Float[Array, "T N"]:
    """Return by how much each target of the values violates the recursion of a λ-return.

        |G_t - r_{t+1} - γ ((1 - λ) V(s_{t+1}) + λ G_{t+1})| / S

    After a truncated step and after the last, γ V(s_{t+1}) takes the place of the bracket; after a
    terminated one, nothing. S is the largest |r| + |V(s)| + |V(s')| + |G| of all rows.

    Source: Sutton & Barto 2018, eq. 12.18.

    Args:
        rewards: r_{t+1}.
        values: V(s_t).
        next_values: V(s_{t+1}) of the true successor.
        terminated: the task's own rule ended the episode.
        truncated: a time limit cut the episode.
        targets: G_t, as learned from.
        discount: γ.
        gae_lambda: λ.
    """
    is_last = jnp.arange(len(targets))[:, None] == len(targets) - 1
    mixed = (1.0 - gae_lambda) * next_values + gae_lambda * _next_row(targets)
    following = jnp.where(truncated | is_last, next_values, mixed)
    expected = rewards + discount * jnp.where(terminated, 0.0, following)
    return _share(targets - expected, rewards, values, following, targets)


def bellman_errors(
    rewards: Float[Array, " B"],
    discounts: Float[Array, " B"],
    terminated: Bool[Array, " B"],
    next_values: Float[Array, " B"],
    targets: Float[Array, " B"],
) -> Float[Array, " B"]:
    """Return by how much each one-step target violates its definition.

        |G - r - γ (1 - terminated) V(s')| / S

    S is the largest |r| + |γ V(s')| + |G| of all rows.

    Source: Sutton & Barto 2018, eq. 6.2.

    Args:
        rewards: r, or the discounted sum of n rewards.
        discounts: γ, or γ^n.
        terminated: the task's own rule ended the episode.
        next_values: V(s') of the target network.
        targets: G, as learned from.
    """
    following = discounts * next_values
    expected = rewards + jnp.where(terminated, 0.0, following)
    return _share(targets - expected, rewards, following, targets)


def greedy_errors(
    rewards: Float[Array, " B"],
    discounts: Float[Array, " B"],
    terminated: Bool[Array, " B"],
    next_values: Float[Array, "B A"],
    chooser: Float[Array, "B A"],
    targets: Float[Array, " B"],
) -> Float[Array, " B"]:
    """Return by how much each target of Q-learning violates its definition.

        min_b |G - r - γ (1 - terminated) Q_θ⁻(s', b)| / S,   over the best actions b of `chooser`

    Rounding may decide between actions that are equally good, so that all within `TIE` of the best
    are allowed. S is the largest |r| + |γ Q_θ⁻(s', b)| + |G| of all rows and actions.

    Source: van Hasselt et al. 2016, arXiv:1509.06461, eqs. 3 and 4.

    Args:
        rewards: r, or the discounted sum of n rewards.
        discounts: γ, or γ^n.
        terminated: the task's own rule ended the episode.
        next_values: Q_θ⁻(s', ·).
        chooser: Q_θ(s', ·) with double Q-learning, else `next_values`.
        targets: G, as learned from.
    """
    best = chooser.max(-1, keepdims=True)
    is_best = chooser >= best - TIE * jnp.abs(chooser).max(-1, keepdims=True)
    following = discounts[:, None] * next_values
    expected = rewards[:, None] + jnp.where(terminated[:, None], 0.0, following)
    distance = jnp.where(is_best, jnp.abs(targets[:, None] - expected), jnp.inf).min(-1)
    return _share(distance, rewards, jnp.abs(following).max(-1), targets)


def _next_row(x: Float[Array, "T N"]) -> Float[Array, "T N"]:
    return jnp.concatenate([x[1:], jnp.zeros_like(x[:1])])


def _share(error: Float[Array, "*rows"], *terms: Float[Array, "*rows"]) -> Float[Array, "*rows"]:
    """Return |error| over the largest sum of the sizes of the terms."""
    size = sum((jnp.abs(term) for term in terms), jnp.zeros_like(error))
    return jnp.abs(error) / jnp.maximum(size.max(), TINY)
