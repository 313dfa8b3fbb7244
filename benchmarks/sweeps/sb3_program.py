"""A foreign program: Stable-Baselines3's PPO on CartPole, one seed, a few updates.

It prints its score, and knows nothing of runshelf. Run it with the Python of the peer `sb3`.
"""

import argparse
import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--env-steps", type=int, default=512)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", "CartPole-v1", learning_rate=given.rate, seed=given.seed, n_steps=256)
    model.learn(given.env_steps)
    environment = model.get_env()
    assert environment is not None
    environment.seed(given.seed)
    mean, _ = evaluate_policy(model, environment, n_eval_episodes=5)
    sys.stdout.write(f"score = {float(mean):.6f}\n")
