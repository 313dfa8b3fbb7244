# L49: a logarithm is used as a standard deviation

# %% mistake
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        mean = self.mean(obs)
        dist = Normal(mean, self.log_std)  # here
        return dist.sample()

# %% right
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        mean, log_std = self.net(obs)
        return Normal(mean, log_std.exp()).sample()
    def other(self, obs):
        mean, log_std = self.net(obs)
        log_std = log_std.clamp(-5, 2).exp()
        return Normal(mean, log_std).sample()
