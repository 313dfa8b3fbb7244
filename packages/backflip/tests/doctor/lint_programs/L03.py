# L03: four values of `step`, or one of `reset`

# %% mistake
from gymnasium import Wrapper, make
class Noop(Wrapper):
    def reset(self, **kw):
        o = self.env.reset(**kw)  # here
        for _ in range(5):
            o, _, _, _, _ = self.env.step(0)
        return o, {}
env = Noop(make("CartPole-v1"))

# %% mistake
import gymnasium as gym
class Clip(gym.Wrapper):
    def step(self, a):
        out, r, over, extra = super().step(a)  # here
        return out, max(-1, min(1, r)), over, False, extra
env = Clip(gym.make("CartPole-v1"))

# %% mistake
import gymnasium as gym
env = gym.make("CartPole-v1")
obs = env.reset()  # here
obs, reward, done, info = env.step(0)  # here

# %% mistake
import gymnasium
from gymnasium.wrappers import TimeLimit
class Agent:
    def play(self):
        env = TimeLimit(gymnasium.make("CartPole-v1"), 5)
        observation, _ = env.reset()
        observation, reward, done, _ = env.step(1)  # here

# %% mistake
import gymnasium as gym
from gymnasium.wrappers import ClipAction
def make_env(name):
    env = gym.make(name)
    env = ClipAction(env)
    return env
def play(policy):
    env = make_env("Pendulum-v1")
    obs, _ = env.reset(seed=0)
    obs, reward, done, _ = env.step(policy(obs))  # here

# %% mistake
import gymnasium as gym
def annotated(env: gym.Env):
    obs, reward, done, info = env.step(0)  # here
def play(policy, env):
    obs, _ = env.reset()
    obs, reward, done, info = env.step(policy(obs))  # here
def main():
    environment = gym.make("CartPole-v1")
    play(policy, environment)
    play(policy, env=gym.make("Pendulum-v1"))

# %% mistake
import gymnasium as gym
env = gym.make("CartPole-v1")
obs, info = env.reset()
result = env.step(0)
obs, reward, over, info = result  # here

# %% mistake
import gymnasium as gym
import torch
def fresh(env, seed=None):
    return env.reset(seed=seed)  # here
def main(net):
    env = gym.make("CartPole-v1")
    x = fresh(env, 3)
    for _ in range(100):
        x, r, te, tr, _ = env.step(net(torch.as_tensor(x)).argmax().item())
        if te or tr:
            x = fresh(env)

# %% mistake
import gymnasium as gym
import numpy as np
class Roll:
    def __init__(self):
        self.env = gym.make("Acrobot-v1")
    def begin(self):
        return self.env.reset()  # here
def play(policy):
    roll = Roll()
    state = roll.begin()
    while True:
        after, r, te, tr, _ = roll.env.step(policy(np.asarray(state[None])))
        state = roll.begin() if te or tr else after

# %% mistake
import gymnasium as gym
import torch
env = gym.make("CartPole-v1")
s = torch.tensor(env.reset(seed=1))  # here
while True:
    after, r, te, tr, _ = env.step(policy(s))
    s = env.reset() if te or tr else after  # here

# %% right
from gymnasium import Wrapper, make
class Noop(Wrapper):
    def reset(self, **kw):
        pair = self.env.reset(**kw)
        if self.spec:
            return pair
        return self.observation_space.sample(), {}
env = Noop(make("CartPole-v1"))

# %% right
import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv
env = gym.make("CartPole-v1")
result = env.reset()
obs = result[0]
venv = DummyVecEnv([make])
obs = venv.reset()
obs, rewards, dones, infos = venv.step([0])

# %% right
import gym
env = gym.make("CartPole-v1")
obs, reward, done, info = env.step(0)

# %% right
import gymnasium as gym
def make_env(name):
    env = gym.make(name)
    return OldInterface(env)
def chosen(name):
    if name:
        return gym.make(name)
    return OldEnv()
env, other, new = make_env("Pendulum-v1"), chosen("Pendulum-v1"), gym.make("Pendulum-v1")
obs, reward, done, info = env.step(0)
obs, reward, done, info = other.step(0)
obs, reward, *ends, info = new.step(0)

# %% right
import gymnasium as gym
from stable_baselines3.common.env_util import make_vec_env
def evaluate(model, env):
    obs = env.reset()
    obs, rewards, dones, infos = env.step(model(obs))
def play(env):
    obs = env.reset()
def either(env=None):
    if env is None:
        env = gym.make("CartPole-v1")
    obs = env.reset()
def main():
    env = gym.make("CartPole-v1")
    _ = env.reset()
    venv = make_vec_env("CartPole-v1")
    check(env)
    evaluate(model, venv)
    play(env)
    play(venv)

# %% right
import gymnasium as gym
class Roll(gym.Wrapper):
    def __init__(self):
        self.env = gym.make("Acrobot-v1")
    def reset(self, **options):
        return self.env.reset(**options)
    def begin(self):
        return self.env.reset()
    def both(self):
        return self.env.reset()
def play(policy):
    roll = Roll()
    state, _ = roll.begin()
    pair = roll.both()
    print(policy(pair[0]))
    after, r, te, tr, _ = roll.env.step(policy(state))
    state = roll.begin()[0] if te or tr else after
env = gym.make("CartPole-v1")
first, over = env.reset(), False
both = env.reset() if over else (first[0], {})
