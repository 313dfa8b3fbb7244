# L47: the policy has no gradient

# %% mistake
def actor_loss(actor, critic, obs):
    action = actor(obs).detach()
    return -critic(obs, action).mean()  # here
def other(actor, critic, obs):
    policy_loss = -critic(obs, actor(obs).detach()).mean()  # here
    return policy_loss

# %% mistake
import torch
import torch.nn.functional as F
def update(critic, optimizer, obs, actions, targets):
    values = critic(obs, actions)
    critic_loss = F.mse_loss(values.detach(), targets)  # here
    optimizer.zero_grad()
    critic_loss.backward()
    optimizer.step()

# %% mistake
import torch
import torch.nn.functional as F
def update(q, optimizer, batch, gamma):
    with torch.no_grad():
        y = batch.rewards + gamma * (1 - batch.terminated) * q.best(batch.next_obs)
    chosen = q(batch.obs).gather(1, batch.actions).detach()
    loss = F.smooth_l1_loss(chosen, y)  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% right
def actor_loss(actor, critic, obs, batch):
    return -critic(obs, actor(obs)).mean()
def critic_loss(actor, critic, obs, target):
    action = actor(obs).detach()
    return (critic(obs, action) - target).pow(2).mean()
def policy_loss(actor, critic, obs, log_prob):
    action = actor(obs).detach()
    return -(log_prob * critic(obs, action)).mean()

# %% right
import torch.nn.functional as F
def loss(predictor, target, obs):
    features = predictor(obs)
    return F.mse_loss(features, target(obs).detach())

# %% right
import torch.nn.functional as F
def critic_loss(q, obs, actions, targets):
    values = q(obs, actions)
    loss = F.mse_loss(values, targets.detach())
    return loss

# %% right
import torch.nn.functional as F
def loss(a, b, targets):
    a = b.view(-1)
    b = a.view(-1)
    critic_loss = F.mse_loss(a, targets)
    return critic_loss
