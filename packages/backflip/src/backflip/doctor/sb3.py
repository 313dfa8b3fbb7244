"""A callback for Stable-Baselines3 that logs what its own log leaves out.

    from backflip.doctor.sb3 import DoctorCallback

    model.learn(100_000, callback=DoctorCallback("doctor.csv"))

Then `backflip doctor doctor.csv` makes all checks, also those that need the model and the batch:
the ratio of the first minibatch, rewards and advantages as learned from, and the size of updates.
It needs Stable-Baselines3, and writes one line for each rollout, or for each thousand env steps
(`every`) of an algorithm with a replay.
"""

import csv
import importlib
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.action_effect import action_effect
from backflip.doctor.identities import advantage_error, target_error
from backflip.doctor.sb3_batches import (
    TRANSITIONS,
    all_but_first,
    all_but_last,
    each,
    effect_of_rows,
    explained,
    flattened,
    joined,
    of_action_values,
    of_observations,
    of_rewards,
    on_cpu,
    replay_error,
    rewards_in,
)
from backflip.doctor.sb3_file import lines_so_far, seconds_so_far
from backflip.doctor.sb3_models import (
    action_values,
    algorithm_of,
    all_parameters,
    as_in_updates,
    at_start,
    env_of,
    evaluating,
    is_recurrent,
    number_of_actions,
    own_random_numbers,
)

# Neither is among our packages, so that type checkers do not know them.
torch: Any = importlib.import_module("torch")
obs_as_tensor: Any = importlib.import_module("stable_baselines3.common.utils").obs_as_tensor
BaseCallback: Any = importlib.import_module("stable_baselines3.common.callbacks").BaseCallback

ROWS = 512  # of a batch, at most
EVERY = 1_000  # env steps between two lines, with a replay
SETTINGS = {
    "learning_rate": "learning_rate",
    "gamma": "discount",
    "gae_lambda": "gae_lambda",
    "ent_coef": "entropy_coef",
    "vf_coef": "value_coef",
    "clip_range": "clip_range",
    "n_steps": "rollout_length",
    "n_envs": "num_envs",
    "n_epochs": "epochs",
    "batch_size": "batch_size",
    "buffer_size": "buffer_size",
    "learning_starts": "learning_starts",
    "gradient_steps": "gradient_steps",
    "target_update_interval": "target_update_interval",
    "tau": "tau",
    "policy_delay": "policy_delay",
    "exploration_initial_eps": "epsilon_start",
    "exploration_final_eps": "epsilon_end",
    "exploration_fraction": "exploration_fraction",
}
LOGGED = {  # values of Stable-Baselines3's own log with our meaning, and their factors
    "train/approx_kl": ("approx_kl", 1.0),
    "train/clip_fraction": ("clip_fraction", 1.0),
    "train/value_loss": ("value_loss", 0.5),
    "train/policy_gradient_loss": ("policy_loss", 1.0),
    "train/learning_rate": ("learning_rate", 1.0),
    "train/ent_coef": ("temperature", 1.0),
    "train/critic_loss": ("q_loss", 1.0),
    "rollout/exploration_rate": ("epsilon", 1.0),
    "train/n_updates": ("sb3_updates", 1.0),
    "eval/mean_reward": ("evaluation_return", 1.0),
}
NAMES = (
    "env_steps",
    "seconds",
    "first_ratio_error",
    "entropy",
    "entropy_max",
    "advantage_mean",
    "advantage_std",
    "advantage_error_max",
    "target_error_max",
    "explained_variance",
    "value_mean",
    "reward_mean",
    "reward_std",
    "reward_min",
    "reward_max",
    "update_ratio",
    "target_update_ratio",
    "obs_abs_mean",
    "obs_std_min",
    "obs_std_max",
    "q_mean",
    "q_max",
    "target_mean",
    "action_effect_p",
    "replay_obs_error",
    "td_error_abs_mean",
    "episodes",
    "episode_return_mean",
    "episode_length_mean",
    "episode_length_min",
    "episode_length_max",
    *(ours for ours, _ in LOGGED.values()),
)


