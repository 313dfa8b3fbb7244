# L71: returns are recorded after a wrapper changed the rewards

# %% mistake
import gymnasium as gym
from gymnasium.wrappers import NormalizeReward, RecordEpisodeStatistics
def make_env(name):
    env = gym.make(name)
    env = NormalizeReward(env, gamma=0.99)
    return RecordEpisodeStatistics(env)  # here

# %% mistake
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
def make(envs):
    return VecMonitor(VecNormalize(envs))  # here

# %% right
import gymnasium as gym
from gymnasium.wrappers import NormalizeReward, RecordEpisodeStatistics
def make_env(name):
    env = RecordEpisodeStatistics(gym.make(name))
    return NormalizeReward(env, gamma=0.99)

# %% right
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
def make(envs):
    return VecMonitor(VecNormalize(envs, norm_reward=False))
