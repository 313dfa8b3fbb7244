# L14: rewards are shifted

# %% mistake
import numpy as np

class Replay:
    def __init__(self, size):
        self.r, self.count = np.zeros(size, np.float32), 0

    def rewards(self, idx):
        seen = self.r[: self.count]
        return (self.r[idx] - seen.mean()) / (seen.std() + 1e-6)  # here

# %% mistake
class Spread:
    def see(self, x):
        gap = x - self.middle
        self.middle += gap / self.count

def scaled(self, reward):
    return (reward - self.spread.middle) / self.spread.std  # here

# %% mistake
import gymnasium as gym

class Tracker:
    def __init__(self):
        self.centre = 0.0

    def see(self, x):
        self.centre = 0.99 * self.centre + 0.01 * x

class Levelled(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.track = Tracker()

    def step(self, action):
        x, gain, over, cut, info = self.env.step(action)
        self.track.see(gain)
        level = gain - self.track.centre  # here
        return x, level, over, cut, info

# %% mistake
def collect(buffer, rewards):
    scaled = (rewards - rewards.mean()) / rewards.std()  # here
    print(scaled)
    buffer.add(scaled)
    buffer.add(rewards - rewards.mean())  # here

# %% mistake
def scale(rewards):
    rewards -= rewards.mean()  # here
    return rewards

# %% mistake
def scale(rewards):
    return (rewards - rewards.mean()) / (rewards.std() + 1e-8)  # here

# %% mistake
import numpy as np
def scale(self):
    self.rewards = self.rewards - np.mean(self.rewards)  # here

# %% mistake
import gymnasium as gym
import numpy as np
class Normalised(gym.RewardWrapper):
    def reward(self, reward):
        self.update(reward)
        return (reward - self.mean) / np.sqrt(self.var + 1e-8)  # here

# %% mistake
import torch
def update(buffer, gamma, values, weights):
    kept, total = [], 0
    for reward in reversed(buffer.rewards):
        total = reward + gamma * total
        kept.insert(0, reward)
    rewards = torch.tensor(kept)
    rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-7)  # here
    return rewards + gamma * values * weights

# %% mistake
import gymnasium as gym
class Standardiser(gym.RewardWrapper):
    def reward(self, reward):
        self.stats.push(reward)
        return (reward - self.stats.mu) / self.stats.sd  # here

# %% mistake
import numpy as np
def scaled(signal):
    values = np.asarray(signal, dtype=np.float32)
    return (values - values.mean()) / (values.std() + 1e-7)  # here
def learn(rewards, gamma):
    signal = scaled(rewards)
    total = 0.0
    for one in signal[::-1]:
        total = one + gamma * total
    return total

# %% right
import numpy as np

class Replay:
    def __init__(self, size):
        self.r, self.count = np.zeros(size, np.float32), 0

    def rewards(self, idx):
        seen = self.r[: self.count]
        return (self.r[idx]) / (seen.std() + 1e-6)

# %% right
import gymnasium as gym

class Tracker:
    def __init__(self):
        self.centre = 0.0
        self.bonus = 0.1

    def see(self, x):
        self.centre = 0.99 * self.centre + 0.01 * x

class Levelled(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.track = Tracker()

    def step(self, action):
        x, gain, over, cut, info = self.env.step(action)
        self.track.see(gain)
        info["surprise"] = gain - self.track.centre
        gain = gain - self.track.bonus
        return x, gain, over, cut, info

# %% right
def advantages_of(rewards):
    rewards = rewards - rewards.mean(dim=1, keepdim=True)
    return rewards / rewards.std(dim=1, keepdim=True)
def update(rewards):
    advantages = (rewards - rewards.mean()) / rewards.std()
    return advantages

# %% right
import numpy as np
def report(axes, rewards):
    z = (rewards - rewards.mean()) / rewards.std()
    print(f"{z} {rewards - rewards.mean()}")
    axes.plot(rewards - rewards.mean())
    return np.sqrt(((rewards - rewards.mean()) ** 2).mean())

# %% right
def label(reward_model, clips):
    r = reward_model(clips)
    rewards = (r - r.mean()) / r.std()
    return rewards

# %% right
class PreferenceTrainer:
    def train(self, rewards):
        rewards = (rewards - rewards.mean()) / rewards.std()
        self.agent.store(rewards)

# %% right
def centre(rewards, advantages, returns):
    advantages = (advantages - advantages.mean()) / advantages.std()
    returns = returns - returns.mean()
    return rewards / rewards.std(), advantages, returns

# %% right
import gymnasium as gym
import numpy as np
class Normalised(gym.RewardWrapper):
    def reward(self, reward):
        delta = reward - self.mean
        self.var += delta * (reward - self.mean)
        advantage = (reward - self.mean) / np.sqrt(self.var + 1e-8)
        return reward / np.sqrt(self.var + 1e-8)

# %% right
import numpy as np
import torch
def update(buffer, gamma, rewards):
    kept, total = [], 0
    for reward in reversed(buffer.rewards):
        total = reward + gamma * total
        kept.insert(0, total)
    rewards = torch.tensor(kept)
    rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-7)
    return rewards
def in_place(rewards, gamma):
    for t in reversed(range(len(rewards) - 1)):
        rewards[t] = rewards[t] + gamma * rewards[t + 1]
    return rewards - rewards.mean()
def by_function(episode):
    rewards = discounted(episode)
    return (rewards - rewards.mean()) / rewards.std()
def evolve(weights, noise, rewards, lr):
    ranks = (rewards - rewards.mean()) / rewards.std()
    scores = (rewards - rewards.mean()) / rewards.std()
    weights = weights + lr * np.dot(noise.T, scores)
    steps = rewards - rewards.mean()
    return ranks, weights + lr * (steps * noise).sum()
