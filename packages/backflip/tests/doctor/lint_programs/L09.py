# L09: a softmax or sigmoid twice, or not at all

# %% mistake
from torch import nn
class Agent:
    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=-1))
        self.loss = nn.CrossEntropyLoss()
    def learn(self, obs, action):
        probs = self.policy(obs)
        return self.loss(probs, action)  # here

# %% mistake
import torch.nn.functional as F
from torch.distributions import Categorical
def act(net, obs):
    probs = F.softmax(net(obs), dim=-1)
    return Categorical(logits=probs).sample()  # here

# %% mistake
import torch
def act(self, obs):
    logits = self.actor(obs)
    return torch.distributions.Categorical(logits).sample()  # here

# %% mistake
import torch
def loss(net, obs, labels):
    out = torch.softmax(net(obs), dim=1)
    return torch.nn.functional.cross_entropy(out, labels)  # here

# %% mistake
import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def forward(self, x):
        x = torch.relu(self.first(x))
        p = self.last(x).softmax(-1)
        return p
    def act(self, obs):
        p = self.forward(obs)
        return Categorical(logits=p)  # here
class Agent:
    def __init__(self):
        self.policy = Policy()
    def act(self, obs):
        return Categorical(logits=self.policy(obs))  # here

# %% mistake
import jax
def act(apply, params, key, obs):
    probs = jax.nn.softmax(apply(params, obs))
    return jax.random.categorical(key, probs)  # here

# %% mistake
import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh())
        self.last = nn.Linear(64, 2)
    def forward(self, x):
        x = self.body(x)
        return self.last(x)
layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)]
policy, other = nn.Sequential(*layers), Policy()
def act(obs):
    scores = policy(obs)
    first = Categorical(scores)  # here
    second = torch.distributions.Categorical(probs=other(obs))  # here
    return first, second, Categorical(policy(obs))  # here

# %% mistake
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow import keras
from tensorflow.keras import layers
tfd = tfp.distributions
class Actor(keras.Model):
    def __init__(self, n):
        super().__init__()
        self.d1 = layers.Dense(128, activation="relu")
        self.out = layers.Dense(n, activation="softmax")
    def call(self, x):
        return self.out(self.d1(x))
actor = Actor(2)
listed = keras.Sequential([layers.Dense(32, "relu"), layers.Dense(2, "softmax")])
inputs = layers.Input(shape=(4,))
probs = layers.Dense(2, activation=tf.nn.softmax)(inputs)
whole = keras.Model(inputs, probs)
def act(obs, net):
    soft = tf.nn.softmax(net(obs))
    one = tf.random.categorical(listed(obs), 1)  # here
    two = tf.random.categorical(soft, 1)  # here
    other = tf.random.categorical(logits=whole(obs), num_samples=1)  # here
    three = tfd.Categorical(logits=actor(obs))  # here
    return one, two, other, three, tfd.Categorical(soft)  # here

# %% mistake
import tensorflow as tf
from keras.models import Sequential
from keras.layers import Dense
class Agent:
    def __init__(self):
        self.policy_net = self._build_model()
        self.loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    def _build_model(self):
        model = Sequential()
        model.add(Dense(24, activation="relu"))
        model.add(Dense(2, activation="softmax"))
        return model
    def learn(self, obs, act, adv, net):
        probs = tf.nn.softmax(net(obs))
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=act, logits=probs)  # here
        return nll + self.loss_fn(act, self.policy_net(obs), sample_weight=adv)  # here

# %% mistake
import tensorflow as tf
layers = [tf.keras.layers.Dense(64), tf.keras.layers.Dense(2, activation="softmax")]
model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(2, activation="softmax")])
model.compile("adam", loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True))  # here

# %% mistake
import torch
import torch.nn.functional as F
def loss(net, left, right, answer):
    logit = net(left).sum(1) - net(right).sum(1)
    return F.binary_cross_entropy_with_logits(torch.sigmoid(logit), answer)  # here

# %% mistake
import torch
criterion = torch.nn.BCEWithLogitsLoss()
def loss(net, clips, answers):
    predicted = net(clips).sigmoid()
    return criterion(predicted, answers)  # here

# %% mistake
import torch
from torch import nn
class Cloner(nn.Module):
    def __init__(self, size, actions):
        super().__init__()
        self.body = nn.Linear(size, actions)
        self.last = nn.Softmax(dim=-1)
    def forward(self, obs):
        return self.last(self.body(obs))
