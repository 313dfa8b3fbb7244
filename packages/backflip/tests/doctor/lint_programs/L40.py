# L40: a sum of advantages goes on behind an end

# %% mistake
def advantages(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last  # here
        found.append(last)
    return found[::-1]

# %% mistake
class Agent:
    def advantages(self):
        sum_ = 0.0
        for i in reversed(range(self.steps)):
            goes_on = 1.0 - self.dones[i]
            after = self.values[i + 1] * goes_on
            delta = self.rewards[i] + self.gamma * after - self.values[i]
            sum_ = delta + self.gamma * self.gae_lambda * sum_  # here
            self.advantage[i] = sum_

# %% right
def masked(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        mask = gamma * (1 - dones[t])
        delta = rewards[t] + mask * values[t + 1] - values[t]
        last = delta + mask * lam * last
        found.append(last)
    return found[::-1]
def begun_again(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        if dones[t]:
            last = 0.0
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
def of_one_episode(deltas, gamma, lam):
    last, found = 0.0, []
    for delta in deltas[::-1]:
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
def with_shares(rewards, values, dones, discounts, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + discounts[t] * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + discounts[t] * lam * last
        found.append(last)
    return found[::-1]
def with_gammas(rewards, values, dones, gammas, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gammas[t] * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gammas[t] * lam * last
        found.append(last)
    return found[::-1]
def begun_by_first(rewards, values, dones, first, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        if first[t + 1]:
            last = 0.0
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
def multiplied(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        last *= 1 - dones[t]
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
