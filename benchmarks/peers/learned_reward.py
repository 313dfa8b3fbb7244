"""Stable-Baselines3 on a reward that was taught here: one JSON line.

    python benchmarks/peers/install.py sb3_reward
    PYTHONPATH=packages/backflip/src:packages/runshelf/src .cache/peers/sb3_reward/bin/python \
        benchmarks/peers/learned_reward.py ENV ALGORITHM --labels 50 --env-steps 10000

`teach` with the oracle makes a run in `--home`. Then Stable-Baselines3 learns from that run's
reward alone, and from the true reward with `--true-reward`, which teaches nothing. The printed
return is the true one of the final policy, over `--episodes` deterministic episodes.
"""

import argparse
import json
import time

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import backflip

parser = argparse.ArgumentParser()
parser.add_argument("env")
parser.add_argument("algorithm")
parser.add_argument("--labels", type=int, default=50)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--env-steps", type=int, default=10_000)
parser.add_argument("--num-envs", type=int, default=1)
parser.add_argument("--settings", type=json.loads, default={}, help="of the algorithm")
parser.add_argument("--episodes", type=int, default=20)
parser.add_argument("--run", help="a run of teach to use; a new one by default")
parser.add_argument("--home", default="benchmark-runs")
parser.add_argument("--true-reward", action="store_true")
arguments = parser.parse_args()
torch.set_num_threads(1)

taught = None
env = make_vec_env(arguments.env, n_envs=arguments.num_envs, seed=arguments.seed)
if not arguments.true_reward:
    run = arguments.run
    if run is None:
        taught = backflip.teach(
            arguments.env,
            teacher="oracle",
            labels=arguments.labels,
            first_seed=arguments.seed,
            home=arguments.home,
        )
        run = taught.run
    env = backflip.load_reward(run, home=arguments.home).wrap_vec_env(env)

kind = getattr(stable_baselines3, arguments.algorithm.upper())
model = kind("MlpPolicy", env, seed=arguments.seed, device="cpu", **arguments.settings)
began = time.perf_counter()
model.learn(arguments.env_steps)
seconds = time.perf_counter() - began
test = make_vec_env(arguments.env, n_envs=1, seed=10_000 + arguments.seed)
returns, _ = evaluate_policy(
    model, test, arguments.episodes, deterministic=True, return_episode_rewards=True
)
print(
    json.dumps(
        {
            "env": arguments.env,
            "algorithm": arguments.algorithm,
            "seed": arguments.seed,
            "reward": "true" if arguments.true_reward else f"learned from {arguments.labels}",
            "taught_return": None if taught is None else float(np.mean(taught.returns)),
            "return": float(np.mean(returns)),
            "worst": float(np.min(returns)),
            "seconds": seconds,
        }
    )
)