def train(obs, actions):
    model = Cloner(4, 2)
    criterion = nn.CrossEntropyLoss()
    return criterion(model(obs), actions)  # here

# %% mistake
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical
class ActorCritic(nn.Module):
    def forward(self, obs):
        x = F.relu(self.body(obs))
        scores = F.softmax(self.actor(x), dim=-1)
        return scores, self.critic(x)
def act(obs):
    model = ActorCritic()
    scores, value = model(obs)
    return Categorical(logits=scores).sample()  # here

# %% mistake
import optax
from flax import linen as nn
class Imitator(nn.Module):
    actions: int
    @nn.compact
    def __call__(self, x):
        return nn.softmax(nn.Dense(self.actions)(x))
def loss(state, params, obs, actions):
    out = state.apply_fn(params, obs)
    return optax.softmax_cross_entropy_with_integer_labels(out, actions).mean()  # here

# %% mistake
import torch
from torch import nn
def loss(scores, actions):
    return nn.CrossEntropyLoss()(torch.softmax(scores, -1), actions)  # here

# %% mistake
import torch
from torch import nn

class Head(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, k))

    def forward(self, x):
        return self.body(x).softmax(-1)

class Cloner:
    def __init__(self, policy, device):
        self.policy = policy.to(device)
        self.measure = nn.CrossEntropyLoss()

    def step(self, x, a):
        return self.measure(self.policy(x), a)  # here

cloner = Cloner(Head(8, 4), "cuda")

# %% mistake
import torch
import torch.nn.functional as F
from torch import nn

