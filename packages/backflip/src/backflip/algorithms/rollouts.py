"""How many rollouts and gradient steps follow from the settings of an algorithm; imports no JAX."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class ReplaySettings(Protocol):
    """The settings that all algorithms with a replay share; each configuration documents them."""

    @property
    def env_steps(self) -> int: ...  # noqa: D102
    @property
    def num_envs(self) -> int: ...  # noqa: D102
    @property
    def rollout_length(self) -> int: ...  # noqa: D102
    @property
    def updates_per_step(self) -> float: ...  # noqa: D102
    @property
    def batch_size(self) -> int: ...  # noqa: D102
    @property
    def buffer_size(self) -> int: ...  # noqa: D102
    @property
    def learning_starts(self) -> int: ...  # noqa: D102
    @property
    def discount(self) -> float: ...  # noqa: D102


def rollouts_of(env_steps: int, num_envs: int, rollout_length: int) -> int:
    """Return how many rollouts cover `env_steps`; the last may go a little beyond."""
    return -(-env_steps // (num_envs * rollout_length))


def rollouts_before_learning(settings: ReplaySettings) -> int:
    """Return how many whole rollouts of random actions come before learning."""
    return rollouts_of(settings.learning_starts, settings.num_envs, settings.rollout_length)


def rollouts_with_updates(settings: ReplaySettings) -> int:
    """Return how many rollouts are followed by an update."""
    rollouts = rollouts_of(settings.env_steps, settings.num_envs, settings.rollout_length)
    return max(rollouts - rollouts_before_learning(settings), 0)


def gradient_steps(settings: ReplaySettings) -> int:
    """Return U, the gradient steps after each rollout."""
    return round(settings.updates_per_step * settings.num_envs * settings.rollout_length)
