"""The entry of A2C."""

from dataclasses import dataclass
from typing import Any

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.settings import (
    Count,
    Fraction,
    LearningRate,
    LogStd,
    NonNegative,
    Positive,
    Unbounded,
    Widths,
)
from backflip.networks.pixel_networks import PixelNetwork


@dataclass(frozen=True)
class A2CConfig:
    """Settings of A2C.

    Attributes:
        env_steps: env steps of one seed in total; the learning rate's schedule ends there.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each environment between two updates.
        learning_rate: RMSProp's step size at the start.
        learning_rate_end: RMSProp's step size at the end of a linear schedule.
        rms_decay: α, how much of the mean squared gradient is kept from update to update.
        rms_epsilon: ε, added to the mean squared gradient, inside the root.
        discount: γ per env step.
        gae_lambda: λ of the advantage estimator; 1 gives n-step returns.
        entropy_coef: c₂, weight of the policy's entropy in the objective.
        value_coef: c₁, weight of the value loss.
        max_grad_norm: global gradient-norm clip.
        normalize_advantage: shift and scale advantages to mean 0 and standard deviation 1 in each
            batch.
        hidden: widths of the hidden layers, for vector observations and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` is `grid` up to 16 x 16
            pixels, else `patches`. `module:function` is your own, also for vectors.
        initial_log_std: log σ of a continuous policy at the start.
        normalize_obs: scale vector observations by running mean and standard deviation.
        normalize_rewards: divide rewards by the running standard deviation of the discounted
            return.
    """

    env_steps: Count = 500_000
    num_envs: Count = 8
    rollout_length: Count = 5
    learning_rate: LearningRate = 7e-4
    learning_rate_end: LearningRate = 0.0
    rms_decay: Fraction = 0.99
    rms_epsilon: Positive = 1e-5
    discount: Fraction = 0.99
    gae_lambda: Fraction = 1.0
    entropy_coef: Unbounded = 0.01
    value_coef: NonNegative = 0.5
    max_grad_norm: Positive = 0.5
    normalize_advantage: bool = False
    hidden: Widths = (64, 64)
    network: PixelNetwork = "auto"
    initial_log_std: LogStd = 0.0
    normalize_obs: bool = False
    normalize_rewards: bool = False

    @property
    def updates(self) -> int:
        """Updates of one seed in total; the last batch may go a little beyond `env_steps`."""
        return rollouts_of(self.env_steps, self.num_envs, self.rollout_length)


IMAGES: dict[str, Any] = {"env_steps": 1_000_000, "num_envs": 16}

ENTRY = AlgorithmEntry(
    "a2c",
    A2CConfig,
    "backflip.algorithms.a2c:a2c",
    defaults={
        "discrete": {"env_steps": 500_000, "entropy_coef": 0.0},
        "continuous": {
            "env_steps": 1_000_000,
            "num_envs": 16,
            "rollout_length": 8,
            "gae_lambda": 0.95,
            "learning_rate": 2e-3,
            "entropy_coef": 0.0,
            "initial_log_std": -0.5,
            "normalize_obs": True,
            "normalize_rewards": True,
        },
        "grid": IMAGES,
        "pixels": {"network": "contrast", **IMAGES},
    },
    environments={
        "Acrobot-v1": {
            "num_envs": 16,
            "normalize_obs": True,
            "normalize_rewards": True,
            "learning_rate_end": 7e-4,
        },
    },
)
