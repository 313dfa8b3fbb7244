"""How faults change Stable-Baselines3: wrappers, buffers, and models that were built.

Nothing of the library is copied: each fault changes what the library's own code gets or returns.
Needs Stable-Baselines3: `.cache/peers/sb3/bin/python`.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

# None is among our packages, so that type checkers do not know them.
wrappers: Any = importlib.import_module("gymnasium.wrappers")
torch: Any = importlib.import_module("torch")
buffers: Any = importlib.import_module("stable_baselines3.common.buffers")
RolloutBuffer: Any = buffers.RolloutBuffer
ReplayBuffer: Any = buffers.ReplayBuffer
FlattenExtractor: Any = importlib.import_module(
    "stable_baselines3.common.torch_layers"
).FlattenExtractor
VecEnvWrapper: Any = importlib.import_module("stable_baselines3.common.vec_env").VecEnvWrapper

_RNG = np.random.default_rng(0)


class Break(NamedTuple):
    """One change, at one of four places.

    Attributes:
        env: wraps each environment, outside the Monitor: that logs true rewards.
        vec_env: wraps the environments together.
        settings: arguments of the algorithm.
        model: changes the algorithm that was built.
    """

    env: Callable[[Any], Any] | None = None
    vec_env: Callable[[Any], Any] | None = None
    settings: Mapping[str, Any] = {}
    model: Callable[[Any], None] | None = None


def _on_observations(change: Callable[[Any], Any]) -> Break:
    def wrapped(env: Any) -> Any:
        return wrappers.TransformObservation(env, change, env.observation_space)

    return Break(env=wrapped)


def _on_rewards(change: Callable[[float], float]) -> Break:
    def wrapped(env: Any) -> Any:
        return wrappers.TransformReward(env, change)

    return Break(env=wrapped)


def _first_only(env: Any) -> Any:
    """Return the environment with action 0 whatever was chosen, or with zeros."""
    return wrappers.TransformAction(env, _times_zero, env.action_space)


def _times_zero(action: Any) -> Any:
    return 0 * action


def _times_a_thousandth(obs: Any) -> Any:
    return obs * np.float32(1e-3)


class _ActionsOfOthers(VecEnvWrapper):
    """Gives each environment the action that was chosen for its neighbour."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(np.roll(actions, 1, axis=0))

    def step_wait(self) -> Any:
        return self.venv.step_wait()


def _with_actions_of_others(vec_env: Any) -> Any:
    return _ActionsOfOthers(vec_env)


class _Dropout(FlattenExtractor):
    """Drops observed numbers while it learns, but not while it acts."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space)
        self.dropout = torch.nn.Dropout(0.3)

    def forward(self, observations: Any) -> Any:
        return self.dropout(super().forward(observations))


class _LogProbsOfOthers(RolloutBuffer):
    def add(self, *row: Any) -> None:
        *others, log_prob = row
        super().add(*others, log_prob.roll(1, 0))


class _Shuffled(RolloutBuffer):
    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        super().compute_returns_and_advantage(last_values, dones)
        flat = _RNG.permutation(self.advantages.ravel())
        self.advantages = flat.reshape(self.advantages.shape)


class _Negated(RolloutBuffer):
    """Gives minibatches the wrong sign, as a policy loss with a wrong sign does."""

    def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
        samples = super()._get_samples(batch_inds, env)
        return samples._replace(advantages=-samples.advantages)


class _EndsIgnored(RolloutBuffer):
    """Sums rewards and values through the ends of episodes."""

    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        starts = self.episode_starts
        self.episode_starts = np.zeros_like(starts)
        super().compute_returns_and_advantage(last_values, np.zeros_like(dones))
        self.episode_starts = starts


class _TargetsAreRewards(RolloutBuffer):
    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        super().compute_returns_and_advantage(last_values, dones)
        self.returns = self.rewards.copy()


class _NoTerminalMask(ReplayBuffer):
    def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
        samples = super()._get_samples(batch_inds, env)
        return samples._replace(dones=torch.zeros_like(samples.dones))


class _OtherScale(ReplayBuffer):
    """Gives minibatches observations of another scale, as statistics that have moved do."""

    def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
        samples = super()._get_samples(batch_inds, env)
        return samples._replace(
            observations=10.0 * samples.observations,
            next_observations=10.0 * samples.next_observations,
        )


def _freeze_policy(model: Any) -> None:
    for module in (model.policy.mlp_extractor.policy_net, model.policy.action_net):
        module.requires_grad_(False)


def _take_worst_action(model: Any) -> None:
    """Let the targets of each update use the smallest action value instead of the largest."""
    train, target = model.train, model.q_net_target
    right = target.forward

    def wrong(obs: Any) -> Any:
        values = right(obs)
        return values.amin(dim=1, keepdim=True).expand_as(values)

    def broken(*arguments: Any, **named: Any) -> None:
        target.forward = wrong
        try:
            train(*arguments, **named)
        finally:
            target.forward = right

    model.train = broken


def _rollouts(kind: Any) -> Break:
    return Break(settings={"rollout_buffer_class": kind})


def _replay(kind: Any) -> Break:
    return Break(settings={"replay_buffer_class": kind})


BREAKS: Mapping[str, Break] = {
    "obs-tiny": _on_observations(_times_a_thousandth),
    "obs-zero": _on_observations(np.zeros_like),
    "obs-scaled-in-learning-only": _replay(_OtherScale),
    "reward-negated": _on_rewards(lambda reward: -reward),
    "reward-zero": _on_rewards(lambda reward: 0.0),
    "reward-huge": _on_rewards(lambda reward: 1e4 * reward),
    "actions-stuck": Break(env=_first_only),
    "actions-of-others": Break(vec_env=_with_actions_of_others),
    "dropout": Break(settings={"policy_kwargs": {"features_extractor_class": _Dropout}}),
    "log-probs-of-others": _rollouts(_LogProbsOfOthers),
    "advantages-shuffled": _rollouts(_Shuffled),
    "policy-loss-negated": _rollouts(_Negated),
    "policy-frozen": Break(model=_freeze_policy),
    "ends-ignored": _rollouts(_EndsIgnored),
    "targets-are-rewards": _rollouts(_TargetsAreRewards),
    "worst-action-in-target": Break(model=_take_worst_action),
    "no-terminal-mask": _replay(_NoTerminalMask),
}
