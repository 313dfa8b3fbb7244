"""Identities of an update, for a training loop of one's own.

Log the number, and the doctor reads it:

    row["advantage_error_max"] = advantage_error(**stream, advantages=advantages, **settings)
    row["target_error_max"] = target_error(**stream, targets=returns, **settings)

Both are 0 except for rounding, and need one pass over the rollout. Arrays may be of NumPy, JAX, or
of PyTorch on the CPU. Only NumPy is needed. Algorithms of backflip use `backflip.core.identities`,
the same equations in compiled code; a test compares both. `preference_error` and
`reward_path_error` are for a reward that is learned from comparisons.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

TINY = 1e-30


def advantage_error(
    *,
    rewards: Any,
    values: Any,
    next_values: Any,
    terminated: Any,
    truncated: Any,
    advantages: Any,
    discount: float,
    gae_lambda: float,
) -> float:
    """Return the largest error of generalised advantages, as a share of their terms.

        |A_t - r_{t+1} - γ V(s_{t+1}) + V(s_t) - γ λ A_{t+1}| / S

    γ V(s_{t+1}) is left out after a terminated step, and A_{t+1} after a terminated or truncated
    one and after the last. S is the largest |r| + |V(s)| + |V(s')| + |A|.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16.

    Args:
        rewards: r_{t+1}, (T,) or (T, N), as learned from.
        values: V(s_t), as used for the advantages.
        next_values: V(s_{t+1}) of the true successor. Where it is NaN, the row is left out, unless
            it is terminated and needs none.
        terminated: the task's own rule ended the episode.
        truncated: a time limit cut the episode.
        advantages: A_t as learned from, before any normalisation.
        discount: γ.
        gae_lambda: λ.

    Returns:
        The largest error; NaN if no row is known.
    """
    reward, value, advantage = _numbers(rewards), _numbers(values), _numbers(advantages)
    ended, cut = _numbers(terminated) > 0, _numbers(truncated) > 0
    following = np.where(ended, 0.0, _numbers(next_values))
    rest = np.where(ended | cut, 0.0, _next_row(advantage))
    expected = reward + discount * following - value + discount * gae_lambda * rest
    return _largest(advantage - expected, reward, value, following, advantage)


def target_error(
    *,
    rewards: Any,
    values: Any,
    next_values: Any,
    terminated: Any,
    truncated: Any,
    targets: Any,
    discount: float,
    gae_lambda: float,
) -> float:
    """Return the largest error of λ-returns, as a share of their terms.

        |G_t - r_{t+1} - γ ((1 - λ) V(s_{t+1}) + λ G_{t+1})| / S

    After a truncated step and after the last, γ V(s_{t+1}) takes the place of the bracket; after a
    terminated one, nothing. With generalised advantages, G is A + V. Other arguments are those of
    `advantage_error`.

    Source: Sutton & Barto 2018, eq. 12.18.

    Returns:
        The largest error; NaN if no row is known.
    """
    reward, value, target = _numbers(rewards), _numbers(values), _numbers(targets)
    ended, cut = _numbers(terminated) > 0, _numbers(truncated) > 0
    after = _numbers(next_values)
    cut[-1] = True
    following = np.where(cut, after, (1.0 - gae_lambda) * after + gae_lambda * _next_row(target))
    following = np.where(ended, 0.0, following)
    return _largest(target - reward - discount * following, reward, value, following, target)


def bellman_error(
    *, rewards: Any, terminated: Any, next_values: Any, targets: Any, discount: float
) -> float:
    """Return the largest error of one-step targets, as a share of their terms.

        |G - r - γ (1 - terminated) V(s')| / S

    S is the largest |r| + |γ V(s')| + |G|.

    Args:
        rewards: (B,) of a minibatch; with n steps, their discounted sum.
        terminated: the task's own rule ended the episode; a time limit does not.
        next_values: V(s') of the target network, computed once more: its largest action value, or
            that of the action which the online network prefers (double Q-learning).
        targets: G, as learned from.
        discount: γ; with n steps, γ^n.

    Returns:
        The largest error; NaN if no row is known.
    """
    reward, target = _numbers(rewards).ravel(), _numbers(targets).ravel()
    ended = _numbers(terminated).ravel() > 0
    following = np.where(ended, 0.0, discount * _numbers(next_values).ravel())
    return _largest(target - reward - following, reward, following, target)


def preference_error(probability: Callable[[Any, Any], Any], left: Any, right: Any) -> float:
    """Return the largest error of what every model of comparisons must satisfy.

        |P(A ≻ B) + P(B ≻ A) - 1|,   |P(A ≻ A) - ½|

    Both branches of a comparison must be the same function. They are not if each draws its own
    dropout mask or uses its own batch statistics. Batch statistics of one side only also differ
    when the sides are exchanged.

    Source: M. Rahtz, Lessons Learned Reproducing a Deep RL Paper; P is eq. 1 of
    arXiv:1706.03741.

    Args:
        probability: returns P(left ≻ right) of each pair, (B,), in the mode of training: with
            dropout where the loss has it. If answers may be ties, it adds half of their
            probability.
        left: A of each pair, as `probability` takes it.
        right: B of each pair.

    Returns:
        The largest error, at most 1; NaN if a probability is.
    """
    one, other = _vector(probability(left, right)), _vector(probability(right, left))
    same = [_vector(probability(side, side)) for side in (left, right)]
    errors = [one + other - 1.0, *(side - 0.5 for side in same)]
    return float(np.abs(np.concatenate(errors)).max())


def reward_path_error(fitted: Any, used: Any) -> float:
    """Return how far two rewards of the same steps are from the same function.

        1 - ρ(r_fit, r_RL)

    ρ is the correlation, so that a scale and a shift may differ, as they do where rewards are
    normalised. Observations that are normalised or stacked on one path only make it large.

    Args:
        fitted: r of some steps, of any shape, as the loss of the comparisons computes it.
        used: r of the same steps, as the agent learns from it.

    Returns:
        The error, from 0 to 2; NaN if one of the rewards is constant.

    Raises:
        ValueError: the shapes differ.
    """
    one, other = np.asarray(fitted, np.float64), np.asarray(used, np.float64)
    if one.shape != other.shape:
        raise ValueError(f"both need one reward per step, got shapes {one.shape} and {other.shape}")
    one, other = (x.ravel() - x.mean() for x in (one, other))
    norm = float(np.linalg.norm(one) * np.linalg.norm(other))
    return 1.0 - float(one @ other) / norm if norm > TINY else float("nan")


def _vector(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64).ravel()


def _numbers(x: Any) -> np.ndarray:
    """Return an array of shape (T, N); one stream has N = 1."""
    found = np.asarray(x).astype(np.float64)
    return found[:, None] if found.ndim == 1 else found


def _next_row(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[1:], np.zeros_like(x[:1])])


def _largest(error: np.ndarray, *terms: np.ndarray) -> float:
    """Return the largest |error| over the largest sum of the sizes of the terms."""
    sizes = np.sum([np.abs(term) for term in terms], axis=0)
    known = ~np.isnan(error) & ~np.isnan(sizes)
    if not known.any():
        return float("nan")
    return float(np.abs(error[known]).max() / max(sizes[known].max(), TINY))
