"""The entry of VPG."""

from dataclasses import dataclass
from typing import Any, Literal

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.settings import Count, Fraction, LearningRate, LogStd, Widths
from backflip.networks.pixel_networks import PixelNetwork


@dataclass(frozen=True)
class VPGConfig:
    """Settings of VPG.

    Attributes:
        env_steps: env steps of one seed in total.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each environment between two updates.
        advantage: Ψ: `gae`, the generalised advantage, or `reward_to_go`, G without a baseline.
        learning_rate: Adam's step size for the policy.
        value_learning_rate: Adam's step size for the value function.
        value_gradient_steps: gradient steps of the value function in each update.
        discount: γ per env step.
        gae_lambda: λ of the generalised advantage.
        hidden: widths of the hidden layers of both networks, for vectors and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` is `grid` up to 16 x 16
            pixels, else `patches`. `module:function` is your own, also for vectors.
        initial_log_std: log σ of a continuous policy at the start.
        normalize_obs: scale vector observations by running mean and standard deviation.
        normalize_rewards: divide rewards by the running standard deviation of the discounted
            return.
    """

    env_steps: Count = 1_000_000
    num_envs: Count = 8
    rollout_length: Count = 500
    advantage: Literal["gae", "reward_to_go"] = "gae"
    learning_rate: LearningRate = 3e-4
    value_learning_rate: LearningRate = 1e-3
    value_gradient_steps: Count = 80
    discount: Fraction = 0.99
    gae_lambda: Fraction = 0.97
    hidden: Widths = (64, 64)
    network: PixelNetwork = "auto"
    initial_log_std: LogStd = -0.5
    normalize_obs: bool = False
    normalize_rewards: bool = False

    @property
    def updates(self) -> int:
        """Updates of one seed in total; the last batch may go a little beyond `env_steps`."""
        return rollouts_of(self.env_steps, self.num_envs, self.rollout_length)


IMAGES: dict[str, Any] = {
    "env_steps": 1_000_000,
    "num_envs": 32,
    "rollout_length": 64,
    "learning_rate": 1e-3,
    "value_gradient_steps": 5,
}

ENTRY = AlgorithmEntry(
    "vpg",
    VPGConfig,
    "backflip.algorithms.vpg:vpg",
    defaults={
        "discrete": {
            "env_steps": 200_000,
            "rollout_length": 256,
            "learning_rate": 5e-3,
            "value_learning_rate": 3e-3,
            "value_gradient_steps": 20,
        },
        "continuous": {
            "env_steps": 1_000_000,
            "normalize_obs": True,
            "normalize_rewards": True,
        },
        "grid": IMAGES,
        "pixels": {"network": "contrast", **IMAGES},
    },
)
