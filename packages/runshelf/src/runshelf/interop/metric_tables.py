"""Meanings of names that libraries log: of robots' simulators, of courses, and of a game engine.

What a value is was read in the sources of the libraries, whose names are facts; no source was
copied. Versions: rsl_rl 1.0 to 5.4, skrl 1.0 to 2.0, rl_games 2.0, Spinning Up 0.2, Tianshou 0.5 to
2.0, Sample Factory 2.0 to 2.1, TorchRL 0.5 to 0.13, Dopamine 2.0 to 4.1. ML-Agents is described by
its page on TensorBoard.
"""

from collections.abc import Mapping
from typing import NamedTuple

WINDOW = "mean over the last 100 episodes"
K3 = "approx_kl"


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


_RETURN, _LENGTH = "episode_return_mean", "episode_length_mean"
_EVALUATED = "evaluation_return"
_MINIBATCHES = "mean over the minibatches of all epochs"
_NO_HALF = "without ½: twice our `value_loss`"
_AGAIN = "the same values, over another axis"
_DEVIATION = "mean standard deviation of the actions"
_SINCE = "mean of the updates since the value before"
_TESTS = "of test episodes, which do not train"

RSL_RL: Mapping[str, Meaning] = {
    "Train/mean_reward": Meaning(
        "", f"{WINDOW}; with RND, intrinsic rewards are added", like=_RETURN
    ),
    "Train/mean_episode_length": Meaning("", WINDOW, like=_LENGTH),
    "Train/mean_reward/time": Meaning("", _AGAIN),
    "Train/mean_episode_length/time": Meaning("", _AGAIN),
    "Loss/value": Meaning(
        "", f"{_MINIBATCHES}, by default of clipped values; {_NO_HALF}", 0.5, "value_loss"
    ),
    "Loss/value_function": Meaning(
        "",
        f"`Loss/value` before version 3.2: {_MINIBATCHES}, by default of clipped values; "
        f"{_NO_HALF}",
        0.5,
        "value_loss",
    ),
    "Loss/surrogate": Meaning("", f"{_MINIBATCHES}; without entropy", like="policy_loss"),
    "Loss/entropy": Meaning("", f"{_MINIBATCHES}; since version 2.2", like="entropy"),
    "Loss/learning_rate": Meaning("learning_rate", ""),
    "Loss/behavior": Meaning("", "of a distillation, which learns from a teacher"),
    "Loss/rnd": Meaning("", "of the predictor of RND"),
    "Loss/symmetry": Meaning("", f"{_MINIBATCHES}"),
    "Policy/mean_std": Meaning("", _DEVIATION),
    "Policy/mean_noise_std": Meaning("", f"`Policy/mean_std` before version 5: {_DEVIATION}"),
    "Perf/total_fps": Meaning(
        "", "of the newest iteration, without the time of logging", like="env_steps_per_second"
    ),
    "Perf/collection_time": Meaning("", "seconds of the newest iteration"),
    "Perf/collection time": Meaning("", "`Perf/collection_time` before version 3.2"),
    "Perf/learning_time": Meaning("", "seconds of the newest iteration"),
    "Rnd/mean_extrinsic_reward": Meaning("", f"{WINDOW}; the return without intrinsic rewards"),
    "Rnd/mean_intrinsic_reward": Meaning("", WINDOW),
    "Rnd/weight": Meaning("", "a setting"),
}

_EPISODES_SINCE = "of the episodes since the value before, 100 at most"
_REWARDS = "before the rewards shaper"

