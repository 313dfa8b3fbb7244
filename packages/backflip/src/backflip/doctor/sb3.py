"""A callback for Stable-Baselines3 that logs what its own log leaves out.

    from backflip.doctor.sb3 import DoctorCallback

    model.learn(100_000, callback=DoctorCallback("doctor.csv"))

Then `backflip doctor doctor.csv` makes all checks, also those that need the model and the batch:
the ratio of the first minibatch, rewards and advantages as learned from, and the size of updates.
It needs Stable-Baselines3, and writes one line for each rollout, or for each thousand env steps
(`every`) of an algorithm with a replay.
"""

import contextlib
import csv
import importlib
import json
import math
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.action_effect import action_effect
from backflip.doctor.identities import advantage_error, target_error

# Neither is among our packages, so that type checkers do not know them.
torch: Any = importlib.import_module("torch")
gymnasium: Any = importlib.import_module("gymnasium")
obs_as_tensor: Any = importlib.import_module("stable_baselines3.common.utils").obs_as_tensor
BaseCallback: Any = importlib.import_module("stable_baselines3.common.callbacks").BaseCallback

LIBRARIES = ("stable_baselines3.", "sb3_contrib.")
ROWS = 512  # of a batch, at most
TRANSITIONS = 1_000  # rows of each estimate of the effect of actions
NEWEST = 8  # rows of a replay
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
# Wrappers that leave rewards and ends of episodes as they are.
PLAIN = frozenset(
    (
        "Monitor",
        "PassiveEnvChecker",
        "OrderEnforcing",
        "TimeLimit",
        "RecordEpisodeStatistics",
        "FlattenObservation",
        "NormalizeObservation",
        "RescaleObservation",
        "DtypeObservation",
        "ClipAction",
        "RescaleAction",
        "RecordVideo",
    )
)
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
        self._monitored = list[dict[str, Any]]()  # episodes since the last line, as Monitor says
        self._rewards = list[np.ndarray]()  # of the rollout
        self._transitions = list[tuple[np.ndarray, ...]]()  # of rollouts since the last estimate
        self._effect_of_random = math.nan  # actions before learning, if they are enough
        self._evaluations = dict[int, int]()  # seen so far, by callback
        self._train: dict[str, float] = {}

    def _init_callback(self) -> None:
        model: Any = self.model
        found = {ours: _at_start(getattr(model, name, None)) for name, ours in SETTINGS.items()}
        settings = {name: x for name, x in found.items() if isinstance(x, int | float)}
        settings |= {"env_id": _env_of(model), "total_timesteps": model._total_timesteps}
        if hasattr(model, "replay_buffer"):  # `n_steps` is then that of the returns
            settings.pop("rollout_length", None)
        facts = {"algorithm": _algorithm_of(model), "settings": settings}
        lines = _lines_so_far(self.path) if model.num_timesteps else []
        with self.path.open("w", newline="", encoding="utf-8") as file:
            file.write(f"#{json.dumps(facts)}\n")
            csv.writer(file).writerow(NAMES)
            file.writelines(lines)

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
        for one in _evaluating(self.locals.get("callback")):
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
            with _own_random_numbers(model.device):
                found = self._of_replay()
            self._write(found)
        return True

    def _write(self, found: dict[str, float]) -> None:
        shared = {"env_steps": self.num_timesteps, **self._train, **self._of_episodes()}
        row = found | shared | self._update_ratios()
        self._written_at = self.num_timesteps
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([_cell(row.get(name)) for name in NAMES])

    def _of_rollout(self) -> dict[str, float]:
        """Return what the policy that acted says about its own rollout."""
        model: Any = self.model
        buffer = model.rollout_buffer
        rows = np.random.default_rng(0).permutation(len(buffer.actions))[:ROWS]
        obs = _each(buffer.observations, lambda x: _flattened(x[rows]))
        actions = _flattened(buffer.actions[rows])
        with torch.no_grad(), _as_in_updates(model):
            seen = obs_as_tensor(obs, model.device)
            acted = torch.as_tensor(actions, device=model.device)
            acted = acted.long().flatten() if _actions(model) else acted
            _, log_prob, entropy = model.policy.evaluate_actions(seen, acted)
        error = np.abs(np.exp(log_prob.cpu().numpy() - buffer.log_probs[rows].reshape(-1)) - 1.0)
        advantages, values = buffer.advantages, buffer.values
        found = {
            "first_ratio_error": error.max(),
            "advantage_mean": advantages.mean(),
            "advantage_std": advantages.std(),
            "value_mean": values.mean(),
            "explained_variance": _explained(values, buffer.returns),
        }
        if entropy is not None:
            found["entropy"] = float(entropy.mean())
        if _actions(model):
            found["entropy_max"] = math.log(_actions(model))
        found |= self._identities(buffer)
        found["action_effect_p"] = self._effect_of_actions(buffer)
        rewards, self._rewards = np.concatenate(self._rewards), []
        return {**found, **_of_rewards(rewards), **_of_observations(_joined(obs))}

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
        obs = [_each(buffer.observations, part) for part in (_all_but_last, _all_but_first)]
        before, after = (_joined(_each(one, _flattened)) for one in obs)
        others = (buffer.actions, buffer.rewards, self._ended(buffer))
        acted, rewards, ended = (_flattened(x[:-1]) for x in others)
        rows = (before, acted, after, rewards, ended)
        self._transitions.append(tuple(x[:TRANSITIONS].copy() for x in rows))
        if sum(len(one[0]) for one in self._transitions) < TRANSITIONS:
            return math.nan
        every = [np.concatenate(x)[:TRANSITIONS] for x in zip(*self._transitions, strict=True)]
        self._transitions.clear()
        return action_effect(*every, choices=_actions(self.model))

    def _of_replay(self) -> dict[str, float]:
        """Return what the critics say about rows of the replay."""
        model: Any = self.model
        buffer, normaliser = model.replay_buffer, model.get_vec_normalize_env()
        batch = buffer.sample(min(ROWS, buffer.size()), env=normaliser)
        discounts = getattr(batch, "discounts", None)  # γⁿ, where rewards are sums of n
        with torch.no_grad():
            if hasattr(model, "q_net"):
                value = model.q_net(batch.observations).gather(1, batch.actions.long())
                after = model.q_net_target(batch.next_observations).max(1, keepdim=True)[0]
            else:
                action, bonus = _next_action(model, batch.next_observations)
                value = model.critic(batch.observations, batch.actions)[0]
                after = torch.stack(model.critic_target(batch.next_observations, action)).amin(0)
                after = after + bonus
            later = after * (model.gamma if discounts is None else discounts)
            target = batch.rewards + (1.0 - batch.dones) * later
        q, goal = value.cpu().numpy(), target.cpu().numpy()
        found = {
            "q_mean": q.mean(),
            "q_max": q.max(),
            "target_mean": goal.mean(),
            "td_error_abs_mean": np.abs(goal - q).mean(),
        }
        seen = _joined(_each(batch.observations, _on_cpu))
        error = _replay_error(buffer)
        found |= {"action_effect_p": self._effect_in_replay(), "replay_obs_error": error}
        found |= _of_observations(seen)
        rewards = batch.rewards.cpu().numpy() if discounts is None else _rewards_in(model)
        return {**found, **_of_rewards(rewards)}

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
            return _effect_of_rows(model, rows)
        self._effect_of_random = _effect_of_rows(model, np.arange(first // buffer.n_envs))
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
        now = {"update_ratio": _flat(model.policy)}
        if target is not None:
            now["target_update_ratio"] = _flat(target)
        before, self._before = self._before, now
        return {
            name: _norm(x - before[name]) / max(_norm(before[name]), 1e-12)
            for name, x in now.items()
            if name in before
        }


def _algorithm_of(model: Any) -> str:
    """Return the name of the algorithm, of a subclass that of the library's own class."""
    ours = (one for one in type(model).__mro__ if one.__module__.startswith(LIBRARIES))
    return next(ours, type(model)).__name__.lower()


def _lines_so_far(path: Path) -> list[str]:
    """Return the lines of an older file of this callback, without its two first ones."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            _, names, *lines = file
    except (OSError, ValueError):  # none, or not a text of at least two lines
        return []
    return lines if names.strip() == ",".join(NAMES) else []


def _evaluating(callback: Any) -> Generator[Any, None, None]:
    """Yield the callbacks that evaluate, within lists and events, as `EvalCallback` does."""
    if hasattr(callback, "last_mean_reward") and hasattr(callback, "eval_freq"):
        yield callback
    for one in (*getattr(callback, "callbacks", ()), getattr(callback, "callback", None)):
        if one is not None:
            yield from _evaluating(one)


@contextlib.contextmanager
def _as_in_updates(model: Any) -> Generator[None, None, None]:
    """Evaluate a policy as its update does: dropout drops, and batches are normalised.

    What this changes is put back: the mode, the statistics of batches, and random numbers.
    """
    policy: Any = model.policy
    mode, kept = policy.training, [(one, one.clone()) for one in policy.buffers()]
    policy.set_training_mode(True)
    try:
        with _own_random_numbers(model.device):
            yield
    finally:
        policy.set_training_mode(mode)
        for buffer, before in kept:
            buffer.copy_(before)


def _at_start(setting: Any) -> Any:
    """Return a setting, or the first value of its schedule."""
    return setting(1.0) if callable(setting) else setting


def _env_of(model: Any) -> str | None:
    """Return the environment's id if its logged returns are those of the registered one, else None.

    An argument, another time limit, or a wrapper that may change rewards or ends makes it another
    one. A `VecMonitor` logs returns as the wrappers inside it leave them.
    """
    vec: Any = model.get_env()
    try:
        spec: Any = vec.get_attr("spec")[0]
        wrappers = _changing(spec.additional_wrappers)
    except (AttributeError, NotImplementedError):  # environments that are not of Gymnasium
        return None
    while hasattr(vec, "venv"):
        wrappers |= {"VecMonitor"} & {type(vec).__name__}
        vec = vec.venv
    known: Any = gymnasium.registry.get(spec.id)
    if known is None or spec.max_episode_steps != known.max_episode_steps:
        return None
    arguments = {name: x for name, x in spec.kwargs.items() if name != "render_mode"}
    return spec.id if arguments == known.kwargs and wrappers <= PLAIN else None


def _changing(wrappers: Sequence[Any]) -> set[str]:
    """Return the names of wrappers that may change logged returns, given from the innermost on.

    Wrappers of actions or observations change neither rewards nor ends, and wrappers of rewards
    do not change what a `Monitor` inside them logs.
    """
    found, is_logged = set[str](), False
    for one in wrappers:
        harmless = (gymnasium.ActionWrapper, gymnasium.ObservationWrapper)
        harmless += (gymnasium.RewardWrapper,) if is_logged else ()
        is_logged |= one.name == "Monitor"
        kind = _loaded(one.entry_point)
        if not (isinstance(kind, type) and issubclass(kind, harmless)):
            found.add(one.name)
    return found


def _loaded(entry_point: str) -> Any:
    """Return a class by `module:Class` if its module is loaded; nothing is imported."""
    module, _, name = entry_point.partition(":")
    return getattr(sys.modules.get(module), name, None)


def _flat(module: Any) -> np.ndarray:
    """Return all parameters of a module, one after the other."""
    return np.concatenate([one.detach().cpu().numpy().ravel() for one in module.parameters()])


def _norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values))


def _cell(value: Any) -> str:
    return "" if value is None or not math.isfinite(value) else repr(float(value))


def _actions(model: Any) -> int:
    """Return the number of discrete actions; 0 for continuous ones."""
    return int(getattr(model.action_space, "n", 0))


def _each(obs: Any, change: Callable[[Any], Any]) -> Any:
    """Return observations changed; of a dictionary, each of its entries."""
    return {k: change(x) for k, x in obs.items()} if isinstance(obs, dict) else change(obs)


def _joined(obs: Any) -> np.ndarray:
    """Return observations as one array; the entries of a dictionary side by side."""
    if not isinstance(obs, dict):
        return np.asarray(obs)
    entries: Any = obs.values()
    return np.concatenate([x.reshape(len(x), -1) for x in entries], axis=1)


def _flattened(values: np.ndarray) -> np.ndarray:
    """Return values of time steps and environments with one axis of rows."""
    return values.reshape(-1, *values.shape[2:])


def _all_but_last(values: np.ndarray) -> np.ndarray:
    return values[:-1]


def _all_but_first(values: np.ndarray) -> np.ndarray:
    return values[1:]


def _on_cpu(values: Any) -> np.ndarray:
    return values.cpu().numpy()


def _effect_of_rows(model: Any, rows: np.ndarray) -> float:
    """Return `action_effect` of rows of a replay, each with a step of every environment."""
    buffer: Any = model.replay_buffer
    obs, after = (
        _joined(_each(x, lambda values: _flattened(values[rows])))[:TRANSITIONS]
        for x in (buffer.observations, buffer.next_observations)
    )
    others = (buffer.actions, buffer.rewards, buffer.dones)
    acted, rewards, ended = (_flattened(x[rows])[:TRANSITIONS] for x in others)
    return action_effect(obs, acted, after, rewards, ended, choices=_actions(model))


def _next_action(model: Any, obs: Any) -> tuple[Any, Any]:
    """Return the actions of the target, and what their entropy adds: -α log π of SAC, else 0."""
    if not hasattr(model, "log_ent_coef"):
        return model.policy.actor(obs), 0.0
    action, log_prob = model.policy.actor.action_log_prob(obs)
    learned = model.log_ent_coef
    temperature = model.ent_coef_tensor if learned is None else learned.exp()
    return action, -temperature * log_prob.reshape(-1, 1)


def _rewards_in(model: Any) -> np.ndarray:
    """Return single rewards of a replay as they are learned from."""
    buffer: Any = model.replay_buffer
    rewards, normaliser = buffer.rewards[: buffer.size()], model.get_vec_normalize_env()
    return rewards if normaliser is None else normaliser.normalize_reward(rewards)


@contextlib.contextmanager
def _own_random_numbers(device: Any) -> Generator[None, None, None]:
    """Draw minibatches and actions without changing what training draws next."""
    state = np.random.get_state()  # noqa: NPY002  (Stable-Baselines3 draws from it)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _replay_error(buffer: Any) -> float:
    """Return how far drawn observations are from the stored ones, relative to these.

    The newest rows are drawn, without normalisation; for each, any environment's may be.
    """
    known = hasattr(buffer, "_get_samples") and isinstance(buffer.observations, np.ndarray)
    if not known or buffer.pos < NEWEST:
        return math.nan
    rows = np.arange(buffer.pos - NEWEST, buffer.pos)
    drawn = buffer._get_samples(rows).observations.cpu().numpy().reshape(NEWEST, 1, -1)
    stored = buffer.observations[rows].reshape(NEWEST, buffer.n_envs, -1)
    error = np.abs(drawn - stored).max(2).min(1)
    return float((error / (np.abs(stored).max((1, 2)) + 1e-9)).max())


def _explained(values: np.ndarray, returns: np.ndarray) -> float:
    spread = float(np.var(returns))
    return 1.0 - float(np.var(returns - values)) / spread if spread else math.nan


def _of_rewards(rewards: np.ndarray) -> dict[str, float]:
    return {
        "reward_mean": rewards.mean(),
        "reward_std": rewards.std(),
        "reward_min": rewards.min(),
        "reward_max": rewards.max(),
    }


def _of_observations(obs: np.ndarray) -> dict[str, float]:
    if obs.ndim != 2:  # pictures
        return {}
    deviation = obs.std(0)
    return {
        "obs_abs_mean": np.abs(obs.mean(0)).mean(),
        "obs_std_min": deviation.min(),
        "obs_std_max": deviation.max(),
    }
