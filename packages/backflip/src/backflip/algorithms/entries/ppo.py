"""The entry of PPO."""

from dataclasses import dataclass
from typing import Annotated

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.settings import (
    LARGEST_COUNT,
    Bounds,
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
class PPOConfig:
    """Settings of PPO; the defaults suit classic control.

    Attributes:
        env_steps: env steps of one seed in total; the schedules end there.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each environment between two updates.
        episode_steps: env steps after which training truncates an episode, with V of the last state
            in place of what would follow (arXiv:1712.00378); 0: only the environment's own limit.
            Evaluations have whole episodes.
        whole_share: share of the environments that `episode_steps` leaves alone.
        epochs: passes over each batch.
        minibatches: gradient steps in one pass; divides T N.
        learning_rate: Adam's step size at the start.
        learning_rate_end: Adam's step size at the end of a linear schedule.
        discount: γ per env step.
        gae_lambda: λ of the advantage estimator.
        clip_range: ε of the surrogate at the start.
        clip_range_end: ε at the end of a linear schedule.
        entropy_coef: c₂, weight of the policy's entropy in the objective at the start.
        entropy_coef_end: c₂ at the end of a linear schedule.
        value_coef: c₁, weight of the value loss.
        value_clip_range: how far one update may move the value, in units of returns; 0: no limit.
        max_grad_norm: global gradient-norm clip.
        advantage_floor: if the standard deviation of a batch's advantages is below this share of
            that of the discounted return, the policy's learning rate shrinks in proportion; 0:
            never.
        hidden: widths of the hidden layers, for vector observations and `network=flat`.
        network: for images: `patches`, `contrast` (patches of standardised images), `nature`,
            `grid` or `flat` (layers of `hidden` on all pixels); `auto` is `grid` up to 16 x 16
            pixels, else `patches`. `module:function` is your own, also for vectors.
        initial_log_std: log σ of a continuous policy at the start.
        least_log_std: the least log σ of a continuous policy after an update.
        normalize_obs: scale vector observations by running mean and standard deviation.
        normalize_rewards: divide rewards by the running standard deviation of the discounted
            return.
        wrap_angles: networks see angles of joints that turn without limit within [-π, π), of
            environments that name them: the MuJoCo tasks.
        bound_mean: keep the mean of a continuous policy within the action space, by tanh.
        noise_color: β: the noise of a continuous policy has about the power f^-β at frequency f
            over the env steps of a rollout (arXiv:2312.11091); 0 is independent noise, 1 pink.
    """

    env_steps: Count = 100_000
    num_envs: Count = 8
    rollout_length: Count = 32
    episode_steps: Annotated[int, Bounds(0, LARGEST_COUNT)] = 0
    whole_share: Fraction = 0.0
    epochs: Count = 20
    minibatches: Count = 1
    learning_rate: LearningRate = 1e-3
    learning_rate_end: LearningRate = 0.0
    discount: Fraction = 0.98
    gae_lambda: Fraction = 0.8
    clip_range: Positive = 0.2
    clip_range_end: NonNegative = 0.0
    entropy_coef: Unbounded = 0.0
    entropy_coef_end: Unbounded = 0.0
    value_coef: NonNegative = 0.5
    value_clip_range: NonNegative = 0.0
    max_grad_norm: Positive = 0.5
    advantage_floor: NonNegative = 0.0
    hidden: Widths = (64, 64)
    network: PixelNetwork = "auto"
    initial_log_std: LogStd = 0.0
    least_log_std: LogStd = -20.0
    normalize_obs: bool = False
    normalize_rewards: bool = False
    wrap_angles: bool = False
    bound_mean: bool = False
    noise_color: Annotated[float, Bounds(0, 2)] = 0.0

    @property
    def updates(self) -> int:
        """Updates of one seed in total; the last batch may go a little beyond `env_steps`."""
        return rollouts_of(self.env_steps, self.num_envs, self.rollout_length)


ENTRY = AlgorithmEntry(
    "ppo",
    PPOConfig,
    "backflip.algorithms.ppo:ppo",
    defaults={
        # SB3-zoo's settings of CartPole-v1 are PPOConfig's own defaults. The floor is a departure
        # from them and from CleanRL's, which keeps a policy from forgetting.
        "discrete": {"env_steps": 100_000, "advantage_floor": 0.03},
        "continuous": {
            "env_steps": 500_000,
            "num_envs": 16,
            "rollout_length": 128,
            "epochs": 10,
            "minibatches": 32,
            "learning_rate": 3e-4,
            "learning_rate_end": 0.0,
            "discount": 0.99,
            "gae_lambda": 0.95,
            "clip_range": 0.2,
            "clip_range_end": 0.2,
            "normalize_obs": True,
            "normalize_rewards": True,
            "wrap_angles": True,
        },
        # purejaxrl's settings of MinAtar, with fewer env steps.
        "grid": {
            "env_steps": 1_000_000,
            "num_envs": 64,
            "rollout_length": 128,
            "epochs": 4,
            "minibatches": 8,
            "learning_rate": 5e-3,
            "learning_rate_end": 0.0,
            "discount": 0.99,
            "gae_lambda": 0.95,
            "clip_range": 0.2,
            "clip_range_end": 0.2,
            "entropy_coef": 0.01,
            "entropy_coef_end": 0.01,
        },
        "pixels": {
            "network": "contrast",
            "env_steps": 3_000_000,
            "num_envs": 32,
            "rollout_length": 64,
            "epochs": 4,
            "minibatches": 8,
            "learning_rate": 1e-3,
            "learning_rate_end": 1e-4,
            "discount": 0.99,
            "gae_lambda": 0.95,
            "clip_range": 0.2,
            "clip_range_end": 0.2,
            "entropy_coef": 0.01,
            "entropy_coef_end": 0.01,
        },
    },
    environments={
        # Episodes of 247 env steps with a reward in each; the observation is the dot alone.
        "dot": {
            "env_steps": 300_000,
            "num_envs": 64,
            "rollout_length": 32,
            "epochs": 2,
            "minibatches": 4,
            "discount": 0.9,
            "gae_lambda": 0.9,
            "network": "patches",
        },
    },
)
