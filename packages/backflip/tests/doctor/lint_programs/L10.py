# L10: an activation after Q-values

# %% mistake
import tensorflow as tf
class Net(tf.keras.Model):
    def __init__(self, n_actions):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(64, activation="relu")
        self.out = tf.keras.layers.Dense(n_actions, activation="relu")  # here
    def call(self, x):
        return self.out(self.hidden(x))
class DQN:
    def __init__(self, n_actions):
        self.model = Net(n_actions)

# %% mistake
import torch.nn as nn
import torch.nn.functional as F
class DQN(nn.Module):
    def __init__(self, state_dim, action_dim):
        self.out = nn.Linear(64, action_dim)
    def forward(self, x):
        return F.relu(self.out(x))  # here

# %% mistake
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, env):
        self.network = nn.Sequential(
            nn.Linear(4, 64),
            nn.ReLU(),
            nn.Linear(64, env.single_action_space.n),
            nn.ReLU(),  # here
        )

# %% mistake
import torch.nn as nn
q_net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, n_actions), nn.Softmax(dim=1))  # here

# %% mistake
import flax.linen as nn
class QNetwork(nn.Module):
    action_dim: int
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(120)(x))
        x = nn.Dense(self.action_dim)(x)
        x = nn.relu(x)  # here
        return x

# %% mistake
import torch
from torch import nn
class DuelingDQN(nn.Module):
    def __init__(self, n_actions):
        self.head = nn.Linear(64, out_features=n_actions)
    def forward(self, x):
        q = self.head(torch.relu(self.body(x)))
        return q.tanh()  # here

# %% mistake
from torch import nn
class Critic(nn.Module):
    def __init__(self, size):
        layers = [nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 1), nn.ReLU()]  # here
        self.q1 = nn.Sequential(*layers)

# %% mistake
import torch.nn as nn
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 64),
            nn.ReLU(),
            nn.Linear(64, 2),
            nn.ReLU(),  # here
        )
    def forward(self, x):
        return self.net(x)

# %% mistake
import torch.nn as nn
import torch.nn.functional as F
class DQN(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.l1 = nn.Linear(n, 64)
        self.l2 = nn.Linear(64, m)
    def forward(self, x):
        x = F.relu(self.l1(x))
        return F.relu(self.l2(x))  # here

# %% mistake
import torch.nn as nn
q_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Sigmoid())  # here

# %% mistake
from tensorflow import keras
from tensorflow.keras import layers
def make_q(n_actions):
    q_model = keras.Sequential([
        layers.Dense(24, activation="relu"),
        layers.Dense(n_actions, activation="relu"),  # here
    ])
    return q_model

# %% mistake
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, size, n):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, n),
            nn.ReLU(),  # here
        )
    def forward(self, obs):
        return self.net(obs)

# %% mistake
import numpy as np
from tensorflow.keras import layers, models
def brain(size, n):
    x = layers.Input(shape=(size,))
    h = layers.Dense(24, activation="relu")(x)
    out = layers.Dense(n, activation="relu")(h)  # here
    model = models.Model(x, out)
    model.compile(loss="mse", optimizer="adam")
    return model
def act(model, obs):
    return int(np.argmax(model.predict(obs)[0]))
def target(model, reward, after, gamma):
    return reward + gamma * np.max(model.predict(after)[0])

# %% mistake
import torch.nn as nn
def mlp(sizes, act=nn.ReLU, out_act=nn.Identity):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b), act() if i < len(sizes) - 2 else out_act()]
    return nn.Sequential(*layers)
class Agent:
    def __init__(self, obs, act):
        self.actor = mlp([obs, 64, act], out_act=nn.Tanh)
        self.critic = mlp([obs + act, 64, 1], nn.ReLU, nn.Sigmoid)  # here

# %% mistake
from tensorflow import keras
import numpy as np
def brain(widths):
    m = keras.Sequential()
    for w in widths:
        m.add(keras.layers.Dense(w, activation="relu"))  # here
    m.compile("adam", "mse")
    return m
class Player:
    def __init__(self, n):
        self.slow = brain([64, 64, n])
    def goal(self, r, s2, done, gamma):
        best = np.max(self.slow.predict(s2), axis=1)
        return r + gamma * (1 - done) * best

# %% mistake
import torch.nn as nn
def make(n, k, act=nn.ReLU, depth=2):
    layers = []
    for i in range(depth):
        layers.append(nn.Linear(n if i == 0 else 64, 64))
        layers.append(act())
    layers.append(nn.Linear(64, k))
    layers.append(act())  # here
    return nn.Sequential(*layers)
q1, slow = make(4, 2), make(4, 2).eval()
def act(obs):
    values = q1(obs)
    return values.argmax(-1)

# %% mistake
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        parts = []
        for n, m in zip(sizes, sizes[1:]):
            parts += [nn.Linear(n, m), nn.Tanh()]  # here
        self.body = nn.Sequential(*parts)
    def forward(self, x):
        return self.body(x)

