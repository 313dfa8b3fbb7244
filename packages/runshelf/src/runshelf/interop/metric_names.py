"""Maps metric names of other libraries to ours where both mean exactly the same.

Every value keeps its own name. The equivalent name of ours is added only if the meaning is
identical. A name that looks similar but differs gets a caution, which the run's manifest repeats,
and the name that it is like: a diagnosis may use it, with the caution.

The meanings are those that the libraries publish: Stable-Baselines3's page on its logger, CleanRL's
pages on its algorithms, RLlib's page on its metrics. No source was copied.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

Number = int | float
Normaliser = Callable[[str, Number], tuple[str, Number] | None]
Library = Literal["sb3", "cleanrl", "rllib", "monitor", ""]


class Meaning(NamedTuple):
    """The meaning of another library's name.

    Attributes:
        ours: our name for the same metric; empty if there is none.
        caution: a warning about the values; empty if there is none.
        factor: our value is this factor times theirs.
        like: our name for the same quantity, computed in another way; empty if there is none.
    """

    ours: str
    caution: str
    factor: float = 1
    like: str = ""


_SPEED = "an average since learning began, not a speed: take differences of steps over time"
_LAST = "of the last minibatch only"
_CONTAINS_VALUE = "against returns that contain the value itself; NaN if constant"
_WINDOW = "mean over the last 100 episodes"
_K3 = "approx_kl"

MEANINGS: Mapping[Library, Mapping[str, Meaning]] = {
    "sb3": {
        "train/entropy_loss": Meaning("entropy", "minus the entropy, which is above 0 here", -1),
        "train/approx_kl": Meaning("", "mean over the last epoch only, not over all", like=_K3),
        "train/clip_fraction": Meaning("clip_fraction", ""),
        "train/value_loss": Meaning(
            "", "mean squared error without ½: twice our `value_loss`", 0.5, "value_loss"
        ),
        "train/explained_variance": Meaning("explained_variance", _CONTAINS_VALUE),
        "train/policy_gradient_loss": Meaning("", "of PPO; without entropy", like="policy_loss"),
        "train/policy_loss": Meaning("", "of A2C; without entropy", like="policy_loss"),
        "train/loss": Meaning(
            "", "all terms together; of PPO, of the last minibatch only", like="total_loss"
        ),
        "train/learning_rate": Meaning("learning_rate", ""),
        "train/critic_loss": Meaning("", "a sum over the critics", like="q_loss"),
        "train/actor_loss": Meaning(
            "", "minus the mean action value, of SAC with the bonus for entropy", like="policy_loss"
        ),
        "train/ent_coef": Meaning("temperature", ""),
        "rollout/exploration_rate": Meaning("epsilon", ""),
        "time/fps": Meaning("", f"{_SPEED}; wrong after `reset_num_timesteps=False`"),
        "time/total_timesteps": Meaning("env_steps", ""),
        "time/time_elapsed": Meaning("seconds", "since learning began, in whole seconds"),
        "rollout/ep_rew_mean": Meaning(
            "",
            f"{_WINDOW}; raw or normalised by the order of the wrappers",
            like="episode_return_mean",
        ),
        "rollout/ep_len_mean": Meaning("", _WINDOW, like="episode_length_mean"),
        "train/clip_range": Meaning("", "a setting"),
        "train/std": Meaning("", "mean of exp(log_std) over the actions"),
    },
    "cleanrl": {
        "losses/entropy": Meaning("", _LAST, like="entropy"),
        "losses/approx_kl": Meaning("", _LAST, like=_K3),
        "losses/old_approx_kl": Meaning(
            "", "of the last minibatch only; this estimate may be below 0 without any mistake"
        ),
        "losses/clipfrac": Meaning("clip_fraction", ""),
        "losses/value_loss": Meaning(
            "",
            "of the last minibatch only; with ½, perhaps with clipped values",
            like="value_loss",
        ),
        "losses/policy_loss": Meaning("", _LAST, like="policy_loss"),
        "losses/explained_variance": Meaning("explained_variance", _CONTAINS_VALUE),
        "losses/td_loss": Meaning("", _LAST, like="q_loss"),
        "losses/q_values": Meaning("", _LAST, like="q_mean"),
        "losses/qf_loss": Meaning("", _LAST, like="q_loss"),
        "losses/qf1_values": Meaning("", f"{_LAST}, of the first critic", like="q_mean"),
        "losses/qf1_loss": Meaning("", f"{_LAST}, of the first critic", like="q_loss"),
        "losses/alpha": Meaning("temperature", ""),
        "charts/SPS": Meaning("", _SPEED),
        "charts/episodic_return": Meaning(
            "episode_return", "of single episodes", like="episode_return_mean"
        ),
        "charts/episodic_length": Meaning(
            "episode_length", "of single episodes", like="episode_length_mean"
        ),
        "charts/learning_rate": Meaning("learning_rate", ""),
        "charts/epsilon": Meaning("epsilon", ""),
    },
    "rllib": {
        "env_runners/episode_return_mean": Meaning("", _WINDOW, like="episode_return_mean"),
        "env_runners/episode_len_mean": Meaning("", _WINDOW, like="episode_length_mean"),
        "episode_reward_mean": Meaning("", _WINDOW, like="episode_return_mean"),
        "episode_len_mean": Meaning("", _WINDOW, like="episode_length_mean"),
        "num_env_steps_sampled_lifetime": Meaning("env_steps", ""),
        "timesteps_total": Meaning("env_steps", ""),
        "time_total_s": Meaning("seconds", "since the trial began"),
        "learners/default_policy/entropy": Meaning(
            "", "of the last learner update", like="entropy"
        ),
        "learners/default_policy/mean_kl_loss": Meaning(
            "", "the exact KL divergence, not an estimate", like=_K3
        ),
        "learners/default_policy/vf_explained_var": Meaning(
            "", f"{_CONTAINS_VALUE}; -1 is the least value", like="explained_variance"
        ),
        "learners/default_policy/vf_loss": Meaning(
            "", "clipped by `vf_clip_param`, without ½", 0.5, "value_loss"
        ),
        "learners/default_policy/policy_loss": Meaning("", "", like="policy_loss"),
        "learners/default_policy/curr_lr": Meaning("learning_rate", ""),
        "learners/default_policy/default_optimizer_learning_rate": Meaning("learning_rate", ""),
        "learners/default_policy/gradients_default_optimizer_global_norm": Meaning(
            "", "of the last learner update", like="grad_norm"
        ),
        "info/learner/default_policy/learner_stats/entropy": Meaning(
            "", "mean over minibatches", like="entropy"
        ),
        "info/learner/default_policy/learner_stats/kl": Meaning(
            "", "the exact KL divergence, not an estimate", like=_K3
        ),
        "info/learner/default_policy/learner_stats/vf_explained_var": Meaning(
            "", f"{_CONTAINS_VALUE}; -1 is the least value", like="explained_variance"
        ),
        "info/learner/default_policy/learner_stats/vf_loss": Meaning(
            "", "clipped by `vf_clip_param`, without ½", 0.5, "value_loss"
        ),
        "info/learner/default_policy/learner_stats/policy_loss": Meaning(
            "", "", like="policy_loss"
        ),
        "info/learner/default_policy/learner_stats/cur_lr": Meaning("learning_rate", ""),
        "info/learner/default_policy/learner_stats/grad_gnorm": Meaning("grad_norm", ""),
    },
    "monitor": {
        "r": Meaning(
            "episode_return",
            "raw or normalised by the order of the wrappers; of single episodes",
            like="episode_return_mean",
        ),
        "l": Meaning("episode_length", "of single episodes", like="episode_length_mean"),
        "t": Meaning("seconds", "since the monitor was made"),
    },
}

# Properties of a library that its logs do not show.
REMARKS: Mapping[Library, str] = {
    "sb3": "the norm of the gradient before clipping is not logged",
    "cleanrl": "PPO takes time limits for ends of episodes; the gradient's norm is not logged",
}
NO_EPISODES = (
    "no episode is logged: with Gymnasium 1.0 or newer, CleanRL's scripts silently log none"
)


def library_of(tags: Iterable[str]) -> Library:
    """Return the library that logs such names; empty if unknown."""
    found = set(tags)
    if "charts/SPS" in found or "charts/episodic_return" in found:
        return "cleanrl"
    if "time/fps" in found or "time/total_timesteps" in found:
        return "sb3"
    if "num_env_steps_sampled_lifetime" in found or "timesteps_total" in found:
        return "rllib"
    return ""


def normaliser(library: Library) -> Normaliser:
    """Return a function that maps a name and value to ours, or to None without an equivalent."""
    meanings = MEANINGS.get(library, {})

    def normalised(name: str, value: Number) -> tuple[str, Number] | None:
        meaning = meanings.get(name)
        return (meaning.ours, meaning.factor * value) if meaning and meaning.ours else None

    return normalised


def cautions(library: Library, tags: Iterable[str]) -> dict[str, str]:
    """Return cautions by name; the one about the whole log has an empty name."""
    found = set(tags)
    meanings = MEANINGS.get(library, {})
    cautions = {name: meaning.caution for name, meaning in meanings.items() if name in found}
    remarks = [REMARKS[library]] if library in REMARKS else []
    if library == "cleanrl" and "charts/episodic_return" not in found:
        remarks.append(NO_EPISODES)
    whole = {"": "; ".join(remarks)} if remarks else {}
    return whole | {name: caution for name, caution in cautions.items() if caution}
