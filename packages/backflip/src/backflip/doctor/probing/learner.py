"""What a probe needs of an algorithm: learn, act, and say a value."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Learner(Protocol):
    """An algorithm on one environment, of whatever library.

    `value(obs) -> float` is optional: without it, only actions are checked.
    """

    @property
    def discount(self) -> float:
        """γ of the algorithm."""
        ...

    def learn(self, env_steps: int) -> None:
        """Train for so many env steps."""
        ...

    def act(self, obs: np.ndarray) -> Any:
        """Return the best action for one observation, without exploration."""
        ...


MakeLearner = Callable[[Any, int], Learner]  # (gymnasium environment, seed) -> learner


class FromStableBaselines3:
    """The adapter of Stable-Baselines3's algorithms, and an example for others.

    Args:
        model: PPO, A2C, DQN, SAC or TD3 of Stable-Baselines3, made for the probe.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.discount = float(model.gamma)

    def learn(self, env_steps: int) -> None:
        """Train for so many env steps."""
        self.model.learn(env_steps)

    def act(self, obs: np.ndarray) -> Any:
        """Return the best action for one observation."""
        return self.model.predict(obs, deterministic=True)[0]

    def value(self, obs: np.ndarray) -> float:
        """Return V of one observation; of DQN, the largest action value; of SAC and TD3, min Q."""
        policy = self.model.policy
        seen = policy.obs_to_tensor(obs[None])[0]
        if hasattr(policy, "predict_values"):
            return float(policy.predict_values(seen).item())
        if hasattr(self.model, "q_net"):
            return float(self.model.q_net(seen).max().item())
        action = self.model.actor(seen)
        return float(min(q.item() for q in self.model.critic_target(seen, action)))
