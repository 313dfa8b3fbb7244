# L06: (B, 1) against (B,) in a loss

# %% mistake
import torch

class Learner:
    def loss(self, batch):
        s, a, r, s2, term = batch
        q_sa = self.online(s).gather(1, a)
        with torch.no_grad():
            best = self.frozen(s2).max(1)[0]
            y = r + 0.99 * (1.0 - term) * best
        return (q_sa - y).pow(2).mean()  # here

# %% mistake
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

class QNet(nn.Module):
    @nn.compact
    def __call__(self, s, a):
        return nn.Dense(1)(jnp.concatenate([s, a], -1))

qnet = QNet()

@jax.jit
def step(params, target, batch):
    s, a, r, s2, a2, term = batch
    backup = r + 0.99 * (1.0 - term) * qnet.apply(target, s2, a2)  # here
    return jnp.mean((qnet.apply(params, s, a) - backup) ** 2)

rng = np.random.default_rng(0)
S, A = np.zeros((1000, 3), np.float32), np.zeros((1000, 2), np.float32)
R, T = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
params = qnet.init(jax.random.PRNGKey(0), S[:1], A[:1])
i = rng.integers(0, 1000, 256)
loss = step(params, params, (S[i], A[i], R[i], S[i], A[i], T[i]))

# %% mistake
import torch
def loss(q, target_q, s, a, r, after, ends, gamma):
    a = torch.tensor(a).unsqueeze(1)
    y = r + gamma * (1 - ends) * target_q(after).max(1)[0].detach()
    return torch.nn.functional.mse_loss(q(s).gather(1, a), y)  # here

# %% mistake
import torch
def loss(q, b, gamma):
    chosen = q(b.obs).gather(1, b.action[:, None])
    target = b.reward + gamma * torch.max(q(b.next_obs), 1)[0]
    return (chosen - target).pow(2).mean()  # here

# %% mistake
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1))
    best = target_q(b.next_obs).max(1)[0]
    return F.mse_loss(chosen, b.reward + gamma * best)  # here

# %% mistake
import torch.nn.functional as F
def loss(q, b, gamma):
    chosen = q(b.obs).gather(1, b.action.view(-1).unsqueeze(-1))
    best = q(b.next_obs).detach().max(dim=1).values
    target = b.reward + gamma * best
    return F.smooth_l1_loss(chosen, target)  # here

# %% mistake
from torch import nn
class Learner:
    def __init__(self):
        self.criterion = nn.SmoothL1Loss()
    def learn(self, batch):
        best, _ = self.q_target(batch.next_obs).max(dim=1)
        goal = batch.reward + 0.99 * best
        chosen = self.q(batch.obs).gather(1, batch.action.unsqueeze(1))
        return self.criterion(chosen, goal)  # here

# %% mistake
import torch
def loss(q, b, best):
    chosen = torch.gather(q(b.obs), dim=-1, index=b.action[:, None])
    target = b.reward + q(b.next_obs).amax(-1)
    return (chosen - target).square().mean()  # here

# %% mistake
import torch
def loss(q, b):
    chosen = q(b.obs).gather(dim=1, index=b.action.unsqueeze(-1))
    target = b.reward + q(b.next_obs).amax(1, keepdim=True).reshape(-1)
    other = q(b.next_obs).max(1)[0].view(-1)
    return (chosen - other).abs().mean()  # here

# %% mistake
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    best = target_q(b.next_obs).max(1)[0]
    best.unsqueeze_(1)
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1))
    chosen.squeeze_(1)
    return F.mse_loss(chosen, b.reward + gamma * best)  # here

# %% mistake
import torch
def loss(net, s, a, r, s2, gamma):
    q = net(s).gather(1, a.unsqueeze(1))
    with torch.no_grad():
        y = r + gamma * net(s2).max(1)[0]
    return torch.nn.SmoothL1Loss()(q, y)  # here