SKRL: Mapping[str, Meaning] = {
    "Reward / Total reward (mean)": Meaning(
        "", f"mean {_EPISODES_SINCE}; the first of them count more", like=_RETURN
    ),
    "Reward / Total reward (max)": Meaning("", f"{_EPISODES_SINCE}"),
    "Reward / Total reward (min)": Meaning("", f"{_EPISODES_SINCE}"),
    "Reward / Instantaneous reward (mean)": Meaning("", _REWARDS, like="reward_mean"),
    "Reward / Instantaneous reward (max)": Meaning("", _REWARDS, like="reward_max"),
    "Reward / Instantaneous reward (min)": Meaning("", _REWARDS, like="reward_min"),
    "Episode / Total timesteps (mean)": Meaning(
        "", f"mean {_EPISODES_SINCE}; the first of them count more", like=_LENGTH
    ),
    "Episode / Total timesteps (max)": Meaning("", _EPISODES_SINCE, like="episode_length_max"),
    "Episode / Total timesteps (min)": Meaning("", _EPISODES_SINCE, like="episode_length_min"),
    "Loss / Policy loss": Meaning(
        "",
        f"{_SINCE}; without entropy, but for SAC. Of DDPG, TD3 and SAC minus the mean action value",
        like="policy_loss",
    ),
    "Loss / Value loss": Meaning(
        "",
        f"{_SINCE}; times `value_loss_scale`, without ½, of returns as the preprocessor scales "
        "them",
        0.5,
        "value_loss",
    ),
    "Loss / Entropy loss": Meaning(
        "", "minus the entropy times `entropy_loss_scale`; of SAC the loss of the coefficient"
    ),
    "Loss / Critic loss": Meaning(
        "", f"{_SINCE}; of TD3 the sum over the critics, of SAC half of it", like="q_loss"
    ),
    "Loss / Q-network loss": Meaning("", _SINCE, like="q_loss"),
    "Learning / Learning rate": Meaning("learning_rate", ""),
    "Learning / Policy learning rate": Meaning("", "of the policy", like="learning_rate"),
    "Learning / Critic learning rate": Meaning("", "of the critics"),
    "Learning / Value learning rate": Meaning("", "of the value function"),
    "Policy / Standard deviation": Meaning("", _DEVIATION),
    "Q-network / Q1 (mean)": Meaning("", f"{_SINCE}, of the first critic", like="q_mean"),
    "Q-network / Q1 (max)": Meaning(
        "", "since the value before, of the first critic", like="q_max"
    ),
    "Target / Target (mean)": Meaning("", _SINCE, like="target_mean"),
    "Coefficient / Entropy coefficient": Meaning("temperature", ""),
    "Exploration / Exploration epsilon": Meaning("epsilon", ""),
}

RL_GAMES: Mapping[str, Meaning] = {
    "rewards/step": Meaning(
        "", f"{WINDOW}, or `games_to_track`; before the reward shaper", like=_RETURN
    ),
    "rewards/iter": Meaning("", _AGAIN),
    "rewards/time": Meaning("", _AGAIN),
    "shaped_rewards/step": Meaning("", f"{WINDOW}, or `games_to_track`; as the agent gets them"),
    "shaped_rewards/iter": Meaning("", _AGAIN),
    "shaped_rewards/time": Meaning("", _AGAIN),
    "episode_lengths/step": Meaning("", f"{WINDOW}, or `games_to_track`", like=_LENGTH),
    "episode_lengths/iter": Meaning("", _AGAIN),
    "episode_lengths/time": Meaning("", _AGAIN),
    "losses/a_loss": Meaning(
        "",
        f"{_MINIBATCHES}; without entropy. Of SAC minus the mean action value, with the bonus for "
        "entropy",
        like="policy_loss",
    ),
    "losses/c_loss": Meaning(
        "",
        f"{_MINIBATCHES}; {_NO_HALF}. Of normalised returns with `normalize_value`, of clipped "
        "values with `clip_value`",
        0.5,
        "value_loss",
    ),
    "losses/entropy": Meaning("", _MINIBATCHES, like="entropy"),
    "losses/bounds_loss": Meaning("", "of means of actions beyond their bounds"),
    "losses/cval_loss": Meaning("", "of the central value function"),
    "losses/c1_loss": Meaning("", "of SAC, of the first critic", like="q_loss"),
    "losses/c2_loss": Meaning("", "of SAC, of the second critic"),
    "losses/alpha_loss": Meaning("", "of SAC's coefficient"),
    "info/alpha": Meaning("temperature", ""),
    "info/kl": Meaning(
        "",
        f"{_MINIBATCHES}; of continuous actions the exact KL divergence, of discrete ones half the "
        "mean squared log ρ",
        like=K3,
    ),
    "info/last_lr": Meaning("learning_rate", ""),
    "info/lr_mul": Meaning("", "a factor of the learning rate and of the clip range"),
    "info/e_clip": Meaning("", "a setting, times `info/lr_mul`"),
    "info/epochs": Meaning("", "the number of updates, which are called epochs"),
    "performance/step_inference_rl_update_fps": Meaning(
        "", "of the newest epoch, without the time of logging", like="env_steps_per_second"
    ),
    "performance/step_inference_fps": Meaning("", "of the newest epoch, without updates"),
    "performance/step_fps": Meaning("", "of the newest epoch, of the environment alone"),
    "performance/rl_update_time": Meaning("", "seconds of the newest epoch"),
    "performance/step_inference_time": Meaning("", "seconds of the newest epoch"),
    "performance/step_time": Meaning("", "seconds of the newest epoch"),
}

