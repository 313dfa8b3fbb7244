# L27: no gradient reaches the policy through its action

# %% mistake
import torch
def actor_loss(policy, critic, obs, alpha):
    dist = policy(obs)
    action = dist.sample()
    log_prob = dist.log_prob(action).sum(-1)
    return (alpha * log_prob - critic(obs, action)).mean()  # here

# %% mistake
import torch
class Agent:
    def update(self, obs):
        u = self.policy(obs).sample()
        action = torch.tanh(u)
        policy_loss = -self.q1(obs, action).mean()  # here
        policy_loss.backward()

# %% right
import torch
def actor_loss(policy, critic, obs, alpha):
    dist = policy(obs)
    action = dist.rsample()
    return (alpha * dist.log_prob(action).sum(-1) - critic(obs, action)).mean()
def critic_loss(policy, critic, obs, target, expert):
    action = policy(obs).sample()
    gap_loss = critic(obs, expert) - critic(obs, action)
    return target - critic(obs, action)
def policy_loss(policy, critic, obs):
    dist = policy(obs)
    action = dist.sample()
    with torch.no_grad():
        worth_loss = -critic(obs, action)
    return -(dist.log_prob(action) * worth_loss).mean()
