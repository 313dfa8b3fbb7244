"""Settings of deep Q-networks."""

from dataclasses import dataclass
from typing import Literal

from backflip.algorithms.parts.replay_settings import rollouts_learnt_from
from backflip.networks.torsos import PixelNetwork


@dataclass(frozen=True)
class DQNConfig:
    """Settings of DQN.

    Attributes:
        env_steps: env steps of one seed in all, those of the warm-up included.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each between two updates.
        updates_per_step: gradient steps for each env step; times T N a whole number U.
        batch_size: B, rows of a minibatch.
        buffer_size: env steps remembered.
        warm_up: env steps of uniformly random actions before the first update.
        learning_rate: Adam's step size at the start.
        learning_rate_end: the same at the end, reached linearly.
        discount: γ per env step.
        target_update: env steps between two updates of θ⁻; below T N it happens every T N.
        target_rate: τ of θ⁻ ← τ θ + (1 - τ) θ⁻; 1 copies.
        exploration_start: ε, the share of random actions, at the first env step.
        exploration_end: the same after `exploration_steps`, reached linearly.
        exploration_steps: env steps until then, those of the warm-up included.
        double: choose the action of the target by θ, rate it by θ⁻.
        dueling: a network with a head for the state's value and one for the advantages.
        n_step: n, rewards summed before bootstrapping.
        loss: of an error: `huber`, or `squared`.
        clip_rewards: learn from true rewards clipped to [-1, 1], each before they are summed.
        prioritized: draw rows in proportion to their error.
        priority_exponent: α, how much so.
        priority_correction: β of the importance weights at the start; it goes to 1 on a line.
        max_grad_norm: gradients longer than this are shortened to it.
        hidden: widths of the hidden layers, for vector observations and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` goes by their size.
    """

    env_steps: int = 50_000
    num_envs: int = 8
    rollout_length: int = 32
    updates_per_step: float = 0.5
    batch_size: int = 128
    buffer_size: int = 100_000
    warm_up: int = 1_024
    learning_rate: float = 5e-4
    learning_rate_end: float = 0.0
    discount: float = 0.99
    target_update: int = 256
    target_rate: float = 1.0
    exploration_start: float = 1.0
    exploration_end: float = 0.04
    exploration_steps: int = 8_000
    double: bool = True
    dueling: bool = False
    n_step: int = 3
    loss: Literal["huber", "squared"] = "huber"
    clip_rewards: bool = False
    prioritized: bool = False
    priority_exponent: float = 0.6
    priority_correction: float = 0.4
    max_grad_norm: float = 10.0
    hidden: tuple[int, ...] = (256, 256)
    network: PixelNetwork = "auto"

    @property
    def updates(self) -> int:
        """Rollouts of one seed that are learnt from; those of the warm-up are not."""
        return rollouts_learnt_from(self)
