# L60: a list holds one object several times

# %% mistake
import torch.nn as nn
class Critic(nn.Module):
    pass
def build(n):
    return nn.ModuleList([Critic()] * n)  # here

# %% mistake
import gymnasium as gym
from collections import deque
envs = [gym.make("CartPole-v1")] * 4  # here
recent = [deque(maxlen=100)] * 4  # here

# %% right
import gymnasium as gym
import torch.nn as nn
def build(n, make):
    layers = [nn.Linear(4, 4) for _ in range(n)]
    rows = [0.0] * n + [make(3)] * 1
    shapes = [tuple(range(3))] * n
    return nn.Sequential(*layers), [nn.ReLU()] * n, rows, shapes
envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 4)
