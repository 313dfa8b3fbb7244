# L46: the target is the larger of two critics

# %% mistake
import torch
def target(q1_target, q2_target, action, next_obs, reward, terminated, gamma):
    with torch.no_grad():
        q1 = q1_target(next_obs, action)
        q2 = q2_target(next_obs, action)
        after = torch.max(q1, q2)  # here
        return reward + gamma * (1 - terminated) * after

# %% mistake
import jax.numpy as jnp
def target(next_q1, next_q2, reward, mask, gamma):
    return reward + gamma * mask * jnp.maximum(next_q1, next_q2)  # here

# %% right
import torch
def target(q1, q2, reward, terminated, gamma):
    after = torch.min(q1, q2)
    return reward + gamma * (1 - terminated) * after
def shown(q1, q2):
    return torch.max(q1, q2)
def one(q_here, q_there, reward, terminated, gamma):
    return reward + gamma * (1 - terminated) * torch.max(q_here, q_there)
