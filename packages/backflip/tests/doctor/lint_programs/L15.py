# L15: evaluation without the statistics of training

# %% mistake
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

def raw(name):
    return VecMonitor(make_vec_env(name, n_envs=1))

def both(name):
    scaled = VecNormalize(make_vec_env(name))
    return SAC("MlpPolicy", scaled), raw(name)

agent, judge = both("Ant-v5")
agent.learn(10_000)
print(evaluate_policy(agent, judge))  # here

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]), norm_obs=True)  # here
model = PPO("MlpPolicy", venv)
model.learn(1000, callback=CheckpointCallback(1000, "runs", save_vecnormalize=False))
model.save("policy")

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))  # here
model = PPO("MlpPolicy", venv)
model.learn(1000)
model.save("policy")

# %% mistake
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))
model = PPO("MlpPolicy", venv)
test_env = gym.make("Hopper-v5")
evaluate_policy(model, test_env)  # here

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def report(envs, model, statistics):
    envs = VecNormalize.load(statistics, envs)  # here
    envs.norm_reward = False
    return evaluate_policy(PPO.load(model), envs)

# %% mistake
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
def made():
    return VecNormalize(DummyVecEnv([lambda: gym.make("Hopper-v5")]), norm_reward=False)
def rollout(model, venv):
    obs, total = venv.reset(), 0.0
    for _ in range(1000):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, _, _ = venv.step(actions)
        total += rewards[0]
    return total
venv = made()
model = PPO("MlpPolicy", venv)
model.learn(100_000)
venv.save("statistics.pkl")
model.save("model")
test = DummyVecEnv([lambda: gym.make("Hopper-v5")])
print(rollout(model, test))  # here

# %% mistake
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def wrapped(seed, frozen=False):
    return VecNormalize(make_vec_env("Hopper-v5", seed=seed), norm_reward=not frozen)  # here
train_env = wrapped(0)
model = SAC("MlpPolicy", train_env)
model.learn(100_000)
test_env = wrapped(1, True)
print(evaluate_policy(model, test_env))

# %% mistake
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv, VecFrameStack
class Run:
    def train(self):
        self.venv = VecNormalize(DummyVecEnv([make] * 4))
        self.model = A2C("MlpPolicy", self.venv)
        self.model.learn(1000)
    def score(self):
        test = VecNormalize(DummyVecEnv([make]), norm_reward=False)  # here
        test.training = False
        test = VecFrameStack(test, 4)
        o = test.reset()
        while True:
            a, _ = self.model.predict(o)
            o, r, d, _ = test.step(a)

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
def rollout(m, e):
    o = e.reset()
    for _ in range(100):
        a, _ = m.predict(o)
        o, r, d, _ = e.step(a)
def train():
    v = VecNormalize(make_vec_env("A-v0"))
    m = PPO("MlpPolicy", v)
    m.learn(100)
    m.save("m"); v.save("s")
def test():
    e = VecNormalize.load("s", make_vec_env("A-v0"))  # here
    e.norm_reward = False
    rollout(PPO.load("m"), e)

# %% mistake
import sys
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
if sys.argv[1] == "train":
    v = VecNormalize(make_vec_env("A-v0"))
    m = PPO("MlpPolicy", v); m.learn(100)
    m.save("m"); v.save("s")
else:
    v = VecNormalize.load("s", make_vec_env("A-v0"))  # here
    m = PPO.load("m", env=v)
    evaluate_policy(m, v)

# %% mistake
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
class Run:
    def __init__(self):
        self.venv = self.build()
        self.model = PPO("MlpPolicy", self.venv)
    def build(self):
        return VecNormalize(make_vec_env("A-v0"))  # here
    def go(self):
        self.model.learn(100)
        self.keep()
    def keep(self):
        self.model.save("m")

# %% mistake
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize, VecFrameStack
def main():
    env = VecFrameStack(VecNormalize(make_vec_env("A-v0")), 4)  # here
    agent = SAC(policy="MlpPolicy", env=env)
    agent = agent.learn(100)
    agent.save("m")

# %% right
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
from ours import same_scale

def raw(name):
    return VecMonitor(make_vec_env(name, n_envs=1))

def scaled(name, of):
    return same_scale(raw(name), of)

env = VecNormalize(make_vec_env("Ant-v5"))
agent = SAC("MlpPolicy", env)
agent.learn(10_000)
judge = scaled("Ant-v5", env)
print(evaluate_policy(agent, judge))

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))
model = PPO("MlpPolicy", venv)
model.learn(1000, callback=CheckpointCallback(1000, "runs", save_vecnormalize=True))
model.save("policy")

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]), norm_obs=False)
model = PPO("MlpPolicy", venv)
model.save("policy")
test = DummyVecEnv([make])
evaluate_policy(model, test)

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]), **options)
model = PPO("MlpPolicy", venv)
model.save("policy")

# %% right
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))
model = PPO("MlpPolicy", venv)
model.save("policy")
venv.save("statistics")
test = VecNormalize.load("statistics", DummyVecEnv([make]))
test.training = False
evaluate_policy(model, test)

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def report(envs, model, statistics):
    envs = VecNormalize.load(statistics, envs)
    envs.training = False
    return evaluate_policy(PPO.load(model), envs)

# %% right
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
def made():
    return VecNormalize(DummyVecEnv([lambda: gym.make("Hopper-v5")]), norm_reward=False)
def rollout(model, venv):
    obs, total = venv.reset(), 0.0
    for _ in range(1000):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, _, _ = venv.step(actions)
        total += rewards[0]
    return total
venv = made()
model = PPO("MlpPolicy", venv)
model.learn(100_000)
venv.save("statistics.pkl")
model.save("model")
test = DummyVecEnv([lambda: gym.make("Hopper-v5")])
test = VecNormalize.load("statistics.pkl", test)
test.training = test.norm_reward = False
print(rollout(model, test))

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def build():
    venv = VecNormalize(make_vec_env("A-v0"))
    return PPO("MlpPolicy", venv), venv
model, venv = build()
model.learn(100)
venv.training = False
evaluate_policy(model, venv)
venv.save("s"); model.save("m")

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def build(training=True):
    return VecNormalize(make_vec_env("A-v0"), training=training)
tr, te = build(), build(False)
model = PPO("MlpPolicy", tr)
model.learn(100, callback=EvalCallback(te))
evaluate_policy(model, te)
tr.save("s")

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
import os
def env(path):
    v = make_vec_env("A-v0")
    if os.path.exists(path):
        v = VecNormalize.load(path, v)
        v.training = False
    else:
        v = VecNormalize(v)
    return v
def train():
    e = env("s")
    m = PPO("MlpPolicy", e)
    m.learn(10)
    e.save("s"); m.save("m")
def test():
    evaluate_policy(PPO.load("m"), env("s"))

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from mylib import store_all, SaveVecNormalizeCallback
env = VecNormalize(make_vec_env("A-v0"))
m = PPO("MlpPolicy", env)
m.learn(10, callback=SaveVecNormalizeCallback(10))
m.save("m")

# %% right
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def more():
    v = VecNormalize.load("s", make_vec_env("A-v0"))
    m = PPO.load("m", env=v)
    m.learn(100)
    print(evaluate_policy(m, v))
    m.save("m"); v.save("s")
