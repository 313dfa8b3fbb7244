# L29: the policy gradient flows into the values

# %% mistake
import torch
def update(critic, dist, obs, actions, returns, optimizer):
    values = critic(obs).squeeze(-1)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages).mean()  # here
    loss = policy_loss + 0.5 * advantages.pow(2).mean()
    loss.backward()

# %% mistake
import torch
class Agent:
    def update(self, obs, actions, returns):
        dist, value = self.model(obs)
        adv = returns - value
        loss = -(dist.log_prob(actions) * adv).sum() + adv.pow(2).sum()  # here
        loss.backward()

# %% mistake
import torch
def update(net, states, actions, returns, entropy):
    values, logs = [], []
    for state, action in zip(states, actions):
        dist, value = net(state)
        values.append(value)
        logs.append(dist.log_prob(action))
    log_probs, values = torch.stack(logs), torch.cat(values)
    advantage = returns - values
    loss = -(log_probs * advantage).mean() + advantage.pow(2).mean()  # here
    return loss

# %% right
import torch
def update(critic, dist, obs, actions, returns, optimizer):
    values = critic(obs).squeeze(-1)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages.detach()).mean()
    loss = policy_loss + 0.5 * advantages.pow(2).mean()
def closed(critic, dist, obs, actions, returns):
    with torch.no_grad():
        values = critic(obs).squeeze(-1)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages).mean()
    loss = policy_loss + 0.5 * (critic(obs) - returns).pow(2).mean()
def again(critic, dist, obs, actions, returns):
    values = critic(obs)
    advantages = returns - values.detach()
    delta = returns - values
    delta = delta.detach()
    loss = -(dist.log_prob(actions) * delta).mean() + values.mean()
    other_loss = -(dist.log_prob(actions) * advantages).mean() + values.mean()

# %% right
import torch
def apart(critic, dist, obs, actions, returns, actor_optimizer, critic_optimizer):
    value = critic(obs)
    advantage = returns - value
    actor_loss = -(dist.log_prob(actions) * advantage).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward(retain_graph=True)
    actor_optimizer.step()
    critic_optimizer.zero_grad()
    advantage.pow(2).mean().backward()
    critic_optimizer.step()

# %% right
import torch
def update(net, states, actions, returns, entropy):
    values, logs = [], []
    for state, action in zip(states, actions):
        dist, value = net(state)
        values.append(value)
        logs.append(dist.log_prob(action))
    log_probs, values = torch.stack(logs), torch.cat(values)
    advantage = returns - values
    loss = -(log_probs * advantage.detach()).mean() + advantage.pow(2).mean()
    return loss
def kept(net, states, actions, returns):
    values, logs = [], []
    for state, action in zip(states, actions):
        dist, value = net(state)
        values.append(value.item())
        logs.append(dist.log_prob(action))
    advantage = returns - torch.tensor(values)
    loss = -(torch.stack(logs) * advantage).mean() + 0.0
    return loss
