"""Train with Stable-Baselines3, or with SBX, which has its interface: one seed, one JSON line.

    python peers/stable_baselines.py sb3|sbx ALGORITHM ENV --env-steps N [--settings JSON]

Settings are the constructor's; a text `lin_X` is a line from X to 0, as in SB3's zoo, and
`noise_std` becomes Gaussian noise on the actions. The rate is that of the env steps from
`--window-from` on, so that a warm-up and compilation can be left out of it. Runs in a peer's
environment: `.cache/peers/sb3/bin/python` or `.cache/peers/sbx/bin/python`.
"""

import argparse
import importlib
import json
import time

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise

LIBRARIES = {"sb3": "stable_baselines3", "sbx": "sbx"}


class Window(BaseCallback):
    """The clock when `start` env steps are done."""

    def __init__(self, start):
        super().__init__()
        self.start, self.began, self.at = start, None, 0

    def _on_step(self):
        if self.began is None and self.num_timesteps >= self.start:
            self.began, self.at = time.perf_counter(), self.num_timesteps
        return True


def line_to_zero(start):
    """A schedule of what remains of training, from 1 to 0."""
    return lambda remaining: start * remaining


def understood(settings, env):
    """The constructor's arguments for settings that JSON can hold."""
    settings = {
        name: line_to_zero(float(x[4:])) if isinstance(x, str) and x.startswith("lin_") else x
        for name, x in settings.items()
    }
    if "noise_std" in settings:
        size = env.action_space.shape
        deviation = settings.pop("noise_std") * np.ones(size)
        settings["action_noise"] = NormalActionNoise(np.zeros(size), deviation)
    return settings


parser = argparse.ArgumentParser()
parser.add_argument("library", choices=LIBRARIES)
parser.add_argument("algorithm")
parser.add_argument("env")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--env-steps", type=int, required=True)
parser.add_argument("--num-envs", type=int, default=1)
parser.add_argument("--settings", type=json.loads, default={})
parser.add_argument("--window-from", type=int, default=0, help="env steps before the clock starts")
parser.add_argument("--threads", type=int, default=0, help="PyTorch's; 0: its own choice")
parser.add_argument("--episodes", type=int, default=0, help="of a deterministic evaluation")
arguments = parser.parse_args()
if arguments.threads:
    torch.set_num_threads(arguments.threads)

env = make_vec_env(arguments.env, n_envs=arguments.num_envs, seed=arguments.seed)
kind = getattr(importlib.import_module(LIBRARIES[arguments.library]), arguments.algorithm.upper())
device = {"device": "cpu"} if arguments.library == "sb3" else {}
settings = understood(arguments.settings, env)
model = kind("MlpPolicy", env, seed=arguments.seed, **settings, **device)
window = Window(arguments.window_from)
start = time.perf_counter()
model.learn(arguments.env_steps, callback=window)
end = time.perf_counter()
returns = []
if arguments.episodes:
    test = make_vec_env(arguments.env, n_envs=10, seed=10_000 + arguments.seed)
    returns, _ = evaluate_policy(
        model, test, arguments.episodes, deterministic=True, return_episode_rewards=True
    )
print(
    json.dumps(
        {
            "env_steps": model.num_timesteps,
            "seconds": end - start,
            "env_steps_per_second": (model.num_timesteps - window.at) / (end - window.began),
            "evaluate_seconds": time.perf_counter() - end,
            "return": float(np.mean(returns)) if returns else None,
        }
    )
)
