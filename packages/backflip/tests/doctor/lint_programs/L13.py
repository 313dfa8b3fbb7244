# L13: the settings leave nothing to learn

# %% mistake
from types import SimpleNamespace
from stable_baselines3 import SAC, TD3

plans = {
    "short": SimpleNamespace(learning_starts=30_000, batch_size=128),
    "long": SimpleNamespace(learning_starts=1_000, batch_size=128),
}
kinds = {"sac": SAC, "td3": TD3}

def fit(kind, plan, env):
    model = kinds[kind]("MlpPolicy", env, **vars(plans[plan]))
    model.learn(20_000)  # here

# %% mistake
class Args:
    total_timesteps: int = 10000  # here
    learning_starts: int = 25e3

# %% mistake
from stable_baselines3 import DQN
STEPS = 10_000
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
model.learn(total_timesteps=STEPS)  # here

# %% mistake
from stable_baselines3 import DQN
model = DQN("MlpPolicy", env, learning_starts=20000, exploration_fraction=0.1)
model.learn(int(1e5))  # here

# %% mistake
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "CartPole-v1", n_steps=500, batch_size=64)  # here

# %% mistake
from stable_baselines3 import SAC
options = dict(learning_starts=20_000, batch_size=256)
model = SAC("MlpPolicy", env, verbose=1, **options)
model.learn(10_000)  # here

# %% mistake
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int, default=50_000)  # here
parser.add_argument("--learning-starts", type=int, default=80_000)

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
count = 6
venv = make_vec_env("CartPole-v1", n_envs=count)
model = PPO("MlpPolicy", venv, n_steps=125, batch_size=100)  # here

# %% mistake
import gymnasium as gym
from stable_baselines3 import PPO
env = gym.make("CartPole-v1")
model = PPO("MlpPolicy", env, n_steps=500, batch_size=64)  # here

# %% mistake
from stable_baselines3 import DQN
def smoke():
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=10_000)
    model.learn(2_000)  # here
def full():
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=50_000)
    model.learn(1_000_000)
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=50_000)
    if True:
        model.learn(10_000)  # here

# %% mistake
from dataclasses import dataclass
import gymnasium as gym
from stable_baselines3 import TD3
@dataclass
class Config:
    first_update: int = 25_000
    steps: int = 10_000
def build(cfg):
    env = gym.make("Pendulum-v1")
    model = TD3("MlpPolicy", env, learning_starts=cfg.first_update)
    return model
cfg = Config()
build(cfg).learn(cfg.steps)  # here
agent = build(cfg)
agent.learn(cfg.steps)  # here

# %% mistake
import numpy as np
class Config:
    decay_steps = 1000  # here
    begin = 5000
def epsilon_at(cfg, step):
    return np.interp(step, [0, cfg.decay_steps], [1.0, 0.05])
def main(cfg):
    for step in range(100_000):
        eps = epsilon_at(cfg, step)
        act(eps)
        if step < cfg.begin:
            continue
        loss().backward()

# %% mistake
import argparse
p = argparse.ArgumentParser()
p.add_argument("--exploration-fraction", type=float, default=0.02)  # here
p.add_argument("--total-timesteps", type=int, default=200_000)
p.add_argument("--learning-starts", type=int, default=10_000)
args = p.parse_args()
def anneal(hi, lo, n, t):
    return max(lo, hi + (lo - hi) * t / n)
for it in range(args.total_timesteps):
    eps = anneal(1.0, 0.1, args.exploration_fraction * args.total_timesteps, it)
    if it > args.learning_starts:
        update(q)

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor
N = 6
def build():
    return VecMonitor(SubprocVecEnv([f(i) for i in range(N)]))
def main():
    envs = build()
    return PPO("MlpPolicy", envs, n_steps=100, batch_size=128)  # here

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
class Run:
    def __init__(self):
        self.venv = make_vec_env("CartPole-v1", n_envs=8)
        self.model = PPO("MlpPolicy", self.venv, 3e-4, 128, 100)  # here
