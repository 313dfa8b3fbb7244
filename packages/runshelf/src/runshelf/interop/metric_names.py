"""Maps metric names of other libraries to ours where both mean exactly the same.

Every value keeps its own name. The equivalent name of ours is added only if the meaning is
identical. A name that looks similar but differs gets a caution, which the run's manifest repeats,
and the name that it is like: a diagnosis may use it, with the caution.

The meanings are those that the libraries publish: Stable-Baselines3's page on its logger, CleanRL's
pages on its algorithms, RLlib's page on its metrics. `metric_tables` has those of other libraries.
No source was copied.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from runshelf.interop.metric_tables import (
    DOPAMINE,
    ML_AGENTS,
    RL_GAMES,
    RSL_RL,
    SAMPLE_FACTORY,
    SKRL,
    SPINUP,
    TIANSHOU,
    TORCHRL,
    Meaning,
)
from runshelf.interop.metric_tables import K3 as _K3
from runshelf.interop.metric_tables import WINDOW as _WINDOW

Number = int | float
Normaliser = Callable[[str, Number], tuple[str, Number] | None]
Library = Literal[
    "sb3",
    "cleanrl",
    "rllib",
    "monitor",
    "rsl_rl",
    "skrl",
    "rl_games",
    "spinup",
    "tianshou",
    "ml-agents",
    "sample_factory",
    "torchrl",
    "dopamine",
    "",
]


_EVALUATED = "of episodes that do not train"
_SPEED = "an average since learning began, not a speed: take differences of steps over time"
_LAST = "of the last minibatch only"
_CONTAINS_VALUE = "against returns that contain the value itself; NaN if constant"

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
        "eval/mean_reward": Meaning(
            "", f"{_EVALUATED}, of `EvalCallback`", like="evaluation_return"
        ),
        "eval/std_reward": Meaning("", f"{_EVALUATED}, of `EvalCallback`: between the episodes"),
        "eval/mean_ep_length": Meaning("", f"{_EVALUATED}, of `EvalCallback`"),
        "eval/success_rate": Meaning("", f"{_EVALUATED}, of `EvalCallback`"),
        "time/iterations": Meaning("", "rollouts so far"),
        "time/episodes": Meaning("", "episodes that ended so far"),
        "train/n_updates": Meaning(
            "", "gradient steps so far; of PPO and A2C, epochs", like="sb3_updates"
        ),
        "train/ent_coef_loss": Meaning("", "loss of log α, of SAC"),
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
        "losses/qf2_values": Meaning("", f"{_LAST}, of the second critic"),
        "losses/qf2_loss": Meaning("", f"{_LAST}, of the second critic"),
        "losses/actor_loss": Meaning(
            "",
            f"{_LAST}: minus the mean action value, of SAC with the bonus for entropy",
            like="policy_loss",
        ),
        "losses/alpha_loss": Meaning("", f"{_LAST}, of log α"),
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
        "evaluation/env_runners/episode_return_mean": Meaning(
            "", _EVALUATED, like="evaluation_return"
        ),
        "evaluation/env_runners/episode_len_mean": Meaning("", _EVALUATED),
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
    "rsl_rl": RSL_RL,
    "skrl": SKRL,
    "rl_games": RL_GAMES,
    "spinup": SPINUP,
    "tianshou": TIANSHOU,
    "ml-agents": ML_AGENTS,
    "sample_factory": SAMPLE_FACTORY,
    "torchrl": TORCHRL,
    "dopamine": DOPAMINE,
}

# Properties of a library that its logs do not show.
REMARKS: Mapping[Library, str] = {
    "sb3": "the norm of the gradient before clipping is not logged",
    "cleanrl": "PPO takes time limits for ends of episodes; the gradient's norm is not logged",
    "rsl_rl": "steps are iterations; the KL divergence and the gradient's norm are not logged",
    "skrl": "steps count those of one of several environments",
    "rl_games": "the gradient's norm is not logged",
    "spinup": "the gradient's norm is not logged",
    "tianshou": "the KL divergence and the gradient's norm are not logged by PPO",
    "ml-agents": "steps are decisions of all agents; the KL divergence is not logged",
    "sample_factory": "steps count skipped frames, too; the gradient's norm is logged after "
    "clipping only",
    "torchrl": "in Atari's games, steps count skipped frames, too; the KL divergence and the "
    "gradient's norm are not logged",
    "dopamine": "returns are over iterations, losses over env steps; the KL divergence and the "
    "gradient's norm are not logged",
}
# Names that no other library logs together: all of one group are there.
_OWN_NAMES: Mapping[Library, tuple[frozenset[str], ...]] = {
    "cleanrl": (frozenset({"charts/SPS"}), frozenset({"charts/episodic_return"})),
    "sb3": (frozenset({"time/fps"}), frozenset({"time/total_timesteps"})),
    "rllib": (frozenset({"num_env_steps_sampled_lifetime"}), frozenset({"timesteps_total"})),
    "rsl_rl": (frozenset({"Perf/total_fps"}),),
    "skrl": (
        frozenset({"Reward / Instantaneous reward (mean)"}),
        frozenset({"Reward / Total reward (mean)"}),
    ),
    "rl_games": (frozenset({"performance/step_inference_fps"}),),
    "spinup": (frozenset({"Epoch", "TotalEnvInteracts"}),),
    "tianshou": tuple(
        frozenset({"train/env_step", other})
        for other in (
            "update/update_step",
            "update/gradient_step",
            "train/returns_stat/mean",
            "train/reward",
        )
    ),
    "ml-agents": (frozenset({"Environment/Cumulative Reward"}),),
    "sample_factory": (
        frozenset({"train/same_policy_fraction"}),
        frozenset({"perf/_sample_throughput"}),
    ),
    "torchrl": (
        frozenset({"train/loss_objective"}),
        frozenset({"train/loss_value", "time/speed"}),
        *(frozenset({"train/q_loss", name}) for name in ("time/speed", "train/sampling_time")),
    ),
    "dopamine": (frozenset({"Train/AverageReturns", "Train/NumEpisodes"}),),
}
# Libraries whose steps are env steps, in all names that have a meaning.
_COUNTS_ENV_STEPS = ("sb3", "cleanrl", "rllib", "spinup", "sample_factory", "torchrl")
# What W&B's files of a library have for env steps, the surest name first, besides usual names.
OWN_STEPS: Mapping[Library, tuple[str, ...]] = {"torchrl": ("train/step", "trainer/step")}
NO_EPISODES = (
    "no episode is logged: with Gymnasium 1.0 or newer, CleanRL's scripts silently log none"
)


def library_of(tags: Iterable[str]) -> Library:
    """Return the library that logs such names; empty if unknown."""
    found = set(tags)
    for library, groups in _OWN_NAMES.items():
        if any(group <= found for group in groups):
            return library
    return ""


def counts_env_steps(library: Library) -> bool:
    """Return whether the steps of all that a library logs are env steps.

    Others log over iterations, over steps of one of many environments, or one value over several
    axes.
    """
    return library in _COUNTS_ENV_STEPS


def steps_in(names: Iterable[str]) -> str:
    """Return the column that counts env steps in a table of a known library; empty without one."""
    found = set(names)
    meanings = MEANINGS.get(library_of(found), {})
    means_steps = (name for name, meaning in meanings.items() if meaning.ours == "env_steps")
    return next((name for name in means_steps if name in found), "")


def counts_other_steps(library: Library) -> bool:
    """Return whether no step that a library logs, under any name, is an env step."""
    return library in ("rsl_rl", "skrl")


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
