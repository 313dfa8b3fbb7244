# L28: the density of a squashed action is that of another one

# %% mistake
import torch
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        mean, deviation = self.net(obs)
        dist = Normal(mean, deviation)
        u = dist.rsample()
        action = torch.tanh(u)
        return 2 * action, dist.log_prob(u).sum(-1)  # here

# %% mistake
import torch
from torch.distributions import Normal
def act(mean, std):
    dist = Normal(mean, std)
    action = torch.tanh(dist.rsample())
    return action, dist.log_prob(action).sum(-1)  # here

# %% right
import torch
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        dist = Normal(*self.net(obs))
        u = dist.rsample()
        action = torch.tanh(u)
        return action, dist.log_prob(u).sum(-1) - torch.log(1 - action.pow(2) + 1e-6).sum(-1)
    def kept(self, obs):
        dist = Normal(*self.net(obs))
        u = dist.rsample()
        return torch.tanh(u), u, dist.log_prob(u).sum(-1)
    def plain(self, obs):
        dist = Normal(*self.net(obs))
        u = dist.rsample()
        return u, dist.log_prob(u)

# %% right
import torch
from torch.distributions import Normal
def act(net, obs):
    dist = Normal(*net(obs))
    u = dist.rsample()
    return torch.tanh(u), dist.log_prob(u).sum(-1) - correction(u)
def correction(u):
    return (2 * (0.6931 - u - torch.nn.functional.softplus(-2 * u))).sum(-1)

# %% right
import torch
from torch.distributions import Normal
def act(mean, std):
    dist = Normal(mean, std)
    u = dist.rsample()
    action = torch.tanh(u)
    log_prob = dist.log_prob(u) - torch.log(1 - action.pow(2) + 1e-6)
    return action, log_prob.sum(-1)
def other(mean, std, SquashedNormal):
    dist = SquashedNormal(mean, std)
    action = torch.tanh(mean)
    return dist.log_prob(action)