# %% mistake
import torch
import torch.nn as nn
import torch.nn.functional as F
class Critic(nn.Module):
    def __init__(self, obs_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 64), nn.ReLU(), nn.Linear(64, 1))
    def forward(self, x):
        return self.net(x)
critic = Critic(4)
def update(obs, rews):
    rews = torch.as_tensor(rews, dtype=torch.float32)
    loss = F.mse_loss(critic(obs), rews)  # here
    return loss

# %% mistake
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards, gamma):
    returns, G = [], 0.0
    for r in reversed(rewards):
        G = r + gamma * G
        returns.insert(0, G)
    returns = torch.tensor(returns)
    values = critic(obs)
    return ((values - returns) ** 2).mean()  # here

# %% mistake
import torch
import torch.nn as nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 64)
        self.v = nn.Linear(64, 1)
    def forward(self, x):
        x = F.relu(self.fc1(x))
        return self.v(x)
class Agent:
    def __init__(self):
        self.critic, self.target = Net(), Net()
    def learn(self, obs, rew, next_obs, done):
        with torch.no_grad():
            y = rew + 0.99 * (1 - done) * self.target(next_obs).squeeze(-1)
        return F.mse_loss(self.critic(obs), y)  # here

# %% mistake
import random
import torch
from torch import nn
import torch.nn.functional as F
q_net = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
def update(memory, gamma):
    batch = random.sample(memory, 64)
    s, a, r, s2, d = zip(*batch)
    s, a, s2 = torch.stack(s), torch.stack(a), torch.stack(s2)
    r = torch.tensor(r, dtype=torch.float32)
    d = torch.tensor(d, dtype=torch.float32)
    with torch.no_grad():
        y = r + gamma * (1 - d) * q_net(s2).squeeze(-1)
    return F.mse_loss(q_net(s), y)  # here

# %% mistake
import torch
import torch.nn.functional as F
from torch import nn
def mlp(sizes, activation): ...
class Agent:
    def __init__(self, n, sizes):
        self.rewards = []
        self.critic = nn.Sequential(nn.Linear(n, 9), layer_init(nn.Linear(9, 1))).to("cpu")
        self.v_net = mlp([n] + list(sizes) + [1], nn.Tanh)
    def learn(self, q, obs, next_obs, actions, batch):
        rewards = torch.tensor(self.rewards).float()
        chosen = q(obs).gather(1, actions.unsqueeze(1))
        loss = F.mse_loss(chosen, torch.tensor([step.reward for step in batch]))  # here
        alive = 1 - torch.tensor([step.done for step in batch])
        target = rewards + 0.9 * alive * self.v_net(next_obs)  # here
        loss += F.mse_loss(self.critic(obs), target)
        return loss + F.mse_loss(self.critic(obs), rewards)  # here

# %% mistake
import torch
import torch.nn as nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def loss(obs, advantages, idx):
    with torch.no_grad():
        value = critic(obs).squeeze(-1)
        target = advantages + value
    predicted = critic(obs[idx])
    return (predicted - target[idx]).pow(2).mean()  # here

# %% mistake
import torch
def update(net, target_net, buffer, gamma):
    rewards = torch.as_tensor(buffer.rewards).unsqueeze(-1)
    best = target_net(buffer.next_obs).max(1)[0]
    return rewards + gamma * best  # here

# %% mistake
import tensorflow as tf
class Learner:
    def __init__(self):
        self.critic = tf.keras.Sequential([tf.keras.layers.Dense(32), tf.keras.layers.Dense(1)])
    def update(self, obs, rewards, next_obs, going, gamma):
        target = tf.stop_gradient(rewards + gamma * going * tf.squeeze(self.critic(next_obs), 1))
        with tf.GradientTape() as tape:
            values = self.critic(obs)
            error = tf.reduce_mean((target - values) ** 2)  # here
        variables = self.critic.trainable_variables
        return error, tape.gradient(error, variables)

