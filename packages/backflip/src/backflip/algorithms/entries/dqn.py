"""The entry of DQN."""

from dataclasses import dataclass
from typing import Annotated, Literal

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_with_updates
from backflip.core.settings import (
    Bounds,
    Count,
    CountOrZero,
    Fraction,
    LearningRate,
    NonNegative,
    Positive,
    PositiveFraction,
    Widths,
)
from backflip.networks.pixel_networks import PixelNetwork


@dataclass(frozen=True)
class DQNConfig:
    """Settings of DQN.

    Attributes:
        env_steps: env steps of one seed in total, including those before learning starts.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each environment between two updates.
        updates_per_step: gradient steps for each env step; times T N a whole number U.
        batch_size: B, rows of a minibatch.
        buffer_size: env steps that the replay holds, no more than those of the run.
        learning_starts: env steps of uniformly random actions before the first update.
        learning_rate: Adam's step size at the start.
        learning_rate_end: Adam's step size at the end of a linear schedule.
        discount: γ per env step.
        target_update_interval: env steps between two updates of θ⁻; if below T N, every T N.
        tau: τ of θ⁻ ← τ θ + (1 - τ) θ⁻; 1 copies.
        epsilon_start: ε, the share of random actions, at the first env step.
        epsilon_end: ε after `epsilon_steps`, at the end of a linear schedule.
        epsilon_steps: env steps of that schedule, including those before learning starts.
        double: double DQN: θ chooses the action of the target, θ⁻ gives its value.
        dueling: one head for the state's value and one for the advantages.
        n_step: n, rewards summed before bootstrapping.
        loss: loss of the TD error: `huber` or `squared`.
        clip_rewards: clip each true reward to [-1, 1] before it is summed.
        prioritized: draw rows in proportion to their TD error.
        priority_exponent: α, the exponent of the priorities.
        importance_sampling_exponent: β of the importance weights at the start; 1 at the end.
        max_grad_norm: global gradient-norm clip.
        hidden: widths of the hidden layers, for vector observations and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` is `grid` up to 16 x 16
            pixels, else `patches`. `module:function` is your own, also for vectors.
    """

    env_steps: Count = 50_000
    num_envs: Count = 8
    rollout_length: Count = 32
    updates_per_step: Positive = 0.5
    batch_size: Count = 128
    buffer_size: Count = 100_000
    learning_starts: CountOrZero = 1_024
    learning_rate: LearningRate = 5e-4
    learning_rate_end: LearningRate = 0.0
    discount: Fraction = 0.99
    target_update_interval: Count = 256
    tau: PositiveFraction = 1.0
    epsilon_start: Fraction = 1.0
    epsilon_end: Fraction = 0.04
    epsilon_steps: Count = 8_000
    double: bool = True
    dueling: bool = False
    n_step: Annotated[int, Bounds(1, 1_000)] = 3  # each step is compiled into the program
    loss: Literal["huber", "squared"] = "huber"
    clip_rewards: bool = False
    prioritized: bool = False
    priority_exponent: NonNegative = 0.6
    importance_sampling_exponent: Fraction = 0.4
    max_grad_norm: Positive = 10.0
    hidden: Widths = (256, 256)
    network: PixelNetwork = "auto"

    @property
    def updates(self) -> int:
        """Rollouts of one seed that an update follows; those of random actions are not counted."""
        return rollouts_with_updates(self)


ENTRY = AlgorithmEntry(
    "dqn",
    DQNConfig,
    "backflip.algorithms.dqn:dqn",
    continuous=False,
    defaults={
        "discrete": {"env_steps": 50_000},
        "grid": {
            "env_steps": 1_000_000,
            "rollout_length": 4,
            "updates_per_step": 0.25,
            "batch_size": 32,
            "buffer_size": 100_000,
            "learning_starts": 5_000,
            "learning_rate": 2.5e-4,
            "target_update_interval": 1_000,
            "epsilon_steps": 100_000,
            "epsilon_end": 0.01,
            "n_step": 1,
        },
        # A fifth of the papers' replay, n = 5, twice as many gradient steps, and a target network
        # that follows slowly: learns Pong on a laptop (docs/log.md).
        "pixels": {
            "network": "contrast",
            "env_steps": 800_000,
            "rollout_length": 4,
            "updates_per_step": 0.5,
            "batch_size": 32,
            "buffer_size": 200_000,
            "learning_starts": 10_000,
            "learning_rate": 3e-4,
            "learning_rate_end": 3e-5,
            "target_update_interval": 32,
            "tau": 0.05,
            "n_step": 5,
            "epsilon_steps": 100_000,
            "epsilon_end": 0.01,
            "dueling": True,
            "clip_rewards": True,
        },
    },
    environments={
        "Acrobot-v1": {
            "env_steps": 100_000,
            "rollout_length": 4,
            "updates_per_step": 0.25,
            "n_step": 1,
            "learning_rate": 6.3e-4,
            "batch_size": 128,
            "buffer_size": 50_000,
            "learning_starts": 1_000,
            "target_update_interval": 250,
            "epsilon_steps": 12_000,
            "epsilon_end": 0.1,
        },
        "dot": {"network": "patches"},  # learns faster than `contrast`
        # The learning rate and the discount of SB3's zoo.
        "MountainCar-v0": {
            "env_steps": 120_000,
            "num_envs": 1,
            "rollout_length": 16,
            "updates_per_step": 0.5,
            "n_step": 1,
            "learning_rate": 4e-3,
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 1_000,
            "discount": 0.98,
            "target_update_interval": 600,
            "epsilon_steps": 24_000,
            "epsilon_end": 0.07,
        },
    },
)
