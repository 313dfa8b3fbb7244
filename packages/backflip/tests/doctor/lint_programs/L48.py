# L48: returns are in the order of their computation

# %% mistake
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in rewards[::-1]:  # here
        total = reward + gamma * total
        found.append(total)
    return found

# %% mistake
import torch
def advantages(rewards, values, masks, gamma, lam):
    found, last = [], 0.0
    for t in reversed(range(len(rewards))):  # here
        delta = rewards[t] + gamma * values[t + 1] * masks[t] - values[t]
        last = delta + gamma * lam * masks[t] * last
        found.append(last)
    return torch.stack(found)

# %% mistake
import torch
rewards, gamma = [1.0, 1.0], 0.99
total, returns = 0.0, []
for reward in rewards[::-1]:  # here
    total = reward + gamma * total
    returns.append(total)
returns = torch.tensor(returns)

# %% right
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in rewards[::-1]:
        total = reward + gamma * total
        found.append(total)
    return found[::-1]

# %% right
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    return found
def learn(rewards, gamma):
    targets = returns(rewards, gamma)
    targets.reverse()
    return targets

# %% right
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(reward)
    return total