# %% mistake
import random
from collections import deque
import numpy as np
import torch
from torch import nn
class Twin(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.one, self.two = nn.Linear(d, 1), nn.Linear(d, 1)
    def forward(self, z):
        a, b = self.one(z), self.two(z)
        return a, b
class Memory:
    def __init__(self):
        self.kept = deque(maxlen=1000)
    def draw(self, n):
        x, gain, y, over = zip(*random.sample(self.kept, n))
        x, y = torch.as_tensor(np.array(x)), torch.as_tensor(np.array(y))
        return x, torch.tensor(gain), y, torch.tensor(over)
def learn(memory, crit, slow, gamma):
    x, gain, y, over = memory.draw(64)
    with torch.no_grad():
        t1, t2 = slow(y)
        goal = gain + gamma * (1 - over) * torch.min(t1, t2)  # here
    c1, c2 = crit(x)
    return ((c1 - goal) ** 2 + (c2 - goal) ** 2).mean()
learn(Memory(), Twin(4), Twin(4), 0.99)

# %% mistake
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
class Both(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Dense(64)(x))
        v = nn.Dense(features=1)(h)
        return nn.Dense(4)(h), v
class Store:
    def __init__(self, n):
        self.x, self.y = np.zeros((n, 8)), np.zeros((n, 8))
        self.gain, self.over = np.zeros(n), np.zeros(n)
    def batch(self, rng, m):
        pick = rng.integers(0, 1000, size=m)
        return {"x": self.x[pick], "y": self.y[pick], "g": self.gain[pick], "o": self.over[pick]}
net = Both()
def cost(theta, slow, b):
    _, after = net.apply(slow, b["y"])
    goal = b["g"] + 0.99 * (1 - b["o"]) * after  # here
    _, v = net.apply(theta, b["x"])
    return jnp.mean((v - goal) ** 2)
def run(theta, slow, rng):
    return jax.grad(cost)(theta, slow, Store(1000).batch(rng, 32))

# %% mistake
from typing import NamedTuple
import random
import jax
import numpy as np
from flax import linen as nn
class Steps(NamedTuple):
    s: np.ndarray
    gain: np.ndarray
    ahead: np.ndarray
    over: np.ndarray
class V(nn.Module):
    def setup(self):
        self.hid, self.out = nn.Dense(32), nn.Dense(1)
    def __call__(self, s):
        return self.out(nn.tanh(self.hid(s)))
v, GAMMA = V(), 0.9
def td(params, old, b):
    err = b.gain + GAMMA * (1 - b.over) * v.apply(old, b.ahead) - v.apply(params, b.s)  # here
    return (err ** 2).mean()
def train(params, old, kept):
    b = Steps(*(np.array(c, np.float32) for c in zip(*random.sample(kept, 64))))
    return jax.value_and_grad(td)(params, old, b)

# %% right
import numpy as np
import torch
from torch import nn

class Ring:
    def __init__(self, n):
        self.d = dict(s=np.zeros((n, 3), "f4"), r=np.zeros((n, 1), "f4"))
        self.d["term"] = np.zeros((n, 1), "f4")

    def sample(self, rng, b):
        i = rng.integers(0, 100, b)
        return {k: torch.from_numpy(v[i]) for k, v in self.d.items()}

critic = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
b = Ring(100).sample(np.random.default_rng(0), 32)
with torch.no_grad():
    y = b["r"] + 0.99 * (1 - b["term"]) * critic(b["s"])
loss = (critic(b["s"]) - y).pow(2).mean()

# %% right
import torch

class Learner:
    def loss(self, batch):
        s, a, r, s2, term = batch
        q_sa = self.online(s).gather(1, a)
        with torch.no_grad():
            best = self.frozen(s2).max(1, keepdim=True)[0]
            y = r + 0.99 * (1.0 - term) * best
        return (q_sa - y).pow(2).mean()

# %% right
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

class QNet(nn.Module):
    @nn.compact
    def __call__(self, s, a):
        return nn.Dense(1)(jnp.concatenate([s, a], -1)).squeeze(-1)

qnet = QNet()

@jax.jit
def step(params, target, batch):
    s, a, r, s2, a2, term = batch
    backup = r + 0.99 * (1.0 - term) * qnet.apply(target, s2, a2)
    return jnp.mean((qnet.apply(params, s, a) - backup) ** 2)

rng = np.random.default_rng(0)
S, A = np.zeros((1000, 3), np.float32), np.zeros((1000, 2), np.float32)
R, T = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
params = qnet.init(jax.random.PRNGKey(0), S[:1], A[:1])
i = rng.integers(0, 1000, 256)
loss = step(params, params, (S[i], A[i], R[i], S[i], A[i], T[i]))

# %% right
import torch
def loss(q, target_q, s, a, r, after, ends, gamma):
    a = torch.tensor(a)
    b = torch.tensor(a).unsqueeze(1)
    y = r + gamma * (1 - ends) * target_q(after).max(1)[0].detach()
    one = torch.nn.functional.mse_loss(q(s).gather(1, b).squeeze(1), y)
    return one + torch.nn.functional.mse_loss(q(s).gather(1, a).squeeze(1), y)

# %% right
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1)).squeeze(1)
    best = target_q(b.next_obs).max(1)[0]
    one = F.mse_loss(chosen, b.reward + gamma * best)
    column = q(b.obs).gather(1, b.action.unsqueeze(1))
    best = target_q(b.next_obs).max(1)[0].unsqueeze(1)
    return one + F.mse_loss(column, b.reward.view(-1, 1) + gamma * best)

