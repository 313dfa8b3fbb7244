"""The entry of SAC."""

from dataclasses import dataclass
from typing import Any

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_with_updates
from backflip.core.settings import (
    Count,
    CountOrZero,
    Fraction,
    LearningRate,
    Positive,
    PositiveFraction,
    Unbounded,
    Widths,
)
from backflip.networks.pixel_networks import PixelNetwork


@dataclass(frozen=True)
class SACConfig:
    """Settings of SAC, for continuous and for discrete actions; the defaults suit MuJoCo.

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
        temperature_learning_rate: Adam's step size for log α; 0 keeps α constant.
        initial_temperature: α at the start.
        target_entropy_per_dimension: target entropy of continuous actions, in nats for each
            dimension of an action in half-widths of the action space.
        target_entropy_scale: target entropy of n discrete actions, as a share of log n.
        discount: γ per env step.
        tau: τ of φ⁻ ← τ φ + (1 - τ) φ⁻, the update rate of the target networks.
        hidden: widths of the hidden layers, for vector observations and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` is `grid` up to 16 x 16
            pixels, else `patches`. `module:function` is your own, for discrete actions.
    """

    env_steps: Count = 1_000_000
    num_envs: Count = 1
    rollout_length: Count = 64
    updates_per_step: Positive = 1.0
    batch_size: Count = 256
    buffer_size: Count = 1_000_000
    learning_starts: CountOrZero = 10_000
    actor_learning_rate: LearningRate = 3e-4
    critic_learning_rate: LearningRate = 3e-4
    temperature_learning_rate: LearningRate = 3e-4
    initial_temperature: Positive = 1.0
    target_entropy_per_dimension: Unbounded = -1.0
    target_entropy_scale: Fraction = 0.98
    discount: Fraction = 0.99
    tau: PositiveFraction = 0.005
    hidden: Widths = (256, 256)
    network: PixelNetwork = "auto"

    @property
    def updates(self) -> int:
        """Rollouts of one seed that an update follows; those of random actions are not counted."""
        return rollouts_with_updates(self)


IMAGES: dict[str, Any] = {
    "env_steps": 1_000_000,
    "buffer_size": 100_000,
    "updates_per_step": 0.25,
}

ENTRY = AlgorithmEntry(
    "sac",
    SACConfig,
    "backflip.algorithms.sac:sac",
    images="discrete",
    defaults={
        "discrete": {
            "env_steps": 50_000,
            "learning_starts": 1_000,
            "buffer_size": 50_000,
            "hidden": (64, 64),
        },
        "small continuous": {
            "env_steps": 20_000,
            "num_envs": 4,
            "rollout_length": 16,
            "learning_starts": 1_000,
            "buffer_size": 20_000,
            "actor_learning_rate": 1e-3,
            "critic_learning_rate": 1e-3,
            "hidden": (64, 64),
            "temperature_learning_rate": 1e-3,
        },
        "grid": IMAGES,
        "pixels": {"network": "contrast", **IMAGES},
    },
)
