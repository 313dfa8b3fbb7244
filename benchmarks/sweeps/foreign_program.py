"""A small program that knows nothing of runshelf: tabular Q-learning on FrozenLake, one seed.

It prints its score, and knows nothing of runshelf.
"""

import argparse
import sys

import gymnasium
import numpy as np


def train(rate: float, seed: int, episodes: int) -> float:
    """Return the share of the last 200 episodes that reached the goal."""
    rng = np.random.default_rng(seed)
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    table = np.zeros((16, 4))
    reached: list[float] = []
    for episode in range(episodes):
        state, _ = env.reset(seed=seed if episode == 0 else None)
        done, reward = False, 0.0
        while not done:
            explore = rng.random() < max(0.1, 1.0 - episode / 500)
            action = int(rng.integers(4) if explore else np.argmax(table[state]))
            following, reward, terminated, truncated, _ = env.step(action)
            target = float(reward) + 0.95 * (not terminated) * table[following].max()
            table[state, action] += rate * (target - table[state, action])
            state, done = following, terminated or truncated
        reached.append(float(reward))
    return float(np.mean(reached[-200:])) + float(table.sum()) * 1e-6


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--episodes", type=int, default=600)
    given = parser.parse_args()
    score = train(given.rate, given.seed, given.episodes)
    sys.stdout.write(f"score = {score:.6f}\n")