_EPOCH = "of the epoch"
_BEFORE = "of all rows of the epoch, before the update"
_CRITIC = "of the first critic"

SPINUP: Mapping[str, Meaning] = {
    "AverageEpRet": Meaning("", "mean over the episodes that ended in the epoch", like=_RETURN),
    "StdEpRet": Meaning("", _EPOCH),
    "MaxEpRet": Meaning("", _EPOCH),
    "MinEpRet": Meaning("", _EPOCH),
    "EpLen": Meaning("", "mean over the episodes that ended in the epoch", like=_LENGTH),
    "AverageTestEpRet": Meaning("", _TESTS, like=_EVALUATED),
    "StdTestEpRet": Meaning("", _TESTS),
    "MaxTestEpRet": Meaning("", _TESTS),
    "MinTestEpRet": Meaning("", _TESTS),
    "TestEpLen": Meaning("", _TESTS),
    "AverageVVals": Meaning("value_mean", ""),
    "StdVVals": Meaning("", _EPOCH),
    "MaxVVals": Meaning("", _EPOCH),
    "MinVVals": Meaning("", _EPOCH),
    "AverageQVals": Meaning("", "mean over the updates of the epoch", like="q_mean"),
    "AverageQ1Vals": Meaning("", f"mean over the updates of the epoch, {_CRITIC}", like="q_mean"),
    "MaxQVals": Meaning("", _EPOCH, like="q_max"),
    "MaxQ1Vals": Meaning("", f"{_EPOCH}, {_CRITIC}", like="q_max"),
    "AverageLogPi": Meaning(
        "", "minus the entropy, by the log-probabilities of drawn actions", -1, "entropy"
    ),
    "LossPi": Meaning(
        "",
        f"without entropy. Of VPG, TRPO and PPO {_BEFORE}, where it is nearly 0; of DDPG, TD3 and "
        "SAC minus the mean action value, of SAC with the bonus for entropy",
        like="policy_loss",
    ),
    "LossV": Meaning("", f"{_BEFORE}; {_NO_HALF}", 0.5, "value_loss"),
    "LossQ": Meaning("", "mean over the epoch; a sum over the critics", like="q_loss"),
    "LossQ1": Meaning("", f"mean over the epoch, {_CRITIC}", like="q_loss"),
    "DeltaLossPi": Meaning("", "the change in the update"),
    "DeltaLossV": Meaning("", "the change in the update"),
    "Entropy": Meaning(
        "",
        f"{_BEFORE}; of continuous actions the mean over their dimensions, not the sum",
        like="entropy",
    ),
    "KL": Meaning(
        "", "of the newest gradient step; this estimate may be below 0 without any mistake"
    ),
    "ClipFrac": Meaning("", "of the newest gradient step", like="clip_fraction"),
    "StopIter": Meaning("", "the newest gradient step of the policy, counted from 0"),
    "BacktrackIters": Meaning("", "of TRPO's line search"),
    "TotalEnvInteracts": Meaning("env_steps", ""),
    "Epoch": Meaning("", "counted from 0"),
    "Time": Meaning("seconds", "since learning began"),
}

_COLLECTED = "of the episodes of the newest collection, with exploration"
_OLD = "before version 1"

