# L53: noise that is never negative

# %% mistake
import torch
def smoothed(actor, obs, sigma, bound):
    action = actor(obs)
    noise = (torch.rand_like(action) * sigma).clamp(-bound, bound)  # here
    return action + noise

# %% mistake
import numpy as np
def explore(action, sigma):
    noise = sigma * np.random.rand(3)
    return action + np.clip(noise, -0.5, 0.5)  # here

# %% right
import numpy as np
import torch
def smoothed(action, sigma, bound, low, high):
    noise = (torch.randn_like(action) * sigma).clamp(-bound, bound)
    both = np.clip(2 * np.random.rand(3) - 1, -0.5, 0.5)
    return (action + noise).clamp(low, high), both, np.clip(np.random.rand(3), 0, 0.5)
