# L31: the reward of this step is discounted

# %% mistake
def target(reward, next_value, terminated, gamma):
    return gamma * (reward + next_value * (1 - terminated))  # here

# %% mistake
import numpy as np
class Agent:
    def targets(self, batch):
        next_q = self.target.predict(batch.next_obs).max(axis=1)
        return np.where(batch.ends, batch.rewards, self.gamma * (batch.rewards - next_q))  # here

# %% right
def scaled(reward, next_value, weight):
    return weight * (reward + next_value)

# %% right
def target(reward, next_value, bonus, terminated, gamma):
    shaped = gamma * (reward + bonus)
    other = gamma * (next_value - next_value.mean())
    return reward + gamma * (next_value * (1 - terminated) + bonus)
def running(total, reward, gamma):
    return gamma * (total + reward)