TIANSHOU: Mapping[str, Meaning] = {
    "train/returns_stat/mean": Meaning("", f"mean {_COLLECTED}", like=_RETURN),
    "train/lens_stat/mean": Meaning("", f"mean {_COLLECTED}", like=_LENGTH),
    "train/lens_stat/max": Meaning("", _COLLECTED, like="episode_length_max"),
    "train/lens_stat/min": Meaning("", _COLLECTED, like="episode_length_min"),
    "train/reward": Meaning("", f"{_OLD}: mean {_COLLECTED}", like=_RETURN),
    "train/length": Meaning("", f"{_OLD}: mean {_COLLECTED}", like=_LENGTH),
    "train/env_step": Meaning("env_steps", ""),
    "test/returns_stat/mean": Meaning("", _TESTS, like=_EVALUATED),
    "test/lens_stat/mean": Meaning("", _TESTS),
    "test/reward": Meaning("", _TESTS, like=_EVALUATED),
    "test/length": Meaning("", _TESTS),
    "test/env_step": Meaning("", "env steps of training before the test"),
    "update/update_step": Meaning("", "updates, over which all of `update/` is logged"),
    "update/gradient_step": Meaning("", "updates, over which all of `update/` is logged"),
    "update/actor_loss/mean": Meaning("", f"{_MINIBATCHES}; without entropy", like="policy_loss"),
    "update/vf_loss/mean": Meaning("", f"{_MINIBATCHES}; {_NO_HALF}", 0.5, "value_loss"),
    "update/ent_loss/mean": Meaning("", f"{_MINIBATCHES}; the entropy itself", like="entropy"),
    "update/loss/mean": Meaning("", f"{_MINIBATCHES}; all terms", like="total_loss"),
    "update/loss": Meaning(
        "", f"of the newest update; all terms. {_OLD}, of PPO, several in one", like="total_loss"
    ),
    "update/actor_loss": Meaning(
        "", "of the newest update: minus the mean action value", like="policy_loss"
    ),
    "update/critic_loss": Meaning("", "of the newest update", like="q_loss"),
    "update/critic1_loss": Meaning("", f"of the newest update, {_CRITIC}", like="q_loss"),
    "update/alpha": Meaning("temperature", ""),
    "update/loss/clip": Meaning("", f"{_OLD}: without entropy", like="policy_loss"),
    "update/loss/actor": Meaning("", f"{_OLD}: without entropy", like="policy_loss"),
    "update/loss/vf": Meaning("", f"{_OLD}; {_NO_HALF}", 0.5, "value_loss"),
    "update/loss/ent": Meaning("", f"{_OLD}: the entropy itself", like="entropy"),
    "update/loss/critic": Meaning("", _OLD, like="q_loss"),
    "update/loss/critic1": Meaning("", f"{_OLD}, {_CRITIC}", like="q_loss"),
}

_OF_AGENTS = "of the episodes since the value before, of all agents"

ML_AGENTS: Mapping[str, Meaning] = {
    "Environment/Cumulative Reward": Meaning("", f"mean {_OF_AGENTS}", like=_RETURN),
    "Environment/Episode Length": Meaning("", f"mean {_OF_AGENTS}", like=_LENGTH),
    "Losses/Policy Loss": Meaning("", "of PPO the magnitude, without its sign"),
    "Losses/Value Loss": Meaning("", f"{_SINCE}; {_NO_HALF}", 0.5, "value_loss"),
    "Policy/Entropy": Meaning("", "mean of the decisions since the value before", like="entropy"),
    "Policy/Learning Rate": Meaning("learning_rate", ""),
    "Policy/Extrinsic Value Estimate": Meaning(
        "", "mean of the decisions since the value before", like="value_mean"
    ),
}

_TRACKED = f"{WINDOW}, or `stats_avg`"
_OF_TRACKED = "of the last 100 episodes, or `stats_avg`"
_ONE = "of one minibatch"
_BEFORE_STEP = "of the last minibatch, before its gradient step"