class DoctorCallback(BaseCallback):
    """Writes a CSV file that `backflip doctor` reads.

    Args:
        path: of the file; an older one is replaced, unless `learn` goes on with
            `reset_num_timesteps=False`: then lines are added to it.
        every: env steps between two lines, for an algorithm with a replay. A diagnosis needs ten
            lines: choose less than a tenth of the budget.
    """

    def __init__(self, path: "str | Path" = "doctor.csv", *, every: int = EVERY) -> None:
        super().__init__()
        self.path, self.every = Path(path), every
        self._before = dict[str, np.ndarray]()
        self._written_at, self._episodes = 0, 0
        self._started = 0.0  # time.monotonic() at `seconds` 0
        self._monitored = list[dict[str, Any]]()  # episodes since the last line, as Monitor says
        self._rewards = list[np.ndarray]()  # of the rollout
        self._transitions = list[tuple[np.ndarray, ...]]()  # of rollouts since the last estimate
        self._effect_of_random = math.nan  # actions before learning, if they are enough
        self._evaluations = dict[int, int]()  # seen so far, by callback
        self._train: dict[str, float] = {}

    def _init_callback(self) -> None:
        model: Any = self.model
        found = {ours: at_start(getattr(model, name, None)) for name, ours in SETTINGS.items()}
        settings = {name: x for name, x in found.items() if isinstance(x, int | float)}
        settings |= {"env_id": env_of(model), "total_timesteps": model._total_timesteps}
        if hasattr(model, "replay_buffer"):  # `n_steps` is then that of the returns
            settings.pop("rollout_length", None)
        facts = {"algorithm": algorithm_of(model), "settings": settings}
        lines = lines_so_far(self.path, NAMES) if model.num_timesteps else []
        self._started = time.monotonic() - seconds_so_far(lines, NAMES)
        unfinished = self.path.with_name(f"{self.path.name}.part")
        with unfinished.open("w", newline="", encoding="utf-8") as file:
            file.write(f"#{json.dumps(facts)}\n")
            csv.writer(file).writerow(NAMES)
            file.writelines(lines)
        unfinished.replace(self.path)  # a program that is killed here loses no older line

    def _on_rollout_start(self) -> None:
        # The update before this rollout has recorded its losses, and they are not dumped yet.
        values: Any = self.logger.name_to_value
        for name, (ours, factor) in LOGGED.items():
            if name in values:
                self._train[ours] = factor * float(values[name])
        self._train |= self._of_evaluations()

    def _of_evaluations(self) -> dict[str, float]:
        """Return the mean return of a new evaluation; `EvalCallback` dumps its own at once."""
        found = dict[str, float]()
        for one in evaluating(self.locals.get("callback")):
            count = one.n_calls // max(one.eval_freq, 1)
            if count > self._evaluations.get(id(one), 0):
                found["evaluation_return"] = float(one.last_mean_reward)
            self._evaluations[id(one)] = count
        return found

    def _on_rollout_end(self) -> None:
        if hasattr(self.model, "rollout_buffer"):
            self._write(self._of_rollout())

    def _on_step(self) -> bool:
        model: Any = self.model
        # Algorithms without a replay do not count episodes themselves.
        self._episodes += int(np.sum(self.locals["dones"]))
        if hasattr(model, "rollout_buffer"):
            # A copy: for a truncated step, the algorithm then adds γ V(s') to the reward.
            self._rewards.append(np.array(self.locals["rewards"]))
        infos: Any = self.locals["infos"]
        self._monitored += [info["episode"] for info in infos if "episode" in info]
        due = self.num_timesteps >= self._written_at + self.every
        started = self.num_timesteps > getattr(model, "learning_starts", 0)
        if due and started and hasattr(model, "replay_buffer"):
            self._on_rollout_start()
            with own_random_numbers(model.device):
                found = self._of_replay()
            self._write(found)
        return True

    def _write(self, found: dict[str, float]) -> None:
        shared = {"env_steps": self.num_timesteps, **self._train, **self._of_episodes()}
        seconds = time.monotonic() - self._started
        row = found | shared | self._update_ratios() | {"seconds": seconds}
        self._written_at = self.num_timesteps
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([_cell(row.get(name)) for name in NAMES])

    def _of_rollout(self) -> dict[str, float]:
        """Return what the policy that acted says about its own rollout."""
        model: Any = self.model
        buffer = model.rollout_buffer
        rows = np.random.default_rng(0).permutation(len(buffer.actions))[:ROWS]
        obs = each(buffer.observations, lambda x: flattened(x[rows]))
        advantages, values = buffer.advantages, buffer.values
        found = {
            "advantage_mean": advantages.mean(),
            "advantage_std": advantages.std(),
            "value_mean": values.mean(),
            "explained_variance": explained(values, buffer.returns),
        }
        if number_of_actions(model) and not hasattr(buffer, "action_masks"):
            found["entropy_max"] = math.log(number_of_actions(model))
        if not is_recurrent(model):  # its policy needs the states of its memory, too
            found |= self._of_policy(buffer, obs, rows) | self._identities(buffer)
        found["action_effect_p"] = self._effect_of_actions(buffer)
        rewards, self._rewards = np.concatenate(self._rewards), []
        return {**found, **of_rewards(rewards), **of_observations(joined(obs))}

    def _of_policy(self, buffer: Any, obs: Any, rows: np.ndarray) -> dict[str, float]:
        """Return the error of the ratio and the entropy, of a policy before its update."""
        model: Any = self.model
        acted = torch.as_tensor(flattened(buffer.actions[rows]), device=model.device)
        acted = acted.long().flatten() if number_of_actions(model) else acted
        more = {}
        if hasattr(buffer, "action_masks"):
            more["action_masks"] = flattened(buffer.action_masks[rows])
        with torch.no_grad(), as_in_updates(model):
            seen = obs_as_tensor(obs, model.device)
            _, log_prob, entropy = model.policy.evaluate_actions(seen, acted, **more)
        error = np.abs(np.exp(log_prob.cpu().numpy() - buffer.log_probs[rows].reshape(-1)) - 1.0)
        found = {"first_ratio_error": float(error.max())}
        return found if entropy is None else {**found, "entropy": float(entropy.mean())}

    def _identities(self, buffer: Any) -> dict[str, float]:
        """Return the errors of advantages and returns, by their definitions.

        Stable-Baselines3 adds γ V(s') to the reward of a truncated step: each end is then a
        terminal one.
        """
        model: Any = self.model
        with torch.no_grad():
            last = obs_as_tensor(model._last_obs, model.device)
            after = model.policy.predict_values(last).cpu().numpy().reshape(1, -1)
        ended = self._ended(buffer)
        stream: dict[str, Any] = {
            "rewards": buffer.rewards,
            "values": buffer.values,
            "next_values": np.concatenate([buffer.values[1:], after]),
            "terminated": ended,
            "truncated": np.zeros_like(ended),
            "discount": model.gamma,
            "gae_lambda": model.gae_lambda,
        }
        return {
            "advantage_error_max": advantage_error(advantages=buffer.advantages, **stream),
            "target_error_max": target_error(targets=buffer.returns, **stream),
        }

    def _ended(self, buffer: Any) -> np.ndarray:
        model: Any = self.model
        return np.concatenate([buffer.episode_starts[1:], model._last_episode_starts[None]])

    def _effect_of_actions(self, buffer: Any) -> float:
        """Return `action_effect` of the newest rollouts; NaN until there are enough rows."""
        obs = [each(buffer.observations, part) for part in (all_but_last, all_but_first)]
        before, after = (joined(each(one, flattened)) for one in obs)
        others = (buffer.actions, buffer.rewards, self._ended(buffer))
        acted, rewards, ended = (flattened(x[:-1]) for x in others)
        rows = (before, acted, after, rewards, ended)
        self._transitions.append(tuple(x[:TRANSITIONS].copy() for x in rows))
        if sum(len(one[0]) for one in self._transitions) < TRANSITIONS:
            return math.nan
        every = [np.concatenate(x)[:TRANSITIONS] for x in zip(*self._transitions, strict=True)]
        self._transitions.clear()
        return action_effect(*every, choices=number_of_actions(self.model))

    def _of_replay(self) -> dict[str, float]:
        """Return what the critics say about rows of the replay."""
        model: Any = self.model
        buffer, normaliser = model.replay_buffer, model.get_vec_normalize_env()
        batch = buffer.sample(min(ROWS, buffer.size()), env=normaliser)
        discounts = getattr(batch, "discounts", None)  # γⁿ, where rewards are sums of n
        found = dict[str, float]()
        values = action_values(model, batch)
        if values is not None:
            later = values[1] * (model.gamma if discounts is None else discounts)
            target = batch.rewards + (1.0 - batch.dones) * later
            found = of_action_values(on_cpu(values[0]), on_cpu(target))
        seen = joined(each(batch.observations, on_cpu))
        error = replay_error(buffer)
        found |= {"action_effect_p": self._effect_in_replay(), "replay_obs_error": error}
        found |= of_observations(seen)
        rewards = batch.rewards.cpu().numpy() if discounts is None else rewards_in(model)
        return {**found, **of_rewards(rewards)}

    def _effect_in_replay(self) -> float:
        """Return `action_effect` of the random actions before learning; of others if they are few.

        Where random actions are enough, every line has the same number.
        """
        model: Any = self.model
        buffer, first = model.replay_buffer, model.learning_starts
        if not hasattr(buffer, "next_observations"):  # with `optimize_memory_usage`
            return math.nan
        if math.isfinite(self._effect_of_random):
            return self._effect_of_random
        if buffer.full or first < TRANSITIONS:
            rows = np.random.default_rng(0).permutation(buffer.size())[:TRANSITIONS]
            return effect_of_rows(model, rows)
        self._effect_of_random = effect_of_rows(model, np.arange(first // buffer.n_envs))
        return self._effect_of_random

    def _of_episodes(self) -> dict[str, Any]:
        """Return the episodes that ended since the last line; their means only with a Monitor."""
        count, self._episodes = self._episodes, 0
        new, self._monitored = self._monitored, []
        if not new:
            return {"episodes": count}
        returns, lengths = [float(one["r"]) for one in new], [float(one["l"]) for one in new]
        return {
            "episodes": count,
            "episode_return_mean": np.mean(returns),
            "episode_length_mean": np.mean(lengths),
            "episode_length_min": min(lengths),
            "episode_length_max": max(lengths),
        }

    def _update_ratios(self) -> dict[str, float]:
        """Return ‖θ' - θ‖ / ‖θ‖ since the last line, of the policy and of a target network."""
        model: Any = self.model
        target = getattr(model, "q_net_target", None) or getattr(model, "critic_target", None)
        now = {"update_ratio": all_parameters(model.policy)}
        if target is not None:
            now["target_update_ratio"] = all_parameters(target)
        before, self._before = self._before, now
        return {
            name: _norm(x - before[name]) / max(_norm(before[name]), 1e-12)
            for name, x in now.items()
            if name in before
        }


def _norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values))


def _cell(value: Any) -> str:
    return "" if value is None or not math.isfinite(value) else repr(float(value))