# %% right
import torch.nn.functional as F
def loss(q, b, gamma):
    best = q(b.next_obs).max(dim=1)[0]
    best = best.reshape(-1, 1)
    return F.smooth_l1_loss(q(b.obs).gather(1, b.action.unsqueeze(1)), b.reward + gamma * best)

# %% right
import torch
class Learner:
    def __init__(self):
        self.criterion = torch.nn.MSELoss()
    def learn(self, batch):
        best, _ = self.q_target(batch.next_obs).max(1, keepdim=True)
        other, places = self.q_target(batch.next_obs).max(1)
        column = torch.gather(self.q(batch.obs), 1, batch.action.unsqueeze(1))
        other, places = reshaped(other, places)
        row = self.q(batch.obs).gather(1, batch.action.unsqueeze(1)).view(-1)
        kept = self.q(batch.obs).max(1, True)[0]
        three = column - best, column - other, column - kept
        goal = batch.reward + self.q_target(batch.next_obs).max(1)[0].view(-1)
        return three, self.criterion(row, goal)

# %% right
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    best = target_q(b.next_obs).max(1)[0]
    best.unsqueeze_(1)
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1))
    other = q(b.obs).gather(1, b.action.unsqueeze(1))
    other.resize_(32)
    row = target_q(b.next_obs).max(1)[0]
    return F.mse_loss(chosen, b.reward + gamma * best) + F.mse_loss(other, row)

# %% right
import torch
def loss(net, s, a, r, s2, gamma):
    q = net(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        y = r + gamma * net(s2).max(1)[0]
    return torch.nn.SmoothL1Loss()(q, y)

# %% right
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rews):
    rews = torch.as_tensor(rews, dtype=torch.float32).unsqueeze(1)
    one = F.mse_loss(critic(obs), rews)
    rew = torch.as_tensor(rews, dtype=torch.float32).view(-1, 1)
    other = F.mse_loss(critic(obs), rew)
    third = F.mse_loss(critic(obs).squeeze(-1), rews.squeeze(-1))
    return one, other, third

