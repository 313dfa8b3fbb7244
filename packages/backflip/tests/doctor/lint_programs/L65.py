# L65: the value after n steps is discounted once

# %% mistake
from collections import deque
class NStepReplay:
    def __init__(self, n_step, gamma):
        self.window, self.gamma = deque(maxlen=n_step), gamma
    def fold(self):
        total, power = 0.0, 1.0
        for _, _, reward, _, _ in self.window:
            total += power * reward
            power *= self.gamma
        self.storage.append((self.window[0], total))
class Agent:
    def update(self, reward, next_obs, terminated):
        value = self.target_net(next_obs).amax(dim=1)
        target = reward + self.gamma * (1 - terminated) * value  # here
        return target

# %% right
class NStepReplay:
    def fold(self):
        total, power = 0.0, 1.0
        for _, _, reward, _, _ in self.window:
            total += power * reward
            power *= self.gamma
        self.storage.append((self.window[0], total, power))
class Agent:
    def update(self, reward, next_obs, terminated, discount, n_step):
        value = self.target_net(next_obs).amax(dim=1)
        one = reward + self.gamma**self.n_step * (1 - terminated) * value
        target = reward + discount * (1 - terminated) * value
        return one, target

# %% right
class Replay:
    def sample(self, gamma, rewards, n_steps):
        total, power = 0.0, 1.0
        for reward in rewards:
            total += power * reward
            power *= gamma
        return total, power
class Agent:
    def update(self, reward, next_obs, terminated, discount):
        target = reward + discount * (1 - terminated) * self.target_net(next_obs).amax(dim=1)
        return target

# %% right
class Replay:
    def fold(self, gamma, rewards):
        total, power = 0.0, 1.0
        for reward in rewards:
            total += power * reward
            power *= gamma
        return total
class Rainbow:
    def loss(self, reward, summed, next_obs, terminated, n_step):
        target = reward + self.gamma * (1 - terminated) * self.target_net(next_obs).amax(dim=1)
        gamma = self.gamma**n_step
        longer = summed + gamma * (1 - terminated) * self.target_net(next_obs).amax(dim=1)
        return target, longer
