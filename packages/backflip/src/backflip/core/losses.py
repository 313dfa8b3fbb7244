"""Elementwise losses of policies, values and preferences; the caller averages."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

NO_TIES = 0.0  # the tie width of a teacher who never answers with a tie


def clipped_surrogate(
    log_prob: Float[Array, "*batch"],
    old_log_prob: Float[Array, "*batch"],
    advantage: Float[Array, "*batch"],
    clip_range: Float[Array, ""] | float,
) -> Float[Array, "*batch"]:
    """Return the negated clipped surrogate objective.

    L = -min(ρ A, clip(ρ, 1-ε, 1+ε) A),   ρ = exp(log π(a|s) - log π_old(a|s))

    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7. Gradients reach `log_prob` only.

    Args:
        log_prob: log π(a|s) of the policy being improved.
        old_log_prob: log π_old(a|s) of the policy that acted.
        advantage: A, normalised or not.
        clip_range: ε, at least 0.
    """
    advantage = jax.lax.stop_gradient(advantage)
    ratio = jnp.exp(log_prob - jax.lax.stop_gradient(old_log_prob))
    clipped = jnp.clip(ratio, 1 - clip_range, 1 + clip_range)
    return -jnp.minimum(ratio * advantage, clipped * advantage)


def policy_gradient(
    log_prob: Float[Array, "*batch"], advantage: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Return -log π(a|s) A, whose gradient is the negated policy gradient.

    Source: Sutton et al. 2000, theorem 1, with A for Q. Gradients reach `log_prob` only.
    """
    return -log_prob * jax.lax.stop_gradient(advantage)


def squared_error(
    value: Float[Array, "*batch"], target: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Return ½ (V - G)²; the gradient, V - G, does not reach the target."""
    return 0.5 * jnp.square(value - jax.lax.stop_gradient(target))


def clipped_squared_error(
    value: Float[Array, "*batch"],
    old_value: Float[Array, "*batch"],
    target: Float[Array, "*batch"],
    clip_range: float,
) -> Float[Array, "*batch"]:
    """Return max(½ (V - G)², ½ (clip(V, V_old ± c) - G)²).

    The gradient is V - G, or 0 where V has moved towards G by more than c; it reaches V only.

    Source: Huang et al. 2022, "The 37 implementation details of PPO", core detail 9.

    Args:
        value: V, being improved.
        old_value: V_old, before the update.
        target: G.
        clip_range: c, above 0, in units of returns.
    """
    old_value = jax.lax.stop_gradient(old_value)
    near = old_value + jnp.clip(value - old_value, -clip_range, clip_range)
    return jnp.maximum(squared_error(value, target), squared_error(near, target))


def huber_error(
    value: Float[Array, "*batch"], target: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Return ½ x², or |x| - ½ where |x| > 1, of x = V - G; no gradient reaches the target.

    The gradient is x clipped to [-1, 1].

    Source: Huber 1964, eq. 2.12 with k = 1; the "error clipping" of Mnih et al. 2015.
    """
    size = jnp.abs(value - jax.lax.stop_gradient(target))
    inside = jnp.minimum(size, 1.0)
    return inside * (size - 0.5 * inside)


def approximate_kl(
    log_prob: Float[Array, "*batch"], old_log_prob: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Return (ρ - 1) - log ρ, a non-negative estimate of KL(π_old ‖ π).

    Source: Schulman 2020, "Approximating KL divergence", estimator k3.
    """
    log_ratio = log_prob - old_log_prob
    return jnp.expm1(log_ratio) - log_ratio


def preference_loss(
    left_return: Float[Array, "*batch"],
    right_return: Float[Array, "*batch"],
    left_preferred: Float[Array, "*batch"],
    noise: float,
) -> Float[Array, "*batch"]:
    """Return the cross-entropy of a label under Bradley-Terry with a share of uniform answers.

        P[left ≻ right] = (1 - ε) σ(R_left - R_right) + ε/2
        L = -μ log P - (1 - μ) log(1 - P)

    R is the sum of the predicted reward over a clip. Logarithms are computed without rounding P to
    0 or 1, so a label that contradicts the prediction by a wide margin still has a gradient.

    Source: Christiano et al. 2017, arXiv:1706.03741, eq. 1 and section 2.2.3 (ε = 0.1).

    Args:
        left_return: R_left.
        right_return: R_right.
        left_preferred: μ: 1 left, 0 right, ½ tie.
        noise: ε in [0, 1), the share of random answers.
    """
    log_p = _log_preference(left_return - right_return, noise)
    log_q = _log_preference(right_return - left_return, noise)
    return -left_preferred * log_p - (1.0 - left_preferred) * log_q


def answer_probabilities(
    difference: Float[Array, "*batch"], tie_width: Float[Array, ""] | float, noise: float
) -> Float[Array, "*batch 3"]:
    """Return the probabilities of the answers right, tie, left, in this order.

        P[left]  = (1 - ε) σ(d - θ) + ε/K
        P[right] = (1 - ε) σ(-d - θ) + ε/K
        P[tie]   = 1 - P[left] - P[right]

    d = R_left - R_right is the difference of the clips' predicted returns. A share ε of the answers
    is uniform over the K answers in use: K = 3, or K = 2 for θ = 0, where a tie is impossible.

    Source: cumulative logits (McCullagh 1980), with the noise of Christiano et al. 2017,
    arXiv:1706.03741, section 2.2.3.

    Args:
        difference: d.
        tie_width: θ, at least 0; above log 2, a tie is the likeliest answer to |d| below about θ.
        noise: ε in [0, 1), the share of random answers.
    """
    ties = jnp.asarray(tie_width) > NO_TIES
    left, right = (jax.nn.sigmoid(sign * difference - tie_width) for sign in (1.0, -1.0))
    # 1e-7 keeps the logarithm finite when noise is 0 and the difference is huge.
    left, right = (jnp.clip(x, 1e-7, 1 - 1e-7) for x in (left, right))
    tie = jnp.where(ties, jnp.maximum(1.0 - left - right, 1e-7), 0.0)
    random = noise * jnp.where(ties, 1 / 3, 1 / 2)
    of_tie = jnp.where(ties, (1.0 - noise) * tie + random, 0.0)
    return jnp.stack([(1.0 - noise) * right + random, of_tie, (1.0 - noise) * left + random], -1)


def _log_preference(difference: Float[Array, "*batch"], noise: float) -> Float[Array, "*batch"]:
    """Return log((1 - ε) σ(R_left - R_right) + ε/2)."""
    informed = math.log1p(-noise) + jax.nn.log_sigmoid(difference)
    return jnp.logaddexp(informed, math.log(noise / 2)) if noise else informed
