# L70: noise is added after the action is clipped

# %% mistake
import numpy as np
def collect(env, actor, obs, sigma):
    action = np.clip(actor(obs), -1.0, 1.0)
    action = action + np.random.normal(0.0, sigma, action.shape)  # here
    return env.step(action)

# %% mistake
import torch
def collect(env, actor, obs, noise):
    with torch.no_grad():
        action = actor(obs).clamp(-1.0, 1.0)
        action += noise.sample()  # here
        return env.step(action.numpy())

# %% right
import numpy as np
def collect(env, actor, obs, sigma):
    action = actor(obs) + np.random.normal(0.0, sigma, 3)
    action = np.clip(action, -1.0, 1.0)
    return env.step(action)

# %% right
import numpy as np
def collect(env, actor, obs, sigma):
    action = np.clip(actor(obs), -1.0, 1.0)
    action = action + np.random.normal(0.0, sigma, action.shape)
    action = np.clip(action, -1.0, 1.0)
    return env.step(action)