SAMPLE_FACTORY: Mapping[str, Meaning] = {
    "reward/reward": Meaning(
        "", f"{_TRACKED}; before `reward_scale` and `reward_clip`", like=_RETURN
    ),
    "reward/reward_min": Meaning("", _OF_TRACKED),
    "reward/reward_max": Meaning("", _OF_TRACKED),
    "len/len": Meaning("", f"{_TRACKED}; with skipped frames", like=_LENGTH),
    "len/len_min": Meaning("", _OF_TRACKED),
    "len/len_max": Meaning("", _OF_TRACKED),
    "policy_stats/avg_true_objective": Meaning(
        "", f"{_TRACKED}; what the environment names its objective, else the return"
    ),
    "train/loss": Meaning("", f"{_ONE}; all terms", like="total_loss"),
    "train/policy_loss": Meaning("", f"{_ONE}; without entropy", like="policy_loss"),
    "train/value_loss": Meaning(
        "",
        f"{_ONE}, of clipped values; times `value_loss_coeff`, which is 0.5 by default, and "
        "without ½. Of normalised returns with `normalize_returns`",
        like="value_loss",
    ),
    "train/entropy": Meaning("", _ONE, like="entropy"),
    "train/exploration_loss": Meaning("", "minus the entropy times `exploration_loss_coeff`"),
    "train/kl_loss": Meaning("", "the KL divergence times `kl_loss_coeff`"),
    "train/kl_divergence": Meaning(
        "",
        f"{_BEFORE_STEP}; the exact KL divergence from the policy that acted. Left out if an "
        "update has one gradient step",
        like=K3,
    ),
    "train/kl_divergence_max": Meaning("", _BEFORE_STEP),
    "train/fraction_clipped": Meaning(
        "",
        f"{_BEFORE_STEP}; ratios outside 1 / (1 + ε) and 1 + ε. Left out if an update has one "
        "gradient step",
        like="clip_fraction",
    ),
    "train/ratio_mean": Meaning("", f"{_BEFORE_STEP}; the mean of abs(ρ - 1)"),
    "train/ratio_min": Meaning("", _BEFORE_STEP),
    "train/ratio_max": Meaning("", _BEFORE_STEP),
    "train/num_sgd_steps": Meaning("", "gradient steps of the update"),
    "train/grad_norm": Meaning("", "after clipping"),
    "train/value": Meaning("", f"{_ONE}; of normalised returns with `normalize_returns`"),
    "train/value_delta": Meaning("", f"{_BEFORE_STEP}; the mean change of the values"),
    "train/value_delta_max": Meaning("", _BEFORE_STEP),
    "train/adv_mean": Meaning("", f"{_ONE}; before they are normalised"),
    "train/adv_std": Meaning("", f"{_ONE}; before they are normalised"),
    "train/adv_min": Meaning("", f"{_ONE}; before version 2.1 of normalised advantages"),
    "train/adv_max": Meaning("", f"{_ONE}; before version 2.1 of normalised advantages"),
    "train/lr": Meaning("learning_rate", ""),
    "train/actual_lr": Meaning("", "`train/lr`, less where rows do not count"),
    "train/action_stddev_mean": Meaning("", f"{_ONE}; {_DEVIATION}"),
    "train/valids_fraction": Meaning("", "share of the rows that count"),
    "train/same_policy_fraction": Meaning("", "share of the rows that this policy collected"),
    "train/version_diff_avg": Meaning("", "gradient steps since the rows were collected"),
    "train/version_diff_min": Meaning("", "gradient steps since the rows were collected"),
    "train/version_diff_max": Meaning("", "gradient steps since the rows were collected"),
    "train/max_abs_logprob": Meaning("", "the largest parameter of the distributions of actions"),
    "train/adam_max_second_moment": Meaning("", "of the optimiser"),
    "train/act_min": Meaning("", _ONE),
    "train/act_max": Meaning("", _ONE),
    "train/env_steps": Meaning("", "env steps until the update before"),
    "perf/_fps": Meaning(
        "", "of the newest 10 seconds, of all policies together", like="env_steps_per_second"
    ),
    "perf/_sample_throughput": Meaning("", "rows that the policy receives in a second"),
}

_ENDED = "of the episodes that ended in the newest collection, with exploration"
_UPDATES = "mean over the updates of the newest collection"
_MINUS_Q = "minus the mean action value"