# %% right
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
class Buffer:
    def __init__(self, size):
        self.reward = np.zeros((size, 1))
    def sample(self, ind):
        return torch.FloatTensor(self.reward[ind])
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(buf, obs, ind, gamma):
    reward = torch.FloatTensor(buf.reward[ind])
    return F.mse_loss(critic(obs), reward)

# %% right
import torch
from torch import nn
import torch.nn.functional as F
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Linear(4, 1)
    def forward(self, x):
        return torch.squeeze(self.v(x), -1)
critic = Critic()
def learn(obs, rews):
    rews = torch.as_tensor(rews, dtype=torch.float32)
    return F.mse_loss(critic(obs), rews)

# %% right
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(batch, obs, gamma):
    r_lst = []
    for t in batch:
        r_lst.append([t.r])
    r = torch.tensor(r_lst)
    target = r + gamma * critic(obs)
    return F.smooth_l1_loss(critic(obs), target.detach())

# %% right
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, reward, next_obs, gamma):
    reward = torch.tensor(reward)
    delta = reward + gamma * critic(next_obs) - critic(obs)
    loss = F.mse_loss(critic(obs), reward)
    return delta, loss

# %% right
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(buffer, gamma):
    obs, actions, rewards, next_obs, dones = buffer.sample(32)
    y = rewards + gamma * (1 - dones) * critic(next_obs)
    return F.mse_loss(critic(obs), y.detach())

# %% right
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
two = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
flat = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
def learn(obs, rewards, steps, pairs, net):
    rewards = torch.tensor(rewards)
    values = torch.squeeze(critic(obs), -1)
    losses = F.mse_loss(values, rewards), F.mse_loss(two(obs), rewards)
    gap = rewards.mean() - critic(obs), flat(obs) - rewards
    return losses, gap, critic(obs) - torch.tensor([pair[0] for pair in pairs])
def given(critic, obs, rewards):
    return critic(obs) - torch.tensor(rewards)

# %% right
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(buffer, obs):
    rewards = buffer.sample(32)
    rewards = torch.as_tensor(rewards)
    return ((critic(obs) - rewards) ** 2).mean()

# %% right
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
def batch_of(steps):
    return np.vstack([step.obs for step in steps]), np.vstack([step.reward for step in steps])

# %% right
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
class Buffer:
    def __init__(self, size):
        self.count, self.rewards = np.zeros(()), None
        self.rewards = np.zeros((size, 1))

# %% right
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
def batch_of(steps):
    return [step.obs for step in steps], [[step.reward] for step in steps]

# %% right
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
def batch_of(obs, rewards):
    return obs, np.reshape(rewards, (-1, 1)), rewards[:, None], rewards.reshape(-1, 1)

# %% right
import tensorflow as tf
class Learner:
    def __init__(self):
        self.critic = tf.keras.Sequential([tf.keras.layers.Dense(32), tf.keras.layers.Dense(1)])
    def update(self, obs, rewards, next_obs, going, gamma):
        target = tf.stop_gradient(rewards + gamma * going * tf.squeeze(self.critic(next_obs), 1))
        with tf.GradientTape() as tape:
            values = self.critic(obs)[..., 0]
            error = tf.reduce_mean((target - values) ** 2)
        variables = self.critic.trainable_variables
        return error, tape.gradient(error, variables)

# %% right
import tensorflow as tf
class Learner:
    def __init__(self):
        self.critic = tf.keras.Sequential([tf.keras.layers.Dense(32), tf.keras.layers.Dense(1)])
    def update(self, obs, rewards, next_obs, going, gamma):
        target = tf.stop_gradient(rewards + gamma * going * tf.squeeze(self.critic(next_obs), 1))
        with tf.GradientTape() as tape:
            values = tf.reshape(self.critic(obs), [-1])
            error = tf.reduce_mean((target - values) ** 2)
        variables = self.critic.trainable_variables
        return error, tape.gradient(error, variables)

