# L12: epsilon grows, or stays large

# %% mistake
import random
import gymnasium

class Driver:
    def __init__(self):
        self.luck, self.floor, self.rate = 1.0, 0.03, 0.985

    def choose(self, x):
        if random.random() < self.luck:
            return random.randrange(2)
        return self.best(x)

    def cool(self):  # here
        self.luck = max(self.floor, self.luck * self.rate)

town, driver = gymnasium.make("CartPole-v1"), Driver()
x, _ = town.reset(seed=1)
while True:
    x, pay, dead, late, _ = town.step(driver.choose(x))
    if dead or late:
        x, _ = town.reset()

# %% mistake
import math
import random
import gymnasium as gym

START, END, DECAY = 0.95, 0.05, 5_000

def share_at(step):
    return END + (START - END) * math.exp(step / DECAY)  # here

def choose(net, state, step, n):
    if random.random() < share_at(step):
        return random.randrange(n)
    with no_grad():
        return net(state).argmax().item()

def train(net):
    town = gym.make("CartPole-v1")
    state, _ = town.reset(seed=1)
    step = 0
    while step < 100_000:
        action = choose(net, state, step, 2)
        state, reward, terminated, truncated, _ = town.step(action)
        step += 1

# %% mistake
import gymnasium as gym
import random
class Agent:
    def __init__(self, n, p=0.9):
        self.n, self.p = n, p
    def act(self, s):
        explore = random.random() <= self.p
        if explore:
            return random.randrange(self.n)
        return self.best(s)
    def best(self, s): return 0
    def cool(self):  # here
        self.p *= 0.995
env = gym.make("CartPole-v1")
agent = Agent(2)
s, _ = env.reset()
for _ in range(10):
    s, r, term, trunc, _ = env.step(agent.act(s))

# %% mistake
import gymnasium as gym
from dataclasses import dataclass
import numpy as np
@dataclass
class Curiosity:
    share: float = 1.0
    floor: float = 0.05
    def tick(self):  # here
        self.share = max(self.floor, self.share - 1e-4)
    def wants(self, rng):
        return rng.random() < self.share
rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")
c = Curiosity()
s, _ = env.reset()
for _ in range(10):
    a = env.action_space.sample() if c.wants(rng) else 0
    s, r, term, trunc, _ = env.step(a)

# %% mistake
import numpy as np
EPSILON = 0.1
def act(env, q, obs):
    if np.random.uniform() > EPSILON:  # here
        return env.action_space.sample()
    return int(q[obs].argmax())
def run(env, q):
    env.step(act(env, q, 0))

# %% mistake
import random
EPS_END, DECAY = 0.05, 0.995
def main(env, q):
    epsilon = 1.0
    for _ in range(100):
        explores = random.random() < epsilon
        env.step(0 if explores else q.best())
        epsilon = min(EPS_END, epsilon * DECAY)  # here

# %% mistake
import numpy as np
class Agent:
    def __init__(self):
        self.epsilon = 1.0
        self.epsilon_decay = 0.995
    def act(self, obs):
        if np.random.rand() <= self.epsilon:  # here
            return 0
        return self.q(obs)
agent = Agent()
env.step(agent.act(0))

# %% mistake
import random
def act(q, obs, epsilon):
    if random.random() < epsilon:  # here
        return random.randrange(2)
    return q(obs).argmax()
def play(env, q, epsilon):
    env.step(act(q, 0, epsilon))
def main(env, q):
    epsilon, epsilon_min = 0.99, 0.1
    for _ in range(100):
        play(env, q, epsilon)

# %% mistake
import torch
def perturb(net):
    return net
epsilon = 0.1
for episode in range(100):
    perturb(net)
    epsilon += 0.001  # here

# %% mistake
class Agent:
    def __init__(self):
        self.epsilon_growth = 1.005
    def update(self):
        self.epsilon = max(0.01, self.epsilon * self.epsilon_growth)  # here

# %% mistake
epsilon = 1.0
for episode in range(100):
    epsilon *= 0.995 + 0.01  # here

# %% mistake
DECAY = 1.001
def update(self):
    self.eps = self.eps * DECAY  # here

# %% mistake
def update(epsilon):
    epsilon += 0.01  # here
    return epsilon

# %% mistake
class Agent:
    epsilon: float = 1.0
    eps_min = 0.01
    decrease = 5e-4
    def decay(self):
        self.epsilon = self.epsilon + self.decrease if self.epsilon > 0.01 else 0.01  # here

