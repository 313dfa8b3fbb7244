"""Metrics of a rollout, computed before the update."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from backflip.algorithms.interface import Metrics
from backflip.algorithms.parts.reward_metrics import reward_metrics
from backflip.algorithms.parts.rollout_rows import Rows
from backflip.core import statistics
from backflip.core.returns import reward_to_go
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.statistics import masked_mean, masked_std
from backflip.core.types import Transition


def rollout_metrics(spec: EnvSpec, batch: Transition, rows: Rows, discount: float) -> Metrics:
    """Return metrics of a batch (axes T, N) and of the rows prepared from it.

    Args:
        spec: the environment's spaces.
        batch: with the rewards to learn from.
        rows: returned by `backflip.algorithms.parts.rollout_rows.prepare`.
        discount: γ, of the Monte-Carlo returns.
    """
    valid, values = batch.valid, batch.extra.value
    target, advantage = rows.target.reshape(valid.shape), rows.advantage.reshape(valid.shape)
    returns, known = monte_carlo(batch, discount)
    measured = reward_metrics(batch.reward, valid) | {
        "explained_variance": statistics.explained_variance(values, target, valid),
        "explained_variance_mc": statistics.explained_variance(values, returns, valid & known),
        "advantage_mean": masked_mean(advantage, valid),
        "advantage_std": masked_std(advantage, valid),
        "value_mean": masked_mean(values, valid),
        "value_std": masked_std(values, valid),
    }
    if isinstance(spec.action, Discrete):
        measured["entropy_max"] = jnp.log(float(spec.action.n))
    return measured if spec.is_image else measured | _obs_metrics(batch)


def monte_carlo(
    batch: Transition, discount: float
) -> tuple[Float[Array, "T N"], Bool[Array, "T N"]]:
    """Return discounted returns, and a mask: the episode terminates inside the rollout."""
    ended = batch.terminated | batch.truncated

    def to_go(rewards: Float[Array, "T N"], discount: float) -> Float[Array, "T N"]:
        of_one = partial(reward_to_go, discount=discount)
        return jax.vmap(of_one, in_axes=1, out_axes=1)(rewards, ended)

    known = to_go(batch.terminated.astype(jnp.float32), 1.0) > 0
    return to_go(batch.reward, discount), known


def _obs_metrics(batch: Transition) -> Metrics:
    rows = batch.obs.reshape(-1, batch.obs.shape[-1])
    seen = statistics.of_rows(rows, batch.valid.reshape(-1))
    return {
        "obs_abs_mean": jnp.abs(seen.mean).mean(),
        "obs_std_min": seen.std.min(),
        "obs_std_max": seen.std.max(),
    }
