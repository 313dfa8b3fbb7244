# L18: random numbers that seeds do not control

# %% mistake
import threading
import gymnasium as gym
import numpy as np

def collect(k, config, out):
    draw = np.random.default_rng(config.start)  # here
    world = gym.make(config.world)
    world.reset(seed=config.start)
    out[k].append(world.step(draw.integers(2)))

def begin(config, out):
    for k in range(config.many):
        threading.Thread(target=collect, args=(k, config, out)).start()

# %% mistake
import gymnasium as gym
SEED = 42
def train(agent, episodes):
    env = gym.make("CartPole-v1")
    for _ in range(episodes):
        obs, _ = env.reset(seed=SEED)  # here
        done = False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(agent.act(obs))
            done = terminated or truncated
        agent.update()

# %% mistake
def reset_all(envs, seed):
    for env in envs:
        env.reset(seed=seed)  # here

# %% mistake
import gymnasium as gym
def make_env(env_id, seed): ...
envs = gym.vector.SyncVectorEnv([make_env("CartPole-v1", args.seed) for i in range(8)])  # here

# %% mistake
import gymnasium as gym
import numpy as np
class Walk(gym.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.random.randint(5)  # here
        return self.at, {}

# %% mistake
import gymnasium as gym
import numpy as np
class Walk(gym.Env):
    def _start(self):
        return self._draw()
    def _draw(self):
        return np.random.randint(5)  # here
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self._start()
        return self.at, {}

# %% mistake
def reset_all(envs, seed):
    for env in envs:
        count = 0
        env.reset(seed=seed)  # here
        count += 1
    seed += 1

# %% mistake
def start(envs, args):
    first = envs.reset(seed=[0] * 8)  # here
    envs.reset(seed=[args.seed for _ in range(8)])  # here
    return first, envs.reset(seed=[3, 3])  # here

# %% mistake
def train(env, agent):
    for episode in range(100):
        obs, _ = env.reset(seed=42)  # here
        ended = False
        while not ended:
            obs, reward, ended, cut, _ = env.step(agent.act(obs))
        agent.learn()

# %% mistake
import gymnasium as gym
from stable_baselines3.common.vec_env import SubprocVecEnv
def one(seed):
    def go():
        env = gym.make("A-v0")
        env.reset(seed=seed)  # here
        return env
    return go
fns = []
for k in range(8):
    fns.append(one(7))
venv = SubprocVecEnv(fns)

# %% mistake
import gymnasium as gym
class Maker:
    def __init__(self, rank, cfg):
        self.rank, self.cfg = rank, cfg
    def __call__(self):
        env = gym.make("A-v0")
        env.reset(seed=self.cfg.seed)  # here
        return env
def build(cfg):
    return gym.vector.AsyncVectorEnv([Maker(i, cfg) for i in range(cfg.n)])

# %% mistake
import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv
SEED = 3
def new():
    env = gym.make("A-v0")
    env.reset(seed=SEED)  # here
    return env
venv = DummyVecEnv([new] * 8)

# %% mistake
import functools
import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv
def new(rank, base):
    env = gym.make("A-v0", render_mode=None)
    env.unwrapped.seed(base)  # here
    print(rank)
    return env
venv = DummyVecEnv([functools.partial(new, r, 11) for r in range(8)])

# %% right
import threading
import gymnasium as gym
import numpy as np

def collect(k, config, out):
    own = config.start * 100 + k
    draw = np.random.default_rng(own)
    world = gym.make(config.world)
    world.reset(seed=own)
    out[k].append(world.step(draw.integers(2)))

def begin(config, out):
    for k in range(config.many):
        threading.Thread(target=collect, args=(k, config, out)).start()

# %% right
def reset_all(envs, seed):
    for i, env in enumerate(envs):
        env.reset(seed=seed + i)
    for episode in range(10):
        envs[0].reset(seed=seed)

# %% right
import gymnasium as gym
import numpy as np
envs = gym.vector.SyncVectorEnv([make_env("CartPole-v1", args.seed + i) for i in range(8)])
more = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(8)])
class Walk(gym.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rng = np.random.default_rng(seed)
        return self.np_random.integers(5), {}

# %% right
import gymnasium as gym
import numpy as np
class Walk(gym.Env):
    def _draw(self):
        return self.np_random.integers(5)
    def shown(self):
        return np.random.randint(5)
    def seed(self, seed):
        np.random.seed(seed)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed(seed)
        return self._draw(), {}

# %% right
def reset_all(envs, seed, rng):
    for env in envs:
        env.reset(seed=seed)
        seed += 1
    for env in envs:
        start = int(rng.integers(100))
        env.reset(seed=start)

# %% right
def train(env, envs, agent, seed):
    obs, _ = env.reset(seed=42)
    envs.reset(seed=[seed + n for n in range(8)])
    envs.reset(seed=[random_seed() for _ in range(8)])
    for episode in range(100):
        obs, _ = env.reset(seed=episode)
        obs, reward, ended, cut, _ = env.step(agent.act(obs))
        agent.learn()
def compare(env, agents):
    for agent in agents:
        obs, _ = env.reset(seed=42)
        for _ in range(10_000):
            obs, reward, ended, cut, _ = env.step(agent.act(obs))
            agent.learn()
            if ended or cut:
                obs, _ = env.reset()
def evaluate(env, agent):
    for episode in range(3):
        obs, _ = env.reset(seed=42)
        obs, reward, ended, cut, _ = env.step(agent.act(obs))

# %% right
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
def worker(rank, seed):
    def f():
        env = gym.make("A-v0")
        own = seed + rank
        env.reset(seed=own)
        return env
    return f
venv = SubprocVecEnv([worker(i, 3) for i in range(8)])

# %% right
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
def worker(seed):
    def f():
        env = gym.make("A-v0")
        env.reset(seed=seed)
        return env
    return f
v1 = SubprocVecEnv([worker(s) for s in range(8)])
v2 = SubprocVecEnv([worker(draw()) for s in range(8)])
seeds = [1, 2, 3]
v3 = SubprocVecEnv([worker(seeds[k]) for k in range(3)])
fns = []
for k in range(3):
    s = k + 100
    fns.append(worker(s))
v4 = SubprocVecEnv(fns)

# %% right
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
def worker(rank, cfg):
    def f():
        env = gym.make("A-v0")
        env.reset(seed=cfg.seed)
        return env
    return f
def main(cfg):
    venv = SubprocVecEnv([worker(i, cfg) for i in range(8)])
    return PPO("MlpPolicy", venv, seed=cfg.seed)

# %% right
import gymnasium as gym
def make(seed, idx):
    def thunk():
        env = gym.make("A-v0")
        env.reset(seed=seed)
        return env
    return thunk
envs = gym.vector.SyncVectorEnv([make(1, i) for i in range(4)])
obs, _ = envs.reset(seed=1)

# %% right
import gymnasium as gym
class Still(gym.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
def make(name, seed):
    env = gym.make(name)
    env.reset(seed=seed)
    return env
envs = gym.vector.AsyncVectorEnv([lambda: Still() for _ in range(4)])
more = gym.vector.SyncVectorEnv([lambda: make(f"Level{i}-v0", 3) for i in range(4)])