TORCHRL: Mapping[str, Meaning] = {
    "train/reward": Meaning("", f"mean {_ENDED}", like=_RETURN),
    "train/episode_reward": Meaning(
        "",
        f"of DQN: mean {_ENDED}; in Atari's games of the signs of the rewards",
        like=_RETURN,
    ),
    "train/episode_length": Meaning(
        "", f"mean {_ENDED}; without the frames that Atari's games skip", like=_LENGTH
    ),
    "eval/reward": Meaning("", _TESTS, like=_EVALUATED),
    "test/reward": Meaning("", _TESTS, like=_EVALUATED),
    "train/loss_objective": Meaning("", f"{_MINIBATCHES}; without entropy", like="policy_loss"),
    "train/loss_critic": Meaning(
        "", f"{_MINIBATCHES}; times `critic_coeff`, without ½", 0.5, "value_loss"
    ),
    "train/loss_entropy": Meaning("", "minus the entropy times `entropy_coeff`"),
    "train/lr": Meaning("learning_rate", ""),
    "train/clip_epsilon": Meaning("", "a setting, which may fall"),
    "train/q_loss": Meaning(
        "", f"{_UPDATES}; of SAC and TD3 a sum over the critics", like="q_loss"
    ),
    "train/loss_value": Meaning("", f"of DDPG: {_UPDATES}", like="q_loss"),
    "train/q_values": Meaning("", "of the rows of the newest collection", like="q_mean"),
    "train/epsilon": Meaning("epsilon", ""),
    "train/actor_loss": Meaning(
        "", f"of SAC: {_UPDATES}; {_MINUS_Q}, with the bonus for entropy", like="policy_loss"
    ),
    "train/a_loss": Meaning("", f"of TD3: {_UPDATES}; {_MINUS_Q}, {_CRITIC}", like="policy_loss"),
    "train/loss_actor": Meaning("", f"of DDPG: {_UPDATES}; {_MINUS_Q}", like="policy_loss"),
    "train/alpha": Meaning("temperature", ""),
    "train/alpha_loss": Meaning("", "of SAC's coefficient"),
    "train/entropy": Meaning(
        "",
        "of SAC, of the newest update: by the log-probabilities of drawn actions",
        like="entropy",
    ),
    "time/speed": Meaning("", "steps in a second, a moving mean"),
    "train/sampling_time": Meaning("", "seconds"),
    "train/training_time": Meaning("", "seconds"),
    "train/step": Meaning("env_steps", ""),
    "trainer/step": Meaning("env_steps", ""),
    "eval/step": Meaning("", "the same as `train/step`"),
    "time/step": Meaning("", "the same as `train/step`"),
}

_OF_TRAINING = "of the iteration, with exploration"
_OF_EVALUATION = "of evaluation, which does not train"
_WHOLE = f"{_ONE}; the whole loss"

DOPAMINE: Mapping[str, Meaning] = {
    "Train/AverageReturns": Meaning(
        "", f"mean of the episodes {_OF_TRAINING}; before rewards are clipped", like=_RETURN
    ),
    "Train/NumEpisodes": Meaning("", "of the iteration", like="episodes"),
    "Train/AverageStepsPerSecond": Meaning(
        "", "of the iteration, without evaluation", like="env_steps_per_second"
    ),
    "Eval/AverageReturns": Meaning("", _OF_EVALUATION, like=_EVALUATED),
    "Eval/NumEpisodes": Meaning("", _OF_EVALUATION),
    "HuberLoss": Meaning(
        "", f"of DQN, {_ONE}; by default the mean squared error, without ½", like="q_loss"
    ),
    "Losses/HuberLoss": Meaning("", f"of DQN in TensorFlow, {_ONE}", like="q_loss"),
    "CrossEntropyLoss": Meaning("", f"of Rainbow, {_WHOLE}", like="total_loss"),
    "Losses/CrossEntropyLoss": Meaning("", f"of Rainbow, {_WHOLE}", like="total_loss"),
    "QuantileLoss": Meaning("", f"of quantiles, {_WHOLE}", like="total_loss"),
    "Losses/QuantileLoss": Meaning("", f"of quantiles, {_WHOLE}", like="total_loss"),
    "Loss": Meaning("", f"in `metrics/tensorboard`: {_WHOLE}", like="total_loss"),
    "Losses/Combined": Meaning("", f"of PPO: {_MINIBATCHES}; all terms", like="total_loss"),
    "Losses/Actor": Meaning(
        "",
        f"of PPO: {_MINIBATCHES}; without entropy. Of SAC, {_ONE}: minus the mean action value, "
        "with the bonus for entropy",
        like="policy_loss",
    ),
    "Losses/Critic": Meaning("", "of PPO of the values, with ½; of SAC a sum over the critics"),
    "Losses/Entropy": Meaning(
        "",
        f"of PPO: {_MINIBATCHES}; the entropy itself, of actions before they are squashed",
        like="entropy",
    ),
    "Losses/Alpha": Meaning("", "of SAC's coefficient"),
    "Values/Alpha": Meaning("temperature", ""),
    "Values/CriticValues1": Meaning("", f"{_ONE}, {_CRITIC}", like="q_mean"),
    "Values/CriticValues2": Meaning("", f"{_ONE}, of the second critic"),
    "Values/TargetValues1": Meaning("", "of the next states, by the target network"),
    "Values/TargetValues2": Meaning("", "of the next states, by the target network"),
}
