"""ε-greedy: the best action, but for a share ε of random ones that falls along a line."""

from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.algorithms.parts.replay_settings import ReplaySettings, warm_up_rollouts
from backflip.core.errors import UsageError
from backflip.core.schedules import linear


@runtime_checkable
class ExplorationSettings(ReplaySettings, Protocol):
    """The settings that every algorithm with an ε has, documented there."""

    @property
    def exploration_start(self) -> float: ...  # noqa: D102
    @property
    def exploration_end(self) -> float: ...  # noqa: D102
    @property
    def exploration_steps(self) -> int: ...  # noqa: D102


def epsilon(settings: ExplorationSettings, updates: Int[Array, ""]) -> Float[Array, ""]:
    """Return ε after so many updates, on its line from first to last.

    It counts env steps, those of the warm-up too, and stays the same all through a rollout.
    """
    rollouts = (updates + warm_up_rollouts(settings)).astype(jnp.float32)
    env_steps = rollouts * (settings.num_envs * settings.rollout_length)
    progress = env_steps / settings.exploration_steps
    return linear(settings.exploration_start, settings.exploration_end, progress)


def epsilon_greedily(
    value: Float[Array, "N A"], share: Float[Array, ""] | float, key: PRNGKeyArray
) -> Int[Array, " N"]:
    """Return the action of most value in each of N rows, or with probability ε any one.

    Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning",
    algorithm 1.
    """
    rows, actions = value.shape
    explore, choice = jax.random.uniform(key, (2, rows))
    random = (choice * actions).astype(jnp.int32)
    return jnp.where(explore < share, random, jnp.argmax(value, -1).astype(jnp.int32))


def refuse_early_end(settings: ExplorationSettings) -> None:
    """Refuse an ε that has come to its end before anything is learnt.

    Raises:
        UsageError: it has.
    """
    if settings.exploration_steps <= settings.warm_up:
        raise UsageError(
            "settings: `exploration_steps` counts the warm-up and must be more than warm_up = "
            f"{settings.warm_up}, or epsilon ends before learning starts, got "
            f"{settings.exploration_steps}; try exploration_steps={2 * settings.warm_up}"
        )
