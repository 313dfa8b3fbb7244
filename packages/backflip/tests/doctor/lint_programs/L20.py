# L20: the target network is not a slow copy

# %% mistake
import optax

STEP_SIZE = 0.995

def follow(params, targets):
    return optax.incremental_update(params, targets, STEP_SIZE)  # here

# %% mistake
from stable_baselines3 import SAC, TD3

class Setup:
    kinds = {"sac": SAC, "td3": TD3}
    common = {"gamma": 0.98, "tau": 0.99}

def made(kind, env, noise):
    given = {**Setup.common, "learning_rate": 1e-3}
    given["action_noise"] = noise
    cls = Setup.kinds[kind]
    return cls("MlpPolicy", env, **given)  # here

# %% mistake
import torch

class Lerner:
    def __init__(self, maker, gerät):
        self.schnell = maker()
        self.langsam = self.schnell.to(gerät)

    def folge(self, anteil):
        for alt, neu in zip(self.langsam.parameters(), self.schnell.parameters()):  # here
            alt.data.lerp_(neu.data, anteil)

# %% mistake
import torch
TAU = 0.005
def soft_update(target, source, tau):
    for t, p in zip(target.parameters(), source.parameters()):
        t.data.copy_(tau * t.data + (1 - tau) * p.data)  # here
def update(target_net, net):
    soft_update(target_net, net, TAU)

# %% mistake
import torch
class Agent:
    def __init__(self):
        self.qnetwork_local = make()
        self.qnetwork_target = self.qnetwork_local  # here

# %% mistake
import torch
class Agent:
    def __init__(self):
        self.q_net = make()
        self.target_net = self.q_net  # here

# %% mistake
import torch
TAU = 0.005
def update(net, target_net):
    for param, target_param in zip(net.parameters(), target_net.parameters()):
        target_param.data.copy_(TAU * target_param.data + (1 - TAU) * param.data)  # here

# %% mistake
import torch
class Agent:
    def __init__(self):
        self.q1, self.q2 = make(), make()
        self.q1_target, self.q2_targ = self.q1, make()  # here

# %% mistake
import torch
class Agent:
    def __init__(self, net, polyak=0.005):
        self.net, self.polyak = net, polyak
    def update(self, target_net):
        for p, p_targ in zip(self.net.parameters(), target_net.parameters()):
            p_targ.data.mul_(self.polyak)  # here
            p_targ.data.add_((1 - self.polyak) * p.data)

# %% mistake
import torch
SHARE = 0.995
def update(net, target_net):
    for p, q in zip(net.parameters(), target_net.parameters()):
        q.data.lerp_(p.data, SHARE)  # here

# %% mistake
import torch
def update(net, target_net, *, tau=1e-3):
    for q, p in zip(target_net.parameters(), net.parameters()):
        q.data.copy_(tau * q.data + (1.0 - tau) * p.data)  # here

# %% mistake
import jax
import optax
def update(state, tau=0.005):
    one = optax.incremental_update(state.target_params, state.params, tau)  # here
    other = jax.tree_util.tree_map(  # here
        lambda p, t: p * (1 - tau) + t * tau, state.params, state.target_params
    )
    return one, other

# %% mistake
from stable_baselines3 import SAC
model = SAC("MlpPolicy", "Pendulum-v1", tau=0.995)  # here

# %% mistake
import torch
class Agent:
    def __init__(self, q):
        self.q = q
        self.target = self.q  # here
    def value(self, next_obs):
        return self.target(next_obs).max(1).values

# %% mistake
import torch.nn as nn
def build(n):
    body = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 2))
    return {"q": body, "q_slow": body, "n": n}  # here

# %% mistake
import torch
class Trainer:
    def __init__(self, net):
        lagging = net
        self.live, self.lagging = net, lagging
    def refresh(self):
        self.lagging.load_state_dict(self.live.state_dict())  # here

# %% mistake
import optax
def update(state, params):
    return optax.incremental_update(state.slow, params, step_size=0.005)  # here

# %% mistake
import gymnasium as gym
from stable_baselines3 import DDPG
COMMON = {"gamma": 0.98, "tau": 0.99}
def train(**more):
    options = {**COMMON, "seed": 3, **more}
    return DDPG("MlpPolicy", gym.make("Pendulum-v1"), **options).learn(50_000)  # here