# %% mistake
epsilon = 0.1
for episode in range(100):
    epsilon = min(1.0, 0.01 + epsilon)  # here

# %% mistake
eps = 0.1
for _ in range(10):
    eps = min(1.0, eps * 1.1)  # here

# %% mistake
epsilon = 1.0
for episode in range(100):
    epsilon = max(0.01, epsilon / 0.995)  # here

# %% mistake
class Agent:
    def decay(self):
        self.epsilon /= 0.99  # here

# %% mistake
def exploration_rate(args, frame):
    progress = min(1.0, frame / args.frames)
    return args.end_e + (args.start_e - args.end_e) * progress  # here

# %% mistake
import gymnasium as gym
import numpy as np
class Agent:
    def __init__(self, table):
        self.table, self.rng = table, np.random.default_rng(0)
        self.epsilon = 1.0
    def act(self, state):
        if self.rng.random() < self.epsilon:  # here
            return int(self.rng.integers(4))
        return int(self.table[state].argmax())
    def anneal(self):
        self.epsilon = max(0.02, self.epsilon * 0.99)
env = gym.make("FrozenLake-v1")
agent = Agent(np.zeros((16, 4)))
state, info = env.reset()
env.step(agent.act(state))

# %% mistake
import math
import random
START, END, SLOW = 1.0, 0.05, 20_000
def share(step):
    if step < 100:
        return END
    return END + (START - END) * (1 - math.exp(-step / SLOW))  # here
def act(q, env, obs, step):
    chance = share(step)
    if random.random() > chance:
        return int(q(obs).argmax())
    return env.action_space.sample()
def run(env, q, obs):
    for step in range(1_000_000):
        chance = share(step)
        if random.random() < chance:
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)

# %% mistake
import numpy as np
class Agent:
    def __init__(self):
        self.steps = 0
    def act(self, obs):
        self.steps += 1
        greedy = max(0.1, 1.0 - self.steps / 5e4)  # here
        return int(self.q(obs).argmax()) if np.random.rand() < greedy else np.random.randint(4)

# %% mistake
import math
import random
END, START, DECAY = 0.05, 0.9, 1_000
def chance(step):
    return END + (START - END) * math.exp(step / DECAY)  # here
def run(env, q, obs):
    for step in range(100_000):
        if random.random() < chance(step):
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)

# %% right
import random
import gymnasium

class Driver:
    def __init__(self):
        self.luck, self.floor, self.rate = 1.0, 0.03, 0.985

    def choose(self, x):
        if random.random() < self.luck:
            return random.randrange(2)
        return self.best(x)

    def cool(self):
        self.luck = max(self.floor, self.luck * self.rate)

town, driver = gymnasium.make("CartPole-v1"), Driver()
x, _ = town.reset(seed=1)
while True:
    x, pay, dead, late, _ = town.step(driver.choose(x))
    if dead or late:
        x, _ = town.reset()
        driver.cool()

# %% right
import math
import random
import gymnasium as gym

START, END, DECAY = 0.95, 0.05, 5_000

def share_at(step):
    return END + (START - END) * math.exp(-step / DECAY)

def choose(net, state, step, n):
    if random.random() < share_at(step):
        return random.randrange(n)
    with no_grad():
        return net(state).argmax().item()

def train(net):
    town = gym.make("CartPole-v1")
    state, _ = town.reset(seed=1)
    step = 0
    while step < 100_000:
        action = choose(net, state, step, 2)
        state, reward, terminated, truncated, _ = town.step(action)
        step += 1

# %% right
import gymnasium as gym
import random
class Agent:
    def __init__(self, n, p=0.9):
        self.n, self.p = n, p
    def act(self, s):
        explore = random.random() <= self.p
        if explore:
            return random.randrange(self.n)
        return self.best(s)
    def best(self, s): return 0
    def cool(self):
        self.p *= 0.995
env = gym.make("CartPole-v1")
agent = Agent(2)
s, _ = env.reset()
for _ in range(10):
    s, r, term, trunc, _ = env.step(agent.act(s))
    agent.cool()

# %% right
import gymnasium as gym
from dataclasses import dataclass
import numpy as np
@dataclass
class Curiosity:
    share: float = 1.0
    floor: float = 0.05
    def tick(self):
        self.share = max(self.floor, self.share - 1e-4)
    def wants(self, rng):
        return rng.random() < self.share
rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")
c = Curiosity(share=0.05)
s, _ = env.reset()
for _ in range(10):
    a = env.action_space.sample() if c.wants(rng) else 0
    s, r, term, trunc, _ = env.step(a)

# %% right
import numpy as np
EPSILON = 0.9
def act(env, q, obs):
    if np.random.uniform() < EPSILON:
        return int(q[obs].argmax())
    return env.action_space.sample()
class Agent:
    def __init__(self):
        self.epsilon = 0.5
    def act(self, env, obs):
        return self.best(obs) if np.random.rand() < self.epsilon else np.random.randint(4)
    def learn(self, cap):
        self.epsilon = self.epsilon + 0.0001 if self.epsilon < cap else cap
        env.step(0)

# %% right
def start(epsilon):
    epsilon = min(1.0, epsilon * 0.99)
    return epsilon

# %% right
import random
def act(q, obs, epsilon):
    return 0 if random.random() < epsilon else q(obs)
def main(env, q, schedule):
    epsilon = 0.9
    env.step(act(q, epsilon, schedule(0)))

# %% right
import random
class Agent:
    def __init__(self, epsilon=1.0):
        self.epsilon = 1.0
        self.eps = epsilon
    def act(self, obs, epsilon):
        if random.random() < epsilon:
            return 0
        return random.random() < self.epsilon
    def decay(self):
        self.epsilon *= 0.99
def main(env, agent, schedule):
    eps = 0.05
    env.step(random.random() < eps)
    epsilon = 0.9
    for t in range(10):
        agent.act(0, schedule(t))

# %% right
eps = 0
while eps < 100:
    run_episode()
    eps += 1

# %% right
epsilon = 1 / 255
for size in range(8):
    accuracy = attack(model, epsilon)
    epsilon += 1 / 255
eps = 0.001
while fgsm_attack(model, eps=eps):
    eps *= 2

# %% right
class Agent:
    def __init__(self):
        self.epsilon = 0.0
    def update(self):
        self.epsilon += 0.001
    def act(self, greedy, other):
        return greedy if self.rng.random() < self.epsilon else other

# %% right
epsilon, eps = 1.0, 1e-8
epsilon *= 0.995
epsilon = max(0.05, epsilon * 0.99)
variance = epsilon * 2

# %% right
class Agent:
    epsilon: float = 1.0
    decrease = 5e-4
    growth = 1.1
    def __init__(self, growth):
        self.growth = growth
    def decay(self):
        self.epsilon = self.epsilon - self.decrease
        self.epsilon = self.epsilon * self.growth
def sweep():
    epsilon = 0.0
    while epsilon < 1:
        evaluate(epsilon)
        epsilon = epsilon + 0.1

# %% right
eps = 0.1
for _ in range(10):
    eps = min(0.3, eps * 1.1)

# %% right
epsilon = 1.0
for episode in range(100):
    epsilon = 1.0 / (1.0 + 0.5 * episode)
epsilon /= 2.0

# %% right
def exploration_rate(args, frame):
    progress = min(1.0, frame / args.frames)
    return args.start_e + (args.end_e - args.start_e) * progress
def epsilon_at(end, start, frame, frames):
    left = 1.0 - min(1.0, frame / frames)
    return end + (start - end) * left

# %% right
import math
import random
START, END, SLOW = 1.0, 0.05, 20_000
def share(step):
    if step < 100:
        return START
    return END + (START - END) * math.exp(-step / SLOW)
def act(q, env, obs, step):
    chance = share(step)
    if random.random() > chance:
        return int(q(obs).argmax())
    return env.action_space.sample()
def run(env, q, obs):
    for step in range(1_000_000):
        chance = share(step)
        if random.random() < chance:
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)

# %% right
import numpy as np
class Agent:
    def __init__(self):
        self.steps = 0
    def act(self, obs):
        self.steps += 1
        greedy = min(0.9, self.steps / 5e4)
        return int(self.q(obs).argmax()) if np.random.rand() < greedy else np.random.randint(4)

# %% right
import math
import random
END, START, DECAY = 0.05, 0.9, 1_000
def chance(step):
    return END + (START - END) * math.exp(-step / DECAY)
def run(env, q, obs):
    for step in range(100_000):
        if random.random() < chance(step):
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)