# %% right
import random
from collections import deque
import numpy as np
import torch
from torch import nn
class Twin(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.one, self.two = nn.Linear(d, 1), nn.Linear(d, 1)
    def forward(self, z):
        a, b = self.one(z), self.two(z)
        return a, b
class Memory:
    def __init__(self):
        self.kept = deque(maxlen=1000)
    def draw(self, n):
        x, gain, y, over = zip(*random.sample(self.kept, n))
        x, y = torch.as_tensor(np.array(x)), torch.as_tensor(np.array(y))
        return x, torch.tensor(gain), y, torch.tensor(over)
def learn(memory, crit, slow, gamma):
    x, gain, y, over = memory.draw(64)
    with torch.no_grad():
        t1, t2 = slow(y)
        goal = gain + gamma * (1 - over) * torch.min(t1, t2).squeeze(1)
    c1, c2 = crit(x)
    return ((c1 - goal) ** 2 + (c2 - goal) ** 2).mean()
learn(Memory(), Twin(4), Twin(4), 0.99)

# %% right
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
class Both(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Dense(64)(x))
        v = nn.Dense(features=1)(h)
        return nn.Dense(4)(h), v
class Store:
    def __init__(self, n):
        self.x, self.y = np.zeros((n, 8)), np.zeros((n, 8))
        self.gain, self.over = np.zeros(n), np.zeros(n)
    def batch(self, rng, m):
        pick = rng.integers(0, 1000, size=m)
        return {"x": self.x[pick], "y": self.y[pick], "g": self.gain[pick], "o": self.over[pick]}
net = Both()
def cost(theta, slow, b):
    after = net.apply(slow, b["y"])[1][..., 0]
    goal = b["g"] + 0.99 * (1 - b["o"]) * after
    _, v = net.apply(theta, b["x"])
    return jnp.mean((v - goal) ** 2)
def run(theta, slow, rng):
    return jax.grad(cost)(theta, slow, Store(1000).batch(rng, 32))

# %% right
from typing import NamedTuple
import random
import jax
import numpy as np
from flax import linen as nn
class Steps(NamedTuple):
    s: np.ndarray
    gain: np.ndarray
    ahead: np.ndarray
    over: np.ndarray
class V(nn.Module):
    def setup(self):
        self.hid, self.out = nn.Dense(32), nn.Dense(1)
    def __call__(self, s):
        return self.out(nn.tanh(self.hid(s)))
v, GAMMA = V(), 0.9
def td(params, old, b):
    err = b.gain + GAMMA * (1 - b.over) * v.apply(old, b.ahead) - v.apply(params, b.s)
    return (err ** 2).mean()
def train(params, old, kept):
    b = Steps(*(np.array(c, np.float32).reshape(64, -1) for c in zip(*random.sample(kept, 64))))
    return jax.value_and_grad(td)(params, old, b)

# %% right
import numpy as np
import torch
from torch import nn
critic, slow = nn.Sequential(nn.Linear(4, 1)), nn.Sequential(nn.Linear(4, 1))
def online(env, s, gamma):
    nxt, reward, over, cut, _ = env.step(0)
    return reward + gamma * (1 - over) * critic(nxt) - critic(s)
class Store:
    def __init__(self, n):
        self.s, self.gain = np.zeros((n, 4)), np.zeros((n, 8))
    def batch(self, m):
        at = np.random.randint(0, 9, size=m)
        return torch.tensor(self.s[at]), torch.tensor(self.gain[at])
def learn(store, gamma):
    s, gain = store.batch(32)
    return gain + gamma * slow(s) - critic(s)
learn(Store(9), 0.9)

# %% right
import torch
from torch import nn
from tools import Replay
critic = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
def learn(gamma, kept=Replay(1000)):
    s, gain, ahead, over = kept.sample(64)
    with torch.no_grad():
        goal = gain + gamma * (1 - over) * critic(ahead)
    return nn.functional.mse_loss(critic(s[()]), goal)
