"""Settings of soft actor-critic, the same for continuous and for discrete actions."""

from dataclasses import dataclass

from backflip.algorithms.interface import ReplayPlan
from backflip.algorithms.parts.replay_settings import gradient_steps, rollouts_learnt_from
from backflip.networks.torsos import PixelNetwork


@dataclass(frozen=True)
class SACConfig:
    """Settings of SAC.

    Attributes:
        env_steps: env steps of one seed in all, those of the warm-up included.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each between two updates.
        updates_per_step: gradient steps for each env step; times T N a whole number U.
        batch_size: B, rows of a minibatch.
        buffer_size: env steps remembered.
        warm_up: env steps of uniformly random actions before the first update.
        actor_learning_rate: Adam's step size for the policy.
        critic_learning_rate: Adam's step size for the action values.
        temperature_learning_rate: Adam's step size for log α; 0 leaves α as it is.
        initial_temperature: α at the start.
        entropy_per_dimension: the entropy wanted of continuous actions, in nats for each dimension
            of an action in units of its range.
        entropy_share: the entropy wanted of n discrete actions, as a share of log n.
        discount: γ per env step.
        target_rate: τ, how fast the target networks follow.
        hidden: widths of the hidden layers, for vector observations and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` goes by their size.
    """

    env_steps: int = 1_000_000
    num_envs: int = 1
    rollout_length: int = 64
    updates_per_step: float = 1.0
    batch_size: int = 256
    buffer_size: int = 1_000_000
    warm_up: int = 10_000
    actor_learning_rate: float = 3e-4
    critic_learning_rate: float = 3e-4
    temperature_learning_rate: float = 3e-4
    initial_temperature: float = 1.0
    entropy_per_dimension: float = -1.0
    entropy_share: float = 0.98
    discount: float = 0.99
    target_rate: float = 0.005
    hidden: tuple[int, ...] = (256, 256)
    network: PixelNetwork = "auto"

    @property
    def updates(self) -> int:
        """Rollouts of one seed that are learnt from; those of the warm-up are not."""
        return rollouts_learnt_from(self)


def replay_plan(config: SACConfig) -> ReplayPlan:
    """Return what is kept of the past and drawn from it."""
    return ReplayPlan(
        capacity=config.buffer_size,
        batch_size=config.batch_size,
        gradient_steps=gradient_steps(config),
        warm_up=config.warm_up,
        discount=config.discount,
    )
