# L24: the target network is never updated

# %% mistake
class Agent:
    def update_target(self):  # here
        self.target_model.set_weights(self.model.get_weights())
    def learn(self, reward, next_obs):
        return reward + self.gamma * self.target_model.predict(next_obs).max()
def train(env, agent):
    env.step(agent.learn(0, 1))

# %% mistake
import copy
import torch
import torch.nn.functional as F
q_net = torch.nn.Linear(4, 2)
target_net = copy.deepcopy(q_net).eval()  # here
for p in target_net.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(q_net.parameters())
def update(s, r, s2, gamma):
    y = r + gamma * target_net(s2).max(1).values
    loss = F.mse_loss(q_net(s).max(1).values, y.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()

# %% mistake
import torch
import torch.nn.functional as F
class Agent:
    def __init__(self, size):
        self.critic, self.critic_target = Critic(size), Critic(size)  # here
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.critic_target.requires_grad_(False)
    def update(self, s, r, s2, gamma):
        y = r + gamma * self.critic_target(s2)
        F.mse_loss(self.critic(s), y).backward()
def main(data):
    q_net, target_net = Critic(1), Critic(1)  # here
    target_net.load_state_dict(q_net.state_dict())
    for s, r, s2, gamma in data:
        F.mse_loss(q_net(s), r + gamma * target_net(s2)).backward()
agent = Agent(3)
main(agent.update(1, 2, 3, 4))

# %% right
class Agent:
    def update_target(self):
        for p, q in zip(self.target_net.parameters(), self.net.parameters()):
            p.data.copy_(q.data)
def train(env, agent, schedule):
    schedule.every(100, agent.update_target)
    env.step(agent.act())

# %% right
class Agent:
    def update_target(self):
        self.target_model.set_weights(self.model.get_weights())

# %% right
class Agent:
    def __init__(self):
        self.update_target()
    def update_target(self):
        self.target_model.set_weights(self.model.get_weights())
    def soft(self):
        self.target_model.soft_update(self.model)
def train(env, agent):
    env.step(agent.learn(0, 1))

# %% right
import copy
import torch
import torch.nn.functional as F
q_net = torch.nn.Linear(4, 2)
q_target, target_q, critic_target = map(copy.deepcopy, (q_net, q_net, q_net))
target_net, q_tgt, target_critic = copy.deepcopy(q_net), copy.deepcopy(q_net), copy.deepcopy(q_net)
def update(s, r, s2, gamma):
    y = r + gamma * target_net(s2) + gamma * q_tgt(s2) + gamma * target_critic(s2)
    F.mse_loss(q_net(s), y).backward()
    target_net.load_state_dict(q_net.state_dict())
    mix(q_net, q_tgt)
    for p, q in zip(target_critic.parameters(), q_net.parameters()):
        p.data.copy_(q.data)

# %% right
import copy
import torch
import torch.nn.functional as F
from mine import Base, run
def fit(q_net, data, gamma):
    target_net = copy.deepcopy(q_net)
    for s, r, s2 in data:
        F.mse_loss(q_net(s), r + gamma * target_net(s2)).backward()
for epoch in range(10):
    fit(net, data, 0.99)
class Loss:
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.critic_target(s2)).backward()
class Derived(Base, Loss):
    def __init__(self, critic):
        self.critic, self.critic_target = critic, copy.deepcopy(critic)
derived = Derived(net)
class Unused:
    def __init__(self, critic):
        self.critic, self.q_target = critic, copy.deepcopy(critic)
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.q_target(s2)).backward()
class Passed:
    def __init__(self, critic):
        self.critic, self.q2_target = critic, copy.deepcopy(critic)
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.q2_target(s2)).backward()
passed = Passed(net)
run(passed)
class Synced:
    def __init__(self, critic):
        self.critic = critic
        self.sync()
    def sync(self):
        self.q1_target = copy.deepcopy(self.critic)
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.q1_target(s2)).backward()
synced = Synced(net)
