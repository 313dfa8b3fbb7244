# L58: weights multiply the mean of the losses

# %% mistake
import torch.nn.functional as F
def loss(weights, q, target):
    return (weights * F.smooth_l1_loss(q, target)).mean()  # here

# %% mistake
import torch
class Agent:
    def __init__(self):
        self.criterion = torch.nn.MSELoss()
    def loss(self, q, target, is_weights):
        error = self.criterion(q, target)
        return torch.mean(is_weights * error)  # here

# %% right
import torch.nn.functional as F
def loss(weights, q, target, value_weight):
    policy = (weights * F.smooth_l1_loss(q, target, reduction="none")).mean()
    return policy + value_weight * F.mse_loss(q, target)
