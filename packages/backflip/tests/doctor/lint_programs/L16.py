# L16: frames are skipped twice

# %% mistake
import gymnasium as gym
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_atari_env

GAME = "ALE/Breakout-v5"

def build(n_envs, seed, **wrapper_kwargs):
    return make_atari_env(GAME, n_envs=n_envs, seed=seed, wrapper_kwargs=wrapper_kwargs)  # here

train = build(8, seed=0)
test = build(1, seed=9, terminal_on_life_loss=False)
A2C("CnnPolicy", train).learn(1_000_000)

# %% mistake
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper

TITLES = ("Asterix", "Hero")

def number_of(title, version):
    return "ALE/{}-v{}".format(title, version)

def prepared(game):
    return AtariWrapper(game)  # here

for title in TITLES:
    env = prepared(gym.make(number_of(title, 5)))

# %% mistake
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv
env = gym.make("PongDeterministic-v4")
env = MaxAndSkipEnv(env, skip=4)  # here

# %% mistake
import gymnasium as gym
def make():
    env = gym.make("ALE/Breakout-v5")
    return gym.wrappers.AtariPreprocessing(env)  # here

# %% mistake
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
def make_env(env_id="ALE/SpaceInvaders-v5"):
    def thunk():
        env = gym.make(env_id, render_mode=None)
        return AtariPreprocessing(env, frame_skip=4)  # here
    return thunk

# %% mistake
from stable_baselines3.common.env_util import make_atari_env
env = make_atari_env("ALE/Breakout-v5", n_envs=1, seed=0)  # here

# %% mistake
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
class Args:
    env_id: str = "ALE/Pong-v5"
def make_env(name, video=False):
    return AtariPreprocessing(gym.make(name))  # here
def main(args):
    return make_env(args.env_id)

# %% mistake
import argparse
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
parser = argparse.ArgumentParser()
parser.add_argument("--env-id", "-e", default="ALE/Pong-v5")
args = parser.parse_args()
env = AtariPreprocessing(gym.make(args.env_id))  # here

# %% mistake
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
def make(game):
    env = gym.make(f"ALE/{game}-v5")
    return AtariPreprocessing(env, frame_skip=4)  # here

# %% mistake
import gymnasium as gym
class Repeat(gym.Wrapper):
    def __init__(self, env, k=4):
        super().__init__(env)
        self.k = k
    def step(self, action):
        total = 0.0
        for _ in range(self.k):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info
def game():
    return gym.make("ALE/Breakout-v5")
env = Repeat(game())  # here

# %% mistake
from stable_baselines3.common.env_util import make_atari_env
def build(game, opts=None):
    return make_atari_env(game, n_envs=4, wrapper_kwargs=opts)  # here
v = build("ALE/Pong-v5")

# %% mistake
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.atari_wrappers import AtariWrapper
v = make_vec_env("ALE/Pong-v5", n_envs=4, wrapper_class=AtariWrapper)  # here

# %% mistake
from stable_baselines3.common.env_util import make_atari_env
class Cfg:
    game = "PongDeterministic-v4"
    atari = dict(terminal_on_life_loss=False, noop_max=30)
v = make_atari_env(Cfg.game, n_envs=4, wrapper_kwargs=Cfg.atari)  # here

# %% mistake
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper, MaxAndSkipEnv, NoopResetEnv
def made():
    env = gym.make("QbertNoFrameskip-v4")
    env = NoopResetEnv(env, noop_max=30)
    env = MaxAndSkipEnv(env, skip=4)
    return AtariWrapper(env)  # here

# %% right
import gymnasium as gym
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_atari_env

GAME = "ALE/Breakout-v5"

def build(n_envs, seed, **wrapper_kwargs):
    return make_atari_env(GAME, n_envs=n_envs, seed=seed, wrapper_kwargs=wrapper_kwargs)

train = build(8, seed=0, frame_skip=1)
test = build(1, seed=9, terminal_on_life_loss=False, frame_skip=1)
A2C("CnnPolicy", train).learn(1_000_000)

# %% right
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper

TITLES = ("Asterix", "Hero")

def number_of(title, version):
    return "{}NoFrameskip-v{}".format(title, version)

def prepared(game):
    return AtariWrapper(game)

for title in TITLES:
    env = prepared(gym.make(number_of(title, 4)))

# %% right
import gymnasium as gym
options = dict(frameskip=1)
env = gym.wrappers.AtariPreprocessing(gym.make("ALE/Pong-v5", **options))
def other(**options):
    return gym.wrappers.AtariPreprocessing(gym.make("ALE/Pong-v5"), **options)

# %% right
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv
def one():
    return MaxAndSkipEnv(gym.make("PongNoFrameskip-v4"), skip=4)
def other():
    env = gym.make("ALE/Pong-v5", frameskip=1)
    return gym.wrappers.AtariPreprocessing(env)
def third():
    return gym.wrappers.AtariPreprocessing(gym.make("ALE/Pong-v5"), frame_skip=1)

# %% right
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
from stable_baselines3.common.env_util import make_atari_env
def make_env(env_id="ALE/SpaceInvaders-v5"):
    return AtariPreprocessing(gym.make(env_id), frame_skip=4)
def with_name(env_id):
    return AtariPreprocessing(gym.make(env_id), frame_skip=4)
one, other = make_env("PongNoFrameskip-v4"), with_name(unseen)
third = make_atari_env("PongNoFrameskip-v4", n_envs=2)
fourth = make_atari_env("ALE/Pong-v5", env_kwargs={"frameskip": 1})

# %% right
import gymnasium as gym
class Repeat(gym.Wrapper):
    def __init__(self, env, k=4):
        super().__init__(env)
        self.k = k
    def step(self, action):
        total = 0.0
        for _ in range(self.k):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info
def game():
    return gym.make("ALE/Breakout-v5", frameskip=1)
env = Repeat(game())

# %% right
from stable_baselines3.common.env_util import make_atari_env
opts = {"clip_reward": False}
opts["frame_skip"] = 1
a = make_atari_env("ALE/Pong-v5", wrapper_kwargs=opts)
b = make_atari_env("ALE/Pong-v5", wrapper_kwargs={"frame_skip": 0})
made = dict(frameskip=1)
c = make_atari_env("ALE/Pong-v5", env_kwargs=made, wrapper_kwargs=dict(clip_reward=False))
def d(more): return make_atari_env("ALE/Pong-v5", wrapper_kwargs=more)
d({"frame_skip": 1})
e = make_atari_env("PongNoFrameskip-v4", wrapper_kwargs=dict(frame_skip=4))

# %% right
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper, MaxAndSkipEnv, NoopResetEnv
def made():
    env = gym.make("QbertNoFrameskip-v4")
    env = NoopResetEnv(env, noop_max=30)
    env = MaxAndSkipEnv(env, skip=4)
    return AtariWrapper(env, frame_skip=1)
