"""The entry of DDPG."""

from dataclasses import dataclass

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_with_updates
from backflip.core.settings import (
    Count,
    CountOrZero,
    Fraction,
    LearningRate,
    NonNegative,
    Positive,
    PositiveFraction,
    Widths,
)


@dataclass(frozen=True)
class DDPGConfig:
    """Settings of DDPG; the defaults suit MuJoCo.

    Attributes:
        env_steps: env steps of one seed in total, including those before learning starts.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each environment between two updates.
        updates_per_step: gradient steps for each env step; times T N a whole number U.
        batch_size: B, rows of a minibatch.
        buffer_size: env steps that the replay holds, no more than those of the run.
        learning_starts: env steps of uniformly random actions before the first update.
        actor_learning_rate: Adam's step size for the policy.
        critic_learning_rate: Adam's step size for the action values.
        discount: γ per env step.
        tau: τ of φ⁻ ← τ φ + (1 - τ) φ⁻, the update rate of the target networks.
        exploration_noise: σ of the noise, in half-widths of the action space.
        hidden: widths of the hidden layers.
    """

    env_steps: Count = 1_000_000
    num_envs: Count = 1
    rollout_length: Count = 64
    updates_per_step: Positive = 1.0
    batch_size: Count = 256
    buffer_size: Count = 1_000_000
    learning_starts: CountOrZero = 10_000
    actor_learning_rate: LearningRate = 1e-3
    critic_learning_rate: LearningRate = 1e-3
    discount: Fraction = 0.99
    tau: PositiveFraction = 0.005
    exploration_noise: NonNegative = 0.1
    hidden: Widths = (256, 256)

    @property
    def updates(self) -> int:
        """Rollouts of one seed that an update follows; those of random actions are not counted."""
        return rollouts_with_updates(self)


ENTRY = AlgorithmEntry(
    "ddpg",
    DDPGConfig,
    "backflip.algorithms.ddpg:ddpg",
    discrete=False,
    images="neither",
    defaults={
        "small continuous": {
            "env_steps": 20_000,
            "num_envs": 4,
            "rollout_length": 16,
            "learning_starts": 1_000,
            "buffer_size": 20_000,
            "actor_learning_rate": 1e-3,
            "critic_learning_rate": 1e-3,
            "hidden": (64, 64),
        },
    },
)
