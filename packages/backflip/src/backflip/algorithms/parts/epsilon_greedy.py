"""ε-greedy exploration with a linear schedule of ε."""

from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.algorithms.rollouts import ReplaySettings, rollouts_before_learning
from backflip.core.schedules import linear
from runshelf.errors import UsageError


@runtime_checkable
class ExplorationSettings(ReplaySettings, Protocol):
    """The settings of algorithms with an ε; their configurations document them."""

    @property
    def epsilon_start(self) -> float: ...  # noqa: D102
    @property
    def epsilon_end(self) -> float: ...  # noqa: D102
    @property
    def epsilon_steps(self) -> int: ...  # noqa: D102


def epsilon(settings: ExplorationSettings, updates: Int[Array, ""]) -> Float[Array, ""]:
    """Return ε after so many updates on its linear schedule.

    The schedule counts all env steps, random ones before learning included. ε is constant within a
    rollout.
    """
    rollouts = (updates + rollouts_before_learning(settings)).astype(jnp.float32)
    env_steps = rollouts * (settings.num_envs * settings.rollout_length)
    progress = env_steps / settings.epsilon_steps
    return linear(settings.epsilon_start, settings.epsilon_end, progress)


def epsilon_greedily(
    value: Float[Array, "N A"], share: Float[Array, ""] | float, key: PRNGKeyArray
) -> Int[Array, " N"]:
    """Return the action of largest value in each of N rows, or with probability ε a random one.

    Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning",
    algorithm 1.
    """
    rows, actions = value.shape
    explore, choice = jax.random.uniform(key, (2, rows))
    random = (choice * actions).astype(jnp.int32)
    return jnp.where(explore < share, random, jnp.argmax(value, -1).astype(jnp.int32))


def refuse_early_end(settings: ExplorationSettings) -> None:
    """Refuse an ε schedule that ends before learning starts.

    Raises:
        UsageError: the schedule ends before learning starts.
    """
    if settings.epsilon_steps <= settings.learning_starts:
        raise UsageError(
            "settings: `epsilon_steps` includes the random steps and must be more than "
            f"learning_starts = {settings.learning_starts}, or epsilon ends before learning "
            f"starts, got {settings.epsilon_steps}; "
            f"try epsilon_steps={2 * settings.learning_starts}"
        )