class Other:
    def __init__(self):
        self.venv = make_vec_env("CartPole-v1", n_envs=1)

# %% mistake
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import DummyVecEnv
hp = {"n_steps": 50, "batch_size": 64}
env = DummyVecEnv([lambda: make()])
model = RecurrentPPO("MlpLstmPolicy", env, **hp)  # here

# %% right
from types import SimpleNamespace
from stable_baselines3 import SAC, TD3

plans = {
    "short": SimpleNamespace(learning_starts=300, batch_size=128),
    "long": SimpleNamespace(learning_starts=1_000, batch_size=128),
}
late = SimpleNamespace(learning_starts=30_000)
late.learning_starts = 200
kinds = {"sac": SAC, "td3": TD3}

def fit(kind, plan, env):
    kinds[kind]("MlpPolicy", env, **vars(plans[plan])).learn(20_000)
    TD3("MlpPolicy", env, **vars(late)).learn(20_000)

# %% right
from stable_baselines3 import DQN, PPO
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=1000, exploration_fraction=0.2)
model.learn(total_timesteps=100_000)
PPO("MlpPolicy", "CartPole-v1", n_steps=512, batch_size=64)
other = PPO("MlpPolicy", vec_env, n_steps=100, batch_size=64)

# %% right
import argparse
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int, default=500_000)
parser.add_argument("--learning-starts", type=int, default=80_000)
options = dict(learning_starts=20_000)
options["learning_starts"] = 100
more = dict(learning_starts=20_000)
more.update(learning_starts=100)
model = SAC("MlpPolicy", env, **options)
model.learn(10_000)
other = SAC("MlpPolicy", env, **more)
other.learn(10_000)
venv, unseen = make_vec_env("CartPole-v1", n_envs=6), make_vec_env("CartPole-v1", **many)
PPO("MlpPolicy", venv, n_steps=100, batch_size=60)
PPO("MlpPolicy", unseen, n_steps=100, batch_size=60)

# %% right
from stable_baselines3 import DQN
def smoke():
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=100)
    model.learn(2_000)
def full(quick):
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=50_000)
    model.learn(1_000_000)
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=500)
    model.learn(10_000)
    if quick:
        model = DQN("MlpPolicy", "CartPole-v1", learning_starts=1000)
    else:
        model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
    model.learn(20_000)
def later():
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
    model = other(model)
    model.learn(10)

# %% right
from dataclasses import dataclass
import gymnasium as gym
from stable_baselines3 import TD3
@dataclass
class Config:
    first_update: int = 1_000
    steps: int = 10_000
def build(cfg):
    env = gym.make("Pendulum-v1")
    model = TD3("MlpPolicy", env, learning_starts=cfg.first_update)
    return model
cfg = Config()
build(cfg).learn(cfg.steps)
agent = build(cfg)
agent.learn(cfg.steps)

# %% right
START = 20_000
DECAY = 5_000
def main(env, agent):
    for t in range(1_000_000):
        eps = max(0.05, math.exp(-1.0 * t / DECAY))
        if t >= START:
            agent.learn()
def other(agent):
    for t in range(10_000):
        eps = max(0.05, 1 - t / 50_000)
        if t > 1000: agent.learn()
def third(agent):
    updates = 0
    for t in range(10_000):
        eps = max(0.05, 1 - updates / 500)
        if t > 1000:
            agent.learn(); updates += 1

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
def a(n):
    venv = make_vec_env("A-v0", n_envs=n)
    return PPO("MlpPolicy", venv, n_steps=100, batch_size=64)
def b(venv, quick):
    venv = make_vec_env("A-v0", n_envs=2)
    if quick:
        venv = make_vec_env("A-v0", n_envs=16)
    return PPO("MlpPolicy", venv, n_steps=100, batch_size=64)
a(16); a(32)
PPO("MlpPolicy", make_vec_env("A-v0", n_envs=8), 3e-4, 128, 256)
