# L22: two discounts

# %% mistake
from dataclasses import dataclass

import gymnasium as gym
from gymnasium.wrappers import NormalizeReward

@dataclass(frozen=True)
class Settings:
    env_id: str = "HalfCheetah-v5"
    discount: float = 0.95

def build(cfg):
    return NormalizeReward(gym.make(cfg.env_id), gamma=0.99)  # here

# %% mistake
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

options = dict(yaml.safe_load(open("ppo.yml")))
GAMMA = 0.9999
env = VecNormalize(make_vec_env("Swimmer-v5"), norm_reward=True)  # here
PPO("MlpPolicy", env, gamma=GAMMA, **options).learn(1_000_000)

# %% mistake
import gymnasium as gym

GAMMA = 0.9

def make_env():
    env = gym.make("Pendulum-v1")
    return gym.wrappers.NormalizeReward(env)  # here

# %% mistake
from dataclasses import asdict, dataclass
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

@dataclass
class Best:
    learning_rate: float = 3e-4
    gamma: float = 0.9

def fit(best: Best):
    env = VecNormalize(make_vec_env("Ant-v5"))  # here
    return PPO("MlpPolicy", env, **asdict(best))

fit(Best(learning_rate=1e-4)).learn(10**6)

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
venv = VecNormalize(venv)  # here
model = PPO("MlpPolicy", venv, gamma=0.9)
venv.save("statistics")

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
options = {"gamma": 0.9, "n_steps": 2048}
venv = VecNormalize(make(), gamma=0.99)  # here
model = PPO("MlpPolicy", venv, **options)
venv.save("statistics")

# %% mistake
import gymnasium as gym
class Args:
    gamma: float = 0.9
env = gym.wrappers.NormalizeReward(gym.make("Hopper-v5"))  # here

# %% mistake
import argparse
from gymnasium.wrappers import NormalizeReward
parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.995)
args = parser.parse_args()
def make(env):
    return NormalizeReward(env, gamma=0.95)  # here

# %% mistake
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
class Run:
    def __init__(self):
        self.env = self.build()
        self.test = VecNormalize(DummyVecEnv([make]), norm_reward=False)
        self.model = SAC("MlpPolicy", self.env, gamma=0.98)
    def build(self):
        return VecNormalize(DummyVecEnv([make]))  # here

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
HYPER = {"gamma": 0.999, "n_steps": 100}
NORM = {"norm_obs": True, "gamma": 0.99}
def run(venv):
    venv = VecNormalize(venv, **NORM)  # here
    return PPO("MlpPolicy", venv, **HYPER)

# %% mistake
from stable_baselines3 import PPO, A2C
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
def ppo():
    v = VecNormalize(DummyVecEnv([make]), gamma=0.9)
    return PPO("MlpPolicy", v, gamma=0.9)
def a2c():
    v = VecNormalize(DummyVecEnv([make]), gamma=0.9)  # here
    return A2C("MlpPolicy", v)

# %% right
from dataclasses import dataclass

import gymnasium as gym
from gymnasium.wrappers import NormalizeReward

@dataclass(frozen=True)
class Settings:
    env_id: str = "HalfCheetah-v5"
    discount: float = 0.95

def build(cfg):
    return NormalizeReward(gym.make(cfg.env_id), gamma=0.95)

# %% right
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

options = dict(yaml.safe_load(open("ppo.yml")))
GAMMA = 0.9999
env = VecNormalize(make_vec_env("Swimmer-v5"), norm_reward=True, gamma=GAMMA)
PPO("MlpPolicy", env, gamma=GAMMA, **options).learn(1_000_000)

# %% right
import gymnasium as gym

GAMMA = 0.9

def make_env():
    env = gym.make("Pendulum-v1")
    return gym.wrappers.NormalizeReward(env, gamma=GAMMA)

# %% right
from dataclasses import asdict, dataclass
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

@dataclass
class Best:
    learning_rate: float = 3e-4
    gamma: float = 0.9

def fit(best: Best):
    env = VecNormalize(make_vec_env("Ant-v5"))
    return PPO("MlpPolicy", env, **asdict(best))

fit(Best(1e-4, gamma=0.99)).learn(10**6)

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
venv = VecNormalize(venv, gamma=args.gamma)
model = PPO("MlpPolicy", venv, gamma=args.gamma)
venv.save("statistics")

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
options = dict(gamma=0.9)
venv = VecNormalize(make(), gamma=0.9)
model = PPO("MlpPolicy", venv, **options)
venv.save("statistics")

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
venv = VecNormalize(make())
model = PPO("MlpPolicy", venv, **unseen)
venv.save("statistics")

# %% right
import gymnasium as gym
class Args:
    gamma: float = 0.9
env = gym.wrappers.NormalizeReward(gym.make("Hopper-v5"), args.gamma)

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
HP = {"gamma": 0.9}
def make(envs):
    envs = VecNormalize(envs, gamma=HP["gamma"])
    return PPO("MlpPolicy", envs, **HP)

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
shown = VecNormalize(DummyVecEnv([make]), training=False)
model = PPO("MlpPolicy", DummyVecEnv([make]), gamma=0.9)

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
def envs(gamma): return VecNormalize(DummyVecEnv([make]), gamma=gamma)
def go(gamma=0.95):
    test = VecNormalize(DummyVecEnv([make]), training=False)
    return PPO("MlpPolicy", envs(gamma), gamma=gamma)

# %% right
import argparse
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
p = argparse.ArgumentParser()
p.add_argument("--gamma", type=float, default=0.95)
a = p.parse_args()
v = VecNormalize(DummyVecEnv([make]), gamma=a.gamma)
m = PPO("MlpPolicy", v, gamma=a.gamma)
v.save("s")