# %% mistake
from torch import nn
def build(n, k):
    return nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, k), nn.Softmax(-1))  # here
net, slow = build(4, 2), build(4, 2)
def goal(r, s2, done):
    best = slow(s2).amax(dim=1)
    return r + 0.99 * (1 - done) * best

# %% mistake
from tensorflow.keras import Sequential, layers
def make_q_function(num_actions):
    net = Sequential()
    net.add(layers.Dense(32, activation="tanh"))
    net.add(layers.Dense(num_actions, activation="sigmoid"))  # here
    return net

# %% mistake
import torch
from torch import nn

class Rater(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.one, self.two = nn.Linear(n, 64), nn.Linear(64, k)

    def forward(self, x):
        return torch.tanh(self.two(torch.relu(self.one(x))) * 2.0)  # here

STAY = 0.98
rater, slow = Rater(4, 2), Rater(4, 2)

def goal(r, s2, over):
    best = slow(s2).max(1).values
    return r + STAY * (1 - over) * best

# %% mistake
import copy
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 1))
            for _ in range(2)
        )
        self.left = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 1), nn.ReLU())  # here

    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return self.left(x).squeeze(-1), self.nets[0](x).squeeze(-1)

class Trainer:
    def __init__(self, n):
        self.pair = Pair(n)
        self.slow = copy.deepcopy(self.pair)

    def goal(self, r, s2, a2, over, share=0.99):
        one, two = self.slow(s2, a2)
        low = torch.minimum(one, two)
        return r + self.gamma * (1 - over) * low

# %% mistake
import torch
from torch import nn

def net(sizes, output_activation=nn.Identity):
    parts = [nn.Linear(sizes[0], sizes[1]), nn.ReLU(), nn.Linear(sizes[1], sizes[2])]
    return nn.Sequential(*parts, output_activation())

class Judges(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.all = nn.ModuleList(
            [net([n, 64, 1], output_activation=nn.ReLU) for _ in range(5)]  # here
        )

    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return torch.cat([one(x) for one in self.all], -1)

judges, older = Judges(8), Judges(8)

def goal(batch, actor, gamma):
    low = older(batch.s2, actor(batch.s2)).min(-1, keepdim=True)[0]
    return batch.r + gamma * (1 - batch.over) * low

# %% mistake
from tensorflow import keras
import numpy as np

def brain(n, k):
    m = keras.Sequential()
    m.add(keras.layers.Dense(32, activation="relu", input_shape=(n,)))
    m.add(keras.layers.Dense(k, activation="sigmoid"))  # here
    return m

now = brain(4, 2)
slow = keras.models.clone_model(now)

def goal(r, s2, over, gamma=0.9):
    return r + gamma * (1 - over) * np.max(slow.predict(s2), axis=1)

# %% right
import tensorflow as tf
class Net(tf.keras.Model):
    def __init__(self, n_actions):
        super().__init__()
        self.out = tf.keras.layers.Dense(n_actions, activation="linear")
        self.probs = tf.keras.layers.Dense(n_actions, activation="softmax")
    def call(self, x):
        return self.out(x)
class Policy(tf.keras.Model):
    def __init__(self, n_actions):
        super().__init__()
        self.out = tf.keras.layers.Dense(n_actions, activation="softmax")
    def call(self, x):
        return self.out(x)
class DQN:
    def __init__(self, n_actions):
        self.model = Net(n_actions)
class Reinforce:
    def __init__(self, n_actions):
        self.model = Policy(n_actions)

# %% right
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, env):
        self.network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, env.action_space.n))
class Actor(nn.Module):
    def __init__(self, env):
        self.mean = nn.Sequential(nn.Linear(64, env.n_actions), nn.Tanh())

# %% right
import torch
import torch.nn.functional as F
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, n_actions, n_atoms):
        gate = [nn.Linear(64, 1), nn.Sigmoid()]
        self.gate = nn.Sequential(*gate)
        self.head = nn.Linear(64, n_actions)
        self.atoms = nn.Linear(64, n_actions * n_atoms)
    def forward(self, x):
        x = F.relu(self.body(x))
        q = self.head(x)
        return q
    def distribution(self, x):
        return torch.softmax(self.atoms(x), dim=-1)
    def hidden(self, x):
        x = self.head(x)
        if self.squashed:
            x = self.body(x)
        return torch.relu(x)

# %% right
from torch import nn
class DuelingQNet(nn.Module):
    def __init__(self, n_actions):
        self.value, self.advantage = nn.Linear(64, 1), nn.Linear(64, n_actions)
    def forward(self, x):
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(-1, keepdim=True)
    def parts(self, x, names):
        x = self.norm(x)
        return nn.functional.relu(x), names
    def bounded(self, x):
        return nn.functional.relu(x)
    def scaled(self, x):
        return nn.functional.relu(self.norms[0](x))
    def made(self, x):
        return nn.functional.relu(nn.LayerNorm(64)(x))