class Driver(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.a, self.b = nn.Linear(n, 64), nn.Linear(64, k)

    def forward(self, x):
        return F.softmax(self.b(torch.relu(self.a(x))), dim=-1)

def epoch(net, loader, opt):
    for frames, steering in loader:
        guess = net(frames)
        loss = F.cross_entropy(guess, steering)  # here
        opt.zero_grad()
        loss.backward()
        opt.step()

def main(loader):
    driver = Driver(8, 4).to("cuda")
    opt = torch.optim.Adam(driver.parameters())
    epoch(driver, loader, opt)

# %% mistake
import keras

def make(n, k):
    net = keras.Sequential()
    net.add(keras.layers.Dense(32, activation="relu"))
    net.add(keras.layers.Dense(k, activation="softmax"))
    return net

def prepare(agent, rate):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    agent.compile(keras.optimizers.Adam(rate), loss=loss)  # here
    return agent

cloner = prepare(make(8, 4), 1e-3)

# %% mistake
import tensorflow as tf

class Cloner:
    def __init__(self, n, k):
        x = tf.keras.Input(shape=(n,))
        h = tf.keras.layers.Dense(32, activation="relu")(x)
        self.net = tf.keras.Model(x, tf.keras.layers.Dense(k, activation="softmax")(h))

    def ready(self):
        loss = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
        self.net.compile(optimizer="adam", loss=loss)  # here

# %% mistake
import torch.nn.functional as F
from torch import nn

class Driver(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.b = nn.Linear(n, k)

    def forward(self, x):
        return self.b(x).softmax(-1)

def fit(x, steering):
    driver = Driver(8, 4)
    driver = driver.to("cuda")
    return F.cross_entropy(driver(x), steering)  # here

# %% right
import torch
from torch.distributions import Categorical
def act(net, obs, labels):
    logits = net(obs)
    probs = torch.softmax(logits, dim=-1)
    one, other = Categorical(logits=logits), Categorical(probs)
    return one, other, torch.nn.functional.cross_entropy(logits, labels)

# %% right
import jax
import jax.numpy as jnp
import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def forward(self, x):
        return self.last(x).softmax(-1)
    def act(self, obs):
        return Categorical(probs=self.forward(obs))
class Both(nn.Module):
    def forward(self, x, raw):
        x = self.last(x)
        if raw:
            return x
        return x.softmax(-1)
def act(apply, params, key, obs):
    one, policy = Categorical(logits=Both()(obs, True)), Both()
    probs = jax.nn.softmax(apply(params, obs))
    return jax.random.categorical(key, jnp.log(probs)), one, Categorical(logits=policy(obs, True))

# %% right
import torch
from torch import nn
from torch.distributions import Categorical
policy = nn.Sequential(nn.Linear(4, 64), nn.Linear(64, 2))
soft = nn.Sequential(nn.Linear(4, 2), nn.Softmax(-1))
either = nn.Sequential(nn.Linear(4, 2))
given = nn.Sequential(nn.Linear(4, 2))
if some:
    either = soft
def act(obs, given):
    probs = policy(obs)
    probs = torch.softmax(probs, -1)
    one = Categorical(logits=policy(obs)), Categorical(policy(obs).softmax(-1))
    return one, Categorical(probs), Categorical(soft(obs)), Categorical(either(obs)), given
def play(obs, given):
    return Categorical(given(obs))

# %% right
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow import keras
model = keras.Sequential([keras.layers.Dense(32), keras.layers.Dense(2, activation="softmax")])
raw = keras.Sequential([keras.layers.Dense(32), keras.layers.Dense(2)])
def make(soft):
    if soft:
        return keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    return raw
either = make(False)
def act(obs):
    probs = model(obs)
    a = tf.random.categorical(tf.math.log(probs), 1)
    b = tfp.distributions.Categorical(probs=probs)
    c = tf.random.categorical(raw(obs), 1)
    d = tfp.distributions.Categorical(logits=raw(obs))
    e = tfp.distributions.Categorical(raw(obs))
    return a, b, c, d, e, tf.random.categorical(either(obs), 1)

# %% right
import tensorflow as tf
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import Dense
class Agent:
    def __init__(self):
        self.policy = Sequential([Dense(64, activation="relu"), Dense(2, activation="softmax")])
        self.loss_fn = tf.keras.losses.SparseCategoricalCrossentropy()
        self.policy.compile(loss="categorical_crossentropy", optimizer="adam")
    def learn(self, obs, act, adv):
        one = tf.keras.losses.sparse_categorical_crossentropy(act, self.policy(obs))
        return one + self.loss_fn(act, self.policy(obs), sample_weight=adv)

# %% right
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, Model
class Actor(Model):
    def __init__(self, n):
        super().__init__()
        self.fc = layers.Dense(64, activation="relu")
        self.out = layers.Dense(n, activation="softmax")
    def call(self, x):
        return self.out(self.fc(x))
class Critic(Model):
    def __init__(self):
        super().__init__()
        self.fc = layers.Dense(64, activation="relu")
        self.out = layers.Dense(1)
    def call(self, x):
        return self.out(self.fc(x))
class Logits(Model):
    def __init__(self, n):
        super().__init__()
        self.out = layers.Dense(n)
    def call(self, x):
        return self.out(x)
    def act(self, x):
        return tf.random.categorical(self.out(x), 1)
actor, logits_net = Actor(2), Logits(2)
def act(obs):
    p = actor(obs)
    one = np.random.choice(2, p=p.numpy()[0])
    other = tf.random.categorical(logits_net(obs), 1)
    return one, other, tf.random.categorical(tf.math.log(p + 1e-8), 1)

# %% right
import tensorflow as tf
def act(net, obs):
    out = tf.nn.softmax(net(obs))
    out = tf.math.log(out)
    return tf.random.categorical(out, 1)

# %% right
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax")])
other = tf.keras.Sequential([tf.keras.layers.Dense(2)])
model.compile("adam", loss=tf.keras.losses.CategoricalCrossentropy())
other.compile("adam", loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True))

# %% right
import torch
import torch.nn.functional as F
def loss(net, left, right, answer):
    logit = net(left).sum(1) - net(right).sum(1)
    print(torch.sigmoid(logit))
    chance = torch.sigmoid(logit)
    plain = F.binary_cross_entropy(chance, answer)
    return F.binary_cross_entropy_with_logits(logit, answer) + plain

# %% right
import torch.nn.functional as F
from torch import nn

class Gate(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return self.out(x).softmax(-1)

class Plain(Gate):
    def forward(self, x):
        return self.out(x)

def step(net, x, a):
    return F.cross_entropy(net(x), a)

def mix(gate, x):
    return (gate(x) * x).sum()

loss = step(Plain(8, 4), x, a) + mix(Gate(8, 4), x)

# %% right
import keras

def make(k, last):
    net = keras.Sequential()
    net.add(keras.layers.Dense(32, activation="relu"))
    net.add(keras.layers.Dense(k, activation=last))
    return net

def prepare(agent, rate):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=False)
    agent.compile(keras.optimizers.Adam(rate), loss=loss)
    return agent

cloner = prepare(make(4, "softmax"), 1e-3)

# %% right
import torch.nn.functional as F
from torch import nn

class Gate(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return self.out(x).softmax(-1)

def step(net, x, a):
    return F.cross_entropy(net(x), a)

def mix(net, x):
    return (net(x) * x).sum()

loss = step(nn.Linear(8, 4), x, a) + mix(Gate(8, 4), x)
