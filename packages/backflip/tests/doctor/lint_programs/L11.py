# L11: the largest value instead of the action that has it

# %% mistake
import gymnasium as gym
import numpy as np
class Learner:
    def __init__(self, n, k):
        self.rng = np.random.default_rng(0)
        self.values = np.zeros((n, k))
    def decide(self, s, share):
        if self.rng.random() < share:
            return int(self.rng.integers(4))
        return int(self.values[s].max().clip(0, 3))  # here
def play(env, who):
    s, _ = env.reset()
    for _ in range(100):
        s, r, term, trunc, _ = env.step(who.decide(s, 0.1))
play(gym.make("Taxi-v3"), Learner(500, 6))

# %% mistake
import gymnasium as gym
import numpy as np
env = gym.make("FrozenLake-v1")
table = np.zeros((16, 4))
def pick(row, n):
    return max(0, min(int(np.max(row)), n - 1))  # here
s, _ = env.reset()
for _ in range(100):
    move = pick(table[s], 4)
    s, r, term, trunc, _ = env.step(move)

# %% mistake
import numpy as np
class Agent:
    def get_action(self, obs):
        return np.max(self.predict(obs)[0])  # here

# %% mistake
import torch
def act(q_values):
    action = torch.max(q_values, dim=1)[0]  # here
    return action

# %% mistake
def act(self, obs):
    action = self.q_net(obs).max().item()  # here

# %% mistake
import random
import torch
class Agent:
    def select_action(self, state):
        if random.random() < self.eps:
            return random.randrange(self.n_actions)
        return int(self.policy_net(state).amax(dim=-1))  # here

# %% mistake
import numpy as np
def greedy(Q, state, eps, rng):
    if rng.random() < eps:
        a = rng.integers(4)
    else:
        a = np.max(Q[state])  # here
    return a

# %% mistake
import torch
def act(q_net, obs):
    values, places = q_net(torch.as_tensor(obs)).max(-1)
    action = values.item()  # here
    return action

# %% mistake
import torch
def act(q_net, obs):
    action = q_net(obs).max(dim=-1).values  # here
    return action

# %% mistake
def act(q, state, rng):
    if rng.random() < 0.1:
        action = rng.integers(4)
    else:
        action = max(q[state].values())  # here
    return action

# %% mistake
import torch
def act(q, obs, env):
    with torch.no_grad():
        a = q(obs).max().item()  # here
    return env.step(int(a))

# %% mistake
import numpy as np
def pick(table, state, rng, share):
    if rng.random() < share:
        return int(rng.integers(table.shape[1]))
    values = table[state]
    return int(values.max())  # here

# %% mistake
def greedy(net, obs):
    scores = net(obs)
    best = scores.max(1)[0]  # here
    return int(best.item())
def evaluate(net, env, obs):
    chosen = greedy(net, obs)
    return env.step(chosen)

# %% mistake
import torch
class Agent:
    def greedy(self, state):
        scores = self.head(state)
        best, where = scores.max(-1)  # here
        return best, where
    def run(self, env, state):
        for _ in range(5):
            u, _ = self.greedy(state)
            state, r, te, tr, _ = env.step(u.item())

# %% mistake
import numpy as np
def choose(table, s, eps):
    move = np.random.randint(4) if np.random.rand() < eps else np.amax(table[s])  # here
    return move
def train(world, table):
    s, _ = world.reset()
    while True:
        m = choose(table, s, 0.1)
        s, r, te, tr, _ = world.step(int(m) % 4)

# %% mistake
import jax
def play(net, env, theta, s):
    choose = jax.jit(lambda p, x: net.apply(p, x).max(axis=-1))  # here
    for _ in range(100):
        k = choose(theta, s[None])[0]
        s, r, te, tr, _ = env.step(int(k))

# %% right
import gymnasium as gym
import numpy as np
class Learner:
    def __init__(self, n, k):
        self.rng = np.random.default_rng(0)
        self.values = np.zeros((n, k))
    def decide(self, s, share):
        if self.rng.random() < share:
            return int(self.rng.integers(4))
        return int(self.values[s].argmax().clip(0, 3))
def play(env, who):
    s, _ = env.reset()
    for _ in range(100):
        s, r, term, trunc, _ = env.step(who.decide(s, 0.1))
play(gym.make("Taxi-v3"), Learner(500, 6))

# %% right
def commonest(freq_table):
    action = max(freq_table)
    return action

# %% right
def first(sequence):
    action = max(sequence)
    return action

# %% right
import torch
def act(self, q_values):
    action = q_values.argmax(1)
    best, actions = torch.max(q_values, dim=1)
    action = q_values.max(1)[1]
    action = max(range(4), key=lambda a: self.q_table[a])
    return action

# %% right
import numpy as np
import torch
def greedy(Q, q_net, state, rng):
    a = rng.integers(4)
    best, action = q_net(state).max(-1)
    target = best.item()
    return int(q_net(state).argmax(-1))
def backup(Q, state):
    a = np.max(Q[state])
    return a
def best_value(q_net, state):
    return q_net(state).max()

# %% right
def act(q, state):
    action = max(q[state], key=q[state].get)
    return action
def greedy(q_values):
    return max(enumerate(q_values), key=lambda pair: pair[1])[0]

# %% right
import torch
def act(q, obs, env):
    with torch.no_grad():
        best = q(obs).max().item()
        a = q(obs).argmax().item()
    return env.step(int(a)), best

# %% right
import numpy as np
import torch
class Agent:
    def greedy(self, state):
        best, where = self.head(state).max(-1)
        return best, where
    def place(self, x):
        return self.head(x).max(1)[1][0]
    def top(self, x):
        return np.flatnonzero(x == x.max()).max()
    def run(self, env, state):
        for _ in range(5):
            v, u = self.greedy(state)
            state, r, te, tr, _ = env.step(u.item())
            env.step(self.place(state))
            env.step(int(self.top(state)))
            env.step(torch.max(state, -state)[0])
            env.step(env.action_space.high.max())
            env.step(max(-1.0, min(1.0, float(v))))

# %% right
import jax
def play(net, env, theta, s):
    choose = jax.jit(lambda p, x: (net.apply(p, x).argmax(axis=-1), net.apply(p, x).max(axis=-1)))
    for _ in range(100):
        k, v = choose(theta, s[None])
        s, r, te, tr, _ = env.step(int(k[0]))
