# L64: the expectile is turned round

# %% mistake
import torch
def asymmetric(u, tau):
    return torch.mean(torch.abs(tau - (u > 0).float()) * u**2)  # here
def value_loss(q, v, tau):
    advantage = q - v
    return asymmetric(advantage, tau)

# %% mistake
import torch
def value_loss(target_q, value, expectile):
    diff = target_q - value
    weight = torch.where(diff > 0, 1 - expectile, expectile)  # here
    return (weight * diff**2).mean()

# %% mistake
import torch
def value_loss(q, v, tau):
    u = q - v
    return (torch.where(u < 0, tau, 1 - tau) * u.pow(2)).mean()  # here

# %% right
import torch
def asymmetric(u, tau):
    return torch.mean(torch.abs(tau - (u < 0).float()) * u**2)
def value_loss(q, v, tau):
    return asymmetric(q - v, tau)
def other(q, v, expectile):
    diff = v - q
    return (torch.where(diff > 0, 1 - expectile, expectile) * diff**2).mean()