# %% right
import torch.nn as nn
import torch.nn.functional as F
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.gate = nn.Sequential(nn.Linear(64, 1), nn.Sigmoid())
        self.out = nn.Linear(64, 2)
    def embed(self, x):
        return F.relu(self.out(x))
    def forward(self, x):
        x = self.net(x)
        return self.gate(x) * self.out(x)
q_features = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())

# %% right
import torch.nn as nn
import torch.nn.functional as F
class DQNEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(4, 64)
    def forward(self, x):
        return F.relu(self.l1(x))
class CategoricalDQN(nn.Module):
    def __init__(self, atoms):
        super().__init__()
        self.l1 = nn.Linear(4, atoms)
    def forward(self, x):
        return F.softmax(self.l1(x), dim=-1)

# %% right
from tensorflow import keras
from tensorflow.keras import layers
def make_q(n_actions):
    q_model = keras.Sequential([layers.Dense(24, activation="relu"), layers.Dense(n_actions)])
    other_q = keras.Sequential([layers.Dense(24, "relu"), layers.Dense(n_actions, "linear")])
    return q_model, other_q

# %% right
import numpy as np
from tensorflow.keras import layers, models
def brain(size, n):
    x = layers.Input(shape=(size,))
    h = layers.Dense(24, activation="relu")(x)
    out = layers.Dense(n)(h)
    model = models.Model(x, out)
    model.compile(loss="mse", optimizer="adam")
    return model
def act(model, obs):
    return int(np.argmax(model.predict(obs)[0]))
def target(model, reward, after, gamma):
    return reward + gamma * np.max(model.predict(after)[0])

# %% right
import torch.nn as nn
def mlp(sizes, act=nn.ReLU, out_act=nn.Identity):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b), act() if i < len(sizes) - 2 else out_act()]
    return nn.Sequential(*layers)
class Agent:
    def __init__(self, obs, act):
        self.actor = mlp([obs, 64, act], out_act=nn.Tanh)
        self.critic = mlp([obs + act, 64, 1], nn.ReLU)

# %% right
import torch.nn as nn
def stack(sizes, act=nn.ReLU):
    mods = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        mods.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            mods.append(act())
    return nn.Sequential(*mods)
def headed(sizes, n, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    return nn.Sequential(*mods, nn.Linear(sizes[-1], n))
def cut(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    return nn.Sequential(*mods[:-1])
def trunk(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    return nn.Sequential(*mods)
def popped(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    mods.pop()
    return nn.Sequential(*mods)
def chosen(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
        if b == sizes[-1]:
            mods.pop()
    return nn.Sequential(*mods)
q_one, q_two, q_three, q_in = stack([4, 2]), headed([4, 8], 2), cut([4, 2]), trunk([4, 8])
q_four, q_five = popped([4, 2]), chosen([4, 2])
head = nn.Linear(8, 2)
def act(obs):
    best = q_one(obs).argmax(1), q_two(obs).argmax(1), q_three(obs).argmax(1)
    return best, q_four(obs).argmax(1), q_five(obs).argmax(1), head(q_in(obs)).argmax(1)

# %% right
from tensorflow import keras
from tensorflow.keras import layers
import numpy as np
def create_policy(num_actions):
    model = keras.Sequential()
    model.add(layers.Dense(32, activation="relu"))
    model.add(layers.Dense(num_actions, activation="softmax"))
    return model
policy = create_policy(4)
def play(obs):
    return int(np.argmax(policy(obs))), policy(obs).max()
def returns(rewards, gamma):
    g = 0.0
    for r in reversed(rewards):
        g = r + gamma * g
    return g

# %% right
import torch
from torch import nn

class Keeps(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(x))

class Chooser(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return torch.softmax(self.out(x), -1)

keeps, chooser = Keeps(4), Chooser(4, 2)

def goal(r, s2, value, gamma):
    shares = chooser(s2)
    mean = (shares * value(s2)).sum(1)
    return r + gamma * keeps(s2) * mean

def loss(s, a, adv):
    return -(chooser(s).gather(1, a).log() * adv).mean()

# %% right
import copy
import torch
from torch import nn

def net(sizes, last=nn.Identity):
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), last())

class Pair(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.trunk = net([n, 64], last=nn.ReLU)
        self.ends = nn.ModuleList([net([64, 1]) for _ in range(2)])

    def forward(self, s, a):
        h = self.trunk(torch.cat([s, a], -1))
        return [end(h).squeeze(-1) for end in self.ends]

pair = Pair(8)
slow = copy.deepcopy(pair)

def goal(r, s2, a2, over, gamma):
    return r + gamma * (1 - over) * torch.min(*slow(s2, a2))

# %% right
import torch
from torch import nn

class Chooser(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return torch.softmax(self.out(x), -1)

chooser = Chooser(4, 2)

def bonus(r, s, weight):
    return r + weight * chooser(s).max(1)[0]