# %% mistake
import copy
import torch
KEEP = 0.99
def follow(one, two):
    with torch.no_grad():
        for a, b in zip(one.parameters(), two.parameters()):
            b.data.mul_(1 - KEEP)  # here
            b.data.add_(KEEP * a.data)
def learn(critic, batches, update):
    critic_target = copy.deepcopy(critic)
    for batch in batches:
        update(critic, critic_target, batch)
        follow(critic, critic_target)

# %% right
import optax

STEP_SIZE = 0.005

def follow(params, targets):
    return optax.incremental_update(params, targets, STEP_SIZE)

# %% right
import torch

class Lerner:
    def __init__(self, maker, gerät):
        self.schnell = maker()
        self.langsam = maker().to(gerät)
        self.langsam.load_state_dict(self.schnell.state_dict())

    def folge(self, anteil):
        for alt, neu in zip(self.langsam.parameters(), self.schnell.parameters()):
            alt.data.lerp_(neu.data, anteil)

# %% right
import torch
def make(policy_noise, q_values):
    target_policy_noise = policy_noise
    target_q_values = q_values
    return target_policy_noise, target_q_values

# %% right
import copy
import torch
TAU = 0.005
class Agent:
    def __init__(self):
        self.q_net = make()
        self.target_net = copy.deepcopy(self.q_net)
        target = targets
    def update(self):
        for param, target_param in pairs:
            target_param.data.copy_(TAU * param.data + (1 - TAU) * target_param.data)

# %% right
import torch
def update(pairs, tau=0.995):
    for param, target_param in pairs:
        target_param.data.copy_(0.995 * target_param.data + 0.005 * param.data)

# %% right
import jax
import optax
import torch
from stable_baselines3 import DQN, SAC
models = SAC("MlpPolicy", env, tau=0.005), DQN("MlpPolicy", env, tau=1.0)
class Agent:
    def __init__(self, net, polyak=0.995, tau=0.005):
        self.net, self.polyak, self.tau = net, polyak, tau
        self.q1_target, self.q2_targ = make(), make()
    def update(self, target_net, targets):
        targets.mul_(0.1)
        for p, p_targ in zip(self.net.parameters(), target_net.parameters()):
            p_targ.data.mul_(self.polyak)
            p_targ.data.add_((1 - self.polyak) * p.data)
        for p, q in zip(self.net.parameters(), target_net.parameters()):
            q.data.lerp_(p.data, self.tau)
def jitted(state, tau=0.005):
    one = optax.incremental_update(state.params, state.target_params, tau)
    return one, jax.tree.map(lambda p, t: p * tau + t * (1 - tau), state.params, state.target)

# %% right
import torch
def update(net, target_net, tau=0.005):
    for q, p in zip(target_net.parameters(), net.parameters()):
        q.data.copy_(tau * q.data + (1.0 - tau) * p.data)
update(net, target_net, 0.995)
def mixed(target1, target2, param, tau=0.005):
    for p, target_p in zip([target1], [target2]):
        target_p.data.copy_(tau * p.data + (1 - tau) * target_p.data)

# %% right
import copy
import torch
class Agent:
    def __init__(self, q):
        self.q, self.target = q, copy.deepcopy(q)
    def value(self, obs, next_obs):
        target = self.q(obs)
        return target, self.target(next_obs).max(1).values

# %% right
import copy
import torch.nn as nn
def build(n):
    body = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 2))
    return {"q": body, "q_slow": copy.deepcopy(body), "target": 3, "n": n}

# %% right
import gymnasium as gym
from stable_baselines3 import DDPG
COMMON = {"gamma": 0.98, "tau": 0.01}
def train(**more):
    options = {**COMMON, "seed": 3, **more}
    return DDPG("MlpPolicy", gym.make("Pendulum-v1"), **options).learn(50_000)

# %% right
import copy
import torch
KEEP = 0.99
def follow(one, two):
    with torch.no_grad():
        for a, b in zip(one.parameters(), two.parameters()):
            b.data.mul_(KEEP)
            b.data.add_((1 - KEEP) * a.data)
def learn(critic, batches, update):
    critic_target = copy.deepcopy(critic)
    for batch in batches:
        update(critic, critic_target, batch)
        follow(critic, critic_target)
