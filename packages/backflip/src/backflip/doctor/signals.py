"""The signals that checks need, in our names, and how to log them elsewhere."""

from collections.abc import Mapping
from typing import NamedTuple, final

from backflip.doctor.log import CORES, CPU_USE, GPU_USE, LOAD, SAVED


@final
class Meaning(NamedTuple):
    """What a signal is, and a line that logs it in a program of one's own."""

    text: str
    how: str


_BATCH = "log it after each update"

SIGNALS: Mapping[str, Meaning] = {
    "episode_return_mean": Meaning(
        "mean undiscounted return of the episodes that ended", "wrap the environment in a Monitor"
    ),
    "sb3_updates": Meaning(
        "`train/n_updates` of Stable-Baselines3: gradient steps so far, of PPO and A2C epochs",
        "its progress.csv has it",
    ),
    "evaluation_return": Meaning(
        "mean return of test episodes, which do not train", "log it after each evaluation"
    ),
    "episode_length_mean": Meaning(
        "mean length of the episodes that ended", "wrap the environment in a Monitor"
    ),
    "episode_length_min": Meaning(
        "length of the shortest episode that ended", "wrap the environment in a Monitor"
    ),
    "episode_length_max": Meaning(
        "length of the longest episode that ended", "wrap the environment in a Monitor"
    ),
    "episodes": Meaning("number of episodes that ended", "count them at each update"),
    "entropy": Meaning("entropy of the policy, in nats", "policy.entropy().mean()"),
    "entropy_max": Meaning("log n of n discrete actions", "math.log(env.action_space.n)"),
    "approx_kl": Meaning(
        "mean of (ρ - 1) - log ρ over the rows of an update", "((ratio - 1) - log_ratio).mean()"
    ),
    "clip_fraction": Meaning(
        "share of rows with |ρ - 1| > ε", "((ratio - 1).abs() > clip).float().mean()"
    ),
    "first_ratio_error": Meaning(
        "largest |ρ - 1| of the first minibatch, before its gradient step",
        "if epoch == 0 and start == 0: (ratio - 1).abs().max()",
    ),
    "explained_variance": Meaning(
        "1 - Var[G - V] / Var[G], G the TD(λ) return",
        "1 - (returns - values).var() / returns.var()",
    ),
    "explained_variance_mc": Meaning(
        "explained variance against whole returns of the episodes that ended in the rollout",
        "take discounted sums of rewards for returns",
    ),
    "value_loss": Meaning("½ (V - G)², mean over rows", "0.5 * ((values - returns) ** 2).mean()"),
    "value_mean": Meaning("mean of V over the rollout", "values.mean()"),
    "advantage_mean": Meaning("mean advantage before normalisation", "advantages.mean()"),
    "advantage_error_max": Meaning(
        "largest error of an advantage in its recursion, as a share of its terms",
        "backflip.doctor.identities.advantage_error(...)",
    ),
    "target_error_max": Meaning(
        "largest error of a target in its definition, as a share of its terms",
        "backflip.doctor.identities.target_error(...), or bellman_error(...) with a replay",
    ),
    "action_effect_p": Meaning(
        "p-value of the hypothesis that actions have no effect on what comes next",
        "backflip.doctor.action_effect.action_effect(...)",
    ),
    "action_match": Meaning(
        "how far actions in a replay follow the policy: > 0, and < 0 if others are taken",
        "(cov(a, y) - cov(y1, y2) / 2) / ((a.var() + y.var()) / 2), y = (y1 + y2) / 2 two samples",
    ),
    "replay_obs_error": Meaning(
        "largest difference of observations drawn from a replay to those stored, relative",
        "abs(drawn - stored).max() / abs(stored).max(), of rows without normalisation",
    ),
    "reward_model_symmetry_error": Meaning(
        "largest error of P(A ≻ B) + P(B ≻ A) = 1 and P(A ≻ A) = ½, in the mode of training",
        "backflip.doctor.identities.preference_error(...)",
    ),
    "reward_model_path_error": Meaning(
        "1 - correlation of the learned reward in its fit with that which the agent receives",
        "backflip.doctor.identities.reward_path_error(...)",
    ),
    "advantage_std": Meaning("standard deviation of the advantages", "advantages.std()"),
    "reward_mean": Meaning("mean reward that the algorithm learns from", "rewards.mean()"),
    "reward_std": Meaning("standard deviation of these rewards", "rewards.std()"),
    "reward_min": Meaning("smallest reward that the algorithm learns from", "rewards.min()"),
    "reward_max": Meaning("largest reward that the algorithm learns from", "rewards.max()"),
    "policy_loss": Meaning("loss of the policy, without entropy", _BATCH),
    "total_loss": Meaning("all terms of the loss, with their weights", _BATCH),
    "grad_norm": Meaning(
        "norm of the gradient before clipping", "the return value of clip_grad_norm_"
    ),
    "critic_grad_norm": Meaning("norm of the critics' gradient", _BATCH),
    "actor_grad_norm": Meaning("norm of the policy's gradient", _BATCH),
    "value_grad_norm": Meaning("norm of the value function's gradient", _BATCH),
    "update_ratio": Meaning(
        "‖θ' - θ‖ / ‖θ‖ of an update", "keep a copy of the parameters before the update"
    ),
    "policy_update_ratio": Meaning(
        "‖θ' - θ‖ / ‖θ‖ of the parameters that the policy depends on", "as `update_ratio`"
    ),
    "value_update_ratio": Meaning(
        "‖θ' - θ‖ / ‖θ‖ of the value function's own parameters", "as `update_ratio`"
    ),
    "target_update_ratio": Meaning(
        "‖θ' - θ‖ / ‖θ‖ of the target network since the last value", "as `update_ratio`"
    ),
    "learning_rate": Meaning("step size of the optimiser", 'optimizer.param_groups[0]["lr"]'),
    "q_mean": Meaning("mean Q(s, a) of the rows drawn", "q.mean()"),
    "q_max": Meaning("largest Q(s, a) of the rows drawn", "q.max()"),
    "q_loss": Meaning("loss of the action values", _BATCH),
    "target_mean": Meaning("mean target of Q(s, a)", "target.mean()"),
    "td_error_abs_mean": Meaning("mean of |target - Q(s, a)|", "(target - q).abs().mean()"),
    "epsilon": Meaning("share of random actions", _BATCH),
    "temperature": Meaning("weight of the entropy in SAC", "log_alpha.exp()"),
    "action_saturation": Meaning(
        "share of actions within a hundredth of a bound", "(action.abs() > 0.99).float().mean()"
    ),
    "obs_abs_mean": Meaning("mean over elements of |mean over rows|", "obs.mean(0).abs().mean()"),
    "obs_std_max": Meaning("largest standard deviation of an observed number", "obs.std(0).max()"),
    "obs_std_min": Meaning("smallest standard deviation of an observed number", "obs.std(0).min()"),
    "env_steps": Meaning("env steps so far", "the step of every logged value"),
    "env_steps_per_second": Meaning("speed since the last value", "not an average since the start"),
    "seconds": Meaning("time since the start", "time.monotonic() - start"),
    GPU_USE: Meaning(
        "use of the first GPU by all programs, in percent", "backflip and runshelf log it"
    ),
    CPU_USE: Meaning(
        "CPU time of the program over the time that passed, in percent of one core",
        "psutil.Process().cpu_percent()",
    ),
    CORES: Meaning("cores of the machine", "os.cpu_count()"),
    LOAD: Meaning(
        "threads that ran or waited, of all programs, for each core of the machine",
        "os.getloadavg()[0] / os.cpu_count()",
    ),
    "memory_mib": Meaning("resident memory in MiB", "psutil.Process().memory_info().rss / 2**20"),
    "memory_bytes": Meaning("resident memory in bytes", "psutil.Process().memory_info().rss"),
    SAVED: Meaning(
        "MiB of saved models that acting does not need: optimisers and replays",
        "the size of the checkpoint less that of the policy",
    ),
    "label_left": Meaning("1 for an answer `left`, 0 for `right`", "backflip teach keeps it"),
    "fresh_evidence": Meaning("evidence of the reward alarm", "backflip teach logs it"),
    "reward_model_labels": Meaning("labels of the fit", "backflip teach logs it"),
    "reward_model_ties": Meaning("labels that are ties", "backflip teach logs it"),
    "reward_model_accuracy": Meaning("accuracy on labels of the fit", "backflip teach logs it"),
    "reward_model_held_out_accuracy": Meaning(
        "accuracy on labels outside the fit", "backflip teach logs it"
    ),
    "reward_model_collapsed": Meaning(
        "share of seeds without a usable representation", "backflip teach logs it"
    ),
}
