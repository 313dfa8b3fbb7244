# L39: an optimiser holds the parameters of another network

# %% mistake
import torch
def make(actor, critic, lr):
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)
    critic_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)  # here
    return actor_optimizer, critic_optimizer
class Agent:
    def __init__(self, policy_net, value_net):
        self.policy_opt = torch.optim.Adam(value_net.parameters())  # here

# %% mistake
import torch
import torch.nn as nn
class Curiosity(nn.Module):
    def __init__(self):
        self.predictor, self.target = nn.Linear(4, 8), nn.Linear(4, 8)
class Agent:
    def __init__(self, policy):
        self.rnd = Curiosity()
        parts = list(policy.parameters()) + list(self.rnd.parameters())  # here
        self.optimizer = torch.optim.Adam(parts)

# %% right
import torch
def make(actor, critic, actor_critic, model, encoder):
    actor_optimizer = torch.optim.Adam(actor.parameters())
    critic_optimizer = torch.optim.Adam([*critic.parameters(), *encoder.parameters()])
    policy_optimizer = torch.optim.Adam(actor_critic.parameters())
    optimizer = torch.optim.Adam(actor.parameters())
    value_optimizer = torch.optim.Adam(model.parameters())

# %% right
import torch
import torch.nn as nn
class Curiosity(nn.Module):
    def __init__(self):
        self.predictor, self.target = nn.Linear(4, 8), nn.Linear(4, 8)
class Agent:
    def __init__(self, policy):
        self.rnd = Curiosity()
        parts = list(policy.parameters()) + list(self.rnd.predictor.parameters())
        self.optimizer = torch.optim.Adam(parts)
