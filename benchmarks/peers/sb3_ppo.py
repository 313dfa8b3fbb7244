"""PPO on CartPole-v1 by Stable-Baselines3, one seed, with the settings of its zoo.

Prints one JSON line. Runs in the peer's environment: `.cache/peers/sb3/bin/python`.
"""

import argparse
import json
import time

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--env-steps", type=int, default=100_000)
parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's own choice")
arguments = parser.parse_args()
if arguments.threads:
    torch.set_num_threads(arguments.threads)

model = PPO(
    "MlpPolicy",
    make_vec_env("CartPole-v1", n_envs=8, seed=arguments.seed),
    n_steps=32,
    batch_size=256,
    n_epochs=20,
    gamma=0.98,
    gae_lambda=0.8,
    ent_coef=0.0,
    learning_rate=lambda remaining: 1e-3 * remaining,
    clip_range=lambda remaining: 0.2 * remaining,
    seed=arguments.seed,
    device="cpu",
)
start = time.perf_counter()
model.learn(arguments.env_steps)
seconds = time.perf_counter() - start
returns = [episode["r"] for episode in model.ep_info_buffer]
print(
    json.dumps(
        {
            "env_steps": model.num_timesteps,
            "seconds": seconds,
            "threads": torch.get_num_threads(),
            # Of the last 100 training episodes: SB3 is not charged for an evaluation.
            "return": float(sum(returns) / len(returns)),
        }
    )
)
