# L52: the mean of a dueling network is over the batch

# %% mistake
import torch
class Net(torch.nn.Module):
    def forward(self, obs):
        features = self.body(obs)
        value, advantage = self.value(features), self.advantage(features)
        return value + advantage - advantage.mean()  # here

# %% mistake
import torch
class Net(torch.nn.Module):
    def forward(self, obs):
        adv = self.adv(obs)
        return self.value(obs) + (adv - torch.mean(adv))  # here

# %% right
import torch
class Net(torch.nn.Module):
    def forward(self, obs):
        value, advantage = self.value(obs), self.advantage(obs)
        return value + advantage - advantage.mean(dim=1, keepdim=True)
def normalised(adv):
    return (adv - adv.mean()) / (adv.std() + 1e-8)
def shifted(value, returns):
    return value + returns - returns.mean()
