"""The default settings of teaching, and of PPO while it is taught, by kind of environment."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from backflip.algorithms.entry import kinds_of
from backflip.algorithms.interface import Settings
from backflip.algorithms.registry import entry_of
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.representations.contacts import has_contacts
from backflip.rewards.representations.numbers import is_long
from backflip.training.teaching.config import SHORTEST_CLIP, TeachConfig

Kind = Literal[
    "grid of few channels", "grid", "image", "discrete", "one actuator", "several actuators"
]

# Env steps of a phase, of all environments together, that clips are cut from. Images take memory.
# Of vectors it is a whole phase, so that rare events are among them.
PIXEL_CLIP_STEPS, VECTOR_CLIP_STEPS = 4_096, 40_960

PIXELS: dict[str, Any] = {
    "env_steps": 245_760,
    "num_envs": 64,
    "rollout_length": 32,
    "epochs": 4,
    "minibatches": 8,
    "discount": 0.9,
    "gae_lambda": 0.9,
    "entropy_coef": 0.1,
    "entropy_coef_end": 0.01,
    "learning_rate": 1e-3,
    "learning_rate_end": 1e-4,
    "clip_range_end": 0.2,
}
PIXELS_TEACHING: dict[str, Any] = {"clip_envs": 24, "reward_model": "auto"}
# A game is learned in many more env steps than PPO's of `dot`, and a reward of the first labels is
# wrong: Pong needs a new one every 20,000 env steps or so.
FREQUENT: dict[str, Any] = {"phases": 40}
# Of several actuators off-policy: without a bonus, a policy settles for what the first clips show.
CURIOUS: dict[str, Any] = {"optimism": 1.0}
LONG_TEACHING: dict[str, Any] = {"reward_model": "numbers"}  # of vectors of 33 to 128 numbers
GRID: dict[str, Any] = {}  # small images, such as MinAtar's: the settings of `train`
GRID_TEACHING: dict[str, Any] = {**PIXELS_TEACHING, "reward_model": "contacts"}
DISCRETE: dict[str, Any] = {
    "env_steps": 400_000,
    "num_envs": 32,
    "rollout_length": 64,
    "epochs": 6,
    "minibatches": 8,
    "discount": 0.99,
    "gae_lambda": 0.95,
    "learning_rate_end": 0.0,
    "clip_range_end": 0.1,
    "advantage_floor": 0.0,  # as all figures of teaching were measured
    "normalize_obs": True,
    "normalize_rewards": True,
}
DISCRETE_TEACHING: dict[str, Any] = {}
# In episodes of 1,000 env steps, a robot that has fallen would lie still in most of each batch; but
# in short ones only, a policy would never see what follows (docs/log.md, 2026-11-25).
SHORT_EPISODES: dict[str, Any] = {"episode_steps": 250, "whole_share": 0.25}
CONTINUOUS: dict[str, Any] = {
    **SHORT_EPISODES,
    "env_steps": 819_200,
    "num_envs": 64,
    "rollout_length": 64,
    "epochs": 8,
    "minibatches": 32,
    "discount": 0.98,
    "gae_lambda": 0.95,
    "entropy_coef": 0.05,
    "entropy_coef_end": 0.02,
    "learning_rate_end": 1e-4,
    "clip_range_end": 0.2,
    "hidden": (32, 32),
    "normalize_obs": True,
    "normalize_rewards": True,
}
# Several actuators, as of robots: the settings of `train`. The entropy bonus above would widen the
# policy far beyond the range of actions, because each actuator gets it and matters less.
JOINTS: dict[str, Any] = {
    **SHORT_EPISODES,
    "env_steps": 1_500_000,
    "num_envs": 32,
    "rollout_length": 64,
    "epochs": 8,
    "minibatches": 16,
    "learning_rate": 5e-4,
    "learning_rate_end": 5e-5,
    "entropy_coef": 0.003,
    "bound_mean": True,
    "noise_color": 0.5,
}
CONTINUOUS_TEACHING: dict[str, Any] = {"clip_length": 50, "repeat": 0.9}
OF_PPO: dict[str, Any] = {"early_share": 0.5, "restart_at": 0.3, "restart_keeps": 0.5}
JOINTS_TEACHING: dict[str, Any] = {**CONTINUOUS_TEACHING, **OF_PPO}


class Defaults(NamedTuple):
    """The default settings for a kind of environment.

    Attributes:
        ppo: settings of PPO itself.
        teaching: settings of teaching with PPO.
        without_ppo: changes to `teaching` for all other algorithms.
        with_replay: further changes for other algorithms that have a replay.
    """

    ppo: Mapping[str, Any]
    teaching: Mapping[str, Any]
    without_ppo: Mapping[str, Any] = {}
    with_replay: Mapping[str, Any] = {}


DEFAULTS: Mapping[Kind, Defaults] = {
    "grid of few channels": Defaults(GRID, GRID_TEACHING),
    "grid": Defaults(GRID, PIXELS_TEACHING, without_ppo=FREQUENT),
    "image": Defaults(PIXELS, PIXELS_TEACHING, without_ppo=FREQUENT),
    "discrete": Defaults(DISCRETE, DISCRETE_TEACHING),
    "one actuator": Defaults(CONTINUOUS, CONTINUOUS_TEACHING),
    "several actuators": Defaults(JOINTS, JOINTS_TEACHING, with_replay=CURIOUS),
}


def teach_settings(algorithm: str, spec: EnvSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return default settings of an algorithm and of `TeachConfig` for an environment.

    Only PPO has other settings while it is taught, except on grids. `backflip.training.build` fills
    in all that are missing with the defaults of `train`. A clip is no longer than the time limit of
    an episode, if the environment has one.
    """
    learning, teaching = _of_kind(algorithm, spec)
    usual, limit = teaching.get("clip_length", TeachConfig.clip_length), spec.max_episode_steps
    if limit is not None and SHORTEST_CLIP <= limit < usual:
        teaching["clip_length"] = limit
    return learning, teaching


def _of_kind(algorithm: str, spec: EnvSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the default settings for the kind of an environment, with clips of one length."""
    defaults = DEFAULTS[_kind_of(spec)]
    of_reward = LONG_TEACHING if is_long(spec) else {}
    if algorithm == "ppo":
        return dict(defaults.ppo), {**defaults.teaching, **of_reward}
    # Measured with PPO only; with a replay, others learn the newest reward without a new start.
    others = {name: value for name, value in defaults.teaching.items() if name not in OF_PPO}
    of_replay = defaults.with_replay if entry_of(algorithm).has_replay else {}
    return {}, {**others, **defaults.without_ppo, **of_reward, **of_replay}


def _kind_of(spec: EnvSpec) -> Kind:
    if "grid" in kinds_of(spec):
        return "grid of few channels" if has_contacts(spec) else "grid"
    if spec.is_image:
        return "image"
    if isinstance(spec.action, Discrete):
        return "discrete"
    return "one actuator" if spec.action.shape == (1,) else "several actuators"


def clip_rollouts(own: Settings, spec: EnvSpec, config: TeachConfig) -> int:
    """Return the default of `clip_rollouts`: enough rollouts for the env steps that clips need."""
    env_steps = PIXEL_CLIP_STEPS if spec.is_image else VECTOR_CLIP_STEPS
    each = min(own.num_envs, config.clip_envs) * own.rollout_length
    needed = -(-config.clip_env_steps(own.num_envs) // own.rollout_length)
    return max(TeachConfig.clip_rollouts, -(-env_steps // each), needed)
