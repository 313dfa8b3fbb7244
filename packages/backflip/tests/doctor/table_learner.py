"""A learner in a few lines: Q-learning in a table, as anybody's algorithm behind an adapter."""

from typing import Any

import numpy as np


class TableLearner:
    """Q-learning over rounded observations.

    Args:
        env: an environment of Gymnasium with discrete actions.
        seed: of all randomness.
        ends: treats a time limit as an end.
        sign: of the action that it prefers: 1, or -1 for the worst.
    """

    discount = 0.9

    def __init__(self, env: Any, seed: int, *, ends: bool = False, sign: int = 1) -> None:
        self.env, self.ends, self.sign = env, ends, sign
        self.rng = np.random.default_rng(seed)
        self.table: dict[tuple[float, ...], np.ndarray] = {}
        self.actions = int(env.action_space.n)

    def _of(self, obs: np.ndarray) -> np.ndarray:
        key = tuple(np.round(np.asarray(obs, float), 3).tolist())
        return self.table.setdefault(key, np.zeros(self.actions))

    def learn(self, env_steps: int) -> None:
        """Explore at random and learn."""
        obs, _ = self.env.reset(seed=int(self.rng.integers(1 << 30)))
        for _ in range(env_steps):
            action = int(self.rng.integers(self.actions))
            after, reward, terminated, truncated, _ = self.env.step(action)
            over = terminated or (self.ends and truncated)
            goal = reward + (0.0 if over else self.discount * self._of(after).max())
            self._of(obs)[action] += 0.5 * (goal - self._of(obs)[action])
            obs = self.env.reset()[0] if terminated or truncated else after

    def act(self, obs: np.ndarray) -> int:
        """Return the best action."""
        return int((self.sign * self._of(obs)).argmax())

    def value(self, obs: np.ndarray) -> float:
        """Return the largest action value."""
        return float(self._of(obs).max())


def right(env: Any, seed: int) -> TableLearner:
    """Make a learner without a mistake."""
    return TableLearner(env, seed)


def ends_at_limits(env: Any, seed: int) -> TableLearner:
    """Make a learner that bootstraps nothing at a time limit."""
    return TableLearner(env, seed, ends=True)


def prefers_the_worst(env: Any, seed: int) -> TableLearner:
    """Make a learner whose values are right and whose actions are wrong."""
    return TableLearner(env, seed, sign=-1)


def refuses(env: Any, seed: int) -> TableLearner:
    """Make no learner."""
    raise ValueError("only pixels")
